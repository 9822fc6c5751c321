"""Runs of a case file in which a test says what each path gives; nothing is executed."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from parity import cli
from parity.casefile.case import Case
from parity.engine.environment import Environment
from parity.engine.workers import Execution, Workers
from parity.worker.protocol import Enclosure, Failure, PathOutcome, References

from .case import FILE

VERSIONS = {"old": {"jax": "0.6.0"}, "new": {"jax": "0.7.1"}}

Given = float | Mapping[str, float] | Failure
Invoke = Callable[..., tuple[int, str, str]]
Run = Callable[..., str]


class Gives:
    """What paths give: 11, which is right, unless a test says otherwise."""

    def __init__(self) -> None:
        self._rules: list[tuple[str, dict[str, str], Given]] = []
        self.changed: tuple[str, ...] = ()

    def __call__(self, path: str, given: Given, **where: str) -> None:
        self._rules.insert(0, (path, where, given))

    def clear(self) -> None:
        self._rules.clear()

    def of(self, case: Case, path: str, environment: str) -> PathOutcome:
        at = {**case.point, "environment": environment}
        for name, where, given in self._rules:
            if name == path and all(at.get(key) == value for key, value in where.items()):
                if isinstance(given, Failure):
                    return PathOutcome(path, failure=given)
                several = given if isinstance(given, Mapping) else {"out": given}
                return PathOutcome(path, outputs={n: np.float32(v) for n, v in several.items()})
        return PathOutcome(path, outputs={"out": np.float32(11)})


@pytest.fixture
def gives(monkeypatch: pytest.MonkeyPatch) -> Gives:
    """No worker: what paths give is said by the test. 11.5 is still accurate, 12 is not."""
    made = Gives()

    def execute(
        self: Workers, case: Case, paths: Sequence[str], where: Environment, **more: object
    ) -> Execution:
        self.found.setdefault(where.name, VERSIONS.get(where.name, {"jax": "0.7.1"}))
        outcomes = [
            made.of(case, path, where.name) for path in dict.fromkeys((*paths, case.baseline))
        ]
        exact, low, high = np.float32(11), np.float64(10.5), np.float64(11.5)
        names = {name for outcome in outcomes for name in outcome.outputs}
        references = References(
            f64={n: Enclosure(np.float64(11), low, high) for n in names},
            strict={n: Enclosure(exact, exact, exact) for n in names},
        )
        return Execution(where.name, tuple(outcomes), references, changed=made.changed)

    monkeypatch.setattr(Workers, "execute", execute)
    return made


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    Path("pyproject.toml").write_text("[tool.parity]\nreports = 'reports'\n")
    Path("cases").mkdir()
    return tmp_path


@pytest.fixture
def invoke(here: Path, capsys: pytest.CaptureFixture[str]) -> Invoke:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = cli.invoke(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def run(invoke: Invoke, gives: Gives) -> Run:
    """Runs the case file, of this text unless it is there already; returns the record."""

    def call(text: str | None = None, *arguments: str) -> str:
        if text is not None:
            FILE.write_text(text)
        code, out, err = invoke("run", "--no-cache", *arguments)
        assert code in (0, 1), err
        return out.splitlines()[-1].partition("record: ")[2].partition(" |")[0]

    return call


@pytest.fixture
def accepted(invoke: Invoke) -> Callable[..., str]:
    """Accepts on a path and gives what the case file has gained, as text."""

    def call(source: str, *arguments: str, path: str = "jit") -> str:
        before = FILE.read_text()
        chosen = ("--case", "*", "--path", path, "--reason", "known", "--yes")
        code, _, err = invoke("accept", source, *chosen, *arguments)
        assert code == 0, err
        after = FILE.read_text()
        assert after.startswith(before)
        return after.removeprefix(before)

    return call
