"""What the record of a host that is ended from outside is on its own."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import parity
from parity import cli

pytestmark = [
    pytest.mark.usefixtures("fake_paths"),
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]

PATHS = ("fake-fate-a", "fake-fate-b")


@pytest.fixture
def host(project, monkeypatch):
    """A run of three cases that hangs in the last one's second path: process and record."""
    project(3, PATHS)
    monkeypatch.setenv("PARITY_FAKE_FATES", '{"2 fake-fate-b": "hang"}')
    path = os.pathsep.join([str(Path(parity.__file__).parents[1]), os.environ["PYTHONPATH"]])
    with subprocess.Popen(
        [sys.executable, "-m", "parity", "run", "-j", "1", "--out", "records"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        try:
            yield process, hanging(process)
        finally:
            process.kill()


def hanging(process):
    """The record, once the last case's first path is in it."""
    deadline = time.monotonic() + 90
    while process.poll() is None and time.monotonic() < deadline:
        for record in Path("records").glob("2*.sqlite"):
            with closing(sqlite3.connect(record)) as db:
                if db.execute("SELECT 1 FROM arrived WHERE case_id LIKE '%=2x2'").fetchone():
                    return record
        time.sleep(0.02)
    pytest.fail("it never came to the last case")


def shown(record, capsys):
    """The verdict and the rows, as case and path, that `parity show` prints."""
    capsys.readouterr()
    assert cli.invoke(["show", str(record), "--format", "json"]) == cli.OK
    result = json.loads(capsys.readouterr().out)
    return result["verdict"], [(row["case"][-3:], row["path"]) for row in result["rows"]]


def test_a_record_that_is_parted_from_its_log_has_every_finished_case(host, monkeypatch, capsys):
    process, record = host
    process.kill()
    process.wait()
    assert Path(f"{record}-wal").exists()
    Path("alone").mkdir()
    alone = Path(shutil.copy(record, "alone"))
    finished = [(case, path) for case in ("0x2", "1x2") for path in PATHS]
    assert shown(alone, capsys) == ("interrupted", finished)
    assert [*alone.parent.iterdir()] == [alone]
    monkeypatch.setenv("PARITY_FAKE_FATES", "{}")
    assert cli.invoke(["run", "--no-cache", "--resume", str(alone)]) == cli.OK
    assert shown(alone, capsys) == ("ok", finished + [("2x2", path) for path in PATHS])
    assert [*alone.parent.iterdir()] == [alone]


def test_sigterm_leaves_the_record_in_one_file(host, capsys):
    process, record = host
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == cli.INTERRUPTED
    assert {path.name for path in record.parent.iterdir()} == {record.name, "cache.sqlite"}
    assert shown(record, capsys)[0] == "interrupted"
