"""Where the windows of gather and scatter, and of pooling, lie in their operand.

A position counts the operand's elements in row-major order; -1 lies outside.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from parity.reference.structure import pad
from parity.reference.value import Mask


@dataclass(frozen=True)
class Window:
    """One window of the operand for each index vector, in the terms of `lax.gather`.

    Attributes:
        sizes: of the window, one for each axis of the operand.
        offset_dims: axes of the windows' array that run inside a window.
        collapsed: axes of the operand of size 1 in a window that are left out.
        start_index_map: which axis of the operand each component of an index vector is for.
        operand_batching: axes of the operand that follow an axis of the indices.
        indices_batching: these axes of the indices.
        clamps: whether a window that sticks out is moved inside; otherwise it is left out whole.

    Source: `jax.lax.GatherDimensionNumbers`.
    """

    sizes: tuple[int, ...]
    offset_dims: tuple[int, ...]
    collapsed: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching: tuple[int, ...]
    indices_batching: tuple[int, ...]
    clamps: bool


def _clamps(mode: Any) -> bool:
    """An index that is promised to be inside may be treated in any way: XLA clamps it."""
    return mode is not None and mode.name in ("CLIP", "PROMISE_IN_BOUNDS")


def gather_window(params: Any) -> Window:
    """The windows of a gather equation."""
    numbers = params["dimension_numbers"]
    return Window(
        tuple(params["slice_sizes"]),
        tuple(numbers.offset_dims),
        tuple(numbers.collapsed_slice_dims),
        tuple(numbers.start_index_map),
        tuple(numbers.operand_batching_dims),
        tuple(numbers.start_indices_batching_dims),
        _clamps(params["mode"]),
    )


def scatter_window(params: Any, operand: tuple[int, ...], updates: tuple[int, ...]) -> Window:
    """The windows of a scatter equation: those that a gather would read its updates from.

    Source: `jax.lax.ScatterDimensionNumbers`.
    """
    numbers = params["dimension_numbers"]
    left_out = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    inside = iter(updates[axis] for axis in numbers.update_window_dims)
    sizes = tuple(1 if axis in left_out else next(inside) for axis in range(len(operand)))
    return Window(
        sizes,
        tuple(numbers.update_window_dims),
        tuple(numbers.inserted_window_dims),
        tuple(numbers.scatter_dims_to_operand_dims),
        tuple(numbers.operand_batching_dims),
        tuple(numbers.scatter_indices_batching_dims),
        _clamps(params["mode"]),
    )


def of_windows(shape: tuple[int, ...], indices: np.ndarray, window: Window) -> np.ndarray:
    """The position of every element of every window.

    Args:
        shape: of the operand.
        indices: int64 (uint64, object), a last axis of index vectors.
        window: which part of the operand each picks.

    Returns:
        int64, of the shape of a gather's result or a scatter's updates; -1 outside.
    """
    batch = indices.shape[:-1]
    starts = np.zeros((*batch, len(shape)), np.int64)
    for component, axis in enumerate(window.start_index_map):
        starts[..., axis] = np.clip(indices[..., component], -(2**31), 2**31).astype(np.int64)
    for axis, along in zip(window.operand_batching, window.indices_batching, strict=True):
        line = [-1 if i == along else 1 for i in range(len(batch))]
        starts[..., axis] = np.arange(batch[along]).reshape(line)
    room = np.array(shape, np.int64) - np.array(window.sizes, np.int64)
    inside = ((starts >= 0) & (starts <= room)).all(axis=-1)
    starts = np.clip(starts, 0, np.maximum(room, 0))
    if window.clamps:
        inside = np.ones(batch, bool)
    strides = _strides(shape)
    whole = (starts @ strides).reshape(*batch, *[1] * len(shape)) + _numbered(window.sizes, strides)
    whole = np.where(inside.reshape(*batch, *[1] * len(shape)), whole, -1)
    gone = tuple(len(batch) + i for i in (*window.collapsed, *window.operand_batching))
    return _interleaved(whole.squeeze(gone), len(batch), window)


def _interleaved(whole: np.ndarray, batch: int, window: Window) -> np.ndarray:
    """Axes (batch…, window…) as the result has them."""
    ahead = iter(range(batch))
    inside = iter(range(batch, whole.ndim))
    order = [next(inside if i in window.offset_dims else ahead) for i in range(whole.ndim)]
    return whole.transpose(order)


def per_window(mask: Mask, shape: tuple[int, ...], window: Window) -> Mask:
    """The elements of all windows whose index vector is marked."""
    if mask is None or not mask.any():
        return None
    marked = mask.any(axis=-1)
    return np.broadcast_to(np.expand_dims(marked, window.offset_dims), shape)


def _strides(shape: tuple[int, ...]) -> np.ndarray:
    return np.array([int(np.prod(shape[i + 1 :], dtype=int)) for i in range(len(shape))], np.int64)


def _numbered(sizes: tuple[int, ...], strides: np.ndarray) -> np.ndarray:
    """Positions within a window relative to its first element."""
    out = np.zeros(sizes, np.int64)
    for axis, stride in enumerate(strides):
        line = [-1 if i == axis else 1 for i in range(len(sizes))]
        out = out + (np.arange(sizes[axis]) * stride).reshape(line)
    return out


def ranked(into: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(positions, update numbers) such that each position occurs once in each pair.

    The first pair has every position's first update, the second its second one, and so on.
    """
    kept = np.flatnonzero(into >= 0)
    order = kept[np.argsort(into[kept], kind="stable")]
    at = into[order]
    begins = np.flatnonzero(np.r_[True, at[1:] != at[:-1]]) if at.size else np.zeros(0, int)
    lengths = np.diff(np.r_[begins, at.size])
    rank = np.arange(at.size) - np.repeat(begins, lengths)
    for current in range(int(lengths.max(initial=0))):
        of_rank = rank == current
        yield at[of_rank], order[of_rank]


def taps(params: Any, x: np.ndarray, fill: Any) -> Iterator[np.ndarray]:
    """For each element of a pooling window, in row-major order, what it sees: the result's shape.

    Args:
        params: of a reduce_window or select_and_… equation.
        x: the operand, padded and dilated here with `fill`.
        fill: what stands where there is no element.
    """
    sizes = params["window_dimensions"]
    ones = (1,) * len(sizes)
    holes, spread = params.get("base_dilation") or ones, params.get("window_dilation") or ones
    config = [(lo, hi, hole - 1) for (lo, hi), hole in zip(params["padding"], holes, strict=True)]
    padded = pad(x, fill, config)
    counts = []
    for length, size, apart, stride in zip(
        padded.shape, sizes, spread, params["window_strides"], strict=True
    ):
        counts.append(max(0, (length - (size - 1) * apart - 1) // stride + 1))
    for tap in itertools.product(*map(range, sizes)):
        where = zip(tap, spread, params["window_strides"], counts, strict=True)
        yield padded[tuple(_line(t * apart, stride, count) for t, apart, stride, count in where)]


def _line(first: int, stride: int, count: int) -> slice:
    return slice(first, first + (count - 1) * stride + 1 if count else first, stride)
