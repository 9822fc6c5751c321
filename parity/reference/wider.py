"""References wider than float64, for programs that are float64 or complex128 themselves."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from parity.reference import double_double
from parity.reference.matrices import unfold

_MOST_PRODUCTS = 1 << 27
"""Products of a contraction above which it stays in plain float64: about four seconds."""

_MOST_ELEMENTS = 100_000
"""Elements of an elementary function above which it stays in plain float64."""

_DIGITS = 40
_mpmath_folder: str | None = None


def use_mpmath(folder: str | None) -> None:
    """Where the pure Python package mpmath lies; it need not be on this interpreter's path."""
    global _mpmath_folder
    _mpmath_folder = folder


def _mpmath() -> ModuleType | None:
    """mpmath, loaded alone: a whole site-packages on the path would bring another NumPy along."""
    if "mpmath" in sys.modules:
        return sys.modules["mpmath"]
    if _mpmath_folder is None:
        return None
    spec = importlib.util.spec_from_file_location(
        "mpmath", Path(_mpmath_folder) / "__init__.py", submodule_search_locations=[_mpmath_folder]
    )
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mpmath"] = module
    spec.loader.exec_module(module)
    return module


def evaluate(eqn: Any, points: list[np.ndarray]) -> np.ndarray | None:
    """The result of one equation to full double accuracy.

    Args:
        eqn: an equation whose result is declared float64 or complex128.
        points: its operands, wide.

    Returns:
        Each element rounded once to float64, or None where only plain float64 is to be had.
    """
    name = eqn.primitive.name
    if name in ("dot_general", "conv_general_dilated"):
        return _contraction(eqn, points)
    if name == "reduce_sum":
        axes = tuple(eqn.params["axes"])
        kept = [axis for axis in range(points[0].ndim) if axis not in axes]
        terms = points[0].transpose(*kept, *axes)
        return double_double.sum_last_axis(terms.reshape(*terms.shape[: len(kept)], -1))
    if name in _ELEMENTARY and points[0].dtype == np.float64:
        return _elementary(_ELEMENTARY[name], points[0])
    return None


def needed(name: str) -> bool:
    """Whether plain float64 is not already the correctly rounded result of a primitive."""
    return name in _ELEMENTARY or name in _APPROXIMATE


def _contraction(eqn: Any, points: list[np.ndarray]) -> np.ndarray | None:
    lhs, rhs = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in points)
    if not (np.isfinite(lhs).all() and np.isfinite(rhs).all()):
        return None  # an implicit zero times infinity is the plain kernel's to leave out
    left, right, finish = unfold(eqn, lhs, rhs)
    if left.size * right.shape[1] > _MOST_PRODUCTS:
        return None
    return finish(double_double.matrix_product(left, right))


def _elementary(name: str, x: np.ndarray) -> np.ndarray | None:
    mpmath = _mpmath()
    if mpmath is None or x.size > _MOST_ELEMENTS:
        return None
    function: Callable[[Any], Any] = _FUNCTIONS.get(name) or getattr(mpmath, name)
    out = np.empty(x.shape)
    with mpmath.workdps(_DIGITS):
        for index, value in np.ndenumerate(x):
            out[index] = _one(mpmath, function, float(value))
    return out


def _one(mpmath: ModuleType, function: Callable[[Any], Any], value: float) -> float:
    try:
        result = function(mpmath.mpf(value))
    except (ValueError, ZeroDivisionError, OverflowError):
        return np.nan  # outside the domain, or a pole: settled by the caller's plain value
    return float(result) if isinstance(result, mpmath.mpf) else np.nan


def _logistic(x: Any) -> Any:
    mpmath = sys.modules["mpmath"]
    return 1 / (1 + mpmath.exp(-x))


def _rsqrt(x: Any) -> Any:
    return 1 / sys.modules["mpmath"].sqrt(x)


_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {"logistic": _logistic, "rsqrt": _rsqrt}

_ELEMENTARY: Mapping[str, str] = {
    **{
        name: name
        for name in [
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "cos",
            "cosh",
            "erf",
            "erfc",
            "exp",
        ]
    },
    **{
        name: name
        for name in [
            "expm1",
            "log",
            "log1p",
            "sin",
            "sinh",
            "tan",
            "tanh",
            "cbrt",
            "logistic",
            "rsqrt",
        ]
    },
    "erf_inv": "erfinv",
    "lgamma": "loggamma",
    "digamma": "digamma",
}
"""Primitives by the name of their mpmath function."""

_APPROXIMATE = frozenset({"dot_general", "conv_general_dilated", "reduce_sum", "cumsum", "pow"})
