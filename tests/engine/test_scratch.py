"""The folders of hosts that are killed go; those of hosts that live stay."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import filelock
import pytest

from parity.engine.scratch import Scratch

HOST = """
import sys
from parity.engine.workers import Workers

with Workers() as workers:
    print(workers._folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Where temporary folders are made, by the hosts that a test starts as well."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.fixture
def start(place):
    """`start()`: a host with a folder of its own, in which a file lies."""
    hosts = []

    def started():
        host = subprocess.Popen(
            [sys.executable, "-c", HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        hosts.append(host)
        folder = Path(host.stdout.readline().strip())
        assert folder.is_relative_to(place)
        (folder / "array").write_bytes(b"1")
        return host, folder

    yield started
    for host in hosts:
        host.kill()
        host.communicate()


def test_the_next_host_removes_the_folders_of_dead_ones_alone(place, start):
    living, kept = start()
    lost = left_by_a_dead_host(start)
    assert (lost / "array").exists()
    other = place / "parity-of-somebody"
    other.mkdir()
    own = Scratch()
    assert not lost.parent.exists()
    assert (kept / "array").exists()
    assert {*place.iterdir()} == {kept.parent, own.folder.parent, other}
    own.remove()
    living.communicate("")  # it ends in order
    assert living.returncode == 0
    assert [*place.iterdir()] == [other]


def test_a_host_that_is_about_to_lock_its_place_keeps_it(monkeypatch):
    plain = filelock.FileLock.acquire

    def late(lock, *arguments, **options):
        monkeypatch.setattr(filelock.FileLock, "acquire", plain)
        Path(lock.lock_file).touch()  # opened, not yet locked
        Scratch().remove()
        return plain(lock, *arguments, **options)

    monkeypatch.setattr(filelock.FileLock, "acquire", late)
    own = Scratch()
    assert filelock.FileLock.acquire is plain
    Scratch().remove()
    assert [*own.folder.iterdir()] == []
    own.remove()


def test_what_a_dying_worker_still_writes_to_is_left_to_the_next_sweep(monkeypatch, start):
    lost = left_by_a_dead_host(start)
    plain = shutil.rmtree

    def overtaken(folder, **options):
        plain(folder, **options)
        if folder == lost:
            lost.mkdir()
            (lost / "late").touch()

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", overtaken)
        Scratch().remove()
    assert [*lost.iterdir()] == [lost / "late"]
    Scratch().remove()
    assert not lost.parent.exists()


def test_what_belongs_to_another_user_stays(monkeypatch, start):
    lost = left_by_a_dead_host(start)
    plain, others = Path.lstat, SimpleNamespace(st_uid=-1)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "lstat", lambda at: others if at == lost.parent else plain(at))
        Scratch().remove()
    assert (lost / "array").exists()


def left_by_a_dead_host(start):
    host, folder = start()
    host.kill()
    host.wait()
    return folder
