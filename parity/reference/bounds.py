"""How far each primitive lets another correct evaluation be away: one entry per primitive.

An entry encloses the result before it is rounded, given the operands' intervals; `Policy.finish`
then rounds the ends. What has no entry is estimated by Monte Carlo and reported by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from parity.dtypes import DType
from parity.reference import accumulators
from parity.reference.policies import Policy
from parity.reference.value import Value, parts

Ends = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Equation:
    """One equation being enclosed.

    Attributes:
        eqn: of the jaxpr.
        values: its operands.
        point: its wide result on the operands' points.
        declared: the dtype of that result.
        operands: the declared dtypes of the operands.
        policy: the arithmetic model.
        evaluate: wide arrays to the wide result.
        products: for a contraction, how many products each sum has.
    """

    eqn: Any
    values: tuple[Value, ...]
    point: np.ndarray
    declared: DType
    operands: tuple[DType, ...]
    policy: Policy
    evaluate: Callable[..., np.ndarray]
    products: int = 0

    @property
    def exact(self) -> bool:
        """Whether every operand is known exactly."""
        return all(value.exact for value in self.values)


@dataclass(frozen=True)
class Bound:
    """How a primitive's result is enclosed.

    Attributes:
        enclose: the ends that follow from the operands' intervals and, for sums, from the order.
        ulps: error of an implementation, in ulps of the compute dtype.
        expanded: rounded operations of the declared dtype that the function may be lowered to,
            given the equation's parameters; 0 where it is never expanded.
        decides: whether the result jumps: elements whose ends differ are undecided.
        source: where that comes from.
    """

    enclose: Callable[[Equation], Ends]
    ulps: float = 0.0
    expanded: Callable[[Equation], float] = lambda equation: 0.0
    decides: bool = False
    source: str = ""


def monotone(signs: str) -> Callable[[Equation], Ends]:
    """Ends of a function monotone in each operand: "+" increasing, "-" decreasing, "*" all of them.

    Source: Moore, Kearfott and Cloud, Introduction to Interval Analysis, SIAM 2009, section 5.2.
    """

    def enclose(equation: Equation) -> Ends:
        if equation.exact:
            return equation.point, equation.point
        values = equation.values
        directions = "+" * len(values) if signs == "*" else signs
        pairs = list(zip(values, directions, strict=True))
        low = [v.lo if d == "+" else v.hi for v, d in pairs]
        high = [v.hi if d == "+" else v.lo for v, d in pairs]
        return equation.evaluate(*low), equation.evaluate(*high)

    return enclose


def _sum_of_two(sign: str) -> Callable[[Equation], Ends]:
    ordinary = monotone("+" + sign)

    def enclose(equation: Equation) -> Ends:
        if "fma" not in equation.policy.licences or equation.declared.bits < 32:
            return ordinary(equation)
        loosened = tuple(
            v
            if v.loose is None
            else Value(v.point, np.minimum(v.lo, v.loose[0]), np.maximum(v.hi, v.loose[1]))
            for v in equation.values
        )
        return ordinary(dataclasses.replace(equation, values=loosened))

    return enclose


def corners(equation: Equation) -> Ends:
    """Ends of a product or quotient: the extremes over all four corners."""
    if equation.exact:
        return equation.point, equation.point
    a, b = equation.values
    if equation.point.dtype.kind == "c":
        return _complex_product(equation)
    ends = [equation.evaluate(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    return low, high


def _complex_product(equation: Equation) -> Ends:
    a, b = equation.values
    spread = _magnitudes(np.multiply, a.radius, b.magnitude) + _magnitudes(
        np.multiply, np.abs(a.point.real) + 1j * np.abs(a.point.imag), b.radius
    )
    return equation.point - spread, equation.point + spread


def _quotient(equation: Equation) -> Ends:
    """Corners where the divisor has one sign, everything elsewhere; a licence widens by 2u."""
    if equation.exact:
        low = high = equation.point
    elif equation.point.dtype.kind == "c":
        return _estimate(equation)
    else:
        low, high = corners(equation)
        divisor = equation.values[1]
        through_zero = (divisor.lo <= 0) & (divisor.hi >= 0) & ~divisor.exact
        low = np.where(through_zero, -np.inf, low)
        high = np.where(through_zero, np.inf, high)
    if "reciprocal" in equation.policy.licences and equation.values[1].constant:
        in_dtype = equation.declared
        if in_dtype.name != "float16":  # computed in float16; narrower ones in float32
            in_dtype = accumulators.compute(in_dtype)
        assert in_dtype.format is not None
        wider = 2 * in_dtype.format.unit_roundoff
        low, high = low - wider * np.abs(low), high + wider * np.abs(high)
    return low, high


def _magnitude(equation: Equation) -> Ends:
    """|x|, or x to an even power: smallest at 0 if the interval holds it."""
    if equation.exact:
        return equation.point, equation.point
    value = equation.values[0]
    ends = equation.evaluate(value.lo), equation.evaluate(value.hi)
    through_zero = (value.lo < 0) & (value.hi > 0)
    low = np.where(through_zero, equation.evaluate(np.zeros_like(value.lo)), np.minimum(*ends))
    return low, np.maximum(*ends)


def _integer_power(equation: Equation) -> Ends:
    power = equation.eqn.params["y"]
    if equation.exact or equation.point.dtype.kind == "c":
        return _estimate(equation) if not equation.exact else (equation.point, equation.point)
    if power > 0:
        return _magnitude(equation) if power % 2 == 0 else monotone("+")(equation)
    value = equation.values[0]
    ends = equation.evaluate(value.lo), equation.evaluate(value.hi)
    through_zero = (value.lo <= 0) & (value.hi >= 0)
    low = np.where(through_zero, -np.inf, np.minimum(*ends))
    return low, np.where(through_zero, np.inf, np.maximum(*ends))


def _lipschitz(slope: float) -> Callable[[Equation], Ends]:
    """Ends of a function whose derivative is bounded everywhere: point ± slope · radius."""

    def enclose(equation: Equation) -> Ends:
        if equation.exact:
            return equation.point, equation.point
        spread = slope * equation.values[0].radius
        return equation.point - spread, equation.point + spread

    return enclose


def _choice(equation: Equation) -> Ends:
    """select_n: the chosen case's ends, the hull of all where the choice is undecided."""
    which, *cases = equation.values
    low = equation.evaluate(which.point, *(case.lo for case in cases))
    high = equation.evaluate(which.point, *(case.hi for case in cases))
    if which.undecided is None:
        return (low, high) if not equation.exact else (equation.point, equation.point)
    open_ = np.broadcast_to(which.undecided, low.shape)
    low = np.where(open_, np.minimum.reduce([case.lo for case in cases]), low)
    return low, np.where(open_, np.maximum.reduce([case.hi for case in cases]), high)


def _magnitudes(product: Callable[..., np.ndarray], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Σ|a||b| for a bilinear `product`; complex: what enters the real and the imaginary part."""
    if a.dtype.kind != "c" and b.dtype.kind != "c":
        return np.asarray(product(np.abs(a), np.abs(b)))
    ar, ai, br, bi = (np.abs(x) for x in (np.real(a), np.imag(a), np.real(b), np.imag(b)))
    real = product(ar, br) + product(ai, bi)
    return np.asarray(np.real(real) + 1j * np.real(product(ar, bi) + product(ai, br)))


def contraction(equation: Equation) -> Ends:
    """Σ ab over K products: the operands' spread, and K·u_acc·Σ|a||b| for the order of the sum.

    Nothing is added for the order where the sum is exact in every order: all products are
    multiples of 2**q and Σ|a||b| <= 2**(p_acc + q); or there is one product, which the
    accumulator holds.
    Source: Jeannerod and Rump, Improved error bounds for inner products, SIMAX 34(2), 2013; the
    exactness rule: Demmel and Nguyen, Fast reproducible floating-point summation, 2013.
    """
    if not equation.declared.is_inexact:
        return equation.point, equation.point
    lhs, rhs = equation.values
    if not equation.policy.rounds:
        lhs, rhs = (_converted(equation, i) for i in (0, 1))
        equation = dataclasses.replace(equation, values=(lhs, rhs))
    total = _magnitudes(equation.evaluate, lhs.magnitude, rhs.magnitude)
    slack = _order_slack(equation, total)
    if equation.exact:
        if not np.any(slack):
            return _either_zero(equation.point)
        return equation.point - slack, equation.point + slack
    left = np.abs(lhs.point) if lhs.point.dtype.kind != "c" else parts(np.abs, lhs.point)
    spread = _magnitudes(equation.evaluate, left, rhs.radius) + _magnitudes(
        equation.evaluate, lhs.radius, rhs.magnitude
    )
    return equation.point - (spread + slack), equation.point + (spread + slack)


def _either_zero(point: np.ndarray) -> Ends:
    """A sum of zero may have either sign: it depends on what the accumulator begins with."""
    if np.all(point):
        return point, point
    return (
        parts(lambda x: np.where(x == 0, -0.0, x), point),
        parts(lambda x: np.where(x == 0, 0.0, x), point),
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
    own = 2.0**-53 if acc.bits < 64 else 0.0  # what the reference's own sum in float64 may err
    slack = terms * ((acc.format.unit_roundoff + own) * total + accumulators.smallest(acc))
    if not equation.policy.rounds:
        return slack + 2.0**-53 * parts(np.abs, equation.point)
    if terms <= 1 and _holds_product(acc, left, right, equation.declared):
        return np.zeros_like(slack)
    if all(value.exact for value in equation.values):
        quantum = _granule(equation.values[0].point) + _granule(equation.values[1].point)
        limit = 2.0 ** min(acc.format.precision + quantum, 1023)
        slack = parts(lambda s, t: np.where(t <= limit, 0.0, s), slack, total)
    return slack


def _holds_product(acc: DType, left: DType, right: DType, declared: DType) -> bool:
    """Whether one product is not rounded before the result is."""
    if acc.format == declared.format:
        return True
    widths = [31 if d.format is None else d.format.precision for d in (left, right)]
    assert acc.format is not None
    return sum(widths) <= acc.format.precision


def _granule(x: np.ndarray) -> int:
    """The largest q such that every finite element is a multiple of 2**q; 1023 if all are 0."""
    if x.dtype.kind not in "fc":
        return 0
    if x.dtype.kind == "c":
        return min(_granule(x.real), _granule(x.imag))
    mantissa, exponent = np.frexp(x[np.isfinite(x) & (x != 0)])
    if not mantissa.size:
        return 1023
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return int((exponent - 53 + trailing).min())


def _sum(equation: Equation) -> Ends:
    """A sum of N elements in its declared dtype: N·u·Σ|x| for the order, as for a contraction."""
    if not equation.declared.is_inexact:
        return equation.point, equation.point
    value = equation.values[0]
    low, high = equation.evaluate(value.lo), equation.evaluate(value.hi)
    fmt = equation.declared.format
    assert fmt is not None
    count = value.point.size // max(equation.point.size, 1)
    if equation.eqn.primitive.name == "cumsum":
        count = value.point.shape[equation.eqn.params["axis"]]
    total = equation.evaluate(value.magnitude)
    slack = count * (
        (fmt.unit_roundoff + 2.0**-53) * total + accumulators.smallest(equation.declared)
    )
    if equation.policy.rounds and value.exact:
        limit = 2.0 ** min(fmt.precision + _granule(value.point), 1023)
        slack = parts(lambda s, t: np.where(t <= limit, 0.0, s), slack, total)
        if not np.any(slack):
            return equation.point, equation.point
    return low - slack, high + slack


def _comparison(equation: Equation) -> Ends:
    """The ends are the answers at opposite corners; where they differ nothing is decided."""
    if equation.exact:
        return equation.point, equation.point
    a, b = equation.values
    if equation.eqn.primitive.name in ("eq", "ne"):
        apart = (a.hi < b.lo) | (b.hi < a.lo)
        sure = apart | ((a.lo == a.hi) & (b.lo == b.hi))
        return np.where(sure, equation.point, False), np.where(sure, equation.point, True)
    return equation.evaluate(a.lo, b.hi), equation.evaluate(a.hi, b.lo)


_SAMPLES = 8


def _estimate(equation: Equation) -> Ends:
    """Monte Carlo: twice the spread over seeded random points of the operands' intervals."""
    if equation.exact:
        return equation.point, equation.point
    rng = np.random.default_rng(0)
    low = high = equation.point
    for _ in range(_SAMPLES):
        sample = equation.evaluate(*(_draw(rng, value) for value in equation.values))
        low, high = parts(np.fmin, low, sample), parts(np.fmax, high, sample)
    return 2 * low - equation.point, 2 * high - equation.point


def _draw(rng: np.random.Generator, value: Value) -> np.ndarray:
    if value.exact or value.point.dtype.kind not in "fc":
        return value.point
    share = rng.choice([0.0, 0.5, 1.0], size=value.point.shape)
    return parts(
        lambda lo, hi: np.where(np.isfinite(hi - lo), lo + share * (hi - lo), lo),
        value.lo,
        value.hi,
    )


def _rounds(count: float, *dtypes: str) -> Callable[[Equation], float]:
    """`count` rounded operations, in any dtype or only in the ones named."""
    return lambda equation: count if not dtypes or equation.declared.name in dtypes else 0.0


def _power_rounds(equation: Equation) -> float:
    power = abs(equation.eqn.params["y"])
    return (power - 1 if power > 2 else 0) + (power if equation.eqn.params["y"] < -1 else 0)


ESTIMATED = Bound(_estimate, source="Monte Carlo, not a bound")
"""What a primitive without an entry gets."""

_MEASURED = "largest error of XLA's CPU backend over 60,000 float32 arguments, rounded up"
_LOWERED = "errors of XLA's CPU backend over all bfloat16 and float16 arguments"

BOUNDS: Mapping[str, Bound] = {
    "abs": Bound(_magnitude, source="exact"),
    "acos": Bound(monotone("-"), 4, _rounds(4), source=_LOWERED),
    "acosh": Bound(monotone("+"), 4, _rounds(6), source=_LOWERED),
    "add": Bound(_sum_of_two("+"), source="correctly rounded, IEEE 754"),
    "add_any": Bound(_sum_of_two("+"), source="correctly rounded, IEEE 754"),
    "asin": Bound(monotone("+"), 4, _rounds(4), source=_LOWERED),
    "asinh": Bound(monotone("+"), 4, _rounds(6), source=_LOWERED),
    "atan": Bound(monotone("+"), 4, source=_MEASURED),
    "atanh": Bound(monotone("+"), 4, _rounds(6), source=_LOWERED),
    "cbrt": Bound(monotone("+"), 8, _rounds(6, "float16"), source=_MEASURED),
    "ceil": Bound(monotone("+"), decides=True, source="exact"),
    "clamp": Bound(monotone("+++"), source="exact"),
    "complex": Bound(monotone("++"), source="exact"),
    "conv_general_dilated": Bound(contraction, source="DESIGN of the order interval: K·u·Σ|a||b|"),
    "convert_element_type": Bound(monotone("+"), source="rounded once"),
    "cos": Bound(_lipschitz(1.0), 4, source="|sin| <= 1"),
    "cummax": Bound(monotone("+"), source="exact"),
    "cummin": Bound(monotone("+"), source="exact"),
    "cumsum": Bound(_sum, source="as reduce_sum, N the length of the axis"),
    "div": Bound(_quotient, source="correctly rounded, IEEE 754"),
    "dot_general": Bound(contraction, source="as conv_general_dilated"),
    "eq": Bound(_comparison, decides=True, source="exact"),
    "erf": Bound(monotone("+"), 8, source=_MEASURED),
    "erf_inv": Bound(monotone("+"), 64, source=_MEASURED),
    "erfc": Bound(monotone("-"), 64, source=_MEASURED),
    "exp": Bound(monotone("+"), 4, source=_MEASURED),
    "exp2": Bound(monotone("+"), 128, _rounds(128), source=_MEASURED),
    "expm1": Bound(monotone("+"), 8, _rounds(4, "float16"), source=_MEASURED),
    "floor": Bound(monotone("+"), decides=True, source="exact"),
    "ge": Bound(_comparison, decides=True, source="exact"),
    "gt": Bound(_comparison, decides=True, source="exact"),
    "integer_pow": Bound(_integer_power, 0, _power_rounds, source=_LOWERED),
    "is_finite": Bound(monotone("+"), decides=True, source="exact"),
    "le": Bound(_comparison, decides=True, source="exact"),
    "log": Bound(monotone("+"), 4, source=_MEASURED),
    "log1p": Bound(monotone("+"), 4, _rounds(4, "float16"), source=_MEASURED),
    "logistic": Bound(monotone("+"), 4, _rounds(3), source=_LOWERED),
    "lt": Bound(_comparison, decides=True, source="exact"),
    "max": Bound(monotone("++"), source="exact"),
    "min": Bound(monotone("++"), source="exact"),
    "mul": Bound(corners, source="correctly rounded, IEEE 754"),
    "ne": Bound(_comparison, decides=True, source="exact"),
    "neg": Bound(monotone("-"), source="exact"),
    "reduce_max": Bound(monotone("+"), source="exact"),
    "reduce_min": Bound(monotone("+"), source="exact"),
    "reduce_precision": Bound(monotone("+"), source="rounded once"),
    "reduce_sum": Bound(_sum, source="N·u·Σ|x|, Jeannerod and Rump 2013"),
    "round": Bound(monotone("+"), decides=True, source="exact"),
    "rsqrt": Bound(monotone("-"), 4, _rounds(3, "float16"), source=_LOWERED),
    "select_n": Bound(_choice, source="exact"),
    "sign": Bound(monotone("+"), decides=True, source="exact"),
    "sin": Bound(_lipschitz(1.0), 4, source="|cos| <= 1"),
    "sinh": Bound(monotone("+"), 32, source=_MEASURED),
    "sqrt": Bound(monotone("+"), source="correctly rounded, IEEE 754"),
    "square": Bound(_magnitude, source="correctly rounded"),
    "stop_gradient": Bound(monotone("+"), source="exact"),
    "sub": Bound(_sum_of_two("-"), source="correctly rounded, IEEE 754"),
    "tan": Bound(_estimate, 4, _rounds(3, "float16"), source="Monte Carlo, not a bound"),
    "tanh": Bound(monotone("+"), 4, source=_MEASURED),
}
"""Every primitive that has a rule, by name; those that only move elements are `STRUCTURAL`."""


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
    compute = accumulators.compute(equation.declared).format
    declared = equation.declared.format
    assert compute is not None
    assert declared is not None
    relative = bound.ulps * 2 * compute.unit_roundoff
    smallest = bound.ulps * compute.smallest_subnormal
    if "expansion" in equation.policy.licences:
        relative += bound.expanded(equation) * declared.unit_roundoff
    if relative == 0:
        return None
    return lambda x: parts(lambda part: relative * np.abs(part) + smallest, x)


def _lower(point: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Lower ends made safe: the point where it is not finite, -inf where the end is NaN."""
    return np.where(
        np.isfinite(point), np.where(np.isnan(low), -np.inf, np.minimum(low, point)), point
    )


def _upper(point: np.ndarray, high: np.ndarray) -> np.ndarray:
    return -_lower(-point, -high)
