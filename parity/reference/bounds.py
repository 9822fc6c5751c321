"""How far each primitive lets another correct evaluation be away: one entry per primitive.

An entry encloses the result before it is rounded, given the operands' intervals; `Policy.finish`
then rounds the ends. What has no entry is estimated by Monte Carlo and reported by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from parity.dtypes import DType
from parity.reference import accumulators
from parity.reference.accumulators import smallest
from parity.reference.contractions import contraction, product
from parity.reference.elementwise import (
    always,
    choice,
    comparison,
    conjugate,
    conversion,
    estimate,
    exactly,
    finiteness,
    increasing,
    integer_power,
    lipschitz,
    magnitude,
    monotone,
    power,
    power_rounds,
    quotient,
    reduced,
    rounds,
    sum_of_two,
    widens,
)
from parity.reference.equation import Ends, Equation
from parity.reference.sums import log_of_sum, product_of_many, routed, sum_of_many
from parity.reference.value import parts


@dataclass(frozen=True)
class Bound:
    """How a primitive's result is enclosed.

    Attributes:
        enclose: the ends that follow from the operands' intervals and, for sums, from the order.
        ulps: error of an implementation, in ulps of the compute dtype.
        floor: absolute value below which that error shrinks no further, near a function's zeros.
        expanded: rounded operations of the declared dtype that the function may be lowered to,
            given the equation's parameters; 0 where it is never expanded.
        decides: whether the result jumps: elements whose ends differ are undecided.
        exact: whether the declared dtype holds every result, so that nothing is rounded.
        source: where that comes from.
    """

    enclose: Callable[[Equation], Ends]
    ulps: float = 0.0
    floor: float = 0.0
    expanded: Callable[[Equation], float] = lambda equation: 0.0
    decides: bool = False
    exact: Callable[[Equation], bool] = lambda equation: False
    source: str = ""


ESTIMATED = Bound(estimate, 4, source="Monte Carlo, not a bound")
"""What a primitive without an entry gets."""

_COMPLEX = Bound(estimate, 16, source="Monte Carlo, not a bound; ulps of the modulus, measured")
"""What a function of complex values gets unless it treats real and imaginary parts apart."""

_BY_PARTS = {
    "add", "add_any", "complex", "conj", "conv_general_dilated", "convert_element_type",
    "cumsum", "dot_general", "eq", "imag", "mul", "ne", "neg", "real", "reduce_sum",
    "reduce_window_sum", "scatter-add", "select_n", "stop_gradient", "sub",
}  # fmt: skip

_FUNCTIONS = frozenset({"div", "integer_pow", "sqrt"})
"""Correctly rounded here; other implementations approximate them as they do functions."""

_MEASURED = "largest error of XLA's CPU backend over 60,000 float32 arguments, rounded up"
_LOWERED = "errors of XLA's CPU backend over all bfloat16 and float16 arguments"

BOUNDS: Mapping[str, Bound] = {
    "abs": Bound(magnitude, exact=always, source="exact"),
    "acos": Bound(monotone("-"), 4, expanded=rounds(4), source=_LOWERED),
    "acosh": Bound(monotone("+"), 4, expanded=rounds(6), source=_LOWERED),
    "add": Bound(sum_of_two("+"), source="correctly rounded, IEEE 754"),
    "add_any": Bound(sum_of_two("+"), source="correctly rounded, IEEE 754"),
    "and": Bound(exactly, source="exact"),
    "asin": Bound(monotone("+"), 4, expanded=rounds(4), source=_LOWERED),
    "asinh": Bound(monotone("+"), 4, expanded=rounds(6), source=_LOWERED),
    "atan": Bound(monotone("+"), 4, source=_MEASURED),
    "atan2": Bound(estimate, 4, source=_MEASURED),
    "atanh": Bound(monotone("+"), 4, expanded=rounds(6), source=_LOWERED),
    "cbrt": Bound(monotone("+"), 8, expanded=rounds(6, "float16"), source=_MEASURED),
    "ceil": Bound(monotone("+"), decides=True, exact=always, source="exact"),
    "clamp": Bound(monotone("+++"), exact=always, source="exact"),
    "complex": Bound(monotone("++"), exact=always, source="exact"),
    "conj": Bound(conjugate, exact=always, source="exact"),
    "conv_general_dilated": Bound(contraction, source="K·u·Σ|a||b|, Jeannerod and Rump 2013"),
    "convert_element_type": Bound(conversion, exact=widens, source="rounded once"),
    "cos": Bound(lipschitz(1.0), 4, source="|sin| <= 1"),
    "cosh": Bound(magnitude, 32, source=_MEASURED),
    "cumlogsumexp": Bound(log_of_sum, 4, source="N steps of at most 8 u and a rounding"),
    "cummax": Bound(monotone("+"), exact=always, source="exact"),
    "cummin": Bound(monotone("+"), exact=always, source="exact"),
    "cumprod": Bound(product_of_many, source="as reduce_prod, N the length of the axis"),
    "cumsum": Bound(sum_of_many, source="as reduce_sum, N the length of the axis"),
    "digamma": Bound(estimate, 16, floor=1.0, source=_MEASURED),
    "div": Bound(quotient, source="correctly rounded, IEEE 754"),
    "dot_general": Bound(contraction, source="as conv_general_dilated"),
    "eq": Bound(comparison, decides=True, source="exact"),
    "erf": Bound(monotone("+"), 8, source=_MEASURED),
    "erf_inv": Bound(monotone("+"), 64, source=_MEASURED),
    "erfc": Bound(monotone("-"), 64, source=_MEASURED),
    "exp": Bound(monotone("+"), 4, source=_MEASURED),
    "exp2": Bound(monotone("+"), 128, expanded=rounds(256), source=_LOWERED),
    "expm1": Bound(monotone("+"), 8, expanded=rounds(4, "float16"), source=_MEASURED),
    "floor": Bound(monotone("+"), decides=True, exact=always, source="exact"),
    "ge": Bound(comparison, decides=True, source="exact"),
    "gt": Bound(comparison, decides=True, source="exact"),
    "imag": Bound(monotone("+"), exact=always, source="exact"),
    "integer_pow": Bound(integer_power, 0, expanded=power_rounds, source=_LOWERED),
    "iota": Bound(exactly, source="rounded once"),
    "is_finite": Bound(finiteness, decides=True, source="exact"),
    "le": Bound(comparison, decides=True, source="exact"),
    "lgamma": Bound(estimate, 32, floor=1.0, source=_MEASURED),
    "log": Bound(monotone("+"), 4, source=_MEASURED),
    "log1p": Bound(monotone("+"), 4, expanded=rounds(4, "float16"), source=_MEASURED),
    "logistic": Bound(monotone("+"), 4, expanded=rounds(3), source=_LOWERED),
    "lt": Bound(comparison, decides=True, source="exact"),
    "max": Bound(monotone("++"), exact=always, source="exact"),
    "min": Bound(monotone("++"), exact=always, source="exact"),
    "mul": Bound(product, source="correctly rounded, IEEE 754"),
    "ne": Bound(comparison, decides=True, source="exact"),
    "neg": Bound(monotone("-"), exact=always, source="exact"),
    "or": Bound(exactly, source="exact"),
    "pow": Bound(power, 4, source=_MEASURED),
    "real": Bound(monotone("+"), exact=always, source="exact"),
    "reduce_and": Bound(exactly, source="exact"),
    "reduce_max": Bound(monotone("+"), exact=always, source="exact"),
    "reduce_min": Bound(monotone("+"), exact=always, source="exact"),
    "reduce_or": Bound(exactly, source="exact"),
    "reduce_precision": Bound(reduced, source="rounded once"),
    "reduce_prod": Bound(product_of_many, source="(1 + u)**N - 1, Higham 2002, lemma 3.1"),
    "reduce_sum": Bound(sum_of_many, source="N·u·Σ|x|, Jeannerod and Rump 2013"),
    "reduce_window_max": Bound(monotone("+"), exact=always, source="exact"),
    "reduce_window_min": Bound(monotone("+"), exact=always, source="exact"),
    "reduce_window_sum": Bound(sum_of_many, source="as reduce_sum, N the size of the window"),
    "reduce_xor": Bound(exactly, source="exact"),
    "rem": Bound(estimate, exact=always, source="exact; jumps by Monte Carlo"),
    "round": Bound(monotone("+"), decides=True, exact=always, source="exact"),
    "rsqrt": Bound(monotone("-"), 4, expanded=rounds(3, "float16"), source=_LOWERED),
    "scatter-add": Bound(sum_of_many, source="as reduce_sum, N the additions to each element"),
    "scatter-max": Bound(increasing, exact=always, source="exact"),
    "scatter-min": Bound(increasing, exact=always, source="exact"),
    "scatter-mul": Bound(product_of_many, source="as reduce_prod, N the updates at most"),
    "select_and_scatter_add": Bound(routed, source="as reduce_sum; either choice of a window"),
    "select_n": Bound(choice, exact=always, source="exact"),
    "sign": Bound(monotone("+"), decides=True, exact=always, source="exact"),
    "sin": Bound(lipschitz(1.0), 4, source="|cos| <= 1"),
    "sinh": Bound(monotone("+"), 32, source=_MEASURED),
    "sqrt": Bound(monotone("+"), source="correctly rounded, IEEE 754"),
    "square": Bound(magnitude, source="correctly rounded"),
    "stop_gradient": Bound(monotone("+"), exact=always, source="exact"),
    "sub": Bound(sum_of_two("-"), source="correctly rounded, IEEE 754"),
    "tan": Bound(estimate, 4, expanded=rounds(3, "float16"), source="Monte Carlo, not a bound"),
    "tanh": Bound(monotone("+"), 4, source=_MEASURED),
    "xor": Bound(exactly, source="exact"),
}
"""Primitives that compute, by name; those that only move elements have no error of their own."""


def bound_of(equation: Equation) -> Bound:
    """The entry of an equation's primitive, or what stands in for one."""
    name = equation.eqn.primitive.name
    if equation.is_complex and name in BOUNDS and name not in _BY_PARTS:
        return _COMPLEX
    return BOUNDS.get(name, ESTIMATED)


def enclose(bound: Bound, equation: Equation) -> Ends:
    """The ends of an equation's result before it is rounded; the point itself where exact."""
    with np.errstate(all="ignore"):
        low, high = bound.enclose(equation)
        if not equation.declared.is_inexact:
            return low, high
        error = _implementation(bound, equation)
        if error is not None:
            low, high = (
                parts(lambda x, e: x - e, low, error(low)),
                parts(lambda x, e: x + e, high, error(high)),
            )
        if low is equation.point and high is equation.point:
            return low, high
        return parts(_lower, equation.point, low), parts(_upper, equation.point, high)


def _implementation(bound: Bound, equation: Equation) -> Callable[[np.ndarray], np.ndarray] | None:
    """The error that an implementation adds at a value, absolute; None if it adds none."""
    declared, compute = equation.declared, accumulators.compute(equation.declared)
    assert declared.format is not None
    assert compute.format is not None

    def eta(of: DType) -> float:
        assert of.format is not None
        keeps = equation.policy.keeps_subnormals
        return of.format.smallest_subnormal if keeps else smallest(of)

    ulps = bound.ulps
    if equation.policy.ulps and (ulps or equation.eqn.primitive.name in _FUNCTIONS):
        ulps = max(ulps, equation.policy.ulps)
    relative = ulps * 2 * compute.format.unit_roundoff
    least = ulps * eta(compute) + relative * bound.floor
    if equation.policy.declared_ulps and ulps:
        relative += equation.policy.declared_ulps * 2 * declared.format.unit_roundoff
        least += equation.policy.declared_ulps * eta(declared)
    if "expansion" in equation.policy.licences:
        relative += bound.expanded(equation) * declared.format.unit_roundoff
        least += bound.expanded(equation) * eta(declared)
    if relative == 0:
        return None

    def error(x: np.ndarray) -> np.ndarray:
        """Relative to the modulus: the smaller part of a complex value takes the larger's error."""
        size = np.asarray(relative * np.abs(x) + least)
        return size if x.dtype.kind != "c" else size * (1 + 1j)

    return error


def _lower(point: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Lower ends made safe: the point where it is not finite, -inf where the end is NaN."""
    below = (low < point) | ((low == point) & np.signbit(low))
    least = np.where(below, low, point)  # np.minimum may take +0 where it is given -0 as well
    return np.where(np.isfinite(point), np.where(np.isnan(low), -np.inf, least), point)


def _upper(point: np.ndarray, high: np.ndarray) -> np.ndarray:
    return -_lower(-point, -high)
