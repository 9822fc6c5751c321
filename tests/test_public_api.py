from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import parity
from parity.casefile.case import Case
from parity.engine.environment import Environment
from parity.engine.workers import Execution, Workers
from parity.worker.protocol import PathOutcome, References

CASE = """\
about: A case for tests.
op: dot_general
operands:
  lhs: {shape: [2], dtype: float32, values: [1, 2]}
  rhs: {shape: [2], dtype: float32, values: [3, 4]}
attributes: {contracting: [[0], [0]]}
paths: [eager, jit]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "dot.yaml").write_text(CASE)

    def execute(
        self: Workers, case: Case, paths: Sequence[str], where: Environment, **more: object
    ) -> Execution:
        made = (PathOutcome(p, outputs={"out": np.float32(11 + (p == "jit"))}) for p in paths)
        return Execution(where.name, tuple(made), References())

    monkeypatch.setattr(Workers, "execute", execute)
    return tmp_path


def test_every_public_name_resolves_and_has_a_docstring() -> None:
    for name in parity.__all__:
        value = getattr(parity, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"parity.{name} has no docstring"
    assert set(parity.__all__) <= set(dir(parity))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'parity' has no attribute 'rnu'"):
        parity.rnu  # noqa: B018


def test_importing_parity_imports_nothing_else() -> None:
    code = (
        "import sys, parity\n"
        "assert not [m for m in sys.modules if m.startswith('parity.')]\n"
        "assert 'numpy' not in sys.modules\n"
    )
    root = str(Path(parity.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, timeout=60)


def test_run_is_what_the_command_line_does(here: Path) -> None:
    result = parity.run("cases/dot.yaml")
    assert (result.verdict, result.exit_code) == ("findings", 1)
    table = result.table()
    assert list(table.path) == ["eager", "jit"]
    assert list(table.grade) == ["identical", "divergent"]
    assert list(table.max_abs_baseline) == [0.0, 1.0]


def test_run_takes_selections_and_options(here: Path) -> None:
    assert [row.path for row in parity.run(k="eager").rows] == ["eager"]
    assert [row.path for row in parity.run(here / "cases", paths=["jit"]).rows] == ["jit"]
    assert parity.run("cases/dot.yaml::dot[jit]", fail_on="inaccurate").verdict == "ok"
    record = parity.run(out=here / "records").record
    assert record is not None
    assert record.parent == here / "records"


def test_run_raises_on_a_broken_file_before_anything_runs(here: Path) -> None:
    (here / "cases" / "a.yaml").write_text(CASE.replace("about:", "abuot:"))
    with pytest.raises(parity.CaseFileError, match=r"^cases/a\.yaml:1:1: unknown key 'abuot'"):
        parity.run()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": "nothing"}, "-k 'nothing' matches none of 2 cases and paths"),
        ({"paths": []}, "no path is named (allowed aot, eager, "),
        ({"paths": ["jti"]}, "unknown path (got jti; allowed aot, eager, "),
        ({"timeout": float("inf")}, "wrong timeout (got inf; allowed a positive number"),
        ({"fail_on": "bad"}, "unknown grade (got bad; allowed identical, equivalent, divergent"),
    ],
)
def test_wrong_arguments_are_user_errors(
    here: Path, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(parity.UserError) as caught:
        parity.run("cases/dot.yaml", **arguments)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


def test_load_reads_without_running(here: Path) -> None:
    file = parity.load("cases/dot.yaml")
    assert [case.id for case in file.cases] == ["cases/dot.yaml::dot"]
    (here / "cases" / "x.yaml").write_text(CASE.replace("jit]", "no-such-path]"))
    with pytest.raises(parity.CaseFileError, match="no-such-path"):
        parity.load(here / "cases" / "x.yaml")


def test_the_limit_on_cases_is_configurable(here: Path) -> None:
    (here / "cases" / "dot.yaml").write_text(CASE + "sweep: {seed: [1, 2, 3]}\n")
    assert len(parity.load("cases/dot.yaml").cases) == 3
    (here / "pyproject.toml").write_text("[tool.parity]\nmax_cases = 2\n")
    with pytest.raises(parity.CaseFileError, match=r"spans 3 cases \(allowed 2\)"):
        parity.load("cases/dot.yaml")
