"""Error against magnitude: how large the ulp error is where the wanted value is large or small."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from parity.compare.elementwise import Errors, float_errors, integer_errors
from parity.dtypes import DType

Band = tuple[float, int, float, float]
"""Lower end (a power of two, or 0 for the zeros), elements, largest and mean ulp error."""

BANDS = 32
SAMPLE = 2**16
"""Of more elements than that, evenly spaced ones are looked at."""


def profile(got: np.ndarray, want: np.ndarray, element: DType) -> tuple[Band, ...]:
    """The ulp errors by magnitude of the wanted value, in at most `BANDS` bands, ascending.

    A band reaches from its lower end to that of the next possible one: all but the band of the
    zeros are equally many powers of two wide. Elements that are not finite in `want` are left out.

    Args:
        got: shape (n,), n > 0, not bool.
        want: shape (n,), as `metrics.measure` takes it.
        element: the dtype of `got`.
    """
    step = -(-len(got) // SAMPLE)
    compare = integer_errors if element.is_integer else float_errors
    with np.errstate(all="ignore"):
        errors = compare(got[::step], want[::step]).numeric()
    if not len(errors.ulp):
        return ()
    exponent = _exponents(errors)
    nonzero = exponent[exponent > _ZERO]
    first = int(nonzero.min()) if nonzero.size else 0
    span = int(nonzero.max()) - first + 1 if nonzero.size else 1
    width = -(-span // (BANDS - 1))
    band = np.where(exponent > _ZERO, (exponent - first) // width, -1)
    order = np.argsort(band, kind="stable")
    found, starts, counts = np.unique(band[order], return_index=True, return_counts=True)
    ulps = errors.ulp[order]
    largest = np.maximum.reduceat(ulps, starts)
    mean = np.add.reduceat(ulps, starts) / counts
    lows = [0.0 if b < 0 else math.ldexp(1.0, first + b * width) for b in found.tolist()]
    return tuple(zip(lows, counts.tolist(), largest.tolist(), mean.tolist(), strict=True))


_ZERO = -(2**20)


def _exponents(errors: Errors) -> npt.NDArray[np.int64]:
    """floor(log2 |want|), of a complex element that of its modulus; `_ZERO` where it is 0."""
    want = errors.want
    size = np.abs(want) if want.ndim == 1 else np.hypot(want[:, 0], want[:, 1])
    exponent = np.frexp(size)[1].astype(np.int64) - 1
    return np.where(size > 0, exponent, _ZERO)
