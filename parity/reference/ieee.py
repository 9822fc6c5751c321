"""maximum and minimum of IEEE 754: NaN if an operand is, and -0 below +0, which NumPy leaves open.

Source: IEEE 754-2019, 9.6; StableHLO specification, `maximum`, `minimum`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_REST = np.int64(2**63 - 1)


@dataclass(frozen=True)
class Extreme:
    """One of the two, as a NumPy ufunc is used; of whole numbers it is that ufunc.

    Attributes:
        ufunc: np.maximum or np.minimum.
        nan: of the sign that makes it the extreme of all bits.
    """

    ufunc: np.ufunc
    nan: float

    def __call__(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Element by element."""
        if np.asarray(a).dtype.kind != "f":
            return np.asarray(self.ufunc(a, b))
        return _numbers(self.ufunc(self._ordered(a), self._ordered(b)))

    def reduce(self, x: np.ndarray, *, axis: tuple[int, ...], initial: Any) -> np.ndarray:
        """Over axes, which may be empty."""
        if x.dtype.kind != "f":
            return np.asarray(self.ufunc.reduce(x, axis=axis, initial=initial))
        start = self._ordered(np.float64(initial))
        return _numbers(self.ufunc.reduce(self._ordered(x), axis=axis, initial=start))

    def accumulate(self, x: np.ndarray, *, axis: int) -> np.ndarray:
        """Of all elements up to each."""
        if x.dtype.kind != "f":
            return np.asarray(self.ufunc.accumulate(x, axis=axis))
        return _numbers(self.ufunc.accumulate(self._ordered(x), axis=axis))

    def _ordered(self, x: Any) -> np.ndarray:
        """int64 in the order of the numbers."""
        return _flipped(np.where(np.isnan(x), self.nan, x).view(np.int64))


def _flipped(bits: np.ndarray) -> np.ndarray:
    """Sign and magnitude as two's complement, and back."""
    return np.where(bits < 0, bits ^ _REST, bits)


def _numbers(keys: Any) -> np.ndarray:
    return _flipped(np.asarray(keys)).view(np.float64)


MAXIMUM = Extreme(np.maximum, np.nan)
MINIMUM = Extreme(np.minimum, -np.nan)
