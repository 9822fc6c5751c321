"""Which sums are exact in every order of summation, so that any order gives the same.

A sum whose terms are all multiples of 2**q and have Σ|x| <= 2**(p + q) has only partial sums that
p bits hold. Source: Demmel and Nguyen, Fast reproducible floating-point summation, ARITH 2013.

Inside, a value's depth is `_ORIGIN - q`, where 2**q is the largest power of two that divides it:
depths of a product's factors add up, and zeros, which constrain nothing, lie below all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parity.dtypes import FloatFormat
from parity.reference.matrices import unfold

_ORIGIN = 1100
_ZERO = -8192

_CHUNK = 1 << 22
"""Products looked at at a time."""


def exact_products(
    eqn: Any, lhs: np.ndarray, rhs: np.ndarray, total: np.ndarray, fmt: FloatFormat
) -> np.ndarray:
    """Which sums of a contraction are exact in every order, their products included.

    Args:
        eqn: a `dot_general` or `conv_general_dilated` equation.
        lhs: its operand, wide.
        rhs: the other one.
        total: Σ|a||b| of each sum (complex: of the real and the imaginary part apart).
        fmt: of the accumulator.

    Returns:
        Bool, of the shape of `total` and, if that is complex, of its two parts apart: a last axis.
    """
    left, right, finish = unfold(eqn, _depth(lhs), _depth(rhs))
    left, right = (np.where(x == 0, np.int16(_ZERO), x) for x in (left, right))
    possible = finish(_shallowest(left, right))
    if not _fits(total, possible, 2 * _ORIGIN, fmt).any():
        return np.zeros(_apart(total).shape, bool)
    return _fits(total, finish(_deepest(left, right)), 2 * _ORIGIN, fmt)


def exact_terms(terms: np.ndarray, total: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    """Which sums of given terms are exact in every order; see `exact_products`.

    Args:
        terms: every term of every sum, wide.
        total: Σ|x| of each sum.
        fmt: of the accumulator.
    """
    deepest = np.max(_depth(terms), initial=0)
    return _fits(total, np.full(total.shape, deepest), _ORIGIN, fmt)


def _apart(x: np.ndarray) -> np.ndarray:
    return np.stack([x.real, x.imag], axis=-1) if x.dtype.kind == "c" else x


def _fits(total: np.ndarray, depth: np.ndarray, origin: int, fmt: FloatFormat) -> np.ndarray:
    """Whether multiples of 2**(origin - depth) with that Σ|x| have sums that the format holds."""
    quantum = origin - depth.astype(np.int64)
    if total.dtype.kind == "c":
        quantum = quantum[..., None]
    limit = np.ldexp(1.0, np.minimum(fmt.precision + quantum, 1023))
    if fmt.precision == 53:  # Σ|x| is of 53 bits itself: at the limit it may have been beyond
        limit = np.nextafter(limit, 0.0)
    return np.asarray((_apart(total) <= limit) & (quantum >= fmt.emin - fmt.precision + 1))


def _depth(x: np.ndarray) -> np.ndarray:
    """int16; 0 for a zero and for what is not finite; integers count as multiples of 1."""
    if x.dtype.kind == "c":
        return np.asarray(np.maximum(_depth(x.real), _depth(x.imag)))
    if x.dtype.kind != "f":
        return np.where(x == 0, 0, _ORIGIN).astype(np.int16)
    mantissa, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, 0, _ORIGIN + 53 - exponent - trailing).astype(np.int16)


def _deepest(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[B, M, K] and [B, N, K] -> [B, M, N]: the largest depth of a sum's products."""
    batch, rows, terms = left.shape
    out = np.full((batch, rows, right.shape[1]), 2 * _ZERO, np.int16)
    step = max(1, _CHUNK // max(1, right.shape[1] * terms))
    for b in range(batch if terms else 0):
        for first in range(0, rows, step):
            depths = left[b, first : first + step, None, :] + right[b, None, :, :]
            out[b, first : first + step] = depths.max(axis=-1)
    return out


def _shallowest(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """What `_deepest` cannot be below, at the price of the operands alone."""
    if not left.shape[-1]:
        return _deepest(left, right)
    one = left.max(axis=-1)[:, :, None] + right.min(axis=-1)[:, None, :]
    other = left.min(axis=-1)[:, :, None] + right.max(axis=-1)[:, None, :]
    return np.asarray(np.maximum(one, other))
