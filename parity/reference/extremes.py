"""Which element a maximum or minimum certainly chooses: it is then equal to the result.

The gradient of a maximum compares each operand with the result. Their intervals overlap, so that
comparison could not be decided without knowing that the one is the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parity.reference.value import Value

EXTREMES: Mapping[str, int] = {"max": 1, "min": -1, "reduce_max": 1, "reduce_min": -1}
"""Primitives that choose an element: 1 the largest, -1 the smallest."""


def winners(eqn: Any, values: list[Value]) -> tuple[tuple[Value, np.ndarray], ...]:
    """For each operand of a primitive in `EXTREMES`, the elements that are certainly chosen."""
    if all(value.exact for value in values) or any(v.point.dtype.kind == "c" for v in values):
        return ()
    sign = EXTREMES[eqn.primitive.name]
    ends = [(v.lo, v.hi) if sign > 0 else (-v.hi, -v.lo) for v in values]
    if len(values) == 2:
        (low, high), (other_low, other_high) = ends
        return (values[0], low >= other_high), (values[1], other_low >= high)
    axes = tuple(eqn.params["axes"])
    low, high = ends[0]
    if not high.size:
        return ()
    largest = high.max(axis=axes, keepdims=True)
    leads = high == largest
    second = np.where(leads, -np.inf, high).max(axis=axes, keepdims=True)
    alone = leads.sum(axis=axes, keepdims=True) == 1
    return ((values[0], (low >= largest) | (leads & alone & (low >= second))),)


def certainly_chosen(a: Value, b: Value) -> np.ndarray:
    """Where one of two values is an extreme, the other what it certainly chose."""
    found = np.zeros(a.point.shape, bool)
    for one, other in ((a, b), (b, a)):
        for element, mask in other.chosen:
            if element is one and mask.shape == found.shape:
                found |= mask & (a.point == b.point) & (a.lo == b.lo) & (a.hi == b.hi)
    return found
