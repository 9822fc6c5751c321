"""Honest ways to add a sum up in its accumulator's dtype: what an order of summation alone does.

A deterministic interval of K·u grows faster than what any order really does; these show the
latter. A path that is farther from `strict` than all of them rounded somewhere it should not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from parity.dtypes import DType, dtype
from parity.reference import accumulators
from parity.reference.matrices import by_parts, summed_last, unfold
from parity.reference.rounding import round_to

REORDERED = frozenset({"dot_general", "conv_general_dilated", "reduce_sum"})
"""Primitives that are added up in a given order."""

_CHUNK = 1 << 22
"""Products held at a time."""
_BLOCK = 32


def _sequential(terms: np.ndarray) -> np.ndarray:
    return np.add.accumulate(terms, axis=-1)[..., -1]


def _reversed(terms: np.ndarray) -> np.ndarray:
    return _sequential(terms[..., ::-1])


def _pairwise(terms: np.ndarray) -> np.ndarray:
    while terms.shape[-1] > 1:
        odd = terms[..., -1:] if terms.shape[-1] % 2 else terms[..., :0]
        even = terms.shape[-1] - odd.shape[-1]
        terms = np.concatenate([terms[..., 0:even:2] + terms[..., 1:even:2], odd], axis=-1)
    return terms[..., 0]


def _blocked(terms: np.ndarray) -> np.ndarray:
    """Partial sums over every 32nd term, then those: what a vectorised loop does."""
    whole = terms.shape[-1] // _BLOCK * _BLOCK
    if not whole:
        return _sequential(terms)
    lanes = terms[..., :whole].reshape(*terms.shape[:-1], whole // _BLOCK, _BLOCK)
    partial = np.add.accumulate(lanes, axis=-2)[..., -1, :]
    return _sequential(np.concatenate([partial, terms[..., whole:]], axis=-1))


ORDERS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "sequential": _sequential,
    "reversed": _reversed,
    "pairwise": _pairwise,
    "blocked": _blocked,
}
"""Each adds up the last axis, in the dtype of its argument."""


def add_up(eqn: Any, points: list[np.ndarray], order: str) -> np.ndarray:
    """A contraction or `reduce_sum` evaluated in its accumulator's dtype in one of `ORDERS`.

    Args:
        eqn: the equation.
        points: wide operands.
        order: a name of `ORDERS`.

    Returns:
        The sums, wide, not yet rounded to the declared dtype.
    """
    declared = dtype(np.dtype(eqn.outvars[0].aval.dtype))
    if eqn.primitive.name == "reduce_sum":
        return _add(summed_last(points[0], eqn.params["axes"]), declared, order)
    operands = tuple(dtype(np.dtype(atom.aval.dtype)) for atom in eqn.invars)
    acc = accumulators.accumulator((operands[0], operands[1]), declared)
    lhs, rhs, finish = unfold(eqn, *points)

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return _matrix_product(a, b, acc, order)

    return finish(by_parts(product, lhs, rhs))


def _add(terms: np.ndarray, declared: DType, order: str) -> np.ndarray:
    if not terms.shape[-1]:
        return np.zeros(terms.shape[:-1], terms.dtype)
    if declared.name in ("float32", "float64", "complex64", "complex128"):
        summed = ORDERS[order](terms.astype(declared.numpy()))
    else:
        summed = _add_narrow(terms, declared, order)
    return summed.astype(terms.dtype)


def _add_narrow(terms: np.ndarray, declared: DType, order: str) -> np.ndarray:
    """Sums that round to a narrow dtype after every addition; halving keeps the steps few."""
    if order == "reversed":
        terms = terms[..., ::-1]
    if order in ("pairwise", "blocked"):
        while terms.shape[-1] > 1:
            odd = terms[..., -1:] if terms.shape[-1] % 2 else terms[..., :0]
            even = terms.shape[-1] - odd.shape[-1]
            halves = round_to(terms[..., 0:even:2] + terms[..., 1:even:2], declared)
            terms = np.concatenate([halves, odd], axis=-1)
        return terms[..., 0]
    total = terms[..., 0]
    for i in range(1, terms.shape[-1]):
        total = round_to(total + terms[..., i], declared)
    return total


def _matrix_product(lhs: np.ndarray, rhs: np.ndarray, acc: DType, order: str) -> np.ndarray:
    """[B, M, K] and [B, N, K] -> [B, M, N], real products and sums in the accumulator's dtype."""
    lhs, rhs = lhs.astype(acc.numpy()), rhs.astype(acc.numpy())
    batch, rows, terms = lhs.shape
    columns = rhs.shape[1]
    out = np.zeros((batch, rows, columns))
    if not terms:
        return out
    step = max(1, _CHUNK // max(1, columns * terms))
    for b in range(batch):
        for first in range(0, rows, step):
            part = lhs[b, first : first + step, None, :] * rhs[b, None, :, :]
            out[b, first : first + step] = ORDERS[order](part)
    return out
