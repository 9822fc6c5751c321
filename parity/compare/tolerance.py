"""An explicit tolerance: whether an output meets it."""

from __future__ import annotations

import numpy as np

from parity.casefile.case import Tolerance
from parity.compare.elementwise import Mask, float_errors, integer_errors
from parity.compare.metrics import BLOCK, Metrics, comparable
from parity.compare.ulp import dtype_of


def within(
    got: np.ndarray,
    want: np.ndarray,
    tolerance: Tolerance,
    metrics: Metrics,
    *,
    exclude: Mask | None = None,
) -> bool:
    """Whether every element meets every limit that is given.

    `atol` and `rtol` mean |got - want| <= atol + rtol * |want|, in float64; one alone leaves the
    other at 0. NaN and infinity pass where `want` has the same.

    Args:
        got: the output.
        want: what the tolerance is against.
        tolerance: the limits.
        metrics: of `got` against `want`.
        exclude: True where no rule determines the element.
    """
    if not comparable(got, want) or metrics.pattern:
        return False
    if not metrics.differing:
        return True
    if metrics.max_ulp is None:  # bool: no distance to speak of
        return False
    if tolerance.max_ulp is not None and not metrics.max_ulp <= tolerance.max_ulp:
        return False
    if tolerance.rtol is None and tolerance.atol is None:
        return True
    flat_got, flat_want = got.reshape(-1), want.reshape(-1)
    if exclude is not None:
        kept = ~exclude.reshape(-1)
        flat_got, flat_want = flat_got[kept], flat_want[kept]
    atol, rtol = tolerance.atol or 0.0, tolerance.rtol or 0.0
    return all(
        _close(flat_got[start : start + BLOCK], flat_want[start : start + BLOCK], atol, rtol)
        for start in range(0, len(flat_got), BLOCK)
    )


def _close(got: np.ndarray, want: np.ndarray, atol: float, rtol: float) -> bool:
    compare = integer_errors if dtype_of(got.dtype).is_integer else float_errors
    with np.errstate(all="ignore"):
        errors = compare(got, want).numeric()
        size = np.abs(errors.want)
        if size.ndim == 2:
            size = np.hypot(size[:, 0], size[:, 1])
        return bool((errors.absolute <= atol + rtol * size).all())


def limits(tolerance: Tolerance) -> str:
    """The limits in words: "rtol 0.001, max_ulp 2 against f64"."""
    given = [
        f"{name} {value:g}"
        for name in ("rtol", "atol", "max_ulp")
        if (value := getattr(tolerance, name)) is not None
    ]
    return f"{', '.join(given)} against {tolerance.against}"
