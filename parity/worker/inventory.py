"""What an interpreter has to run paths with, told without importing JAX or TensorFlow."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from parity.dtypes import DTYPES, UnsupportedDType

DISTRIBUTIONS = {
    "jax": ("jax",),
    "jaxlib": ("jaxlib",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tf-nightly"),
    "flax": ("flax",),
    "numpy": ("numpy",),
    "ml_dtypes": ("ml_dtypes",),
}
"""The packages that matter, each with the distributions that may provide it."""

_FLAGS = ("XLA_", "TF_", "JAX_", "LIBTPU_", "CUDA_VISIBLE_DEVICES")
_TERRAFORM = ("TF_CLI_", "TF_VAR_", "TF_LOG", "TF_DATA_DIR")  # another tool's variables


def inventory() -> dict[str, Any]:
    """Versions, paths, missing element types and flags of this interpreter, as JSON builtins.

    Returns:
        `python` and `system`; `packages`: for each package the installed {distribution: version};
        `paths`: for each path why it is unsupported, None if it is not, and None altogether
        without JAX; `formats`: the element types that ml_dtypes lacks, None where it is not
        installed; `flags`: environment variables that change what XLA, JAX or TensorFlow do.
    """
    packages = {
        package: {name: found for name in names if (found := _installed(name)) is not None}
        for package, names in DISTRIBUTIONS.items()
    }
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": packages,
        "paths": _paths() if packages["jax"] and packages["numpy"] else None,
        "formats": _missing_formats() if packages["ml_dtypes"] and packages["numpy"] else None,
        "flags": {k: v for k, v in sorted(os.environ.items()) if v and _is_flag(k)},
    }


def _is_flag(variable: str) -> bool:
    return variable.startswith(_FLAGS) and not variable.startswith(_TERRAFORM)


def _installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _paths() -> dict[str, str | None]:
    from parity import paths  # imports NumPy

    return {name: paths.get(name).unsupported() for name in paths.names()}


def _missing_formats() -> list[str]:
    missing = []
    for name, element in DTYPES.items():
        try:
            element.numpy()
        except UnsupportedDType:
            missing.append(name)
    return missing
