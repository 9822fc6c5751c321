"""What could change a result, as digests that are had without starting a worker.

An environment is told by the names and times of what is installed in it, not by its files'
contents: a package that is edited in place, without being installed again, is not noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

from parity.record.encoding import dumps

VARIABLES = (
    "BLIS_",
    "CUDA",
    "CUBLAS_",
    "CUDNN_",
    "DNNL_",
    "EIGEN_",
    "FLAX_",
    "GOMP_",
    "HIP_",
    "JAX_",
    "KMP_",
    "LD_",
    "LIBTPU_",
    "MKL_",
    "NCCL_",
    "NVIDIA_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "PYTHON",
    "ROCM_",
    "ROCR_",
    "TF_",
    "TPU_",
    "VECLIB_",
    "XLA_",
)
"""Environment variables of these names may change bits."""

_SECONDS = 60.0
_PROBE = """\
import json, sys, sysconfig
skipped = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), ""}
path = [p for p in sys.path if p not in skipped and not p.endswith(("lib-dynload", ".zip"))]
print(json.dumps([sys.version, sys.executable, sys.prefix, path]))
"""


def environment_digest(python: str, variables: Mapping[str, str]) -> str | None:
    """SHA-256 over what an interpreter would run with, now and on this machine.

    Args:
        python: the interpreter.
        variables: environment variables that it is given beside the inherited ones.

    Returns:
        The digest, None if the interpreter gives no answer: then nothing is known of it.
    """
    inherited = {k: v for k, v in os.environ.items() if k.startswith(VARIABLES)}
    try:
        done = subprocess.run(
            [python, "-c", _PROBE],
            env={**os.environ, **variables},
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
        interpreter = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
    found = {
        "interpreter": interpreter,
        "installed": [[str(path), *_installed(Path(path))] for path in interpreter[-1]],
        "variables": {**inherited, **variables},
        "machine": list(_machine()),
    }
    return hashlib.sha256(dumps(found).encode()).hexdigest()


@cache
def source_digest() -> str:
    """SHA-256 over parity's own source files and the versions of what it computes with."""
    total = hashlib.sha256()
    for package in ("numpy", "ml_dtypes"):
        total.update(f"{package} {version(package)}\n".encode())
    root = Path(__file__).parents[1]
    for file in sorted(root.rglob("*.py")):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        total.update(f"{file.relative_to(root).as_posix()} {content}\n".encode())
    return total.hexdigest()


def _installed(folder: Path) -> Iterator[tuple[str, int]]:
    """What lies on an import path: distributions, modules and path files, each with its time."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        file = Path(entry.path)
        if entry.name.endswith((".dist-info", ".egg-info")) and entry.is_dir():
            listing = [file / name for name in ("RECORD", "METADATA", "PKG-INFO")]
            file = next((one for one in listing if one.exists()), file)
        elif not entry.name.endswith((".py", ".pth", ".so", ".egg-link", ".egg-info")):
            continue
        yield entry.name, file.stat().st_mtime_ns


def _machine() -> Iterator[str]:
    """The processor, how much of it there is, the C library, and NVIDIA's driver and devices."""
    yield " ".join((platform.system(), platform.machine(), *platform.libc_ver()))
    yield f"{_cores()} cores"
    telling = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ")
    text = _text(Path("/proc/cpuinfo")).partition("\n\n")[0]
    yield from (line for line in text.splitlines() if line.startswith(telling))
    nvidia = Path("/proc/driver/nvidia")
    yield _text(nvidia / "version")
    yield from (_text(file) for file in sorted(nvidia.glob("gpus/*/information")))


def _cores() -> int:
    """How many cores this process may use: sums are split by it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
