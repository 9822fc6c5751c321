"""Arrays in their wide form and back: float64, complex128, int64, uint64, Python integers, bool."""

from __future__ import annotations

import numpy as np

from parity.dtypes import DTYPES, DType
from parity.reference.rounding import cast


def widen(array: np.ndarray) -> np.ndarray:
    """An array of any dtype in its wide form; every value stays exact."""
    kind = DTYPES[array.dtype.name].kind
    if kind == "float":
        with np.errstate(invalid="ignore"):  # ml_dtypes warns of NaNs
            return array.astype(np.float64)
    if kind == "complex":
        return array.astype(np.complex128)
    if kind == "uint" and array.dtype.itemsize == 8:
        return array.astype(np.uint64)
    return array if kind == "bool" else array.astype(np.int64)


def wrap(value: np.ndarray, declared: DType) -> np.ndarray:
    """Integers modulo 2**bits, in the range of the declared dtype (two's complement)."""
    low, high = declared.integer_range
    span = 1 << declared.bits
    if value.dtype == object:
        value = np.asarray((value - low) % span + low, dtype=object)
    elif declared.bits == 64:
        return value.astype(declared.numpy())
    elif value.size and (value.min() < low or value.max() > high):
        value = (value.astype(np.int64) - low) % span + low
    return value.astype(np.uint64 if declared.name == "uint64" else np.int64)


def saturated(value: np.ndarray, declared: DType) -> np.ndarray:
    """Integers in the range of the declared dtype, at its ends where they are beyond."""
    low, high = declared.integer_range
    if value.dtype == object:
        held = np.asarray([min(max(v, low), high) for v in value.flat], object)
        return wrap(held.reshape(value.shape), declared)
    if value.dtype == np.uint64:
        return wrap(np.minimum(value, np.uint64(high)), declared)
    return wrap(np.clip(value, max(low, -(2**63)), min(high, 2**63 - 1)), declared)


def narrow(value: np.ndarray, declared: DType) -> np.ndarray:
    """A wide value in the declared dtype itself, rounded once or wrapped."""
    if declared.is_inexact:
        return cast(value, declared)
    if declared.is_integer:
        return wrap(value, declared).astype(declared.numpy())
    return value.astype(bool)


def ideal(value: np.ndarray) -> np.ndarray:
    """A wide value as it is compared: Python integers become int64, uint64 or, beyond, float64."""
    if value.dtype != object:
        return value
    for target in (np.int64, np.uint64):
        info = np.iinfo(target)
        if all(info.min <= v <= info.max for v in value.flat):
            return value.astype(target)
    return value.astype(np.float64)
