"""Rounding float64 values to a narrower format, once.

ml_dtypes before 0.7 casts float64 through float32 and rounds twice: 1 + 2**-8 + 2**-30 becomes the
bfloat16 1.0. Here a value is rounded in one step and only then, being representable, cast.
"""

from __future__ import annotations

import numpy as np

from parity.dtypes import DType, FloatFormat

_EXPONENT_BITS = np.int64(0x7FF0_0000_0000_0000)


def round_to(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Each value rounded once to a format: to nearest, ties to even, subnormals included.

    Beyond the largest finite value the format decides (`FloatFormat.overflow`): ±inf, NaN or the
    largest finite value; an infinity follows the same rule. -0 becomes +0 where the format has no
    negative zero. NaN stays NaN even for float4_e2m1fn, which has none: what a conversion gives
    there is left open by the OCP MX specification. In float8_e8m0fnu, as in ml_dtypes, zero and
    negative values are NaN, positive ones below 2**-127 are 2**-127, and a tie goes up (a one-bit
    significand is never even: IEEE 754-2019, 4.3.1).

    Args:
        values: float64, or complex128 (each part is rounded apart), of any shape.
        dtype: a floating or complex element type.

    Returns:
        A new array of the shape and dtype of `values`.

    Raises:
        ValueError: the dtype is not inexact.
    """
    if dtype.format is None:
        raise ValueError(f"cannot round to {dtype.name} (allowed: floating and complex types)")
    values = np.asarray(values)
    wide = np.complex128 if np.iscomplexobj(values) else np.float64
    parts = values.astype(wide).reshape(-1).view(np.float64)
    return _round(parts, dtype.format).view(wide).reshape(values.shape)


def cast(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Values in the NumPy or ml_dtypes dtype itself, rounded by `round_to`.

    A NaN becomes the NaN that ml_dtypes makes of it, and zero in float4_e2m1fn.

    Args:
        values: float64, or complex128 for a complex dtype, of any shape.
        dtype: a floating or complex element type.

    Raises:
        ValueError: the dtype is not inexact.
        UnsupportedDType: the installed ml_dtypes is too old for it.
    """
    with np.errstate(invalid="ignore"):
        return round_to(values, dtype).astype(dtype.numpy())


def _round(values: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    """`round_to` for one axis of float64."""
    if fmt.precision == 53:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        if fmt.precision == 24:
            return values.astype(np.float32).astype(np.float64)
        magnitude = _nearest(np.minimum(np.abs(values), 4.0 * fmt.max_finite), fmt)
    magnitude[magnitude > fmt.max_finite] = {
        "inf": np.inf,
        "nan": np.nan,
        "saturate": fmt.max_finite,
    }[fmt.overflow]
    if not fmt.has_zero:
        magnitude = np.maximum(magnitude, fmt.smallest_subnormal)
        magnitude[values == 0] = np.nan
    if not fmt.signed:
        magnitude[values < 0] = np.nan
    rounded: np.ndarray = np.copysign(magnitude, values)
    return rounded if fmt.negative_zero else rounded + 0.0


def _nearest(magnitude: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    """Nonnegative float64 rounded to `precision` bits, not below the subnormal spacing.

    Adding and subtracting c = 2**(e + 53 - p) leaves the nearest multiple of 2**(e - p + 1): that
    is the float64 spacing in [c, 2c), where the sum lies.

    Source: Muller et al., Handbook of Floating-Point Arithmetic (2nd ed.), section 4.4 (Dekker).
    """
    power = (magnitude.view(np.int64) & _EXPONENT_BITS).view(np.float64)
    shifter = np.maximum(power, 2.0**fmt.emin) * 2.0 ** (53 - fmt.precision)
    rounded: np.ndarray = (magnitude + shifter) - shifter
    return rounded
