from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from parity import paths
from parity.doctor import Diagnosis, diagnose
from parity.errors import UserError


def distribution(site: Path, name: str, version: str) -> None:
    """Metadata of an installed distribution, without the distribution."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A virtual environment without any package."""
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return str(folder / "bin" / "python")


def numpy_lookalike(site: Path) -> None:
    """What the modules of the paths need to be imported; running them needs the real one."""
    distribution(site, "numpy", "1.26.4")
    (site / "numpy.py").write_text("class ndarray: ...\nclass dtype: ...\n")


def site_of(python: str) -> Path:
    return next(Path(python).parents[1].glob("lib/python3*/site-packages"))


def test_this_interpreter_has_every_path_it_says() -> None:
    found = diagnose()
    assert found.interpreter == sys.executable
    assert set(found.paths) == set(paths.names())
    for path, reason in found.paths.items():
        assert reason == paths.get(path).unsupported()


def test_an_interpreter_without_packages_runs_nothing(bare: str) -> None:
    found = diagnose(bare)
    assert not found.usable
    assert found.versions["jax"] is None
    assert set(found.paths.values()) == {"JAX is not installed"}
    text = "\n".join(found.lines())
    assert "jax         not installed" in text
    assert "no path can run here: pip install 'parity-harness[all-paths]' brings" in text


def test_versions_are_read_from_metadata_alone(bare: str) -> None:
    site = site_of(bare)
    numpy_lookalike(site)
    distribution(site, "jax", "0.10.2")
    distribution(site, "jaxlib", "0.10.2")
    distribution(site, "tensorflow-cpu", "2.16.1")
    distribution(site, "tensorflow", "2.16.1")
    (site / "jax.py").write_text("raise SystemExit('imported')")
    (site / "tensorflow.py").write_text("raise SystemExit('imported')")
    found = diagnose(bare)
    assert found.usable
    assert found.versions["tensorflow"] == "2.16.1"
    assert found.notes["tensorflow"] == (
        "tensorflow and tensorflow-cpu overwrite each other: keep one"
    )
    assert found.paths["jax2tf-native"] is None
    assert found.paths["jax2tf-nonnative"] == "removed in JAX 0.7.2"
    lines = [line.split(maxsplit=1) for line in found.lines()]
    assert ["jax2tf-nonnative", "unsupported: removed in JAX 0.7.2"] in lines


def test_an_old_version_is_noted(bare: str) -> None:
    numpy_lookalike(site_of(bare))
    distribution(site_of(bare), "jax", "0.4.30")
    found = diagnose(bare)
    assert found.notes == {"jax": "too old: 0.4.38 or newer is supported"}
    assert "jax         0.4.30  (too old: 0.4.38 or newer is supported)" in list(found.lines())
    assert found.paths["jax2tf-native"] == "TensorFlow is not installed"


def test_formats_that_ml_dtypes_lacks_are_named(bare: str) -> None:
    site = site_of(bare)
    for name in ("numpy", "ml_dtypes"):
        distribution(site, name, "0.4.1")
        (site / f"{name}.py").write_text(
            "__version__ = '0.4.1'\nbfloat16 = float8_e4m3fn = object\ndef dtype(of): return of\n"
        )
    found = diagnose(bare)
    lacking = found.notes["ml_dtypes"].removeprefix("lacks ").split(", ")
    assert "float8_e8m0fnu" in lacking
    assert "bfloat16" not in lacking
    assert "float32" not in lacking


def test_flags_are_shown_and_other_tools_variables_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_allow_excess_precision=false")
    monkeypatch.setenv("TF_VAR_region", "x")
    found = diagnose()
    assert found.flags["XLA_FLAGS"] == "--xla_allow_excess_precision=false"
    assert "TF_VAR_region" not in found.flags
    assert list(found.lines())[-len(found.flags) :] == [f"{k}={v}" for k, v in found.flags.items()]


def test_an_interpreter_that_cannot_run_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        diagnose(str(tmp_path / "python"))
    assert str(caught.value) == (
        f"cannot run the interpreter {tmp_path / 'python'} (No such file or directory)\n"
        "hint: name the python of the environment under test, for example .venv/bin/python"
    )


def test_an_interpreter_that_fails_says_its_last_line(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho first >&2\necho 'SyntaxError: f-string' >&2\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(UserError) as caught:
        diagnose(str(fake))
    assert str(caught.value) == (
        f"the interpreter {fake} cannot run parity's workers (SyntaxError: f-string)\n"
        "hint: workers need Python 3.11 or newer"
    )


def test_a_diagnosis_is_usable_with_one_path() -> None:
    found = Diagnosis("python", {"python": "3.11"}, {}, {"eager": None, "x": "gone"}, {})
    assert found.usable
