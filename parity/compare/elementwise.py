"""The error of every element of a block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from parity.compare.ulp import as_float64, bits, dtype_of, part_of, parts, steps, ulp

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Errors:
    """The error of each element of a block of n; complex ones as parts, shape (n, 2).

    Attributes:
        got: float64, (n,) or (n, 2).
        want: float64, (n,) or (n, 2).
        error: got - want, float64, (n,) or (n, 2).
        absolute: |error|, of a complex one the modulus, float64, (n,).
        ulp: the ulp error, of a complex one that of the worse part, float64, (n,).
        signed_ulp: the ulp error with the sign of the error, float64, (n,) or (n, 2).
        differing: bool, (n,).
        finite: where `want` is finite, bool, (n,); None if everything is on both sides.
        exact: the largest absolute error, where float64 may not hold it.
    """

    got: Floats
    want: Floats
    error: Floats
    absolute: Floats
    ulp: Floats
    signed_ulp: Floats
    differing: Mask
    finite: Mask | None
    exact: int | None = None

    def numeric(self) -> Errors:
        """The elements that are finite in `want`."""
        if self.finite is None or self.finite.all():
            return self
        kept = np.flatnonzero(self.finite)
        return Errors(
            self.got[kept], self.want[kept], self.error[kept], self.absolute[kept],
            self.ulp[kept], self.signed_ulp[kept], self.differing[kept], self.finite[kept],
        )  # fmt: skip


def different_bits(a: np.ndarray, b: np.ndarray) -> Mask:
    """Where two outputs of one dtype and shape have other bits; all NaNs are equal.

    Args:
        a: any shape, any dtype in `parity.dtypes`.
        b: the other output.

    Returns:
        bool, of the shape of `a`.
    """
    element = dtype_of(a.dtype)
    if not element.is_inexact:
        return np.asarray(a != b)
    a, b = parts(a), parts(b)
    differing = np.asarray(bits(a) != bits(b))
    if differing.any():  # widened, since NumPy knows no NaN in every small format
        differing &= ~(np.isnan(as_float64(a)) & np.isnan(as_float64(b)))
    return np.asarray(differing.any(axis=-1) if element.kind == "complex" else differing)


def same_bits(a: np.ndarray, b: np.ndarray, *, exclude: Mask | None = None) -> bool:
    """Whether two outputs are identical: dtype, shape and bits; all NaNs are equal.

    Args:
        a: any shape, any dtype in `parity.dtypes`.
        b: the other output.
        exclude: True where no rule determines the element, of the shape of `a`.
    """
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    differing = different_bits(a, b)
    return not np.any(differing if exclude is None else differing & ~exclude)


def float_errors(got: np.ndarray, want: np.ndarray) -> Errors:
    """Errors of floating or complex elements.

    Args:
        got: shape (n,), n > 0.
        want: shape (n,), of the same dtype (ulp errors are whole steps on its grid) or of float64
            or complex128 (they are fractional).
    """
    element = part_of(dtype_of(got.dtype))
    got_parts, want_parts = parts(got), parts(want)
    g, w = got_parts.astype(np.float64), want_parts.astype(np.float64)
    error = g - w
    gap = np.abs(error)
    if got.dtype == want.dtype:
        got_bits, want_bits = bits(got_parts), bits(want_parts)
        differing = got_bits != want_bits
        distance = steps(got_bits, want_bits, element).astype(np.float64)
    else:
        differing = g != w
        distance = gap / ulp(w, element)
    finite: Mask | None = None
    if not np.isfinite(gap).all():
        finite = np.asarray(np.isfinite(w))
        differing &= ~(np.isnan(g) & np.isnan(w))
        distance = np.where(np.isfinite(g) & finite, distance, gap)
    signed = np.copysign(distance, error)
    if g.ndim == 1:
        return Errors(g, w, error, gap, distance, signed, differing, finite)
    modulus = np.hypot(gap[:, 0], gap[:, 1])
    if finite is not None:
        finite = np.asarray(finite.all(axis=1))
        modulus[np.isnan(gap).any(axis=1)] = np.nan  # hypot(NaN, inf) is inf: it hides the NaN
    worse = np.maximum(distance[:, 0], distance[:, 1])
    return Errors(g, w, error, modulus, worse, signed, differing.any(axis=1), finite)


def integer_errors(got: np.ndarray, want: np.ndarray) -> Errors:
    """Errors of integer elements, exact; one ulp is 1.

    Args:
        got: shape (n,), n > 0, any integer dtype.
        want: shape (n,), the same dtype, int64, uint64, or float64: for integers beyond both, and
            where an ideal is no number, such as the integer that is made of a NaN.
    """
    g, w = got.astype(np.float64), want.astype(np.float64)
    finite = np.asarray(np.isfinite(w))
    if finite.all():
        difference = _integer_difference(got, want)
        error = difference.astype(np.float64)
        gap = np.abs(error)
        largest = int(np.abs(difference).max())
        return Errors(g, w, error, gap, gap, error, difference != 0, None, largest)
    difference = _integer_difference(got, np.where(finite, w, 0.0))
    error = np.where(finite, difference.astype(np.float64), g - w)
    gap = np.abs(error)
    return Errors(g, w, error, gap, gap, error, (difference != 0) | ~finite, finite)


def _integer_difference(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """got - want without wrapping: int64 where that holds it, else Python ints."""
    if all(_fits_62_bits(a) for a in (got, want)):
        return np.asarray(got.astype(np.int64) - want.astype(np.int64))
    exact = [np.array([int(v) for v in a.tolist()], dtype=object) for a in (got, want)]
    return np.asarray(exact[0] - exact[1])


def _fits_62_bits(array: np.ndarray) -> bool:
    if dtype_of(array.dtype).bits < 64:
        return True
    return bool(abs(int(array.max())) < 2**62 and abs(int(array.min())) < 2**62)
