"""Sums, extremes and choices over sliding windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from parity.reference.equation import declared_dtype
from parity.reference.ieee import Extreme
from parity.reference.positions import taps
from parity.reference.value import Mask, Value, picked


def window_sum(eqn: Any, x: np.ndarray) -> np.ndarray:
    """`lax.reduce_window` with addition."""
    total = np.zeros(eqn.outvars[0].aval.shape, x.dtype)
    for seen in taps(eqn.params, x, x.dtype.type(0)):
        total = total + seen
    return total


def window_extreme(which: Extreme, sign: int) -> Any:
    """`lax.reduce_window` with maximum (sign 1) or minimum (sign -1)."""

    def rule(eqn: Any, x: np.ndarray) -> np.ndarray:
        neutral = neutral_element(eqn, x, sign)
        found = np.full(eqn.outvars[0].aval.shape, neutral, x.dtype)
        for seen in taps(eqn.params, x, neutral):
            found = which(found, seen)
        return found

    return rule


def neutral_element(eqn: Any, x: np.ndarray, sign: int) -> Any:
    """What a maximum (sign 1) or minimum (sign -1) of nothing is."""
    if x.dtype.kind in "fc":
        return -sign * np.inf
    declared = declared_dtype(eqn.outvars[0])
    if declared.kind == "bool":
        return sign < 0
    return declared.integer_range[0 if sign > 0 else 1]


def _numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(int(np.prod(shape, dtype=int))).reshape(shape)


def choices(eqn: Any, operand: np.ndarray) -> np.ndarray:
    """The position of each window's choice: the first that no later one beats; -1 if empty."""
    keeps = np.greater_equal if eqn.params["select_prim"].name == "ge" else np.less_equal
    where, best = None, None
    seen = zip(
        taps(eqn.params, _numbered(operand.shape), -1), taps(eqn.params, operand, 0.0), strict=True
    )
    for position, value in seen:
        if where is None or best is None:
            where, best = position, value
            continue
        better = (position >= 0) & ((where < 0) | ~keeps(best, value))
        where, best = np.where(better, position, where), np.where(better, value, best)
    assert where is not None, "a window has no elements"
    return where


def scatter_choice(eqn: Any, source: np.ndarray, operand: np.ndarray) -> np.ndarray:
    """select_and_scatter_add: what each window has goes to its choice.

    Source: StableHLO specification, select_and_scatter; of equal elements the first is kept.
    """
    where = choices(eqn, operand)
    out = np.zeros(operand.size, source.dtype)
    np.add.at(out, where[where >= 0], source[where >= 0])
    return out.reshape(operand.shape)


def gather_choice(eqn: Any, values: list[Value]) -> list[Value]:
    """select_and_gather_add: of `tangents` the element at each window's choice of `operand`."""
    tangents, operand = values
    source = choices(eqn, operand.point)
    undecided = None
    for _, may_gain, may_lose in rivals(eqn, operand):
        either = may_gain | may_lose
        undecided = either if undecided is None else undecided | either
    nothing = Value.exactly(np.zeros(1, tangents.point.dtype), constant=True)
    return [picked([tangents], source, fill=nothing, undecided=undecided)]


def rivals(eqn: Any, operand: Value) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Where the intervals leave open what a window chooses; nothing if all is decided.

    Yields:
        (positions, may_gain, may_lose) for each element of the window in turn: which windows may
        choose it although they do not, which may not choose it although they do.
    """
    if operand.exact:
        return
    sign = 1 if eqn.params["select_prim"].name == "ge" else -1
    low, high = (operand.lo, operand.hi) if sign > 0 else (-operand.hi, -operand.lo)
    where = choices(eqn, operand.point)
    floor = low.ravel()[where]
    positions = list(taps(eqn.params, _numbered(operand.point.shape), -1))
    gains = []
    for position in positions:
        top = high.ravel()[position]
        reaches = (top > floor) | ((top == floor) & (position < where))
        gains.append((position >= 0) & (position != where) & reaches)
    contested = np.logical_or.reduce(gains)
    if contested.any():
        for position, gain in zip(positions, gains, strict=True):
            yield position, gain, contested & (position == where)


def contested_elements(eqn: Any, operand: Value) -> Mask:
    """Elements of the operand that may or may not be a window's choice."""
    marked = np.zeros(operand.point.size, bool)
    for position, may_gain, may_lose in rivals(eqn, operand):
        marked[position[may_gain | may_lose]] = True
    return marked.reshape(operand.point.shape) if marked.any() else None
