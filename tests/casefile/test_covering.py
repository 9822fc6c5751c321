"""Boxes that hold chosen points of a sweep and no other."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.casefile.covering import Box, boxes, numbered, where
from parity.casefile.sweep import meets, parse

GRID = list(itertools.product(range(3), range(2), range(3)))


def inside(box: Box, point: Sequence[int]) -> bool:
    return all(point[axis] in values for axis, values in box.items())


def held(found: Collection[Box], points: Sequence[Sequence[int]]) -> set[int]:
    return {i for i, point in enumerate(points) if any(inside(box, point) for box in found)}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (lambda p: True, [{}]),
        (lambda p: p[0] == 1, [{0: [1]}]),
        (lambda p: p[0] != 1 and p[2] == 2, [{0: [0, 2], 2: [2]}]),
        (lambda p: p == (2, 1, 0), [{0: [2], 1: [1], 2: [0]}]),
        (lambda p: p[0] == 0 or p[2] == 1, [{0: [0]}, {2: [1]}]),
    ],
)
def test_the_fewest_axes(wanted, expected):
    chosen = [i for i, point in enumerate(GRID) if wanted(point)]
    assert boxes(GRID, chosen) == expected


def test_of_zipped_axes_one_is_enough_where_it_tells_the_points():
    rows = [(0, 0, 0), (1, 0, 1), (1, 1, 2), (1, 1, 3)]  # three zipped axes
    assert boxes(rows, [2, 3]) == [{1: [1]}]
    assert boxes(rows, [1]) == [{2: [1]}]
    assert boxes(rows, [1, 3]) == [{2: [1, 3]}]


def fewest(points: Sequence[Sequence[int]], chosen: set[int]) -> int | None:
    """Axes of the smallest box, found by trying every one; None if no box is enough."""
    axes = range(len(points[0]))
    for count in range(len(points[0]) + 1):
        for subset in itertools.combinations(axes, count):
            tight = {axis: sorted({points[i][axis] for i in chosen}) for axis in subset}
            if held([tight], points) == chosen:
                return count
    return None


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_exactly_the_chosen_points_are_held(data):
    axes = data.draw(st.integers(1, 4))
    point = st.tuples(*[st.integers(0, 2)] * axes)
    points = data.draw(st.lists(point, min_size=1, max_size=25, unique=True))
    chosen = data.draw(st.sets(st.integers(0, len(points) - 1), min_size=1))
    found = boxes(points, chosen)
    assert held(found, points) == chosen
    assert len(found) <= len(chosen)
    least = fewest(points, chosen)
    assert (len(found) == 1) is (least is not None)
    if least is not None:
        assert len(found[0]) == least


def test_where_reads_back_as_it_was_meant():
    sweep = parse(
        {
            "product": {"paths": [["eager"], ["eager", "jit"]], "attributes.p": [None, "high"]},
            "zip": {"operands.lhs.dtype": ["f", "f", "g"], "batch": [1, 2, 3]},
            "exclude": [{"p": "high", "batch": 3}],
        },
        ["forward", "vjp"],
    )
    points = sweep.points()
    grid = numbered(points)
    for wanted in (
        {"paths": [["eager", "jit"]]},
        {"p": None, "dtype": "f"},
        {"dtype": "g"},
        {"batch": [1, 3], "transform": "vjp"},
    ):
        holds = [
            all(meets(value, point.values[name]) for name, value in wanted.items())
            for point in points
        ]
        (box,) = boxes(grid, [i for i, one in enumerate(holds) if one])
        assert where(box, sweep.axes) == wanted
