"""Records of writers that are killed with SIGKILL at random moments."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from parity.compare.result import CaseResult
from parity.record.result import RunResult, open_record
from parity.record.store import Outputs, Store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

HATCHERY = """
import os, pickle, sys
from dataclasses import replace
from pathlib import Path
from parity.record.store import Store

def write(file):
    store = Store.resume(Path(file), version="1.0")
    known = store.done()
    print(os.getpid(), flush=True)
    for number in range(100_000):
        case = replace(result.case, id=f"cases/a.yaml::a:n={number}")
        if (case.id, "default") not in known:
            store.add(replace(result, case=case), outputs, position=number)
            print(number, flush=True)

result, outputs = pickle.load(open(sys.argv[1], "rb"))
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        write(line.strip())
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


class Hatchery:
    """A process that forks writers: imports are paid once."""

    def __init__(self, made: tuple[CaseResult, Outputs], folder: Path) -> None:
        (folder / "made").write_bytes(pickle.dumps(made))
        self._process = subprocess.Popen(
            [sys.executable, "-c", HATCHERY, str(folder / "made")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def killed(self, file: Path, seconds: float) -> int:
        """Let a writer go on with a record for a while; the last case that it said was done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{file}\n")
        self._process.stdin.flush()
        child = int(self._process.stdout.readline())
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        last = -1
        while (line := self._process.stdout.readline().strip()) != "gone":
            last = int(line)
        return last

    def close(self) -> None:
        """End the process, which has no child left."""
        self._process.communicate()


@pytest.fixture
def made(make_result: Callable[..., tuple[CaseResult, Outputs]]) -> tuple[CaseResult, Outputs]:
    noise = np.random.default_rng(0).standard_normal((2, 2000))
    return make_result("a", base=noise[0], other=noise[1], status="finding")


@pytest.fixture
def hatchery(made: tuple[CaseResult, Outputs], tmp_path: Path) -> Iterator[Hatchery]:
    process = Hatchery(made, tmp_path)
    yield process
    process.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    store = Store(tmp_path / "reports", version="1.0", wanted=100_000)
    store.environment("default", {"jax": "0.7.1"})
    store.close()
    assert store.file is not None
    return store.file


def check(result: RunResult, made: tuple[CaseResult, Outputs], since: int, last: int) -> int:
    """See that what was said to be done since then can be read; how much there is in all.

    Args:
        result: the run.
        made: what was written again and again.
        since: cases that were read before.
        last: the number of the last one that was said to be done.
    """
    numbers = []
    for case in result.cases[since:]:
        numbers.append(int(case.case.id.rpartition("=")[2]))
        assert case.groups == made[0].groups
        assert [row.sha256 for row in case.rows] == [row.sha256 for row in made[0].rows]
    assert numbers == list(range(since, len(result.cases)))
    assert len(result.cases) > last
    assert (result.verdict, result.wanted) == ("interrupted", 100_000)
    assert result.findings == len(result.cases)
    return len(result.cases)


def kill_often(
    file: Path, made: tuple[CaseResult, Outputs], hatchery: Hatchery, times: int, seed: int
) -> None:
    generator = random.Random(seed)
    written = 0
    for _ in range(times):
        last = hatchery.killed(file, generator.uniform(0.0, 0.1))
        written = check(open_record(file), made, written, max(last, written - 1))
    store = Store.resume(file, version="1.0")
    store.finish("interrupted", interrupted=True)
    assert check(open_record(file), made, 0, written - 1) == written
    assert [one.name for one in file.parent.iterdir()] == [file.name]
    assert written > times


def test_a_killed_writer_leaves_a_readable_record_that_can_be_resumed(
    file: Path, made: tuple[CaseResult, Outputs], hatchery: Hatchery
) -> None:
    kill_often(file, made, hatchery, 10, seed=20)


@pytest.mark.full
def test_a_hundred_kills(file: Path, made: tuple[CaseResult, Outputs], hatchery: Hatchery) -> None:
    kill_often(file, made, hatchery, 100, seed=4)
