"""sort and top_k: the order of the keys' points, and where their intervals leave it open.

Between two neighbours of a sorted sequence the order is decided if no element up to there can come
after one behind, or if both are exact. What lies between two such places may be any of the elements
there: undecided. The sorted key itself is not: its k-th value lies between the k-th lower and
the k-th upper end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from parity.reference.value import Mask, Value, picked, union


def _key(x: np.ndarray) -> np.ndarray:
    """What sorts like a key: equal zeros, complex numbers by their real parts first."""
    if x.dtype.kind in "fc":
        return np.asarray(x + 0.0)
    return np.asarray(x)


def _lexicographic(keys: Sequence[np.ndarray]) -> np.ndarray:
    """The stable order of the last axis by the first key, then the second, …; NaN comes last."""
    columns = []
    for key in keys:
        columns += [key.real, key.imag] if key.dtype.kind == "c" else [key]
    if any(column.dtype == object for column in columns):
        columns = [_ranks(column) for column in columns]
    return np.lexsort(columns[::-1], axis=-1)


def _ranks(column: np.ndarray) -> np.ndarray:
    """Python integers as int64 of the same order."""
    _, inverse = np.unique(column, return_inverse=True)
    return np.asarray(inverse, np.int64).reshape(column.shape)


def _open(lows: np.ndarray, highs: np.ndarray, tied: np.ndarray) -> np.ndarray:
    """Which places of a sequence sorted along the last axis are undecided.

    Args:
        lows: lower ends of the key, sorted as the points are.
        highs: upper ends.
        tied: [..., n - 1], neighbours whose order exact keys decide.
    """
    if lows.shape[-1] < 2:
        return np.zeros(lows.shape, bool)
    before = np.fmax.accumulate(highs, axis=-1)[..., :-1]
    behind = np.fmin.accumulate(lows[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    nan = np.isnan(before) | np.isnan(behind)  # all NaNs lie together, at one end
    decided = (before < behind) | (tied & (before <= behind)) | nan
    edge = np.ones((*lows.shape[:-1], 1), bool)
    whole = np.concatenate([edge, decided, edge], axis=-1)
    return np.asarray(~(whole[..., :-1] & whole[..., 1:]))


def _sort(eqn: Any, values: list[Value]) -> list[Value]:
    """Source: `jax.lax.sort`: lexicographic in the first `num_keys`, -0 equal to 0, NaN last."""
    axis, count = eqn.params["dimension"], eqn.params["num_keys"]
    last = [_swapped(value, axis) for value in values]
    keys = last[:count]
    order = _lexicographic([_key(value.point) for value in keys])
    open_ = _open_places(keys, order)
    if not eqn.params["is_stable"] and len(values) > count:
        tied = np.logical_and.reduce([_equal_neighbours(v.point, order) for v in keys])
        either = _beside(tied)
    else:
        either = None
    out = []
    for number, value in enumerate(last):
        moved = _permuted(value, order, open_, either if number >= count else None)
        if count == 1 and number == 0 and value.point.dtype.kind != "c":
            moved = _by_rank(value, moved)
        out.append(_swapped(moved, axis))
    return out


def _open_places(keys: list[Value], order: np.ndarray) -> Mask:
    if all(value.exact and value.undecided is None for value in keys):
        return None
    first = keys[0]
    if first.point.dtype.kind == "c":
        return np.ones(order.shape, bool)
    lows, highs = (np.take_along_axis(x, order, -1) for x in (first.lo, first.hi))
    tied = np.ones((*order.shape[:-1], max(order.shape[-1] - 1, 0)), bool)
    for value in keys:
        narrow = np.take_along_axis(value.lo == value.hi, order, -1)
        if value.undecided is not None:
            narrow = narrow & ~np.take_along_axis(value.undecided, order, -1)
        tied &= narrow[..., 1:] & narrow[..., :-1]
    open_ = _open(lows, highs, tied)
    for value in keys:
        if value.undecided is not None:
            open_ = open_ | value.undecided.any(axis=-1, keepdims=True)
    return open_ if open_.any() else None


def _equal_neighbours(x: np.ndarray, order: np.ndarray) -> np.ndarray:
    ordered = np.take_along_axis(_key(x), order, -1)
    return np.asarray(ordered[..., 1:] == ordered[..., :-1])


def _beside(tied: np.ndarray) -> np.ndarray:
    edge = np.zeros((*tied.shape[:-1], 1), bool)
    whole = np.concatenate([edge, tied, edge], axis=-1)
    return np.asarray(whole[..., :-1] | whole[..., 1:])


def _permuted(value: Value, order: np.ndarray, undecided: Mask, unspecified: Mask) -> Value:
    lines = np.arange(value.point.size).reshape(value.point.shape)
    source = np.take_along_axis(lines, order, -1)
    return picked([value], source, undecided=undecided, unspecified=unspecified)


def _by_rank(value: Value, moved: Value) -> Value:
    """The sorted key: its values' ends are the sorted ends, and no element of it is open."""
    lo = hi = moved.point
    if not value.exact:
        lo, hi = np.sort(value.lo, axis=-1), np.sort(value.hi, axis=-1)
        lo, hi = np.where(lo == 0, -0.0, lo), np.where(hi == 0, 0.0, hi)  # -0 sorts as 0
    undecided = None
    if value.undecided is not None:
        undecided = np.broadcast_to(value.undecided.any(axis=-1, keepdims=True), moved.point.shape)
    return Value(moved.point, lo, hi, moved.unspecified, undecided, constant=value.constant)


def _top_k(eqn: Any, values: list[Value]) -> list[Value]:
    """The k largest in descending order, of equal ones the first comes first.

    +NaN is the largest and -NaN the smallest: totalOrder of IEEE 754-2019, 5.10, measured on XLA's
    CPU backend. Which sign a computed NaN has is nobody's promise (ibid., 6.3).
    Source: `jax.lax.top_k`.
    """
    (operand,) = values
    axis, count = eqn.params.get("axis", operand.point.ndim - 1), eqn.params["k"]
    value = _swapped(operand, axis)
    backward = _negated(value)
    order = _lexicographic(_descending(backward.point))
    open_ = _open_places([backward], order)
    open_ = None if open_ is None else open_[..., :count]
    order = order[..., :count]
    unspecified = None if operand.given else _beside_nan(value.point, order.shape)
    found = _permuted(value, order, open_, unspecified)
    if value.exact:
        ends = found.point, found.point
    else:
        lo, hi = (_descending_ends(end)[..., :count] for end in (value.lo, value.hi))
        ends = np.fmin(lo, found.point), np.fmax(hi, found.point)
    undecided = None
    if value.undecided is not None:
        undecided = np.broadcast_to(value.undecided.any(axis=-1, keepdims=True), order.shape)
    largest = Value(found.point, *ends, found.unspecified, undecided, constant=value.constant)
    index = order.astype(np.int64)
    undecided = union([open_, undecided])
    numbers = Value(index, index, index, found.unspecified, undecided, constant=value.constant)
    return [_swapped(largest, axis), _swapped(numbers, axis)]


def _beside_nan(x: np.ndarray, shape: tuple[int, ...]) -> Mask:
    """All places of the lines that have a NaN."""
    if x.dtype.kind != "f":
        return None
    nan = np.isnan(x).any(axis=-1, keepdims=True)
    return np.broadcast_to(nan, shape) if nan.any() else None


def _negated(value: Value) -> Value:
    point = value.point.astype(object) if value.point.dtype.kind in "iu" else value.point
    if value.point.dtype.kind == "b":
        point = value.point.astype(np.int64)
    negated = np.asarray(-point)
    if value.exact:
        return Value(negated, negated, negated, undecided=value.undecided)
    return Value(negated, -value.hi, -value.lo, undecided=value.undecided)


def _descending(negated: np.ndarray) -> list[np.ndarray]:
    """Sort keys of negated values: +NaN first, -NaN last, and -0 after 0."""
    if negated.dtype.kind != "f":
        return [negated]
    later = np.where(np.signbit(negated), 0, 1)
    return [np.where(np.isnan(negated), 2 * later - 1, 0), negated, later]


def _descending_ends(end: np.ndarray) -> np.ndarray:
    return np.sort(end, axis=-1)[..., ::-1]


def _swapped(value: Value, axis: int) -> Value:
    """The value with an axis last, or the last axis back at its place."""

    def swapped(x: np.ndarray) -> np.ndarray:
        return np.swapaxes(x, axis, -1)

    point = swapped(value.point)
    exact = value.exact
    unspecified, undecided = (
        None if mask is None else swapped(mask) for mask in (value.unspecified, value.undecided)
    )
    lo, hi = (point, point) if exact else (swapped(value.lo), swapped(value.hi))
    return Value(point, lo, hi, unspecified, undecided, constant=value.constant)


SORTS: Mapping[str, Callable[[Any, list[Value]], list[Value]]] = {"sort": _sort, "top_k": _top_k}
"""Primitives that put elements in order."""
