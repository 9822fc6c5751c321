from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from parity.record import fingerprint
from parity.record.fingerprint import environment_digest, source_digest
from parity.worker.inventory import _FLAGS

Digest = Callable[..., str]


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder with an installed distribution and a module."""
    folder = tmp_path / "site"
    (folder / "jax-0.7.1.dist-info").mkdir(parents=True)
    (folder / "jax-0.7.1.dist-info" / "RECORD").write_text("jax/__init__.py,,\n")
    (folder / "plugin.py").write_text("x = 1\n")
    (folder / "data.txt").write_text("x")
    return folder


@pytest.fixture
def digest(packages: Path) -> Digest:
    def call(**variables: str) -> str:
        found = environment_digest(sys.executable, {"PYTHONPATH": str(packages), **variables})
        assert found is not None
        return found

    return call


def touch(file: Path) -> None:
    os.utime(file, ns=(1, file.stat().st_mtime_ns + 1))


def test_it_is_the_same_twice(digest: Digest) -> None:
    assert digest() == digest()


def test_it_needs_no_worker() -> None:
    assert environment_digest("/no/such/python", {}) is None
    assert environment_digest("/bin/false", {}) is None


def test_another_version_changes_it(digest: Digest, packages: Path) -> None:
    before = digest()
    (packages / "jax-0.7.1.dist-info").rename(packages / "jax-0.7.2.dist-info")
    assert digest() != before


def test_a_new_package_changes_it(digest: Digest, packages: Path) -> None:
    before = digest()
    (packages / "flax-0.12.0.dist-info").mkdir()
    assert digest() != before


def test_installing_the_same_version_again_changes_it(digest: Digest, packages: Path) -> None:
    before = digest()
    touch(packages / "jax-0.7.1.dist-info" / "RECORD")
    assert digest() != before


def test_an_edited_module_changes_it(digest: Digest, packages: Path) -> None:
    before = digest()
    touch(packages / "plugin.py")
    assert digest() != before


def test_what_is_not_imported_does_not(digest: Digest, packages: Path) -> None:
    before = digest()
    touch(packages / "data.txt")
    (packages / "reports").mkdir()
    assert digest() == before


@pytest.mark.parametrize(
    "name",
    ["XLA_FLAGS", "JAX_ENABLE_X64", "TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS", "LD_PRELOAD"],
)
def test_inherited_variables_that_matter_change_it(
    digest: Digest, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = digest()
    monkeypatch.setenv(name, "")
    assert digest() != before


def test_other_inherited_variables_do_not(digest: Digest, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest()
    monkeypatch.setenv("TERM", "something-else")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert digest() == before


def test_every_variable_that_an_environment_sets_changes_it(digest: Digest) -> None:
    assert len({digest(), digest(ANYTHING="1"), digest(ANYTHING="2")}) == 3


def test_what_doctor_shows_as_a_flag_is_among_the_variables() -> None:
    assert all(name.startswith(fingerprint.VARIABLES) for name in _FLAGS)


def test_cores_and_processor_change_it(digest: Digest, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {digest()}
    monkeypatch.setattr(fingerprint, "_cores", lambda: 12345)
    found.add(digest())
    monkeypatch.setattr(fingerprint, "_text", lambda file: f"flags : other ({file.name})\n")
    found.add(digest())
    assert len(found) == 3


def test_paritys_own_sources_are_digested_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "parity"
    for name in ("record/fingerprint.py", "compare/grade.py", "notes.txt"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("x = 1\n")
    monkeypatch.setattr(fingerprint, "__file__", str(package / "record" / "fingerprint.py"))

    def now() -> str:
        source_digest.cache_clear()
        return source_digest()

    try:
        found = [now()]
        (package / "notes.txt").write_text("x = 2\n")
        assert now() == found[0]
        (package / "compare" / "grade.py").write_text("x = 2\n")
        found.append(now())
        (package / "compare" / "grade.py").rename(package / "compare" / "grades.py")
        found.append(now())
        monkeypatch.setattr(fingerprint, "version", lambda package: "0.0")
        found.append(now())
    finally:
        source_digest.cache_clear()
    assert len(set(found)) == 4
