"""Sums and contractions of float64 to full double accuracy, with error-free transformations.

Three float64 numbers hold each running sum, so that a result is as if computed in about 150 bits
and then rounded once: relative error 2**-53 + O((K·2**-53)**3 · condition number).

Source: Ogita, Rump and Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 26(6), 2005
(TwoSum after Knuth, TwoProduct after Dekker and Veltkamp, DotK with K = 3). Operands beyond 2**996
overflow the splitting; such sums fall back to plain float64.
"""

from __future__ import annotations

import numpy as np

from parity.reference.value import parts

_SPLITTER = 2.0**27 + 1.0
LARGEST = 2.0**996
"""Operands from here on overflow the splitting."""

_LANES = 1 << 14
"""Elements worked on at a time below which one long sum is split into several."""

Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """s = fl(a + b) and e with a + b = s + e exactly."""
    s = a + b
    z = s - a
    return s, (a - (s - z)) + (b - z)


def _split(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    c = _SPLITTER * a
    high = c - (c - a)
    return high, a - high


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p = fl(a·b) and e with a·b = p + e exactly, barring overflow and underflow."""
    p = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    return p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)


def _add(total: Triple, term: np.ndarray) -> Triple:
    s, e = two_sum(total[0], term)
    c, f = two_sum(total[1], e)
    return s, c, total[2] + f


def sum_last_axis(terms: np.ndarray) -> np.ndarray:
    """The sums over the last axis, float64 or complex128, each rounded once."""
    if terms.dtype.kind == "c":
        return parts(sum_last_axis, terms)
    if not np.isfinite(terms).all():
        return np.asarray(terms.sum(axis=-1))
    zero = np.zeros(terms.shape[:-1])
    total: Triple = (zero, zero, zero)
    lanes = _lanes(zero.size, terms.shape[-1])
    if lanes > 1:
        whole = terms.shape[-1] // lanes * lanes
        halves = terms[..., :whole].reshape(*terms.shape[:-1], whole // lanes, lanes)
        partial = _accumulate(np.moveaxis(halves, -2, 0), (*halves.shape[:-2], lanes))
        terms = np.concatenate([*partial, terms[..., whole:]], axis=-1)
    for i in range(terms.shape[-1]):
        total = _add(total, terms[..., i])
    high, low = two_sum(total[0], total[1])  # they may cancel: the condition number beyond 2**53
    return np.asarray(high + (low + total[2]))


def _accumulate(terms: np.ndarray, shape: tuple[int, ...]) -> Triple:
    total: Triple = (np.zeros(shape), np.zeros(shape), np.zeros(shape))
    for term in terms:
        total = _add(total, term)
    return total


def _lanes(outputs: int, terms: int) -> int:
    return max(1, min(int(terms**0.5), _LANES // max(outputs, 1)))


def matrix_product(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """[B, M, K] and [B, N, K] -> [B, M, N], float64, each element rounded once."""
    largest = max(np.abs(lhs).max(initial=0), np.abs(rhs).max(initial=0))
    if not largest < LARGEST:
        return np.asarray(lhs @ rhs.swapaxes(-1, -2))
    shape = (lhs.shape[0], lhs.shape[1], rhs.shape[1])
    lanes = _lanes(int(np.prod(shape)), lhs.shape[-1])
    total: Triple = (
        np.zeros((*shape, lanes)),
        np.zeros((*shape, lanes)),
        np.zeros((*shape, lanes)),
    )
    for first in range(0, lhs.shape[-1], lanes):
        high, low = two_product(
            lhs[:, :, None, first : first + lanes], rhs[:, None, :, first : first + lanes]
        )
        width = high.shape[-1]
        part: Triple = (total[0][..., :width], total[1][..., :width], total[2][..., :width])
        part = _add(part, high)
        c, f = two_sum(part[1], low)
        for whole, new in zip(total, (part[0], c, part[2] + f), strict=True):
            whole[..., :width] = new
    return sum_last_axis(np.concatenate(total, axis=-1))
