"""Primitives that pick elements by index: each result is an operand's elements in another order.

A rule finds where each element of its result comes from; points, ends and masks then go the same
way. Where an index is undecided, so is what it picks: its ends hold whatever it might have picked.
Where it is unspecified, so is that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from parity.reference import positions
from parity.reference.equation import declared_dtype
from parity.reference.ordering import SORTS
from parity.reference.pooling import gather_choice
from parity.reference.value import Mask, Value, picked, union

Picker = Callable[[Any, list[Value]], list[Value]]


def _gather(eqn: Any, values: list[Value]) -> list[Value]:
    """Out of bounds: clamped, or `fill_value` (NaN, or the least or largest integer, if None).

    Source: `jax.lax.gather`, `jax.lax.GatherScatterMode`.
    """
    operand, indices = values
    window = positions.gather_window(eqn.params)
    source = positions.of_windows(operand.point.shape, indices.point, window)
    undecided = positions.per_window(indices.undecided, source.shape, window)
    fill = None
    if (source < 0).any():
        fill = Value.exactly(np.full(1, _fill(eqn), operand.point.dtype), constant=True)
    unspecified = positions.per_window(indices.unspecified, source.shape, window)
    return [picked([operand], source, fill=fill, undecided=undecided, unspecified=unspecified)]


def _fill(eqn: Any) -> Any:
    given = eqn.params["fill_value"]
    declared = declared_dtype(eqn.outvars[0])
    if given is not None:
        return given
    if declared.is_inexact:
        return np.nan
    if declared.kind == "bool":
        return True
    least, largest = declared.integer_range
    return least if declared.kind == "int" else largest


def _starts(shape: Sequence[int], sizes: Sequence[int], starts: Sequence[Value]) -> list[int]:
    """Start indices, clamped so that the whole slice lies inside. Source: `lax.dynamic_slice`."""
    bounds = zip(starts, shape, sizes, strict=True)
    return [min(max(int(start.point), 0), size - length) for start, size, length in bounds]


def _anywhere(masks: Sequence[Mask], shape: tuple[int, ...]) -> Mask:
    """Every element where an index is marked."""
    return np.ones(shape, bool) if any(map(_marked, masks)) else None


def _of_indices(indices: Sequence[Value], shape: tuple[int, ...]) -> tuple[Mask, Mask]:
    """What of a result is undecided and unspecified where any index decides all of it."""
    return (
        _anywhere([index.undecided for index in indices], shape),
        _anywhere([index.unspecified for index in indices], shape),
    )


def _marked(mask: Mask) -> bool:
    return mask is not None and bool(mask.any())


def _numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(int(np.prod(shape, dtype=int))).reshape(shape)


def _dynamic_slice(eqn: Any, values: list[Value]) -> list[Value]:
    operand, *starts = values
    sizes = eqn.params["slice_sizes"]
    first = _starts(operand.point.shape, sizes, starts)
    where = tuple(slice(at, at + size) for at, size in zip(first, sizes, strict=True))
    undecided, unspecified = _of_indices(starts, sizes)
    if undecided is None and unspecified is None:
        return [operand.at(where)]
    source = _numbered(operand.point.shape)[where]
    return [picked([operand], source, undecided=undecided, unspecified=unspecified)]


def _dynamic_update_slice(eqn: Any, values: list[Value]) -> list[Value]:
    operand, update, *starts = values
    first = _starts(operand.point.shape, update.point.shape, starts)
    ends = zip(first, update.point.shape, strict=True)
    source = _numbered(operand.point.shape)
    source[tuple(slice(at, at + size) for at, size in ends)] = (
        _numbered(update.point.shape) + operand.point.size
    )
    undecided, unspecified = _of_indices(starts, source.shape)
    return [picked([operand, update], source, undecided=undecided, unspecified=unspecified)]


def _scatter(eqn: Any, values: list[Value]) -> list[Value]:
    """The last of several updates of one element stays; which one is nobody's promise."""
    if eqn.params["update_jaxpr"] is not None and eqn.params["update_jaxpr"].eqns:
        raise NotImplementedError("scatter_apply has no rule in the interpreter")
    operand, indices, updates = values
    window = positions.scatter_window(eqn.params, operand.point.shape, updates.point.shape)
    into = positions.of_windows(operand.point.shape, indices.point, window).ravel()
    kept = np.flatnonzero(into >= 0)
    source = _numbered(operand.point.shape).ravel()
    source[into[kept]] = kept + operand.point.size
    overwritten = kept[source[into[kept]] != kept + operand.point.size]
    unspecified: Mask = None
    if overwritten.size:
        flat = updates.point.ravel()
        winner = flat[source[into[overwritten]] - operand.point.size]
        apart = _differ(flat[overwritten], winner)
        unspecified = np.zeros(operand.point.shape, bool)
        unspecified.flat[into[overwritten[apart]]] = True
    undecided, anywhere = _of_indices([indices], operand.point.shape)
    unspecified = union([unspecified, anywhere])
    whole = source.reshape(operand.point.shape)
    return [picked([operand, updates], whole, undecided=undecided, unspecified=unspecified)]


def _differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    same = a == b
    if a.dtype.kind in "fc":
        same = (same & (np.signbit(a.real) == np.signbit(b.real))) | (np.isnan(a) & np.isnan(b))
    return np.asarray(~same)


def _argument(best: Callable[..., np.ndarray], sign: int) -> Picker:
    """argmax or argmin: undecided where another element may reach the best; NaN is the best.

    Of equal ones the first is taken. Source: `jax.lax.argmax`.
    """

    def rule(eqn: Any, values: list[Value]) -> list[Value]:
        (value,) = values
        (axis,) = eqn.params["axes"]
        index = np.asarray(best(value.point, axis=axis)).astype(np.int64)
        marked = None
        if not value.exact:
            low, high = (value.lo, value.hi) if sign > 0 else (-value.hi, -value.lo)
            at = np.expand_dims(index, axis)
            floor = np.take_along_axis(low, at, axis)
            shape = [-1 if i == axis else 1 for i in range(low.ndim)]
            before = np.arange(low.shape[axis]).reshape(shape) < at
            rivals = (high > floor) | ((high == floor) & before)
            np.put_along_axis(rivals, at, False, axis)
            nan = np.isnan(np.take_along_axis(value.point, at, axis)).squeeze(axis)
            marked = rivals.any(axis=axis) & ~nan
        undecided, unspecified = (
            None if mask is None else mask.any(axis=axis)
            for mask in (value.undecided, value.unspecified)
        )
        undecided = union([undecided, marked if _marked(marked) else None])
        return [Value(index, index, index, unspecified, undecided, constant=value.constant)]

    return rule


INDEXED: Mapping[str, Picker] = {
    "argmax": _argument(np.argmax, 1),
    "argmin": _argument(np.argmin, -1),
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter,
    "select_and_gather_add": gather_choice,
    **SORTS,
}
"""Primitives whose results are elements of their operands, or the indices of these."""
