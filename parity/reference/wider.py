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
from parity.reference.matrices import by_parts, summed_last, unfold
from parity.reference.value import parts

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
        return double_double.sum_last_axis(summed_last(points[0], eqn.params["axes"]))
    if name in _ELEMENTARY and points[0].dtype == np.float64:
        return _elementary(eqn, points[0])
    return None


def settled(found: np.ndarray, plain: np.ndarray) -> np.ndarray:
    """The wider results, but the plain ones where either is not finite and for a zero's sign."""

    def better(found: np.ndarray, plain: np.ndarray) -> np.ndarray:
        settled = np.isfinite(found) & np.isfinite(plain) & ((found != 0) | (plain != 0))
        return np.where(settled, found, plain)

    return parts(better, found, plain)


def needed(name: str) -> bool:
    """Whether plain float64 is not already the correctly rounded result of a primitive."""
    return name in _ELEMENTARY or name in _APPROXIMATE


def _contraction(eqn: Any, points: list[np.ndarray]) -> np.ndarray | None:
    lhs, rhs = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in points)
    if not all((np.abs(x) < double_double.LARGEST).all() for x in (lhs, rhs)):
        return None  # an implicit zero times infinity, too, is the plain kernel's to leave out
    left, right, finish = unfold(eqn, lhs, rhs)
    if left.size * right.shape[1] > _MOST_PRODUCTS:
        return None
    return finish(by_parts(double_double.matrix_product, left, right))


def _function(eqn: Any, mpmath: ModuleType) -> Callable[[Any], Any]:
    """The mpmath function of a primitive in `_ELEMENTARY`."""
    if eqn.primitive.name == "integer_pow":
        return lambda x: x ** eqn.params["y"]
    name = _ELEMENTARY[eqn.primitive.name]
    own: Mapping[str, Callable[[Any], Any]] = {
        "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),  # not the principal complex root
        "exp2": lambda x: mpmath.power(2, x),
        "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
        "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    }
    return own.get(name) or getattr(mpmath, name)


def _elementary(eqn: Any, x: np.ndarray) -> np.ndarray | None:
    mpmath = _mpmath()
    if mpmath is None or x.size > _MOST_ELEMENTS:
        return None
    function = _function(eqn, mpmath)
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


_ELEMENTARY: Mapping[str, str] = {
    name: name
    for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "digamma", "erf",
        "erfc", "exp", "exp2", "expm1", "integer_pow", "log", "log1p", "logistic", "rsqrt", "sin",
        "sinh", "tan", "tanh",
    )
} | {"erf_inv": "erfinv", "lgamma": "loggamma"}  # fmt: skip
"""Primitives by the name of their mpmath function."""

_APPROXIMATE = {
    "atan2", "bessel_i0e", "bessel_i1e", "conv_general_dilated", "cumlogsumexp", "cumprod",
    "cumsum", "dot_general", "fft", "igamma", "igammac", "polygamma", "pow", "reduce_prod",
    "reduce_sum", "reduce_window_sum", "regularized_incomplete_beta", "scatter-add",
    "scatter-mul", "scatter_add", "scatter_mul", "triangular_solve", "zeta",
}  # fmt: skip
"""The others that plain float64 rounds more than once."""
