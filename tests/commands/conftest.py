"""A project of two cases, whose engine is none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from parity import cli
from parity.casefile.case import Case
from parity.engine.environment import Environment
from parity.engine.workers import Execution, Workers
from parity.worker.protocol import PathOutcome, References

from .project import GOOD, Invoke


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two cases, `fine` and `differs`, as the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    Path("pyproject.toml").write_text("[tool.parity]\ncases = ['cases']\n")
    Path("cases").mkdir()
    for name in ("differs", "fine"):
        Path(f"cases/{name}.yaml").write_text(GOOD)
    return tmp_path


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...]]]:
    """No worker: `jit` of a case named `differs` is off by one. Returns what was asked for."""
    asked = []

    def execute(
        self: Workers, case: Case, paths: Sequence[str], where: Environment, **more: object
    ) -> Execution:
        asked.append((case.id, tuple(paths)))
        off = {"jit": case.name == "differs"}
        outcomes = [
            PathOutcome(path, outputs={"out": np.float32(11 + off.get(path, False))})
            for path in dict.fromkeys((*paths, case.baseline))
        ]
        return Execution(where.name, tuple(outcomes), References())

    monkeypatch.setattr(Workers, "execute", execute)
    return asked


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = cli.invoke(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return call
