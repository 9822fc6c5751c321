from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import parity.api  # pytester forgets what is first imported inside it: import it once, here
import parity.report.summary  # noqa: F401
from parity.casefile.case import Case
from parity.casefile.new import template
from parity.compare.metrics import measure
from parity.compare.rows import Row
from parity.engine.environment import Environment
from parity.engine.run import Session
from parity.engine.workers import Execution, Workers
from parity.errors import WorkerStartError
from parity.program.spec import PROGRAMS
from parity.pytest_plugin import _properties
from parity.worker.protocol import Failure, PathOutcome, References

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
CASE = """\
about: A case for tests.
op: dot_general
operands:
  lhs: {shape: [2], dtype: float32, values: [1, 2]}
  rhs: {shape: [2], dtype: float32, values: [3, 4]}
attributes: {contracting: [[0], [0]]}
paths: [eager, jit, jax2tf-native, jax2tf-nonnative]
sweep: {compute_dtype: [bfloat16, float32]}
"""
# hypothesis would be imported anew in every run
PLUGINS = ("-p", "parity.pytest_plugin", "-p", "no:hypothesispytest")
IDS = [
    f"cases/dot.yaml::dot:compute_dtype={dtype}[{path}]"
    for dtype in ("bfloat16", "float32")
    for path in ("eager", "jit", "jax2tf-native", "jax2tf-nonnative")
]

MEASURED = ("max_abs_baseline", "max_ulp_baseline", "rms_rel_baseline")

Asked = list[tuple[str, tuple[str, ...]]]
Run = Callable[..., pytest.RunResult]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """No worker: `jit` of bfloat16 is off by one, non-native is unsupported. What was asked for."""
    calls: Asked = []

    def execute(
        self: Workers, case: Case, paths: Sequence[str], where: Environment, **more: object
    ) -> Execution:
        calls.append((case.id, tuple(paths)))
        outcomes = []
        for path in dict.fromkeys((*paths, case.baseline)):
            off = path == "jit" and case.point.get("compute_dtype") == "bfloat16"
            failure = Failure("unsupported", "build", "Unsupported", "removed in JAX 0.7.2")
            outcomes.append(
                PathOutcome(path, failure=failure)
                if path == "jax2tf-nonnative"
                else PathOutcome(path, outputs={"out": np.float32(11 + off)})
            )
        return Execution(where.name, tuple(outcomes), References())

    monkeypatch.setattr(Workers, "execute", execute)
    return calls


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


def listed(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


def test_ids_are_those_of_the_command_line(run: Run) -> None:
    assert listed(run("--collect-only", "-q")) == IDS


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["-k", "jax2tf-native"], [IDS[2], IDS[6]]),
        (["-k", "bfloat16 and not jit"], [IDS[0], IDS[2], IDS[3]]),
        ([IDS[5]], [IDS[5]]),
        ([f"--deselect={IDS[0]}", "-k", "eager"], [IDS[4]]),
    ],
)
def test_pytest_selects_by_id(run: Run, arguments: list[str], wanted: list[str]) -> None:
    assert listed(run("--collect-only", "-q", *arguments)) == wanted


def test_a_finding_fails_its_item_and_says_so_in_the_first_line(run: Run, asked: Asked) -> None:
    result = run("-rfs")
    result.assert_outcomes(passed=5, failed=1, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "*_ dot:compute_dtype=bfloat16?jit? _*",
            "jit divergent, 1 (1048576 ulp) from the baseline",
            "cases/dot.yaml::dot:compute_dtype=bfloat16  float32??",
            "  jit differs from eager in 1 of 1 elements*",
            "FAILED cases/dot.yaml::dot:compute_dtype=bfloat16?jit? - jit divergent, 1 (1048*",
            "SKIPPED*unsupported: removed in JAX 0.7.2",
        ]
    )
    assert "Traceback" not in result.stdout.str()


def test_a_case_runs_once_with_the_paths_that_were_selected(run: Run, asked: Asked) -> None:
    run("-k", "jit or jax2tf-native")
    assert asked == [
        ("cases/dot.yaml::dot:compute_dtype=bfloat16", ("jit", "jax2tf-native", "eager")),
        ("cases/dot.yaml::dot:compute_dtype=float32", ("jit", "jax2tf-native", "eager")),
    ]


def test_last_failed_runs_the_item_again(run: Run, asked: Asked) -> None:
    run()
    asked.clear()
    run("--lf").assert_outcomes(failed=1)
    assert asked == [("cases/dot.yaml::dot:compute_dtype=bfloat16", ("jit", "eager"))]


def test_junit_has_the_key_numbers(run: Run, asked: Asked, pytester: pytest.Pytester) -> None:
    run("--junitxml=junit.xml")
    cases = {
        case.get("name"): case for case in ET.parse(pytester.path / "junit.xml").iter("testcase")
    }
    jit = cases["dot:compute_dtype=bfloat16[jit]"]
    assert jit.get("classname") == "cases.dot.yaml"
    found = {p.get("name"): p.get("value") for p in jit.iter("property")}
    # |12 - 11| = 1 = 2**20 ulp of float32 at 11
    assert re.fullmatch("[0-9a-f]{64}", found.pop("sha256"))
    assert found == {
        "outcome": "ok",
        "status": "finding",
        "grade": "divergent",
        "differing": "1",
        "environment": "default",
        "max_abs_baseline": "1.0",
        "max_ulp_baseline": "1048576.0",
        "rms_rel_baseline": str(1 / 11),
    }
    failure = jit.find("failure")
    assert failure is not None
    assert failure.get("message") == "jit divergent, 1 (1048576 ulp) from the baseline"


def test_properties_tell_outputs_apart_and_spell_what_is_not_finite() -> None:
    got, want = np.float32([np.nan, -np.inf, 1]), np.float32([2, 3, 1])
    row = Row(
        case="cases/a.yaml::a",
        path="jit",
        output="grad",
        outcome="ok",
        grade="mismatched",
        bound_share=float("-inf"),
        baseline=measure(got, want),
        environment="default",
    )
    words = {"bound_share": "-Infinity", **dict.fromkeys(MEASURED, "NaN")}
    found = words | {
        "outcome": "ok",
        "status": "ok",
        "grade": "mismatched",
        "environment": "default",
    }
    assert dict(_properties(row, several=False)) == found
    assert dict(_properties(row, several=True)) == {f"{k}.grad": v for k, v in found.items()}


def test_options_reach_the_engine(run: Run, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    create = Session.__init__

    def init(self: Session, options: object) -> None:
        seen.append(options)
        create(self, options)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "__init__", init)
    result = run("--parity-python=some/python", "--parity-timeout=7", "--parity-fail-on=inaccurate")
    result.assert_outcomes(passed=6, skipped=2)
    (options,) = seen
    assert options.environments[0].python == "some/python"
    assert (options.limits.timeout, options.fail_on) == (7.0, "inaccurate")


def test_a_grade_that_does_not_exist_is_a_usage_error(run: Run) -> None:
    result = run("--parity-fail-on=bad")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--parity-fail-on: invalid choice: 'bad'*"])


def test_a_broken_configuration_is_a_usage_error(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.parity]\ncase = ['cases']\n")
    result = run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*:2:1: unknown key in ?tool.parity? (got case;*"])


def test_an_invalid_file_is_one_failing_item_and_the_others_run(
    run: Run, asked: Asked, pytester: pytest.Pytester
) -> None:
    (pytester.path / "cases" / "bad.yaml").write_text(CASE.replace("about:", "abuot:"))
    (pytester.path / "cases" / "worse.yaml").write_bytes(b"\xff{")
    result = run()
    result.assert_outcomes(passed=5, failed=3, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "*_ invalid _*",
            "cases/bad.yaml:1:1: unknown key 'abuot'*",
            "hint: did you mean 'about'?",
            "FAILED cases/bad.yaml::invalid - cases/bad.yaml:1:1: unknown key 'abuot'*",
            "FAILED cases/worse.yaml::invalid - *UTF-8*",
        ]
    )


def test_an_environment_that_cannot_run_fails_each_item_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []

    def execute(
        self: Workers, case: Case, paths: Sequence[str], where: Environment, **more: object
    ) -> Execution:
        starts.append(case.id)
        raise WorkerStartError("python cannot execute anything: no jax", hint="parity doctor")

    monkeypatch.setattr(Workers, "execute", execute)
    result = run("-k", "jit or eager")
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(["FAILED *jit* - python cannot execute anything: no jax"])
    assert len(starts) == 2


def test_a_fault_of_ours_keeps_its_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def execute(
        self: Workers, case: Case, paths: Sequence[str], where: Environment, **more: object
    ) -> Execution:
        raise ZeroDivisionError("our own")

    monkeypatch.setattr(Workers, "execute", execute)
    result = run("-k", "float32 and jit")
    result.stdout.fnmatch_lines(["*raise ZeroDivisionError*", "E*ZeroDivisionError: our own"])


def test_workers_end_with_the_session(
    run: Run, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = []
    monkeypatch.setattr(Session, "__enter__", lambda self: events.append("enter") or self)
    monkeypatch.setattr(Session, "__exit__", lambda self, *exc: events.append("exit"))
    run()
    assert events == ["enter", "exit"]


class TestWhatIsCollected:
    @pytest.mark.parametrize(
        "text",
        [
            "name: build\non: [push]\njobs: {}\n",
            "openapi: 3.0.0\npaths: {}\n",
            "- hosts: all\n  tasks: []\n",
            "op: replace\npath: /a\n",
            "steps:\n- script: make\n",
            "{{ not even yaml",
            "",
        ],
    )
    def test_foreign_yaml_is_left_alone(self, pytester: pytest.Pytester, text: str) -> None:
        (pytester.mkdir("cases") / "x.yaml").write_text(text)
        (pytester.path / "y.yml").write_text(text)
        (pytester.path / "z.yaml").write_bytes(b"\xff\xfe")
        result = pytester.runpytest_inprocess(*PLUGINS, "--collect-only")
        assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED

    @pytest.mark.parametrize(
        "text",
        [
            CASE,
            "# yaml-language-server: $schema=../parity.schema.json\nop: dot_general\n",
            template("callable", "x"),
            template("flax", "x"),
            template("steps", "x"),
        ],
        ids=["op", "schema", *PROGRAMS],
    )
    def test_a_case_file_is_known_by_its_looks(self, pytester: pytest.Pytester, text: str) -> None:
        (pytester.mkdir("anywhere") / "x.yml").write_text(text)
        result = pytester.runpytest_inprocess(*PLUGINS, "--collect-only", "-q")
        assert all(line.startswith("anywhere/x.yml::") for line in listed(result))
        assert listed(result)

    def test_configured_folders_hold_case_files_only(
        self, run: Run, pytester: pytest.Pytester
    ) -> None:
        (pytester.path / "cases" / "x.yaml").write_text("{{ not even yaml")
        assert "cases/x.yaml::invalid" in listed(run("--collect-only", "-q"))


class TestProcess:
    """What only processes of their own show."""

    def python(self, pytester: pytest.Pytester, *arguments: str, path: str = str(ROOT)) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=pytester.path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def test_collecting_imports_neither_jax_nor_tensorflow(
        self, run: Run, pytester: pytest.Pytester
    ) -> None:
        pytester.makeconftest(
            "import sys\n"
            "def pytest_sessionfinish(session):\n"
            "    heavy = {'jax', 'jaxlib', 'tensorflow', 'pandas', 'numba'} & set(sys.modules)\n"
            "    assert not heavy, heavy\n"
        )
        shown = self.python(pytester, "-m", "pytest", *PLUGINS, "--collect-only", "-q")
        assert [line for line in shown.splitlines() if "::" in line] == IDS

    def test_entry_point_and_conftest_get_along(self, run: Run, pytester: pytest.Pytester) -> None:
        """Installed (metadata alone is enough), in a checkout's conftest, and both."""
        site = pytester.mkdir("site")
        info = site / "parity_harness-0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parity-harness\nVersion: 0\n")
        (info / "entry_points.txt").write_text(
            "[pytest11]\nparity.pytest_plugin = parity.pytest_plugin\n"
        )
        installed, checkout = f"{site}{os.pathsep}{ROOT}", str(ROOT)
        collect = ("-m", "pytest", *PLUGINS[2:], "--collect-only", "-q", "cases")
        assert IDS[0] in self.python(pytester, *collect, path=installed)
        (pytester.path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
        assert IDS[0] in self.python(pytester, *collect, path=checkout)
        assert IDS[0] in self.python(pytester, *collect, path=installed)

    def test_xdist_runs_every_item_and_keeps_a_case_together_if_asked(
        self, run: Run, pytester: pytest.Pytester
    ) -> None:
        pytester.makeconftest(
            "import os, numpy as np\n"
            "from parity.engine.workers import Execution, Workers\n"
            "from parity.worker.protocol import PathOutcome, References\n"
            "def execute(self, case, paths, where, **more):\n"
            "    with open('asked', 'a') as file:\n"
            "        file.write(case.id + '\\n')\n"
            "    made = [PathOutcome(p, outputs={'out': np.float32(1)}) for p in paths]\n"
            "    return Execution(where.name, tuple(made), References())\n"
            "Workers.execute = execute\n"
        )
        command = ("-m", "pytest", *PLUGINS, "-n", "2", "cases")
        assert "8 passed" in self.python(pytester, *command)
        (pytester.path / "asked").unlink()
        assert "8 passed" in self.python(pytester, *command, "--dist=loadfile")
        assert len((pytester.path / "asked").read_text().splitlines()) == 2
