"""Cases in, judged rows out: order, environments, variants, resuming, the cache, Ctrl-C."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import parity
from parity import cli
from parity.api import options, select
from parity.compare.rows import as_dict
from parity.config import load_config
from parity.engine.run import run_cases
from parity.engine.workers import Workers
from parity.errors import ParityFault
from parity.record.result import open_record
from parity.worker.protocol import Failure, PathOutcome

OWN = sys.executable


def flat(result, *beside):
    """The rows as plain values, times and what is named left out."""
    return [
        {name: value for name, value in as_dict(row).items() if name not in ("timings", *beside)}
        for row in result.rows
    ]


def number(case):
    return int(case.operands[0].values[0])


@pytest.fixture
def at(monkeypatch, asked):
    """`at(n, what)`: call `what(arrived)` in case n, before it is executed."""
    plain = Workers.execute

    def put(case_number, what):
        def execute(self, case, paths, where, *, known=None, arrived, **more):
            if number(case) == case_number:
                what(arrived)
            return plain(self, case, paths, where, known=known, arrived=arrived)

        monkeypatch.setattr(Workers, "execute", execute)

    return put


def interrupt(arrived):
    raise KeyboardInterrupt


def test_results_are_in_the_order_asked_for_whatever_is_done_first(project, at):
    project(6)
    at(0, lambda arrived: time.sleep(0.3))
    finished = []
    config = load_config(Path.cwd())
    chosen = select((), config=config).cases
    result = run_cases(
        chosen,
        options(config, jobs=2),
        progress=lambda result, seconds: finished.append(number(result.case)),
    )
    assert finished[0] != 0
    assert sorted(finished) == list(range(6))
    assert [number(case.case) for case in result.cases] == list(range(6))


def test_each_case_runs_in_each_environment(project, asked):
    project(2)
    result = parity.run(env=[f"a={OWN}", f"b={OWN}"], jobs=2)
    assert [(number(c.case), c.environment) for c in result.cases] == [
        (0, "a"), (0, "b"), (1, "a"), (1, "b"),
    ]  # fmt: skip
    assert [row.environment for row in result.rows] == ["a", "a", "b", "b"] * 2
    assert result.wanted == 4
    assert result.environments == {"a": {"jax": "1.0"}, "b": {"jax": "1.0"}}


def test_one_environment_twice_is_refused(project):
    project(1)
    with pytest.raises(parity.UserError, match="environment a is named twice"):
        parity.run(env=[f"a={OWN}", f"a={OWN}"])


def test_variants_differ_by_their_flags_alone(project):
    root = project(1)
    text = (Path(__file__).parents[2] / "cases" / "conv_bf16.yaml").read_text()
    head = text[: text.index("expect:")] if "expect:" in text else text
    head = "\n".join(line for line in head.splitlines() if not line.startswith("paths:"))
    variants = (
        "paths:\n  - eager\n  - jit\n"
        "  - {path: jit, name: by-option, "
        "compiler_options: {xla_allow_excess_precision: false}}\n"
        "  - {path: jit, name: by-flag, env: {XLA_FLAGS: --xla_allow_excess_precision=false}}\n"
    )
    (root / "cases" / "conv.yaml").write_text(f"{head}\n{variants}")
    result = parity.run("cases/conv.yaml", k="bfloat16")
    (case,) = result.cases
    assert {row.path: row.grade for row in case.rows} == {
        "eager": "identical",
        "jit": "divergent",
        "by-option": "identical",
        "by-flag": "identical",
    }
    assert "XLA_FLAGS" not in result.environment


class TestResuming:
    def test_a_resumed_run_is_what_an_undisturbed_one_is(self, project, asked, at):
        project(5)
        undisturbed = parity.run()
        at(2, interrupt)
        first = parity.run(out="records", jobs=1, cache=False)
        assert (first.verdict, len(first.cases)) == ("interrupted", 2)
        at(99, interrupt)
        asked.clear()
        resumed = parity.run(resume=first.record, cache=False)
        assert sorted(case[-3:] for case, _, _ in asked) == ["2x2", "3x2", "4x2"]
        assert flat(resumed) == flat(undisturbed)
        assert flat(open_record(first.record)) == flat(undisturbed)
        asked.clear()
        assert flat(parity.run(resume=first.record, cache=False)) == flat(undisturbed)
        assert asked == []

    def test_of_a_case_that_ran_only_the_missing_paths_are_run(self, project, asked, at):
        project(1)
        undisturbed = parity.run()

        def half(arrived):
            arrived(PathOutcome("eager", outputs={"out": np.float32(11)}))
            raise KeyboardInterrupt

        at(0, half)
        first = parity.run(out="records", jobs=1)
        assert len(first.cases) == 0
        at(99, interrupt)
        asked.clear()
        resumed = parity.run(resume=first.record)
        assert [paths for _, _, paths in asked] == [("jit",)]
        assert flat(resumed) == flat(undisturbed)

    def test_a_case_that_was_edited_is_run_anew(self, project, asked, at):
        root = project(1)

        def half(arrived):
            arrived(PathOutcome("eager", failure=Failure("error", "run", "E", "old")))
            raise KeyboardInterrupt

        at(0, half)
        first = parity.run(out="records", jobs=1)
        file = root / "cases" / "many.yaml"
        file.write_text(file.read_text().replace("[3, 4]", "[3, 5]"))
        at(99, interrupt)
        asked.clear()
        assert parity.run(resume=first.record).verdict == "ok"
        assert [paths for _, _, paths in asked] == [("eager", "jit")]


class TestCache:
    def test_what_was_run_is_not_run_again(self, project, asked):
        project(3)
        first = parity.run(out="records")
        assert not any(row.cached for row in first.rows)
        asked.clear()
        again = parity.run(out="records")
        assert asked == []
        assert all(row.cached for row in again.rows)
        assert flat(again, "cached") == flat(first, "cached")
        assert again.environments == first.environments
        assert again.record != first.record

    def test_what_changed_is_run(self, project, asked):
        root = project(3)
        parity.run(out="records")
        asked.clear()
        file = root / "cases" / "many.yaml"
        file.write_text(file.read_text().replace("[1, 2]", "[7, 2]"))
        result = parity.run(out="records")
        assert ["7" in case for case, _, _ in asked] == [True]
        assert [row.cached for row in result.rows] == [True, True, False, False, True, True]

    def test_flags_of_an_environment_are_part_of_the_key(self, project, asked):
        root = project(1)
        config = (
            f'[tool.parity.environments.a]\npython = "{OWN}"\nvariables = {{XLA_FLAGS = "%s"}}\n'
        )
        for flags, runs in (("--one", 1), ("--one", 0), ("--two", 1)):
            (root / "pyproject.toml").write_text(config % flags)
            asked.clear()
            parity.run(env=["a"], out="records")
            assert len(asked) == runs

    @pytest.mark.parametrize("how", [{"cache": False}, {"repeat": 2}])
    def test_it_can_be_left_out(self, project, asked, how):
        project(2)
        parity.run(out="records")
        asked.clear()
        result = parity.run(out="records", **how)
        assert len(asked) == 2
        assert not any(row.cached for row in result.rows)

    def test_statuses_are_judged_anew(self, project, asked, monkeypatch):
        root = project(1)
        plain = Workers.execute

        def execute(self, case, paths, where, *, known=None, arrived, **more):
            off = {"jit": PathOutcome("jit", outputs={"out": np.float32(12)})}
            return plain(self, case, paths, where, known=off, arrived=arrived)

        monkeypatch.setattr(Workers, "execute", execute)
        assert parity.run(out="records").verdict == "findings"
        asked.clear()
        assert parity.run(out="records", fail_on="mismatched").verdict == "ok"
        file = root / "cases" / "many.yaml"
        entry = "expect: [{path: jit, grade: identical, because: it was so}]\n"
        file.write_text(file.read_text() + entry)
        stale = parity.run(out="records", fail_on="mismatched")
        assert [row.status for row in stale.rows] == ["ok", "stale"]
        assert not any("expects" in word for word in stale.cases[0].words)
        assert asked == []

    @pytest.mark.parametrize("outcome", ["crashed", "timeout", "out-of-memory"])
    def test_what_may_come_out_otherwise_is_run_again(self, project, asked, monkeypatch, outcome):
        project(1)
        plain = Workers.execute

        def execute(self, case, paths, where, *, known=None, arrived, **more):
            bad = {"eager": PathOutcome("eager", failure=Failure(outcome, "run"))}
            return plain(self, case, paths, where, known=bad, arrived=arrived)

        monkeypatch.setattr(Workers, "execute", execute)
        for _ in range(2):
            asked.clear()
            parity.run(out="records")
            assert len(asked) == 1
            asked.clear()
            parity.run(paths=["jit"], out="records")  # whose baseline failed
            assert len(asked) == 1


class TestEnding:
    def test_a_fault_of_ours_leaves_the_record_and_names_it(self, project, at, capsys):
        project(3)

        def fault(arrived):
            raise ParityFault("the worker failed")

        at(1, fault)
        assert cli.invoke(["run", "--out", "records", "-j", "1"]) == cli.FAULT
        (record,) = Path("records").glob("2*.sqlite")
        error = capsys.readouterr().err
        assert f"to go on: parity run --resume records/{record.name}" in " ".join(error.split())
        result = open_record(record)
        assert (result.verdict, len(result.cases), result.wanted) == ("interrupted", 1, 3)

    @pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
    def test_ctrl_c_ends_every_process_and_leaves_what_was_finished(
        self, project, fake_paths, marked
    ):
        project(3, ("fake-honest", "fake-hang"))
        command = [OWN, "-m", "parity", "run", "--out", "records", "-j", "2"]
        # What a shell starts in the background ignores Ctrl-C, and so would all that it starts.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": path()}, start_new_session=True,
        ) as host:  # fmt: skip
            until(lambda: arrived_paths() >= 2, 90)
            begin = time.monotonic()
            os.killpg(host.pid, signal.SIGINT)  # as a terminal does
            out, _ = host.communicate(timeout=30)
            assert time.monotonic() - begin < 5
        assert host.returncode == 130
        assert out.splitlines()[-1].startswith("interrupted")
        until(lambda: not marked(), 2)
        (record,) = Path("records").glob("2*.sqlite")
        assert open_record(record).verdict == "interrupted"


def path():
    return os.pathsep.join([str(Path(parity.__file__).parents[1]), os.environ["PYTHONPATH"]])


def arrived_paths():
    for record in Path("records").glob("2*.sqlite"):
        with closing(sqlite3.connect(record)) as db:
            return db.execute("SELECT count(*) FROM arrived").fetchone()[0]
    return 0


def until(holds, seconds):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "not within its time"
        time.sleep(0.02)
