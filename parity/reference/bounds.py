"""How far each primitive lets another correct evaluation be away: one entry per primitive.

An entry encloses the result before it is rounded, given the operands' intervals; `Policy.finish`
then rounds the ends. What has no entry is estimated by Monte Carlo and reported by name.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from parity.dtypes import DType
from parity.reference import accumulators
from parity.reference.accumulators import smallest
from parity.reference.elementwise import (
    always,
    choice,
    comparison,
    conjugate,
    conversion,
    corners,
    estimate,
    finiteness,
    increasing,
    integer_power,
    lipschitz,
    magnitude,
    monotone,
    power,
    power_rounds,
    quotient,
    rounds,
    sorted_values,
    sum_of_two,
    widens,
)
from parity.reference.equation import Ends, Equation
from parity.reference.exactness import exact_products, exact_terms
from parity.reference.value import Value, parts


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


def product(equation: Equation) -> Ends:
    """The extremes over all four corners; each part of a complex product is a sum of two."""
    if equation.declared.kind != "complex":
        return (equation.point, equation.point) if equation.exact else corners(equation)
    a, b = equation.values
    compute = accumulators.compute(equation.declared)
    assert compute.format is not None
    total = _magnitudes(np.multiply, a.magnitude, b.magnitude)
    reach = (
        2 * (compute.format.unit_roundoff + 2.0**-53) * total
        + _magnitudes(np.multiply, parts(np.abs, a.point), b.radius)
        + _magnitudes(np.multiply, a.radius, b.magnitude)
    )
    return equation.point - reach, equation.point + reach


def _magnitudes(product: Callable[..., np.ndarray], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Σ|a||b| for a bilinear `product`; complex: what enters the real and the imaginary part."""
    if a.dtype.kind != "c" and b.dtype.kind != "c":
        return np.asarray(product(np.abs(a), np.abs(b)))
    ar, ai, br, bi = (np.abs(x) for x in (np.real(a), np.imag(a), np.real(b), np.imag(b)))
    real = product(ar, br) + product(ai, bi)
    return np.asarray(np.real(real) + 1j * np.real(product(ar, bi) + product(ai, br)))


def contraction(equation: Equation) -> Ends:
    """Σ ab over K products: the operands' spread, and K·u_acc·Σ|a||b| for the order of the sum.

    Nothing is added for the order where the sum is exact in every order (`exactness`), nor where
    there is one product, which the accumulator holds. A product too small for the accumulator is
    off by half its smallest value.
    Source: Jeannerod and Rump, Improved error bounds for inner products, SIMAX 34(2), 2013.
    """
    if not equation.declared.is_inexact:
        return equation.point, equation.point
    lhs, rhs = equation.values
    if not equation.policy.rounds:
        lhs, rhs = (_converted(equation, i) for i in (0, 1))
        equation = dataclasses.replace(equation, values=(lhs, rhs))
    total = _magnitudes(equation.evaluate, lhs.magnitude, rhs.magnitude)
    spread = _order_slack(equation, total)
    if not equation.exact:
        left = np.abs(lhs.point) if lhs.point.dtype.kind != "c" else parts(np.abs, lhs.point)
        spread = (
            spread
            + _magnitudes(equation.evaluate, left, rhs.radius)
            + _magnitudes(equation.evaluate, lhs.radius, rhs.magnitude)
        )
    return _either_zero(equation, spread)


def _either_zero(equation: Equation, spread: np.ndarray) -> Ends:
    """point ± spread, where a sum of zero may have either sign.

    It depends on whether the accumulator begins at +0; so does a negative sum that is too small
    for the accumulator and rounds to a zero.
    """
    point, (left, right) = equation.point, equation.operands
    acc = accumulators.accumulator((left, right), equation.declared).format
    assert acc is not None
    vanishing = acc.smallest_subnormal / 2
    if not np.any(spread) and not np.any(parts(lambda x: np.abs(x) <= vanishing, point)):
        return point, point
    low, high = point - spread, point + spread
    return _either_sign(low, parts(lambda x: np.where((x <= 0) & (x >= -vanishing), 0.0, x), high))


def _either_sign(low: np.ndarray, high: np.ndarray) -> Ends:
    return (
        parts(lambda x: np.where(x == 0, -0.0, x), low),
        parts(lambda x: np.where(x == 0, 0.0, x), high),
    )


def _converted(equation: Equation, index: int) -> Value:
    """An operand of a contraction, with the conversion that mixed operand dtypes bring about.

    JAX on CPU and GPU converts both to the result's dtype before the dot. Source:
    `_handle_dot_precision` in jax/_src/lax/lax.py.
    """
    value, declared = equation.values[index], equation.declared.format
    own = equation.operands[index].format
    if equation.operands[0] == equation.operands[1] or own is None or declared is None:
        return value
    if own.precision <= declared.precision:
        return value
    error = parts(
        lambda x: declared.unit_roundoff * np.abs(x) + declared.smallest_subnormal, value.point
    )
    return dataclasses.replace(value, lo=value.lo - error, hi=value.hi + error)


def _order_slack(equation: Equation, total: np.ndarray) -> np.ndarray:
    left, right = equation.operands
    acc = accumulators.accumulator((left, right), equation.declared)
    assert acc.format is not None
    terms = equation.products * (2 if equation.declared.kind == "complex" else 1)
    own = 0.0 if equation.wide else 2.0**-53  # what the reference's own sum in float64 may err
    eta = acc.format.smallest_subnormal / 2 if equation.policy.keeps_subnormals else smallest(acc)
    slack = terms * ((acc.format.unit_roundoff + own) * total + eta)
    if not equation.policy.rounds:
        return slack + 2.0**-53 * parts(np.abs, equation.point)
    if terms <= 1 and _holds_product(acc, left, right, equation.declared):
        return np.zeros_like(slack)
    if equation.exact:
        lhs, rhs = (value.point for value in equation.values)
        slack = _unless(exact_products(equation.eqn, lhs, rhs, total, acc.format), slack)
    return slack


def one_rounding(equation: Equation) -> np.ndarray:
    """What a single rounding in its accumulator may move each sum by: u·Σ|x|.

    0 where no order of the sum rounds anything.

    Args:
        equation: of a contraction or `reduce_sum`, under a policy that rounds.
    """
    if len(equation.values) == 2:
        lhs, rhs = equation.values
        total = _magnitudes(equation.evaluate, lhs.magnitude, rhs.magnitude)
        terms = equation.products * (2 if equation.declared.kind == "complex" else 1)
        return _order_slack(equation, total) / max(terms, 1)
    total = equation.evaluate(equation.values[0].magnitude)
    return _sum_slack(equation, total, 1)


def _unless(exact: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """The slack, 0 where (complex: in which part) nothing needs any."""
    if slack.dtype.kind != "c":
        return np.where(exact, 0.0, slack)
    return np.where(exact[..., 0], 0.0, slack.real) + 1j * np.where(exact[..., 1], 0.0, slack.imag)


def _holds_product(acc: DType, left: DType, right: DType, declared: DType) -> bool:
    """Whether one product is not rounded before the result is."""
    if acc.format == declared.format:
        return True
    widths = [31 if d.format is None else d.format.precision for d in (left, right)]
    assert acc.format is not None
    return sum(widths) <= acc.format.precision


def _sum(equation: Equation) -> Ends:
    """A sum of N elements in its declared dtype: N·u·Σ|x| for the order, as for a contraction."""
    if not equation.declared.is_inexact:
        return equation.point, equation.point
    value = equation.values[0]
    low, high = equation.evaluate(value.lo), equation.evaluate(value.hi)
    slack = _sum_slack(equation, equation.evaluate(value.magnitude), _terms(equation))
    exact = equation.policy.rounds and value.exact and not np.any(slack)
    if exact and not np.any(parts(lambda x: x == 0, equation.point)):
        return equation.point, equation.point
    return _either_sign(low - slack, high + slack)


def _terms(equation: Equation) -> int:
    """The most elements that one sum adds up."""
    params = equation.eqn.params
    if "window_dimensions" in params:
        return math.prod(params["window_dimensions"])
    shape = equation.values[0].point.shape
    return math.prod(shape[axis] for axis in params.get("axes", (params.get("axis"),)))


def _sum_slack(equation: Equation, total: np.ndarray, count: int) -> np.ndarray:
    value, fmt = equation.values[0], equation.declared.format
    assert fmt is not None
    eta = 0.0 if equation.policy.keeps_subnormals else smallest(equation.declared)
    slack = count * ((fmt.unit_roundoff + 2.0**-53) * total + eta)
    if equation.policy.rounds and value.exact:
        slack = _unless(exact_terms(value.point, total, fmt), slack)
    return slack


ESTIMATED = Bound(estimate, 4, source="Monte Carlo, not a bound")
"""What a primitive without an entry gets."""

_COMPLEX = Bound(estimate, 16, source="Monte Carlo, not a bound; ulps of the modulus, measured")
"""What a function of complex values gets unless it treats real and imaginary parts apart."""

_BY_PARTS = {
    "add", "add_any", "complex", "conj", "conv_general_dilated", "convert_element_type",
    "cumsum", "dot_general", "eq", "imag", "mul", "ne", "neg", "real", "reduce_sum",
    "select_n", "stop_gradient", "sub",
}  # fmt: skip

_MEASURED = "largest error of XLA's CPU backend over 60,000 float32 arguments, rounded up"
_LOWERED = "errors of XLA's CPU backend over all bfloat16 and float16 arguments"

BOUNDS: Mapping[str, Bound] = {
    "abs": Bound(magnitude, exact=always, source="exact"),
    "acos": Bound(monotone("-"), 4, expanded=rounds(4), source=_LOWERED),
    "acosh": Bound(monotone("+"), 4, expanded=rounds(6), source=_LOWERED),
    "add": Bound(sum_of_two("+"), source="correctly rounded, IEEE 754"),
    "add_any": Bound(sum_of_two("+"), source="correctly rounded, IEEE 754"),
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
    "cummax": Bound(monotone("+"), exact=always, source="exact"),
    "cummin": Bound(monotone("+"), exact=always, source="exact"),
    "cumsum": Bound(_sum, source="as reduce_sum, N the length of the axis"),
    "digamma": Bound(estimate, 16, floor=1.0, source=_MEASURED),
    "div": Bound(quotient, source="correctly rounded, IEEE 754"),
    "dot_general": Bound(contraction, source="as conv_general_dilated"),
    "dynamic_slice": Bound(increasing, exact=always, source="moves elements"),
    "dynamic_update_slice": Bound(increasing, exact=always, source="moves elements"),
    "eq": Bound(comparison, decides=True, source="exact"),
    "erf": Bound(monotone("+"), 8, source=_MEASURED),
    "erf_inv": Bound(monotone("+"), 64, source=_MEASURED),
    "erfc": Bound(monotone("-"), 64, source=_MEASURED),
    "exp": Bound(monotone("+"), 4, source=_MEASURED),
    "exp2": Bound(monotone("+"), 128, expanded=rounds(256), source=_LOWERED),
    "expm1": Bound(monotone("+"), 8, expanded=rounds(4, "float16"), source=_MEASURED),
    "floor": Bound(monotone("+"), decides=True, exact=always, source="exact"),
    "gather": Bound(increasing, exact=always, source="moves elements"),
    "ge": Bound(comparison, decides=True, source="exact"),
    "gt": Bound(comparison, decides=True, source="exact"),
    "imag": Bound(monotone("+"), exact=always, source="exact"),
    "integer_pow": Bound(integer_power, 0, expanded=power_rounds, source=_LOWERED),
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
    "pow": Bound(power, 4, source=_MEASURED),
    "real": Bound(monotone("+"), exact=always, source="exact"),
    "reduce_max": Bound(monotone("+"), exact=always, source="exact"),
    "reduce_min": Bound(monotone("+"), exact=always, source="exact"),
    "reduce_precision": Bound(monotone("+"), source="rounded once"),
    "reduce_sum": Bound(_sum, source="N·u·Σ|x|, Jeannerod and Rump 2013"),
    "reduce_window_sum": Bound(_sum, source="as reduce_sum, N the size of the window"),
    "rem": Bound(estimate, exact=always, source="exact; jumps by Monte Carlo"),
    "round": Bound(monotone("+"), decides=True, exact=always, source="exact"),
    "rsqrt": Bound(monotone("-"), 4, expanded=rounds(3, "float16"), source=_LOWERED),
    "scatter": Bound(increasing, exact=always, source="moves elements"),
    "select_n": Bound(choice, exact=always, source="exact"),
    "sign": Bound(monotone("+"), decides=True, exact=always, source="exact"),
    "sin": Bound(lipschitz(1.0), 4, source="|cos| <= 1"),
    "sinh": Bound(monotone("+"), 32, source=_MEASURED),
    "sort": Bound(sorted_values, exact=always, source="moves elements"),
    "split": Bound(increasing, exact=always, source="moves elements"),
    "sqrt": Bound(monotone("+"), source="correctly rounded, IEEE 754"),
    "square": Bound(magnitude, source="correctly rounded"),
    "stop_gradient": Bound(monotone("+"), exact=always, source="exact"),
    "sub": Bound(sum_of_two("-"), source="correctly rounded, IEEE 754"),
    "tan": Bound(estimate, 4, expanded=rounds(3, "float16"), source="Monte Carlo, not a bound"),
    "tanh": Bound(monotone("+"), 4, source=_MEASURED),
}
"""Every primitive that has a rule, by name; those that only move elements are `STRUCTURAL`."""


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

    relative = bound.ulps * 2 * compute.format.unit_roundoff
    least = bound.ulps * eta(compute) + relative * bound.floor
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
