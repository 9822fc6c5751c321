"""Projects of small cases, and workers that are none."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from parity.engine.workers import Execution, Workers
from parity.worker.protocol import PathOutcome, References

CASE = """\
about: A case for tests.
op: dot_general
operands:
  lhs: {shape: [2], dtype: float32, values: [0, 2]}
  rhs: {shape: [2], dtype: float32, values: [3, 4]}
attributes: {contracting: [[0], [0]]}
"""


@pytest.fixture
def project(tmp_path, monkeypatch) -> Callable[..., Path]:
    """`project(count, paths)`: a current folder with a file of so many cases, told apart by lhs."""

    def make(count=3, paths=("eager", "jit")):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "pyproject.toml").write_text("[tool.parity]\nmax_cases = 20000\n")
        (tmp_path / "cases").mkdir(exist_ok=True)
        points = ", ".join(f"[{i}, 2]" for i in range(count))
        text = CASE + f"paths: [{', '.join(paths)}]\nbaseline: {paths[0]}\n"
        text += f"sweep: {{operands.lhs.values: [{points}]}}\n"
        (tmp_path / "cases" / "many.yaml").write_text(text)
        return tmp_path

    return make


@pytest.fixture
def asked(monkeypatch) -> list[tuple[str, str, tuple[str, ...]]]:
    """No worker: each path gives 11. Case, environment and paths of each time one was asked."""
    calls = []

    def execute(self, case, paths, where, *, known=None, arrived=lambda outcome: None, **more):
        known = known or {}
        missing = tuple(path for path in paths if path not in known)
        calls.append((case.id, where.name, missing))
        self.found[where.name] = {"jax": "1.0"}
        new = {path: PathOutcome(path, outputs={"out": np.float32(11)}) for path in missing}
        for outcome in new.values():
            arrived(outcome)
        outcomes = tuple({**known, **new}[path] for path in paths)
        return Execution(where.name, outcomes, References())

    monkeypatch.setattr(Workers, "execute", execute)
    return calls


@pytest.fixture
def marked(monkeypatch) -> Callable[[], list[int]]:
    """`marked()`: the ids of the processes that were started from here on and are still alive."""
    mark = f"PARITY_TEST_MARK={os.urandom(8).hex()}"
    monkeypatch.setenv(*mark.split("="))

    def alive():
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                ours = mark.encode() in (process / "environ").read_bytes().split(b"\0")
                state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if ours and state != "Z" and int(process.name) != os.getpid():
                found.append(int(process.name))
        return found

    return alive
