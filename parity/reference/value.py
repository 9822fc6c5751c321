"""What the interpreter knows of an array: a point, an interval around it, and what is uncertain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parity.dtypes import DType

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
        given: whether it is one of the program's inputs as it is.
        chosen: for a maximum or minimum, what it was chosen from, and which elements of that are
            certainly chosen.
        cast_from: the narrower dtype that holds it, where it was cast up from one.
    """

    point: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    unspecified: Mask = None
    undecided: Mask = None
    loose: tuple[np.ndarray, np.ndarray] | None = None
    constant: bool = False
    given: bool = False
    chosen: tuple[tuple[Value, np.ndarray], ...] = ()
    cast_from: DType | None = None

    @staticmethod
    def exactly(point: np.ndarray, *, constant: bool = False) -> Value:
        """A value about which nothing is uncertain."""
        return Value(point, point, point, constant=constant)

    def at(self, where: Any) -> Value:
        """The elements that a NumPy index of slices and integers picks."""
        where = (*where, ...) if isinstance(where, tuple) else (where, ...)
        point = self.point[where]
        return Value(
            point,
            point if self.exact else self.lo[where],
            point if self.exact else self.hi[where],
            None if self.unspecified is None else self.unspecified[where],
            None if self.undecided is None else self.undecided[where],
            constant=self.constant,
        )

    @property
    def exact(self) -> bool:
        """Whether the interval is the point."""
        return self.lo is self.point and self.hi is self.point

    @property
    def fixed(self) -> bool:
        """Whether the interval is the point but for the sign of a zero."""
        return self.exact or bool(np.array_equal(self.lo, self.hi))

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


def stacked(values: Sequence[Value]) -> Value:
    """Values of one shape, at least one, along a new first axis."""
    point = np.stack([value.point for value in values])
    lo = hi = point
    if not all(value.exact for value in values):
        lo, hi = np.stack([value.lo for value in values]), np.stack([value.hi for value in values])

    def masks(marked: list[Mask]) -> Mask:
        if all(mask is None for mask in marked):
            return None
        shape = values[0].point.shape
        return np.stack([np.zeros(shape, bool) if mask is None else mask for mask in marked])

    return Value(
        point,
        lo,
        hi,
        masks([value.unspecified for value in values]),
        masks([value.undecided for value in values]),
    )


def picked(
    data: Sequence[Value],
    source: np.ndarray,
    *,
    fill: Value | None = None,
    undecided: Mask = None,
    unspecified: Mask = None,
) -> Value:
    """Elements of values, taken by number; the ends of undecided ones hold every element.

    Args:
        data: their elements count on, from the first value's to the last's.
        source: int64, the number of each element of the result; -1 for `fill`.
        fill: one element.
        undecided: elements of the result whose number is.
        unspecified: elements of the result that may be another's.
    """
    pool = [*data, *([] if fill is None else [fill])]

    def taken(arrays: list[np.ndarray]) -> np.ndarray:
        flat = np.concatenate([array.ravel() for array in arrays])
        return np.asarray(flat[source]) if flat.size else np.zeros(source.shape, flat.dtype)

    def masks(marked: list[Mask]) -> Mask:
        if all(mask is None for mask in marked):
            return None
        pairs = zip(pool, marked, strict=True)
        return taken([np.zeros(v.point.shape, bool) if m is None else m for v, m in pairs])

    point = taken([value.point for value in pool])
    lo = hi = point
    exact = all(value.exact for value in pool)
    if not exact or (undecided is not None and point.dtype.kind in "fc"):
        lo, hi = taken([value.lo for value in pool]), taken([value.hi for value in pool])
    if undecided is not None and point.dtype.kind in "fc" and point.size:
        least = [parts(np.min, value.lo) for value in pool if value.point.size]
        largest = [parts(np.max, value.hi) for value in pool if value.point.size]

        def opened(end: np.ndarray, every: np.ndarray) -> np.ndarray:
            return np.asarray(np.where(undecided, every, end))

        lo = parts(opened, lo, _least(least))
        hi = -parts(opened, -hi, _least([-x for x in largest]))
    return Value(
        point,
        lo,
        hi,
        union([unspecified, masks([value.unspecified for value in pool])]),
        union([undecided, masks([value.undecided for value in pool])]),
        constant=all(value.constant for value in pool),
    )


def _least(ends: list[np.ndarray]) -> np.ndarray:
    """The least of several lower ends, -inf where one is NaN."""

    def least(*of: np.ndarray) -> np.ndarray:
        found = np.asarray(np.minimum.reduce(of))
        return np.where(np.isnan(found), -np.inf, found)

    return parts(least, *ends)
