"""Paths of another distribution: a wheel that pip installs, found by its entry points."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile

import pytest

MODULE = '''
"""Matrix products by NumPy: at once, and through a file that another process reads."""

import os
import sys

import numpy as np

from parity.errors import Unsupported
from parity.paths import Exported, Path


class Direct(Path):
    """The product, in float64."""

    name = "numpy"

    def run(self, program, inputs, probe):
        _check(program)
        with probe.stage("run"):
            out = _product(inputs, str(program.jaxpr.out_avals[0].dtype))
        probe.evidence["executed"] = f"numpy {np.__version__}"
        return [out]


class Through(Exported):
    """The name of the result's dtype in a file; the reader multiplies."""

    name = "numpy.file"
    reader = "numpy"

    def export(self, program, folder, probe):
        _check(program)
        with probe.stage("save"):
            (folder / "dtype").write_text(str(program.jaxpr.out_avals[0].dtype))

    def execute(self, folder, inputs, probe):
        if "jax" in sys.modules:
            raise AssertionError("the reader has imported JAX")
        with probe.stage("load"):
            dtype = (folder / "dtype").read_text()
        with probe.stage("run"):
            out = _product(inputs, dtype)
        probe.evidence["executed"] = f"numpy in process {os.getpid()}"
        return [out]


def _check(program):
    if program.spec.op != "dot_general" or program.spec.transform != "forward":
        raise Unsupported("numpy multiplies matrices")


def _product(inputs, dtype):
    lhs, rhs = (one.astype(np.float64) for one in inputs)
    return (lhs @ rhs).astype(dtype)
'''

WHEEL = """\
Wheel-Version: 1.0
Generator: tests
Root-Is-Purelib: true
Tag: py3-none-any
"""

ENTRY_POINTS = """
[parity.paths]
numpy = numpy_paths:Direct
numpy.file = numpy_paths:Through
"""

CASE = """
name: product
about: a product of small integers, which every path has exactly
op: dot_general
operands:
  lhs: {shape: [4, 6], dtype: float32, draw: integers}
  rhs: {shape: [6, 3], dtype: float32, draw: integers}
attributes: {contracting: [[1], [0]]}
transforms: [forward, vjp]
paths: [eager, jit, numpy, numpy.file]
"""


def wheel(folder):
    """The wheel of a distribution with one module, as the packaging specification has it."""
    info = "numpy_paths-1.0.dist-info"
    files = {
        "numpy_paths.py": MODULE,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: numpy-paths\nVersion: 1.0\n",
        f"{info}/WHEEL": WHEEL,
        f"{info}/entry_points.txt": ENTRY_POINTS,
    }
    lines = []
    for name, text in files.items():
        digest = hashlib.sha256(text.encode()).digest()
        coded = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        lines.append(f"{name},sha256={coded},{len(text.encode())}")
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""])
    made = folder / "numpy_paths-1.0-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder into which pip has installed the wheel."""
    folder = tmp_path_factory.mktemp("third-party")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    command += ["--disable-pip-version-check", "--target", folder / "site", wheel(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def parity(site, *arguments, cwd):
    found = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(found)}
    command = [sys.executable, "-m", "parity", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)


def test_installed_paths_run_beside_our_own(site, tmp_path):
    (tmp_path / "case.yaml").write_text(CASE)
    done = parity(site, "run", "case.yaml", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]

    forward = {row["path"]: row for row in rows if "transform=vjp" not in row["case"]}
    assert {name: row["grade"] for name, row in forward.items()} == dict.fromkeys(
        ["eager", "jit", "numpy", "numpy.file"], "identical"
    )
    assert forward["numpy"]["evidence"]["executed"].startswith("numpy ")
    assert forward["numpy.file"]["evidence"]["executed"].startswith("numpy in process ")
    assert set(forward["numpy.file"]["timings"]) >= {"save", "load", "run"}
    gradients = [row for row in rows if "transform=vjp" in row["case"]]
    told = {row["outcome"]: row["message"] for row in gradients if row["path"] == "numpy"}
    assert told == {"unsupported": "numpy multiplies matrices"}


def test_an_option_that_an_installed_path_does_not_take(site, tmp_path):
    text = CASE.replace(
        "paths: [eager, jit, numpy, numpy.file]",
        "paths: [eager, {path: numpy, name: other, settings: {threads: 2}}]",
    )
    (tmp_path / "case.yaml").write_text(text)
    done = parity(site, "run", "case.yaml", "--format", "json", cwd=tmp_path)
    rows = json.loads(done.stdout)["rows"]
    told = {row["message"] for row in rows if row["path"] == "other"}
    assert told == {"numpy takes no threads"}


def test_a_path_that_is_not_installed(tmp_path):
    (tmp_path / "case.yaml").write_text(CASE)
    done = parity(tmp_path, "run", "case.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "case.yaml:10:21: unknown path" in done.stderr
    assert "numpy" in done.stderr
