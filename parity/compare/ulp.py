"""Units in the last place, from the bits of the output's own dtype.

Two measures, never mixed: between two values of one dtype, the number of steps between them on its
grid (`steps`, exact); against a wider reference, the fractional |got - want| / ulp(want).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from parity.dtypes import DTYPES, DType, dtype

_PARTS = {"complex64": DTYPES["float32"], "complex128": DTYPES["float64"]}


@cache
def dtype_of(numpy_dtype: np.dtype) -> DType:
    """The `DType` of an array's dtype; `parity.dtypes.dtype` without the price of the name.

    Raises:
        KeyError: no such element type.
    """
    return dtype(numpy_dtype)


def part_of(element: DType) -> DType:
    """The floating dtype of a complex type's two parts; any other type itself."""
    return _PARTS.get(element.name, element)


def parts(array: np.ndarray) -> np.ndarray:
    """A complex array of shape (…) as reals of shape (…, 2), a view; any other array itself."""
    if array.dtype.kind != "c":
        return array
    real = np.float32 if array.dtype.itemsize == 8 else np.float64
    return np.ascontiguousarray(array).view(real).reshape(*array.shape, 2)


def as_float64(array: np.ndarray) -> npt.NDArray[np.float64]:
    """A real floating array as float64, exactly; NaNs come without NumPy's warning."""
    with np.errstate(invalid="ignore"):
        return array.astype(np.float64)


def bits(array: np.ndarray) -> np.ndarray:
    """The raw bits of a real array as unsigned integers of its width, a view."""
    return array.view(f"u{array.dtype.itemsize}")


def ulp(x: npt.NDArray[np.float64], element: DType) -> npt.NDArray[np.float64]:
    """The spacing of a floating dtype's grid at x: 2^(max(e, emin) - p + 1), 2^e <= |x| < 2^(e+1).

    At zero and among the subnormals this is the smallest subnormal; x need not lie on the grid.
    Beyond the largest finite value the grid is thought to go on. NaN where x is not finite.

    Args:
        x: float64, any shape.
        element: a floating dtype, or a complex one for either of its parts.

    Returns:
        float64 of the shape of x.

    Raises:
        ValueError: the dtype is not a floating or complex one.

    Source: J.-M. Muller, "On the definition of ulp(x)", INRIA RR-5504, 2005 (Goldberg's
    definition, extended to all reals).
    """
    if element.format is None:
        raise ValueError(f"{element.name} has no ulp: it is not floating")
    precision, emin = element.format.precision, element.format.emin
    exponent = ((x.view(np.int64) >> 52) & 0x7FF) - 1023  # -1023 for zero and subnormals
    finite = exponent < 1024
    if not finite.all():
        exponent = np.where(finite, exponent, 0)
    spacing = np.ldexp(1.0, np.maximum(exponent, emin) - precision + 1)
    return np.asarray(spacing if finite.all() else np.where(finite, spacing, np.nan))


def ordinal(raw: np.ndarray, element: DType) -> npt.NDArray[np.int64]:
    """A monotone numbering of the values of a floating dtype in which neighbours differ by 1.

    Both zeros are 0 and infinity follows the largest finite value. The number of a NaN says
    nothing.

    Args:
        raw: the bits, unsigned integers of any shape.
        element: the floating dtype they belong to.

    Returns:
        int64 of the shape of `raw`.
    """
    if element.format is not None and not element.format.signed:
        return raw.astype(np.int64)
    sign = element.bits - 1
    magnitude = (raw & raw.dtype.type((1 << sign) - 1)).astype(np.int64)
    return np.asarray(np.where(raw >> sign, -magnitude, magnitude))


def steps(got: np.ndarray, want: np.ndarray, element: DType) -> npt.NDArray[np.uint64]:
    """How many steps lie between two values of one floating dtype, exactly.

    Args:
        got: bits, unsigned integers.
        want: bits, of the same shape and dtype.
        element: the floating dtype both belong to.

    Returns:
        uint64; float64 values may be up to 2^64 - 2 steps apart, which int64 does not hold.
    """
    a, b = ordinal(got, element), ordinal(want, element)
    return np.maximum(a, b).view(np.uint64) - np.minimum(a, b).view(np.uint64)
