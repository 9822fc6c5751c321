"""Honest ways to add a sum up in its accumulator's dtype: what an order of summation alone does.

A deterministic interval of K·u grows faster than what any order really does; these show the
latter. A path that is farther from `strict` than all of them rounded somewhere it should not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from parity.dtypes import DType
from parity.reference import accumulators
from parity.reference.algorithms import algorithm_of
from parity.reference.equation import declared_dtype
from parity.reference.matrices import by_parts, summed_last, unfold
from parity.reference.pooling import choices
from parity.reference.positions import of_windows, ranked, scatter_window, taps
from parity.reference.rounding import round_to
from parity.reference.sums import SUMMANDS

REORDERED = frozenset({"dot_general", "conv_general_dilated", *SUMMANDS})
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


def add_up(
    eqn: Any, points: list[np.ndarray], order: str, *, held: DType | None = None
) -> np.ndarray:
    """A primitive of `REORDERED` evaluated in its accumulator's dtype in one of `ORDERS`.

    Args:
        eqn: the equation.
        points: wide operands.
        order: a name of `ORDERS`.
        held: a narrower dtype that each product and sum is rounded to instead.

    Returns:
        The sums, wide, not yet rounded to the declared dtype.
    """
    declared = declared_dtype(eqn.outvars[0])
    if eqn.primitive.name in SUMMANDS:
        return _TERMS[eqn.primitive.name](eqn, points, held or declared, order)
    operands = tuple(declared_dtype(atom) for atom in eqn.invars)
    algorithm = algorithm_of(eqn)
    acc = None if algorithm is None else algorithm.accumulator
    acc = acc or accumulators.accumulator((operands[0], operands[1]), declared)
    lhs, rhs, finish = unfold(eqn, *points)

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if held is not None:
            return _narrow_product(a, b, held, order)
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


def _reduce(eqn: Any, points: list[np.ndarray], declared: DType, order: str) -> np.ndarray:
    return _add(summed_last(points[0], eqn.params["axes"]), declared, order)


def _windows(eqn: Any, points: list[np.ndarray], declared: DType, order: str) -> np.ndarray:
    seen = list(taps(eqn.params, points[0], 0.0))
    if not seen:
        return np.zeros(eqn.outvars[0].aval.shape)
    return _add(np.stack(seen, axis=-1), declared, order)


def _running(eqn: Any, points: list[np.ndarray], declared: DType, order: str) -> np.ndarray:
    """One after the other, or by doubling steps, as a scan in parallel does."""
    axis, step = eqn.params["axis"], -1 if eqn.params["reverse"] else 1
    x = np.moveaxis(points[0], axis, -1)[..., ::step].copy()
    count = x.shape[-1]
    if order in ("sequential", "reversed"):
        for i in range(1, count):
            x[..., i] = round_to(x[..., i - 1] + x[..., i], declared)
    else:
        apart = 1
        while apart < count:
            x[..., apart:] = round_to(x[..., apart:] + x[..., :-apart], declared)
            apart *= 2
    return np.moveaxis(x[..., ::step], -1, axis)


def _scattered(eqn: Any, points: list[np.ndarray], declared: DType, order: str) -> np.ndarray:
    operand, indices, updates = points
    window = scatter_window(eqn.params, operand.shape, updates.shape)
    into = of_windows(operand.shape, indices, window).ravel()
    return _into(operand, into, updates.ravel(), declared, order)


def _chosen(eqn: Any, points: list[np.ndarray], declared: DType, order: str) -> np.ndarray:
    source, operand = points
    start = np.zeros(operand.shape, source.dtype)
    return _into(start, choices(eqn, operand).ravel(), source.ravel(), declared, order)


def _into(
    start: np.ndarray, into: np.ndarray, updates: np.ndarray, declared: DType, order: str
) -> np.ndarray:
    """Each element with what is added to it as the terms of one sum."""
    out = np.array(start).ravel()
    hit, line = np.unique(into[into >= 0], return_inverse=True)
    lines = np.full(out.size, -1)
    lines[into[into >= 0]] = line.ravel()
    columns = [out[hit]]
    for at, number in ranked(into):
        column = np.zeros(hit.shape, out.dtype)
        column[lines[at]] = updates[number]
        columns.append(column)
    out[hit] = _add(np.stack(columns, axis=-1), declared, order)
    return out.reshape(start.shape)


_TERMS: Mapping[str, Callable[[Any, list[np.ndarray], DType, str], np.ndarray]] = {
    "cumsum": _running,
    "reduce_sum": _reduce,
    "reduce_window_sum": _windows,
    "scatter-add": _scattered,
    "select_and_scatter_add": _chosen,
}


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


def _narrow_product(lhs: np.ndarray, rhs: np.ndarray, acc: DType, order: str) -> np.ndarray:
    """As `_matrix_product`, of operands wider than the accumulator."""
    batch, rows, terms = lhs.shape
    columns = rhs.shape[1]
    out = np.zeros((batch, rows, columns))
    step = max(1, _CHUNK // max(1, columns * terms))
    for b in range(batch if terms else 0):
        for first in range(0, rows, step):
            part = lhs[b, first : first + step, None, :] * rhs[b, None, :, :]
            out[b, first : first + step] = _add_narrow(round_to(part, acc), acc, order)
    return out
