"""`parity accept`: what a run found becomes what its case file expects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parity.casefile.load import load
from parity.worker.protocol import Failure

from .case import FILE, HEAD, SWEEP

Invoke = Callable[..., tuple[int, str, str]]
Run = Callable[..., str]
Gives = Any
Accepted = Callable[..., str]


def test_what_is_accepted_is_expected_from_then_on(invoke: Invoke, run: Run, gives: Gives) -> None:
    gives("jit", 11.25)
    gives("jax2tf-native", 11.25)
    record = run(HEAD)
    code, out, err = invoke(
        "accept", record, "--case", "*", "--path", "jit,jax2tf-native", "--yes",
        "--reason", "excess\n  precision", "--link", "https://example.org", "--until", "2999-01-31",
    )  # fmt: skip
    entry = (
        "expect:\n"
        "  - path: [jit, jax2tf-native]\n"
        "    grade: divergent\n"
        "    because: excess precision\n"
        "    link: https://example.org\n"
        "    until: 2999-01-31\n"
    )
    assert (code, err) == (0, "accepts 2 rows in 1 file\nwrote cases/d.yaml\n")
    assert out.startswith("--- cases/d.yaml\n+++ cases/d.yaml\n@@ -5,3 +5,9 @@\n")
    assert "".join(line[1:] for line in out.splitlines(True)[3:] if line[0] == "+") == entry
    assert FILE.read_text() == HEAD + entry
    assert invoke("run", "--no-cache")[0] == 0
    assert invoke("accept", record, "--case", "*", "--path", "jit", "--reason", "x") == (
        5,
        "",
        f"error: {record}: no finding among what --case and --path name\n",
    )


def test_where_covers_the_accepted_cases_and_no_other(
    invoke: Invoke, run: Run, gives: Gives, accepted: Accepted
) -> None:
    gives("jit", 11.25, seed="2")
    gives("jit", 11.25, seed="3", batch="4")
    gives("jax2tf-native", 11.25, seed="2")
    record = run(HEAD + SWEEP)
    assert accepted(record, "--dry-run") == ""
    assert accepted(record, path="jit,jax2tf-native") == (
        "expect:\n"
        "  - path: [jit, jax2tf-native]\n"
        "    where: {seed: 2}\n"
        "    grade: divergent\n"
        "    because: known\n"
        "  - path: jit\n"
        "    where: {seed: 3, batch: 4}\n"
        "    grade: divergent\n"
        "    because: known\n"
    )
    assert invoke("run", "--no-cache")[0] == 0


def test_only_the_chosen_cases(invoke: Invoke, run: Run, gives: Gives) -> None:
    gives("jit", 11.25)
    record = run(HEAD + SWEEP)
    code, _, _ = invoke(
        "accept", record, "--case", "*batch=5", "--path", "jit", "--reason", "x", "--yes"
    )
    assert code == 0
    assert "    where: {batch: 5}\n" in FILE.read_text()
    assert [bool(case.expect) for case in load(FILE).cases] == [False, True] * 3


def test_output_is_named_where_others_are_fine(
    invoke: Invoke, run: Run, gives: Gives, accepted: Accepted
) -> None:
    for path in ("eager", "jit", "jax2tf-native"):
        gives(path, {"a": 11, "b": 11})
    gives("jit", {"a": 11, "b": 11.25})
    gives("jax2tf-native", {"a": 11.25, "b": 12})
    record = run(HEAD)
    assert accepted(record, path="jit,jax2tf-native") == (
        "expect:\n"
        "  - path: jit\n"
        "    output: b\n"
        "    grade: divergent\n"
        "    because: known\n"
        "  - path: jax2tf-native\n"
        "    output: a\n"
        "    grade: divergent\n"
        "    because: known\n"
        "  - path: jax2tf-native\n"
        "    output: b\n"
        "    grade: inaccurate\n"
        "    because: known\n"
    )


def test_an_error_is_expected_by_what_it_says(
    invoke: Invoke, run: Run, gives: Gives, accepted: Accepted
) -> None:
    for batch in ("4", "5"):
        message = f"bad [{batch}, 16] (of float8_e4m3fn) at 0x7f{batch}\nmore"
        gives("jit", Failure("error", "trace", "ValueError", message), batch=batch)
    record = run(HEAD + SWEEP)
    assert accepted(record) == (
        "expect:\n"
        "  - path: jit\n"
        "    outcome: error\n"
        "    stage: trace\n"
        r"    match: bad \[\d+, \d+\] \(of float8_e4m3fn\) at 0x[0-9a-fA-F]+" + "\n"
        "    because: known\n"
    )
    assert invoke("run", "--no-cache")[0] == 0


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (Failure("crashed", "run", "SIGSEGV"), "crashed is never accepted"),
        (Failure("timeout", "run"), "timeout is never accepted"),
        (Failure("out-of-memory", "run"), "out-of-memory is never accepted"),
        (
            Failure("error", "start", "RuntimeError", "x"),
            "it failed at start, outside of the path itself",
        ),
        (np.nan, "mismatched is accepted with --grade mismatched only"),
    ],
)
def test_some_rows_are_never_accepted(
    invoke: Invoke, run: Run, gives: Gives, given: Any, why: str
) -> None:
    gives("jit", given)
    record = run(HEAD)
    arguments = ["accept", record, "--case", "*", "--reason", "x", "--yes", "--path"]
    left_out = f"left out: cases/d.yaml::d[jit]{' out' if given is np.nan else ''}: {why}\n"
    assert invoke(*arguments, "jit") == (2, "", left_out + "error: nothing is left to accept\n")
    assert FILE.read_text() == HEAD
    gives("jax2tf-native", 11.25)
    record = arguments[1] = run()
    code, _, err = invoke(*arguments, "jit,jax2tf-native")
    assert (code, err) == (0, left_out + "accepts 1 row in 1 file\nwrote cases/d.yaml\n")
    assert [entry.paths for entry in load(FILE).cases[0].expect] == [("jax2tf-native",)]


def test_bits_that_change_are_never_accepted(invoke: Invoke, run: Run, gives: Gives) -> None:
    gives("jit", 11.25)
    gives.changed = ("jit",)
    code, _, err = invoke(
        "accept", run(HEAD), "--case", "*", "--path", "jit", "--reason", "x", "--yes"
    )
    assert code == 2
    assert "its bits change from run to run, which no grade says anything of\n" in err


def test_mismatched_must_be_named(
    invoke: Invoke, run: Run, gives: Gives, accepted: Accepted
) -> None:
    gives("jit", np.nan)
    gives("jax2tf-native", 12)
    record = run(HEAD)
    assert accepted(record, "--grade", "mismatched", path="jit,jax2tf-native") == (
        "expect:\n  - path: jit\n    grade: mismatched\n    because: known\n"
    )


EXPECTING = (
    HEAD
    + SWEEP
    + """\
expect:
  # of the first
  - path: [jit, jax2tf-native]
    grade: divergent  # for now
    because: of old
    link: https://example.org/1
# of nothing
"""
)


class TestWorse:
    def test_an_entry_that_all_is_worse_than_is_changed(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        gives("jit", 12)
        gives("jax2tf-native", 12)
        record = run(EXPECTING)
        code, _, _ = invoke(
            "accept", record, "--case", "*", "--path", "jit,jax2tf-native", "--reason", "anew",
            "--yes",
        )  # fmt: skip
        assert code == 0
        assert FILE.read_text() == EXPECTING.replace("divergent", "inaccurate").replace(
            "of old", "anew"
        )
        assert invoke("run", "--no-cache")[0] == 0

    def test_an_entry_that_is_still_true_elsewhere_is_narrowed(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        gives("jit", 11.25)
        gives("jax2tf-native", 11.25)
        gives("jit", 12, seed="3")
        record = run(EXPECTING)
        code, _, _ = invoke(
            "accept", record, "--case", "*", "--path", "jit", "--reason", "anew", "--yes"
        )
        assert code == 0
        old = "    grade: divergent  # for now\n    because: of old\n    link: https://example.org/1\n"
        assert FILE.read_text() == (
            HEAD + SWEEP + "expect:\n  # of the first\n"
            "  - path: jit\n    where: {seed: [1, 2]}\n" + old
            + "  - path: jax2tf-native\n" + old.replace("  # for now", "")
            + "  - path: jit\n    where: {seed: 3}\n    grade: inaccurate\n    because: anew\n"
            "# of nothing\n"
        )  # fmt: skip
        assert invoke("run", "--no-cache")[0] == 0

    def test_improvements_are_not_accepted_with_it(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        gives("jax2tf-native", 12)
        record = run(EXPECTING)
        code, out, err = invoke(
            "accept", record, "--case", "*", "--path", "jit", "--reason", "x", "--yes"
        )
        assert (code, out) == (5, "")
        assert err == (
            f"error: {record}: no finding among what --case and --path name\n"
            "hint: --better accepts the others (6)\n"
        )


class TestBetter:
    def test_an_entry_that_is_not_needed_any_more_goes(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        gives("jax2tf-native", 12)
        record = run(EXPECTING)
        code, _, err = invoke(
            "accept", record, "--case", "*", "--path", "jit,jax2tf-native", "--better", "--yes"
        )
        assert code == 0, err
        assert FILE.read_text() == EXPECTING.replace("[jit, jax2tf-native]", "jax2tf-native", 2)
        assert invoke("run", "--no-cache")[0] == 1  # jax2tf-native is worse, and stays a finding

    def test_a_better_grade_takes_the_place_of_a_worse_one(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        text = EXPECTING.replace("divergent", "inaccurate")
        gives("jit", 11.25)
        gives("jax2tf-native", 11.25)
        record = run(text)
        arguments = ["accept", record, "--case", "*", "--path", "jit,jax2tf-native", "--yes"]
        assert invoke(*arguments, "--reason", "x")[0] == 5
        code, _, err = invoke(*arguments, "--better")
        assert (code, err) == (
            2,
            "error: an entry needs a reason\nhint: --reason 'why it is accepted'\n",
        )
        assert invoke(*arguments, "--better", "--reason", "of old")[0] == 0
        assert FILE.read_text() == EXPECTING
        assert invoke("run", "--no-cache")[0] == 0


ENVIRONMENTS = ("--env", f"old={sys.executable}", "--env", f"new={sys.executable}")


class TestEnvironments:
    def test_what_holds_in_one_only_needs_when(
        self, invoke: Invoke, run: Run, gives: Gives, accepted: Accepted
    ) -> None:
        gives("jit", 11.25, environment="new")
        record = run(HEAD, *ENVIRONMENTS)
        arguments = ["accept", record, "--case", "*", "--path", "jit", "--reason", "x", "--yes"]
        code, out, err = invoke(*arguments)
        assert (code, out) == (2, "")
        assert err == (
            "error: cases/d.yaml: what is accepted does not hold in every environment of the "
            "record:\n"
            "  cases/d.yaml::d[jit] would be stale, identical, in old (jax==0.6.0)\n"
            'hint: it holds in new: --when jax=">=0.7.1"\n'
        )
        assert FILE.read_text() == HEAD
        assert accepted(record, "--when", "jax=>=0.7") == (
            'expect:\n  - path: jit\n    when: {jax: ">=0.7"}\n'
            "    grade: divergent\n    because: known\n"
        )

    def test_the_hint_names_the_side_in_which_it_holds_and_every_obstacle_is_listed(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        gives("jit", 11.25, environment="old")
        record = run(HEAD + "sweep: {seed: [1, 2]}\n", *ENVIRONMENTS)
        code, _, err = invoke(
            "accept", record, "--case", "*", "--path", "jit", "--reason", "x", "--yes"
        )
        assert code == 2
        assert err.splitlines()[1:] == [
            "  cases/d.yaml::d:seed=1[jit] would be stale, identical, in new (jax==0.7.1)",
            "  cases/d.yaml::d:seed=2[jit] would be stale, identical, in new (jax==0.7.1)",
            'hint: it holds in old: --when jax="<0.7.1"',
        ]

    def test_grades_that_differ_are_both_expected(
        self, invoke: Invoke, run: Run, gives: Gives, accepted: Accepted
    ) -> None:
        gives("jit", 11.25, environment="new")
        gives("jit", 12, environment="old")
        record = run(HEAD, *ENVIRONMENTS)
        assert accepted(record) == (
            "expect:\n  - path: jit\n    grade: [divergent, inaccurate]\n    because: known\n"
        )

    def test_an_entry_that_is_true_in_one_is_not_taken_away(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        gives("jit", 11.25, environment="new")
        gives("jit", 12, environment="old")
        text = HEAD + "expect: [{path: jit, grade: divergent, because: x}]\n"
        record = run(text, *ENVIRONMENTS)
        code, _, err = invoke(
            "accept", record, "--case", "*", "--path", "jit", "--reason", "x", "--yes"
        )
        assert (code, FILE.read_text()) == (2, text)
        assert err == (
            "cases/d.yaml:8:10: expect[0] comes true in environment new and not in old "
            "(cases/d.yaml::d[jit])\n"
            "hint: say by hand, under when, in which environments the entry holds\n"
        )
