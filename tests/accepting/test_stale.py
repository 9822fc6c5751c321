"""Entries of `expect` that no longer come true, and what is true in one environment only."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from parity.casefile.load import load
from parity.worker.protocol import Failure

from .case import FILE, HEAD, SWEEP

Invoke = Callable[..., tuple[int, str, str]]
Run = Callable[..., str]
Gives = Any

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
ENVIRONMENTS = ("--env", f"old={sys.executable}", "--env", f"new={sys.executable}")


class TestStale:
    def test_entries_are_listed_with_their_place_and_what_came(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        gives("jax2tf-native", 11.25)
        gives("jit", 11.25, seed="1")
        record = run(EXPECTING)
        assert invoke("accept", record, "--stale") == (
            0,
            "cases/d.yaml:13:5: stale: {path: [jit, jax2tf-native], grade: divergent, "
            "because: of old, link: https://example.org/1}\n"
            "  jit is identical in 4 cases: cases/d.yaml::d:seed=2,batch=4, …\n",
            "1 entry of expect is stale\n",
        )
        assert FILE.read_text() == EXPECTING

    def test_what_is_still_true_stays(self, invoke: Invoke, run: Run, gives: Gives) -> None:
        gives("jax2tf-native", 11.25)
        record = run(EXPECTING)
        code, _, err = invoke("accept", record, "--stale", "--remove", "--yes")
        assert (code, err) == (0, "takes out what is stale in 1 file\nwrote cases/d.yaml\n")
        assert FILE.read_text() == EXPECTING.replace("[jit, jax2tf-native]", "jax2tf-native")
        assert invoke("run", "--no-cache")[0] == 0

    def test_the_last_entry_takes_expect_with_it(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        record = run(EXPECTING)
        assert invoke("accept", record, "--stale", "--remove", "--yes")[0] == 0
        assert FILE.read_text() == HEAD + SWEEP + "# of nothing\n"
        assert invoke("accept", record, "--stale") == (0, "", "no entry of expect is stale\n")
        assert invoke("accept", record, "--stale", "--remove")[0] == 0

    def test_what_was_not_run_is_not_stale(self, invoke: Invoke, run: Run, gives: Gives) -> None:
        gives("jit", Failure("unsupported", "lower", "Unsupported", "no"))
        record = run(EXPECTING, "-k", "seed=1 and (jit or eager)")
        assert invoke("accept", record, "--stale")[1:] == ("", "no entry of expect is stale\n")
        gives.clear()
        record = run(None, "-k", "seed=1 and (jit or eager)")
        assert invoke("accept", record, "--stale", "--remove", "--yes")[0] == 0
        assert "  - path: jit\n    where: {seed: [2, 3]}\n" in FILE.read_text()
        assert [len(case.expect) for case in load(FILE).cases] == [1, 1, 2, 2, 2, 2]

    def test_one_that_is_true_in_another_environment_stays(
        self, invoke: Invoke, run: Run, gives: Gives
    ) -> None:
        gives("jit", 11.25, environment="old")
        text = HEAD + "expect: [{path: jit, grade: divergent, because: x}]\n"
        record = run(text, *ENVIRONMENTS)
        code, out, _ = invoke("accept", record, "--stale")
        assert (code, out.splitlines()[1]) == (
            0,
            "  new jit is identical; true in old, in cases/d.yaml::d",
        )
        assert invoke("accept", record, "--stale", "--remove", "--yes") == (
            1,
            "",
            "1 entry of expect is true in one environment and stale in another; "
            "say by hand, under when, where\n",
        )
        assert FILE.read_text() == text
