"""The options of the plugin that compare a session with a stored run, and that write a report."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import parity.pytest_baseline  # pytester forgets what is first imported inside it
import parity.report.html.run  # noqa: F401
from parity.api import load
from parity.api import run as run_cases
from parity.casefile.case import Case
from parity.engine.environment import Environment
from parity.engine.run import Session
from parity.engine.workers import Execution, Workers
from parity.pytest_record import SharedRecord
from parity.record.result import open_record
from parity.record.store import Store
from parity.worker.protocol import Enclosure, Failure, PathOutcome, References

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
CASE = """\
about: A case for tests.
op: dot_general
operands:
  lhs: {shape: [2], dtype: float32, values: [1, 2]}
  rhs: {shape: [2], dtype: float32, values: [3, 4]}
attributes: {contracting: [[0], [0]]}
paths: [eager, jit, jax2tf-native]
sweep: {compute_dtype: [bfloat16, float32]}
"""
PLUGINS = ("-p", "parity.pytest_plugin", "-p", "no:hypothesispytest", "-p", "no:benchmark")
B16 = "dot:compute_dtype=bfloat16"
F32 = "dot:compute_dtype=float32"
IDEAL = 11.0

Numbers = dict[tuple[str, str], float]
Run = Callable[..., pytest.RunResult]


def execution(case: Case, paths: Sequence[str], name: str, numbers: Mapping[Any, float]) -> Any:
    """What workers would answer: 11, if nothing else is said; NaN stands for an error."""
    outcomes = []
    for path in dict.fromkeys((*paths, case.baseline)):
        number = numbers.get((case.point["compute_dtype"], path), IDEAL)
        failure = Failure("error", "compile", "XlaError", "no such dot")
        outcomes.append(
            PathOutcome(path, failure=failure)
            if np.isnan(number)
            else PathOutcome(
                path,
                outputs={"out": np.float32(number)},
                evidence={"stablehlo_sha256": "a" * 64, "hlo_sha256": f"{number:064}"},
            )
        )
    ideal, declared = np.float64(IDEAL), np.float32(IDEAL)
    references = References(
        f64={"out": Enclosure(ideal, ideal - 2, ideal + 2)},
        strict={"out": Enclosure(declared, declared, declared)},
    )
    return Execution(name, tuple(outcomes), references)


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> Numbers:
    """What paths give, by dtype and path, where it is not 11."""
    found: Numbers = {}

    def execute(
        self: Workers, case: Case, paths: Sequence[str], where: Environment, **more: object
    ) -> Execution:
        return execution(case, paths, where.name, found)

    monkeypatch.setattr(Workers, "execute", execute)
    return found


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pytest in a project with one case file."""
    monkeypatch.setenv("COLUMNS", "200")
    pytester.makepyprojecttoml("[tool.parity]\ncases = ['cases']\n")
    pytester.mkdir("cases")
    (pytester.path / "cases" / "dot.yaml").write_text(CASE)

    def call(*arguments: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess(*PLUGINS, *arguments)

    return call


@pytest.fixture
def record(run: Run, numbers: Numbers, pytester: pytest.Pytester) -> str:
    """A stored run: native differs for bfloat16, everything else is identical."""
    numbers["bfloat16", "jax2tf-native"] = 12
    file = run_cases(out=pytester.path / "stored", cache=False).record
    assert file is not None
    return str(file.relative_to(pytester.path))


def summary(result: pytest.RunResult) -> list[str]:
    """The lines of our section of the terminal summary."""
    lines = iter(result.outlines)
    for line in lines:
        if line.startswith("=") and "parity: against" in line:
            break
    found = []
    for line in lines:
        if line.startswith("="):
            break
        found.append(line)
    return found


class TestBaseline:
    def test_what_did_not_change_does_not_fail(self, run: Run, record: str) -> None:
        run().assert_outcomes(failed=1, passed=5)
        result = run(f"--parity-baseline={record}")
        result.assert_outcomes(passed=6)
        assert summary(result) == [
            "0 items got worse",
            "6 unchanged",
            "1 item with a finding that did not get worse",
            f"  cases/dot.yaml::{B16}[jax2tf-native]",
        ]

    def test_what_got_worse_fails_with_direction_cause_and_both_sides(
        self, run: Run, record: str, numbers: Numbers
    ) -> None:
        numbers["bfloat16", "jit"] = 12
        result = run(f"--parity-baseline={record}")
        result.assert_outcomes(passed=5, failed=1)
        # 12 and 11 are 2**20 steps of float32 apart
        head = (
            "jit newly divergent, compiler changed: identical -> divergent, 1 (1048576 ulp) apart"
        )
        result.stdout.fnmatch_lines(
            [
                f"*_ {B16}?jit? _*",
                f"{head}*",
                f"A: environment default of *{record}, parity *",
                "B: environment default of a run without a record, parity *",
                "*grade*identical*divergent*",
                f"cases/dot.yaml::{B16}  float32??",
                f"FAILED cases/dot.yaml::{B16}?jit? - {head}*",
            ]
        )
        assert summary(result)[:2] == ["1 item got worse", "1 newly divergent, 5 unchanged"]
        assert "Traceback" not in result.stdout.str()

    def test_an_error_where_there_was_a_number_fails(
        self, run: Run, record: str, numbers: Numbers
    ) -> None:
        numbers["float32", "jit"] = float("nan")
        result = run(f"--parity-baseline={record}")
        result.assert_outcomes(passed=5, failed=1)
        result.stdout.fnmatch_lines(
            ["jit new error, outcome changed (XlaError: no such dot): identical -> error at*"]
        )

    def test_what_got_farther_from_f64_fails(self, run: Run, record: str, numbers: Numbers) -> None:
        numbers["bfloat16", "jax2tf-native"] = 12.5
        result = run(f"--parity-baseline={record}")
        result.assert_outcomes(passed=5, failed=1)
        result.stdout.fnmatch_lines(
            ["jax2tf-native farther from f64, compiler changed: divergent -> divergent, 0.5 (5242*"]
        )

    def test_what_got_better_does_not_fail(self, run: Run, record: str, numbers: Numbers) -> None:
        numbers.clear()
        result = run(f"--parity-baseline={record}")
        result.assert_outcomes(passed=6)
        assert summary(result) == ["0 items got worse", "1 fixed, 5 unchanged"]

    def test_what_the_baseline_lacks_is_judged_by_itself_and_said(
        self, run: Run, record: str, numbers: Numbers, pytester: pytest.Pytester
    ) -> None:
        changed = CASE.replace("bfloat16, float32", "bfloat16, float16")
        (pytester.path / "cases" / "dot.yaml").write_text(
            changed.replace("jax2tf-native]", "jax2tf-native, jax2tf-nonnative]")
        )
        numbers["float16", "jit"] = 12
        result = run(f"--parity-baseline={record}")
        result.assert_outcomes(passed=7, failed=1)
        result.stdout.fnmatch_lines(["jit divergent, 1 (1048576 ulp) from the baseline*"])
        assert summary(result)[-7:] == [
            "not in the baseline, so judged by itself: 1 item: the path",
            f"  cases/dot.yaml::{B16}[jax2tf-nonnative]",
            "not in the baseline, so judged by itself: 4 items: the case",
            *(
                f"  cases/dot.yaml::dot:compute_dtype=float16[{path}]"
                for path in ("eager", "jax2tf-native", "jax2tf-nonnative", "jit")
            ),
        ]

    def test_what_is_not_comparable_is_judged_by_itself_and_said(
        self, run: Run, record: str, pytester: pytest.Pytester
    ) -> None:
        changed = CASE.replace("values: [3, 4]", "values: [4, 3]")
        (pytester.path / "cases" / "dot.yaml").write_text(changed)
        result = run(f"--parity-baseline={record}", "-k", "bfloat16")
        result.assert_outcomes(passed=2, failed=1)
        lines = summary(result)
        assert lines[:2] == ["0 items got worse", "0 unchanged"]
        assert lines[2].startswith(
            "not comparable, so judged by itself: 3 items: operands changed:"
        )

    def test_a_selection_is_compared_alone(self, run: Run, record: str, numbers: Numbers) -> None:
        numbers["bfloat16", "jax2tf-native"] = 14
        result = run(f"--parity-baseline={record}", "-k", "jit")
        result.assert_outcomes(passed=2)
        assert summary(result) == ["0 items got worse", "2 unchanged"]

    def test_junit_says_what_changed(
        self, run: Run, record: str, numbers: Numbers, pytester: pytest.Pytester
    ) -> None:
        numbers["bfloat16", "jit"] = 12
        run(f"--parity-baseline={record}", "--junitxml=junit.xml")
        found = {
            case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")}
            for case in ET.parse(pytester.path / "junit.xml").iter("testcase")
        }
        jit, eager = found[f"{B16}[jit]"], found[f"{B16}[eager]"]
        assert (jit["change"], jit["change_cause"]) == ("newly divergent", "compiler changed")
        assert eager["change"] == "unchanged"
        assert "change_cause" not in eager

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--parity-baseline=no.sqlite"], "*--parity-baseline: *no.sqlite: no such record*"),
            (
                ["--parity-baseline=cases/dot.yaml"],
                "*--parity-baseline: *dot.yaml: is not a record*",
            ),
            (
                ["--parity-baseline={record}", "--parity-baseline-env=dfault"],
                "*unknown environment (got dfault; allowed default)*",
            ),
            (
                ["--parity-baseline-env=default"],
                "*--parity-baseline-env stands beside --parity-baseline only*",
            ),
        ],
    )
    def test_a_mistake_is_a_usage_error(
        self, run: Run, record: str, arguments: list[str], message: str
    ) -> None:
        result = run(*(argument.replace("{record}", record) for argument in arguments))
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([message])

    def test_of_several_environments_one_is_named(
        self, run: Run, numbers: Numbers, pytester: pytest.Pytester
    ) -> None:
        env = [f"{name}={sys.executable}" for name in ("old", "new")]
        file = run_cases(out=pytester.path / "stored", env=env, cache=False).record
        result = run(f"--parity-baseline={file}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(
            ["*has 2 environments (old, new); which one is to be compared?"]
        )
        run(f"--parity-baseline={file}", "--parity-baseline-env=new").assert_outcomes(passed=6)

    def test_a_record_without_results_is_a_usage_error(
        self, run: Run, pytester: pytest.Pytester
    ) -> None:
        empty = Store(pytester.path, version="0")
        empty.close()
        result = run(f"--parity-baseline={empty.file}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*has no results*"])


class TestHtml:
    def test_has_every_item_of_the_session(
        self, run: Run, numbers: Numbers, pytester: pytest.Pytester
    ) -> None:
        numbers["bfloat16", "jit"] = 12
        result = run("--parity-html=report.html")
        result.assert_outcomes(passed=5, failed=1)
        file = pytester.path / "report.html"
        result.stdout.fnmatch_lines([f"parity: report: {file}"])
        shown = file.read_text()
        assert "Content-Security-Policy" in shown
        assert f"cases/dot.yaml::{B16}" in shown
        assert "1 row in 1 case fails the run." in shown

    def test_leaves_nothing_else_behind(
        self,
        run: Run,
        numbers: Numbers,
        pytester: pytest.Pytester,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(pytester.mkdir("temporary")))
        before = set(pytester.path.iterdir())
        run("--parity-html=report.html", "-p", "no:cacheprovider")
        assert set(pytester.path.iterdir()) - before == {pytester.path / "report.html"}
        assert list((pytester.path / "temporary").iterdir()) == []

    def test_of_a_session_that_stopped_says_so(
        self, run: Run, numbers: Numbers, pytester: pytest.Pytester
    ) -> None:
        numbers["bfloat16", "jit"] = 12
        run("--parity-html=report.html", "-x")
        shown = (pytester.path / "report.html").read_text()
        assert "it was interrupted after 1 of 2 results." in shown

    def test_is_not_written_where_nothing_was_run(
        self, run: Run, numbers: Numbers, pytester: pytest.Pytester
    ) -> None:
        result = run("--parity-html=report.html", "-k", "nothing")
        result.stdout.fnmatch_lines(["parity: report: nothing was run, and nothing written to *"])
        run("--parity-html=report.html", "--collect-only")
        assert not (pytester.path / "report.html").exists()

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("no/report.html", "*--parity-html: *no/report.html: cannot be written (no folder *"),
            ("cases", "*--parity-html: *cases: is a folder*"),
        ],
    )
    def test_a_mistake_is_a_usage_error(self, run: Run, name: str, message: str) -> None:
        result = run(f"--parity-html={name}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([message])

    def test_that_cannot_be_written_is_an_error_of_its_own(
        self, run: Run, numbers: Numbers, pytester: pytest.Pytester
    ) -> None:
        pytester.makeconftest(
            "import pathlib\n"
            "def pytest_collection_finish(session):\n"
            "    pathlib.Path('report.html').mkdir()\n"
        )
        result = run("--parity-html=report.html")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.assert_outcomes(passed=6)
        result.stdout.fnmatch_lines(["parity: --parity-html: *report.html: is a folder*"])


def test_cases_stand_in_the_order_of_the_selection(
    run: Run, numbers: Numbers, pytester: pytest.Pytester
) -> None:
    """Whichever process is done first, and however often a case was run."""
    first, second = load(pytester.path / "cases" / "dot.yaml").cases
    made = SharedRecord({"fail_on": "divergent"})
    told = SharedRecord({"fail_on": "divergent"}, made.file)
    with Session() as session:
        for record, case, position in ((told, second, 1), (made, first, 0), (told, first, 0)):
            record.add(session.done(case, case.paths), position=position, wanted=2)
    told.remove()
    result = open_record(made.file)
    assert [one.case.id for one in result.cases] == [first.id, second.id]
    assert result.wanted == 2
    made.remove()
    assert not made.file.parent.exists()


@pytest.fixture
def processes(run: Run, pytester: pytest.Pytester) -> Callable[..., str]:
    """Runs pytest in a process of its own, with workers whose jit differs for bfloat16."""
    pytester.makeconftest(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_pytest_reports import execution\n"
        "from parity.engine.workers import Workers\n"
        "def execute(self, case, paths, where, **more):\n"
        "    return execution(case, paths, where.name, {('bfloat16', 'jit'): 12.0})\n"
        "Workers.execute = execute\n"
    )

    def call(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *PLUGINS, *arguments, "cases"],
            cwd=pytester.path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stdout

    return call


class TestXdist:
    def test_one_report_and_one_summary_of_all_processes(
        self, record: str, processes: Callable[..., str], pytester: pytest.Pytester
    ) -> None:
        shown = processes(
            *("-n", "2", "--junitxml=junit.xml", "--parity-html=report.html"),
            f"--parity-baseline={record}",
        )
        assert "1 failed, 5 passed" in shown
        assert "1 item got worse\n1 newly divergent, 1 fixed, 4 unchanged\n" in shown
        assert shown.count("parity: report: ") == 1
        page = (pytester.path / "report.html").read_text()
        assert "1 row in 1 case fails the run." in page
        assert "it was interrupted" not in page
        cases = ET.parse(pytester.path / "junit.xml").iter("testcase")
        found = {
            case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")}
            for case in cases
        }
        assert len(found) == 6
        jit = found[f"{B16}[jit]"]
        assert jit["change"] == "newly divergent"
        assert f"FAILED cases/dot.yaml::{B16}[jit] - jit newly divergent, compiler" in shown
        assert jit["max_ulp_baseline"] == "1048576.0"
        assert re.fullmatch("[0-9a-f]{64}", jit["sha256"] or "")
