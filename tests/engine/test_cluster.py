"""Cases over a Dask cluster of two processes."""

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import parity
from parity.api import options, select
from parity.config import load_config
from parity.engine.environment import Environment
from parity.engine.run import run_cases
from parity.engine.task import Done
from parity.engine.workers import Limits
from parity.record.arrived import unpack_outcome
from parity.record.result import open_record
from parity.worker.protocol import digest

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.usefixtures("fake_paths")


@pytest.fixture
def cluster(project, monkeypatch, request):
    """A running cluster, its workers' working folder that of the project; fates take seconds."""
    project(8, ("fake-fate-a", "fake-fate-b"))
    root = str(Path(parity.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ["PYTHONPATH"]]))
    monkeypatch.setenv("PARITY_FAKE_SECONDS", getattr(request, "param", "0.1"))
    monkeypatch.setenv("PARITY_FAKE_FATES", '{"5 fake-fate-b": "crash"}')
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as running:
        yield running


def test_a_worker_that_is_killed_costs_nothing(cluster):
    victim = next(iter(cluster.workers.values())).pid
    done = []

    def progress(result, seconds):
        done.append(result.case.id)
        if len(done) == 2:
            os.kill(victim, signal.SIGKILL)

    config = load_config(Path.cwd())
    chosen = options(config, scheduler=cluster.scheduler_address, out="records")
    result = run_cases(select((), config=config).cases, chosen, progress=progress)
    assert [case.case.id[-3:] for case in result.cases] == [f"{i}x2" for i in range(8)]
    assert set(Counter(done).values()) == {1}
    assert len(result.rows) == 16
    bad = [(row.case[-3:], row.path, row.outcome) for row in result.rows if row.outcome != "ok"]
    assert bad == [("5x2", "fake-fate-b", "crashed")]
    assert not any(row.cached for row in result.rows)


@pytest.mark.parametrize("cluster", ["0"], indirect=True)
def test_an_unchanged_rerun_comes_from_the_cache(cluster):
    scheduler = cluster.scheduler_address
    first = parity.run(scheduler=scheduler, out="records")
    again = parity.run(scheduler=scheduler, out="records")
    assert not any(row.cached for row in first.rows)
    assert {row.case[-3:] for row in again.rows if not row.cached} == {"5x2"}  # it crashes
    assert len(again.rows) == 16
    assert [row.sha256 for row in again.rows] == [row.sha256 for row in first.rows]
    assert again.environments == first.environments


@pytest.mark.parametrize("cluster", ["1.5"], indirect=True)
def test_a_host_that_is_killed_between_two_paths_loses_neither(cluster, project):
    """The first path gives other bits each time it runs, the second is slow."""
    project(1, ("fake-random", "fake-fate-b"))
    scheduler = cluster.scheduler_address
    with subprocess.Popen(
        [sys.executable, "-m", "parity", "run", "--scheduler", scheduler, "--out", "records"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as host:
        until(lambda: journal() or host.poll() is not None, 60)
        host.kill()
    kept = journal()
    assert list(kept) == ["fake-random"]
    (record,) = Path("records").glob("2*.sqlite")
    assert len(open_record(record).rows) == 0
    result = parity.run(scheduler=scheduler, resume=record)
    assert [(row.path, row.outcome) for row in result.rows] == [
        ("fake-random", "ok"),
        ("fake-fate-b", "ok"),
    ]
    assert result.rows[0].sha256 == digest(kept["fake-random"].outputs["out"])
    assert journal() == {}


def journal():
    """What the only record keeps of cases that are not finished, by path."""
    for record in Path("records").glob("2*.sqlite"):
        with closing(sqlite3.connect(record)) as db:
            rows = db.execute("SELECT path, outcome FROM arrived").fetchall()
        return {path: unpack_outcome(path, packed) for path, packed in rows}
    return {}


def until(holds, seconds):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "not within its time"
        time.sleep(0.02)


class TestTasks:
    """Without cases: the work is a function of this module, which Dask workers cannot import."""

    @pytest.fixture(autouse=True)
    def by_value(self):
        cloudpickle = pytest.importorskip("cloudpickle")
        module = sys.modules[__name__]
        cloudpickle.register_pickle_by_value(module)
        yield
        cloudpickle.unregister_pickle_by_value(module)

    def test_what_is_told_comes_while_the_task_runs_however_large(self, cluster, tmp_path):
        """Each task waits until what it told before, 20 MB, was seen."""

        def work(workers, task, say):
            say(np.full(20_000_000, task, np.uint8))
            until((tmp_path / f"seen {task}").exists, 30)
            say("nothing comes after the result")
            return done(task)

        told, results = [], []
        with joined(cluster, work) as tasks:
            for came in tasks.run(range(6)):
                if isinstance(came, np.ndarray):
                    assert came.tobytes() == bytes([came[0]]) * 20_000_000
                    told.append(int(came[0]))
                    (tmp_path / f"seen {came[0]}").touch()
                elif isinstance(came, Done):
                    results.append(came.task)
            with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
                events = client.get_events("parity")
        assert sorted(told) == sorted(results) == list(range(6))
        assert len(events) == 12
        assert all(len(str(event)) < 200 for event in events)

    def test_a_task_tells_again_in_the_place_of_a_worker_that_died(self, cluster, tmp_path):
        def work(workers, task, say):
            say(os.getpid())
            if (tmp_path / "dead").exists():
                return done(task)
            time.sleep(60)

        with joined(cluster, work) as tasks:
            came = tasks.run(["only"])
            victim = next(came)
            (tmp_path / "dead").touch()
            os.kill(victim, signal.SIGKILL)
            *again, last = came
        assert last.task == "only"
        assert victim not in again

    def test_results_of_another_machine_that_joins_are_not_for_the_cache(
        self, cluster, monkeypatch, caplog
    ):
        def work(workers, task, say):
            time.sleep(0.02)
            return done(task, is_other=str("PARITY_OTHER" in os.environ))

        with joined(cluster, work) as tasks:
            assert list(tasks.digests()) == ["default"]
            assert warnings(caplog) == []
            monkeypatch.setenv("PARITY_OTHER", "1")
            monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
            cluster.scale(3)
            cluster.wait_for_workers(3, timeout=30)
            came = Counter((d.found["is_other"], d.repeatable) for d in tasks.run(range(100)))
        assert came.keys() == {("True", False), ("False", True)}
        with joined(cluster, work) as tasks, caplog.at_level(logging.WARNING):
            assert tasks.digests() == {}
            assert not any(d.repeatable for d in tasks.run(range(10)))
        (warning,) = warnings(caplog)
        assert warning.endswith("variables or processor: the cache is not used")


def warnings(caplog):
    return [one.message for one in caplog.records if one.name == "parity.engine.cluster"]


def done(task, **found):
    return Done(task, None, {}, found, repeatable=True)


def joined(cluster, work):
    from parity.engine.cluster import Cluster

    return Cluster(cluster.scheduler_address, Limits(), work, [Environment()])


def test_no_scheduler_says_how_to_start_one(project, monkeypatch):
    project(1)
    monkeypatch.setattr("parity.engine.cluster._CONNECT_SECONDS", 0.3)
    with pytest.raises(parity.UserError) as caught:
        parity.run(scheduler="tcp://127.0.0.1:9")
    assert caught.value.message.startswith("no Dask scheduler answers at tcp://127.0.0.1:9")
    assert "dask scheduler" in caught.value.hint
