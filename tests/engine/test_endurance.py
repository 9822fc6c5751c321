"""Many bad paths, and many kills of the host, seeded: a short form of each, and a long one."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import parity
from parity.compare.rows import as_dict
from parity.record.result import open_record

pytestmark = [
    pytest.mark.usefixtures("fake_paths"),
    pytest.mark.skipif(sys.platform != "linux", reason="memory limits and /proc are Linux's"),
]

PATHS = tuple(f"fake-fate-{letter}" for letter in "abcd")
OUTCOMES = {"crash": "crashed", "hang": "timeout", "memory": "out-of-memory"}


def drawn(cases, seed, **counts):
    """So many fates of each kind, each of another case and path."""
    places = [f"{i} {path}" for i in range(cases) for path in PATHS]
    chosen = iter(random.Random(seed).sample(places, sum(counts.values())))
    return {next(chosen): fate for fate, count in counts.items() for _ in range(count)}


def place(row):
    return f"{row.case.rpartition('=')[2].partition('x')[0]} {row.path}"


def check_that_only_the_guilty_are_blamed(project, monkeypatch, cases, timeout, **counts):
    """The wall time, in seconds."""
    fates = drawn(cases, seed=1, **counts)
    monkeypatch.setenv("PARITY_FAKE_FATES", json.dumps(fates))
    project(cases, PATHS)
    begin = time.monotonic()
    result = parity.run(jobs=2, timeout=timeout, memory=256 << 20, cache=False)
    seconds = time.monotonic() - begin
    assert len(result.rows) == cases * len(PATHS)
    bad = {place(row): row.outcome for row in result.rows if row.outcome != "ok"}
    assert bad == {key: OUTCOMES[fate] for key, fate in fates.items()}
    assert not any("retried" in row.evidence for row in result.rows)
    return seconds


def test_only_the_guilty_are_blamed(project, monkeypatch):
    check_that_only_the_guilty_are_blamed(
        project, monkeypatch, 10, timeout=2, crash=1, hang=1, memory=1
    )


@pytest.mark.full
def test_only_the_guilty_are_blamed_among_1600(project, monkeypatch, show):
    seconds = check_that_only_the_guilty_are_blamed(
        project, monkeypatch, 400, timeout=10, crash=40, hang=10, memory=10
    )
    show("400 cases on 4 paths", f"40 crashes, 10 hangs, 10 out of memory: {seconds:.0f} s")


def flat(result):
    return [
        {name: value for name, value in as_dict(row).items() if name != "timings"}
        for row in result.rows
    ]


def started(*arguments):
    path = os.pathsep.join([str(Path(parity.__file__).parents[1]), os.environ["PYTHONPATH"]])
    return subprocess.Popen(
        [sys.executable, "-m", "parity", "run", "-j", "2", "--no-cache", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
    )


def commands(processes):
    return [Path(f"/proc/{process}/cmdline").read_bytes()[:200] for process in processes]


def record():
    return next(Path("records").glob("2*.sqlite"), None)


def check_that_kills_lose_nothing(project, monkeypatch, marked, cases, kills, longest):
    """How many rows there were after each kill; `longest` is seconds.

    The paths are so slow that the run takes longer than all hosts live together, start included.
    """
    generator = random.Random(3)
    lives = [generator.uniform(0, longest) for _ in range(kills)]
    monkeypatch.setenv("PARITY_FAKE_FATES", json.dumps(drawn(cases, seed=2, crash=1)))
    temporary = project(cases, PATHS) / "temporary"
    undisturbed = flat(parity.run(jobs=2, cache=False))
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("PARITY_FAKE_SECONDS", str(2 * sum(lives) / len(undisturbed)))
    counts = []
    for life in lives:
        host = started(*(["--out", "records"] if record() is None else ["--resume", str(record())]))
        with pytest.raises(subprocess.TimeoutExpired):
            host.wait(life)
        host.kill()
        assert host.wait() == -signal.SIGKILL
        deadline = time.monotonic() + 2
        while marked():
            assert time.monotonic() < deadline, f"outlived their host: {commands(marked())}"
            time.sleep(0.02)
        counts.append(len(open_record(record()).rows) if record() else 0)
    assert counts == sorted(counts)
    assert counts[-1] < len(undisturbed)  # so each hit a run that was not finished
    monkeypatch.setenv("PARITY_FAKE_SECONDS", "0")
    assert started("--resume", str(record())).wait(300) == 1  # one path crashes
    final = open_record(record())
    assert final.verdict == "findings"
    assert flat(final) == undisturbed
    assert set(Counter(place(row) for row in final.rows).values()) == {1}
    assert [*temporary.glob("parity-*/files")] == []
    return counts


def test_kills_lose_nothing(project, monkeypatch, marked):
    check_that_kills_lose_nothing(project, monkeypatch, marked, cases=8, kills=4, longest=4)


@pytest.mark.full
def test_a_hundred_kills_lose_nothing(project, monkeypatch, marked, show):
    counts = check_that_kills_lose_nothing(
        project, monkeypatch, marked, cases=450, kills=100, longest=4
    )
    assert len(set(counts)) > 10  # many came far enough to finish a case
    show("100 kills of the host", f"rows after each: {' '.join(map(str, counts))}")
