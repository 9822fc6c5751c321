"""Evaluations that nobody may find fault with: products and sums in float32, in any order.

Each takes factors [B, M, K] and [B, N, K], float32, and returns the sums [B, M, N], float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

Evaluation = Callable[[np.ndarray, np.ndarray], np.ndarray]


def products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[B, M, N, K], each rounded to float32."""
    return a[:, :, None, :] * b[:, None, :, :]


def add_sequentially(terms: np.ndarray) -> np.ndarray:
    """The last axis added from the left, rounded after every addition, in the dtype of `terms`."""
    return np.add.accumulate(terms, axis=-1)[..., -1]


def add_pairwise(terms: np.ndarray) -> np.ndarray:
    """The last axis added as a balanced tree: its first half and its second half, each likewise."""
    while terms.shape[-1] > 1:
        middle = (terms.shape[-1] + 1) // 2
        second = terms[..., middle:]
        folded = terms[..., :middle].copy()
        folded[..., : second.shape[-1]] += second
        terms = folded
    return terms[..., 0]


def add_neighbours(terms: np.ndarray) -> np.ndarray:
    """The last axis added as a tree over neighbours: first and second, third and fourth, …"""
    while terms.shape[-1] > 1:
        odd = terms[..., terms.shape[-1] // 2 * 2 :]
        terms = terms[..., : terms.shape[-1] // 2 * 2]
        terms = np.concatenate([terms[..., ::2] + terms[..., 1::2], odd], axis=-1)
    return terms[..., 0]


def sequential(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return add_sequentially(products(a, b))


def from_zero(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """An accumulator that begins at +0, so that no sum of zeros is -0."""
    return sequential(a, b) + np.float32(0)


def backwards(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return sequential(a[..., ::-1], b[..., ::-1])


def pairwise(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return add_pairwise(products(a, b))


def neighbours(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return add_neighbours(products(a, b))


def blocked(size: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Blocks of `size` neighbouring terms added one by one, then the blocks' sums."""
    terms = products(a, b)
    edges = range(0, terms.shape[-1], size)
    partial_sums = [add_sequentially(terms[..., edge : edge + size]) for edge in edges]
    return add_sequentially(np.stack(partial_sums, axis=-1))


def lanes(
    size: int, add: Callable[[np.ndarray], np.ndarray], a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """Every `size`-th term in one accumulator, as in a vector register, then those."""
    terms = products(a, b)
    lacking = -terms.shape[-1] % size
    terms = np.pad(terms, [(0, 0)] * 3 + [(0, lacking)])
    terms = terms.reshape(*terms.shape[:3], -1, size).swapaxes(-1, -2)
    return add(add_sequentially(terms))


def permuted(seed: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    order = np.random.default_rng(seed).permutation(a.shape[-1])
    return sequential(a[..., order], b[..., order])


def split(parts: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """K cut into `parts` pieces, each added from the left, their sums added pairwise."""
    pieces = np.array_split(np.arange(a.shape[-1]), min(parts, a.shape[-1]))
    return add_pairwise(np.stack([sequential(a[..., p], b[..., p]) for p in pieces], axis=-1))


def fused(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Fused multiply-add: no product is rounded, each sum once.

    The product of two float32 is exact in float64; its sum with a float32 is rounded to odd there,
    so that the rounding to float32 is the only one.
    Source: Boldo and Melquiond, Emulation of a FMA and correctly rounded sums, IEEE Trans.
    Computers 57(4), 2008.
    """
    a, b = a.astype(np.float64), b.astype(np.float64)
    total = np.zeros((a.shape[0], a.shape[1], b.shape[1]), np.float32)
    for k in range(a.shape[-1]):
        product = a[:, :, None, k] * b[:, None, :, k]
        wide = total.astype(np.float64)
        sum_ = wide + product
        rest = sum_ - wide
        lost = (wide - (sum_ - rest)) + (product - rest)
        is_even = (sum_.view(np.int64) & 1) == 0
        toward = np.nextafter(sum_, np.copysign(np.inf, lost))
        total = np.where((lost != 0) & is_even, toward, sum_).astype(np.float32)
    return total


def once(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A wider accumulator, rounded to float32 at the end."""
    wide = np.matmul(a.astype(np.float64), b.astype(np.float64).swapaxes(-1, -2))
    return wide.astype(np.float32)


HONEST: Mapping[str, Evaluation] = {
    "sequential": sequential,
    "from zero": from_zero,
    "reversed": backwards,
    "pairwise": pairwise,
    "blocked by 16": partial(blocked, 16),
    "blocked by 128": partial(blocked, 128),
    "neighbours": neighbours,
    "8 lanes": partial(lanes, 8, add_pairwise),
    "32 lanes": partial(lanes, 32, add_sequentially),
    "fma": fused,
    "once": once,
    **{f"split in {parts}": partial(split, parts) for parts in (2, 3, 4, 7, 8, 16, 32, 64)},
    **{f"permuted {seed}": partial(permuted, seed) for seed in range(6)},
}
