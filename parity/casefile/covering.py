"""Conditions that hold at chosen points of a sweep and at no other: what `where` needs."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from parity.casefile.sweep import Axis, Point

Mask = npt.NDArray[np.bool_]
Grid = npt.NDArray[np.int64]
Box = dict[int, list[int]]
"""Values by axis; a point lies inside if it has one of them on each of these axes."""


def boxes(points: Sequence[Sequence[int]], chosen: Collection[int]) -> list[Box]:
    """Few boxes that together hold the chosen points and no other one.

    One box, of the fewest axes, where there is one; else large ones, each of them likewise.

    Args:
        points: for each point, the number of its value on each axis.
        chosen: positions of the points that are wanted; at least one.
    """
    grid = np.asarray(points, np.int64)
    want = np.zeros(len(grid), bool)
    want[list(chosen)] = True
    whole = _smallest(grid, want, ~want)
    if whole is not None:
        return [whole]
    found, left = [], want.copy()
    while left.any():
        box = _largest(grid, want, left)
        found.append(box)
        left &= ~_inside(grid, box)
    return found


def where(box: Box, axes: Sequence[Axis]) -> dict[str, Any]:
    """A box as the mapping that `where` of a case file is.

    Args:
        box: from `boxes` over `numbered(points)`.
        axes: of the sweep, in the order of the box's axes.
    """
    return {axes[a].label: _wanted([axes[a].values[n] for n in of]) for a, of in box.items()}


def numbered(points: Sequence[Point]) -> list[tuple[int, ...]]:
    """Each point as numbers of its values, equal values of an axis having the same number."""
    numbers = []
    for axis in points[0].axes:
        first: dict[Any, int] = {}
        frozen = map(_frozen, axis.values)
        numbers.append([first.setdefault(value, number) for number, value in enumerate(frozen)])
    return [tuple(of[i] for of, i in zip(numbers, p.indices, strict=True)) for p in points]


def _frozen(value: Any) -> Any:
    """A key that equals that of another value where `sweep.meets` takes the two for equal."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return repr(value) if isinstance(value, dict) else (isinstance(value, bool), value)


def _wanted(values: list[Any]) -> Any:
    """One value or a list of them; a list of one list, so that it is not taken for several."""
    return values[0] if len(values) == 1 and not isinstance(values[0], list) else values


def _smallest(grid: Grid, want: Mask, other: Mask) -> Box | None:
    """The box of the fewest axes that holds what is wanted and nothing other; None if none does."""
    tight = {
        axis: sorted(set(grid[want, axis].tolist()))
        for axis in range(grid.shape[1])
        if not np.isin(grid[:, axis], grid[want, axis]).all()
    }
    if (_inside(grid, tight) & other).any():
        return None
    for count in range(len(tight) + 1):
        fitting = [
            {axis: tight[axis] for axis in axes}
            for axes in itertools.combinations(tight, count)
            if not (_inside(grid, {axis: tight[axis] for axis in axes}) & other).any()
        ]
        if fitting:
            return min(fitting, key=lambda box: sum(map(len, box.values())))
    raise AssertionError("all axes together were enough")


def _largest(grid: Grid, want: Mask, left: Mask) -> Box:
    """A box around the first point that is left: of those tried the one that leaves the fewest."""
    seed = int(np.flatnonzero(left)[0])
    order = list(range(grid.shape[1]))
    grown = [_grown(grid, want, seed, order[a:] + order[:a]) for a in order]
    tried = [_smallest(grid, inside & left, ~want) for inside in grown]
    fitting = [box for box in tried if box is not None]
    return min(fitting, key=lambda box: (np.sum(left & ~_inside(grid, box)), len(box)))


def _grown(grid: Grid, want: Mask, seed: int, order: Sequence[int]) -> Mask:
    """The points of a box around one of them, widened axis by axis as long as it stays exact."""
    box: Box = {axis: [int(grid[seed, axis])] for axis in order}
    for axis in order:
        for value in sorted(set(grid[:, axis].tolist()) - set(box[axis])):
            # One that adds no point yet may do so with others: zipped axes move together.
            wider = {**box, axis: [*box[axis], value]}
            if not (_inside(grid, wider) & ~want).any():
                box = wider
    return _inside(grid, box)


def _inside(grid: Grid, box: Mapping[int, Sequence[int]]) -> Mask:
    inside = np.ones(len(grid), bool)
    for axis, values in box.items():
        inside &= np.isin(grid[:, axis], values)
    return inside
