"""Which elements of a result depend on marked elements of its operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from parity.reference import kernels, pooling
from parity.reference.primitives import (
    CONTRACTIONS,
    ELEMENTWISE,
    ELEMENTWISE_BY_JAX,
    RULES,
    convolution_attributes,
)
from parity.reference.structure import full
from parity.reference.value import Mask, Value, union

_COUNTED_BY = {
    "cumlogsumexp": "cumsum", "cummax": "cumsum", "cummin": "cumsum", "cumprod": "cumsum",
    "cumsum": "cumsum", "reduce_window_max": "reduce_window_sum",
    "reduce_window_min": "reduce_window_sum", "reduce_window_sum": "reduce_window_sum",
    "scatter-add": "scatter-add", "scatter-max": "scatter-add", "scatter-min": "scatter-add",
    "scatter-mul": "scatter-add", "select_and_scatter_add": "select_and_scatter_add",
}  # fmt: skip
"""Primitives by the sum that counts which marked elements come into each result."""


def spread(eqn: Any, values: list[Value], masks: list[Mask]) -> Mask:
    """The elements of a result that depend on marked elements of the operands."""
    if all(mask is None for mask in masks):
        return None
    name = eqn.primitive.name
    marked = full(values, masks)
    if name in ("and", "or") and eqn.outvars[0].aval.dtype == bool:
        return _unless_settled(name, values, marked)
    if name in ("reduce_and", "reduce_or") and eqn.outvars[0].aval.dtype == bool:
        return _unless_one_settles(name, eqn, values[0], marked[0])
    if name == "select_n":
        return _of_choice(eqn, values, marked)
    if name in ELEMENTWISE or name in ELEMENTWISE_BY_JAX or name == "optimization_barrier":
        return union(marked)
    if name.startswith(("reduce_", "arg")) and "axes" in eqn.params:
        return np.asarray(marked[0].any(axis=tuple(eqn.params["axes"])))
    if name in CONTRACTIONS:
        return _reached(eqn, marked)
    if name in _COUNTED_BY:
        return _counted(eqn, values, marked)
    if any(mask.any() for mask in marked):
        return np.ones(eqn.outvars[0].aval.shape, bool)
    return None


def _of_choice(eqn: Any, values: list[Value], marked: list[np.ndarray]) -> Mask:
    """Marks of the case that is chosen; of every case where the choice itself is open."""
    which, *cases = marked
    chosen = RULES["select_n"](eqn, values[0].point, *cases)
    open_ = which if values[0].undecided is None else which | values[0].undecided
    return np.asarray(which | np.where(open_, np.logical_or.reduce(cases), chosen))


def _unless_settled(name: str, values: list[Value], marked: list[np.ndarray]) -> Mask:
    """A conjunction with something False is decided, a disjunction with something True."""
    pairs = zip(values, marked, strict=True)
    settles = [~mask & (value.point == (name == "or")) for value, mask in pairs]
    return np.asarray((marked[0] | marked[1]) & ~(settles[0] | settles[1]))


def _unless_one_settles(name: str, eqn: Any, value: Value, marked: np.ndarray) -> Mask:
    axes = tuple(eqn.params["axes"])
    settled = (~marked & (value.point == (name == "reduce_or"))).any(axis=axes)
    return np.asarray(marked.any(axis=axes) & ~settled)


def _counted(eqn: Any, values: list[Value], marked: list[np.ndarray]) -> Mask:
    """A sum of ones for the marked elements; a marked index may put anything anywhere."""
    name = eqn.primitive.name
    arrays = [mask.astype(np.float64) for mask in marked]
    if name.startswith("scatter"):
        if marked[1].any():
            return np.ones(eqn.outvars[0].aval.shape, bool)
        arrays[1] = values[1].point
    if name == "select_and_scatter_add":
        arrays[1] = values[1].point
        if marked[1].any():
            return np.ones(eqn.outvars[0].aval.shape, bool)
    return np.asarray(RULES[_COUNTED_BY[name]](eqn, *arrays) > 0)


def opened(eqn: Any, values: list[Value]) -> Mask:
    """Elements that operands' intervals leave undecided although their own ends hold the result."""
    if eqn.primitive.name != "select_and_scatter_add":
        return None
    return pooling.contested_elements(eqn, values[1])


def implicit_zeros(eqn: Any, values: list[Value]) -> Mask:
    """Elements of a convolution in which padding or a dilation hole meets a non-finite value."""
    if eqn.primitive.name != "conv_general_dilated":
        return None
    lhs, rhs = (~np.isfinite(value.point.astype(np.complex128)) for value in values)
    return kernels.implicit_zero_mask(lhs, rhs, **convolution_attributes(eqn))


def _reached(eqn: Any, masks: list[np.ndarray]) -> np.ndarray:
    """Outputs of a contraction in whose sum a marked element takes part."""
    rule = CONTRACTIONS[eqn.primitive.name]
    lhs, rhs = (mask.astype(np.float64) for mask in masks)
    through_lhs = rule(eqn, lhs, np.ones_like(rhs))
    through_rhs = rule(eqn, np.ones_like(lhs), rhs)
    return np.asarray((np.real(through_lhs) + np.real(through_rhs)) > 0)
