"""Cases over a Dask cluster of two processes."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

import parity
from parity.api import options, select
from parity.config import load_config
from parity.engine.run import run_cases

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.usefixtures("fake_paths")


@pytest.fixture
def cluster(project, monkeypatch):
    """A running cluster, its workers' working folder that of the project."""
    project(8, ("fake-fate-a", "fake-fate-b"))
    root = str(Path(parity.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ["PYTHONPATH"]]))
    monkeypatch.setenv("PARITY_FAKE_SECONDS", "0.1")
    monkeypatch.setenv("PARITY_FAKE_FATES", '{"5 fake-fate-b": "crash"}')
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as running:
        yield running


def test_a_worker_that_is_killed_costs_nothing(cluster):
    victim = next(iter(cluster.workers.values())).pid
    done = []

    def progress(result):
        done.append(result.case.id)
        if len(done) == 2:
            os.kill(victim, signal.SIGKILL)

    config = load_config(Path.cwd())
    chosen = options(config, scheduler=cluster.scheduler_address, out="records")
    result = run_cases(select((), config=config).by_case(), chosen, progress=progress)
    assert [case.case.id[-3:] for case in result.cases] == [f"{i}x2" for i in range(8)]
    assert set(Counter(done).values()) == {1}
    assert len(result.rows) == 16
    bad = [(row.case[-3:], row.path, row.outcome) for row in result.rows if row.outcome != "ok"]
    assert bad == [("5x2", "fake-fate-b", "crashed")]
    assert not any(row.cached for row in result.rows)


def test_no_scheduler_says_how_to_start_one(project, monkeypatch):
    project(1)
    monkeypatch.setattr("parity.engine.cluster._CONNECT_SECONDS", 0.3)
    with pytest.raises(parity.UserError) as caught:
        parity.run(scheduler="tcp://127.0.0.1:9")
    assert caught.value.message.startswith("no Dask scheduler answers at tcp://127.0.0.1:9")
    assert "dask scheduler" in caught.value.hint
