"""What the interpreter knows of an array: a point, an interval around it, and what is uncertain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Mask = np.ndarray | None
"""Marked elements (bool, of the value's shape); None for none."""


@dataclass(frozen=True)
class Value:
    """A wide array with bounds on what another correct evaluation may have in its place.

    All arrays have one shape. `lo` and `hi` are the object `point` itself where nothing else is
    possible, so that exact values cost no more than the point. For complex values the real and
    imaginary parts of `lo` and `hi` bound the two parts apart.

    Attributes:
        point: float64, complex128, int64, uint64, object (Python ints) or bool.
        lo: lower ends.
        hi: upper ends.
        unspecified: elements that no rule determines: an implicit zero times a non-finite value.
        undecided: elements that depend on a comparison, an index or a conversion to integer whose
            operand's interval crosses the place where the result jumps.
        loose: ends before the last rounding, kept for a product that an addition may take as it is.
        constant: whether it is the same whatever the program's inputs are.
    """

    point: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    unspecified: Mask = None
    undecided: Mask = None
    loose: tuple[np.ndarray, np.ndarray] | None = None
    constant: bool = False

    @staticmethod
    def exactly(point: np.ndarray, *, constant: bool = False) -> Value:
        """A value about which nothing is uncertain."""
        return Value(point, point, point, constant=constant)

    @property
    def exact(self) -> bool:
        """Whether the interval is the point."""
        return self.lo is self.point and self.hi is self.point

    @property
    def magnitude(self) -> np.ndarray:
        """The largest absolute value in each interval, float64 (complex: the parts apart)."""
        if self.point.dtype.kind == "c":
            return parts(np.maximum, parts(np.abs, self.lo), parts(np.abs, self.hi))
        if self.exact:
            return np.asarray(np.abs(self.point))
        return np.asarray(np.maximum(np.abs(self.lo), np.abs(self.hi)))

    @property
    def radius(self) -> np.ndarray:
        """The larger distance from the point to an end (complex: the parts apart)."""
        if self.exact:
            return np.zeros_like(self.point)
        return parts(np.maximum, self.hi - self.point, self.point - self.lo)


def parts(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """A real function of real arrays, applied to real and imaginary parts apart if complex."""
    if all(array.dtype.kind != "c" for array in arrays):
        return np.asarray(function(*arrays))
    real = function(*(np.real(array) for array in arrays))
    imaginary = function(*(np.imag(array) for array in arrays))
    out = np.empty(np.shape(real), np.complex128)
    out.real, out.imag = real, imaginary
    return out


def union(masks: Sequence[Mask]) -> Mask:
    """Elements marked in any mask; the masks are broadcast against each other."""
    given = [mask for mask in masks if mask is not None]
    if not given:
        return None
    return np.asarray(np.logical_or.reduce(np.broadcast_arrays(*given)))
