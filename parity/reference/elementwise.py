"""The ends of elementwise results, from the intervals of the operands.

Source, where none is given: Moore, Kearfott and Cloud, Introduction to Interval Analysis, SIAM
2009, chapter 5.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from parity.dtypes import DType
from parity.reference import accumulators
from parity.reference.equation import Ends, Equation
from parity.reference.extremes import certainly_chosen
from parity.reference.value import Value, parts


def monotone(signs: str) -> Callable[[Equation], Ends]:
    """Ends of a function monotone in each operand: "+" increasing, "-" decreasing."""

    def enclose(equation: Equation) -> Ends:
        if equation.exact:
            return equation.point, equation.point
        pairs = list(zip(equation.values, signs, strict=True))
        low = [v.lo if d == "+" else v.hi for v, d in pairs]
        high = [v.hi if d == "+" else v.lo for v, d in pairs]
        return equation.evaluate(*low), equation.evaluate(*high)

    return enclose


def increasing(equation: Equation) -> Ends:
    """Ends of what does not fall when any operand rises: data movement with given indices."""
    return monotone("+" * len(equation.values))(equation)


def exactly(equation: Equation) -> Ends:
    """Nothing else is possible: whole numbers, bits and truth values."""
    return equation.point, equation.point


def reduced(equation: Equation) -> Ends:
    """reduce_precision; the ideal drops this rounding, too, and allows for it."""
    if equation.policy.rounds:
        return monotone("+")(equation)
    params = equation.eqn.params
    emax = 2 ** (params["exponent_bits"] - 1) - 1
    u = 2.0 ** -(params["mantissa_bits"] + 1)
    largest = 2.0**emax * (2 - 2 * u) * (1 + u / 2)

    def widened(end: np.ndarray, sign: int) -> np.ndarray:
        end = end + sign * (u * np.abs(end) + 2.0 ** (1 - emax))
        return np.where(np.abs(end) >= largest, np.copysign(np.inf, end), end)

    value = equation.values[0]
    return (
        parts(lambda x: widened(x, -1), value.lo),
        parts(lambda x: widened(x, 1), value.hi),
    )


def sum_of_two(sign: str) -> Callable[[Equation], Ends]:
    """A sum or difference; under the licence `fma` a product comes into it unrounded.

    In float16, too: processors with AVX512-FP16 fuse there. Source: measured, `vfmadd213ph` in what
    XLA compiles for them.
    """
    ordinary = monotone("+" + sign)

    def loosened(value: Value) -> Value:
        if value.loose is None:
            return value
        low, high = value.loose
        return Value(
            value.point, parts(np.minimum, value.lo, low), parts(np.maximum, value.hi, high)
        )

    def enclose(equation: Equation) -> Ends:
        if "fma" not in equation.policy.licences:
            return ordinary(equation)
        values = tuple(loosened(value) for value in equation.values)
        return ordinary(dataclasses.replace(equation, values=values))

    return enclose


def corners(equation: Equation) -> Ends:
    """The extremes over all four corners of a product or quotient."""
    a, b = equation.values
    ends = [equation.evaluate(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    return np.minimum.reduce(ends), np.maximum.reduce(ends)


def quotient(equation: Equation) -> Ends:
    """Corners where the divisor has one sign, everything elsewhere; a licence widens by 2u."""
    low = high = equation.point
    divisor = equation.values[1]
    if not equation.exact:
        low, high = corners(equation)
    if not divisor.exact:
        through_zero = (divisor.lo <= 0) & (divisor.hi >= 0)
        low = np.where(through_zero, -np.inf, low)
        high = np.where(through_zero, np.inf, high)
    if reciprocal(equation) and "reciprocal" in equation.policy.licences:
        in_dtype = equation.declared
        if in_dtype.name != "float16":  # computed in float16; narrower ones in float32
            in_dtype = accumulators.compute(in_dtype)
        assert in_dtype.format is not None
        wider = 2 * in_dtype.format.unit_roundoff
        low, high = low - wider * np.abs(low), high + wider * np.abs(high)
    return low, high


def reciprocal(equation: Equation) -> bool:
    """Whether a division may be done as a multiplication."""
    return equation.declared.is_inexact and equation.values[1].constant


def magnitude(equation: Equation) -> Ends:
    """|x|, or x to an even power: smallest at 0 if the interval holds it."""
    if equation.exact:
        return equation.point, equation.point
    value = equation.values[0]
    ends = equation.evaluate(value.lo), equation.evaluate(value.hi)
    through_zero = (value.lo < 0) & (value.hi > 0)
    low = np.where(through_zero, equation.evaluate(np.zeros_like(value.lo)), np.minimum(*ends))
    return low, np.maximum(*ends)


def integer_power(equation: Equation) -> Ends:
    """Odd powers increase, even ones are `magnitude`; negative ones have a pole at 0."""
    power = equation.eqn.params["y"]
    if equation.exact:
        return equation.point, equation.point
    if power > 0:
        return magnitude(equation) if power % 2 == 0 else monotone("+")(equation)
    value = equation.values[0]
    ends = equation.evaluate(value.lo), equation.evaluate(value.hi)
    through_zero = (value.lo <= 0) & (value.hi >= 0)
    low = np.where(through_zero, -np.inf, np.minimum(*ends))
    return low, np.where(through_zero, np.inf, np.maximum(*ends))


def power(equation: Equation) -> Ends:
    """x**y for positive x: y·log(x), hence its exponential, is extreme at a corner."""
    if equation.exact:
        return equation.point, equation.point
    x, y = equation.values
    low, high = corners(equation)
    beyond = (x.lo <= 0) & ((x.lo < x.hi) | (y.lo < y.hi))
    return np.where(beyond, -np.inf, low), np.where(beyond, np.inf, high)


def lipschitz(slope: float) -> Callable[[Equation], Ends]:
    """Ends of a function whose derivative is bounded everywhere: point ± slope · radius."""

    def enclose(equation: Equation) -> Ends:
        if equation.exact:
            return equation.point, equation.point
        spread = slope * equation.values[0].radius
        return equation.point - spread, equation.point + spread

    return enclose


def choice(equation: Equation) -> Ends:
    """select_n: the chosen case's ends, the hull of all where the choice is undecided."""
    which, *cases = equation.values
    if equation.exact and which.undecided is None:
        return equation.point, equation.point
    low = equation.evaluate(which.point, *(case.lo for case in cases))
    high = equation.evaluate(which.point, *(case.hi for case in cases))
    if which.undecided is None:
        return low, high
    open_ = np.broadcast_to(which.undecided, low.shape)

    def hull(extreme: np.ufunc, chosen: np.ndarray, *ends: np.ndarray) -> np.ndarray:
        return np.where(open_, extreme.reduce(ends), chosen)

    return (
        parts(lambda *x: hull(np.minimum, *x), low, *(case.lo for case in cases)),
        parts(lambda *x: hull(np.maximum, *x), high, *(case.hi for case in cases)),
    )


def comparison(equation: Equation) -> Ends:
    """The ends are the answers at opposite corners; where they differ nothing is decided.

    A value is compared with itself to find NaNs: that is decided whatever its interval.
    """
    a, b = equation.values
    if equation.exact or a is b:
        return equation.point, equation.point
    if equation.eqn.primitive.name in ("eq", "ne"):
        apart = (a.hi < b.lo) | (b.hi < a.lo) | np.isnan(a.point) | np.isnan(b.point)
        sure = apart | ((a.lo == a.hi) & (b.lo == b.hi)) | certainly_chosen(a, b)
        return np.where(sure, equation.point, False), np.where(sure, equation.point, True)
    return equation.evaluate(a.lo, b.hi), equation.evaluate(a.hi, b.lo)


def finiteness(equation: Equation) -> Ends:
    """is_finite: decided where both ends agree and, if they are infinite, are the same."""
    value = equation.values[0]
    if value.exact:
        return equation.point, equation.point
    low, high = equation.evaluate(value.lo), equation.evaluate(value.hi)
    return low & high, low | high | (value.lo < value.hi)


def conversion(equation: Equation) -> Ends:
    """convert_element_type: increasing, but to bool, which only 0 is False of."""
    source = equation.values[0]
    if equation.operands[0].kind == "bool" and source.undecided is not None:
        low, high = (
            equation.evaluate(source.point & ~source.undecided),
            equation.evaluate(source.point | source.undecided),
        )
        return low, high
    if equation.exact or equation.declared.kind != "bool":
        return monotone("+")(equation)
    if equation.is_complex:
        return estimate(equation)
    value = equation.values[0]
    holds_zero = (value.lo <= 0) & (value.hi >= 0)
    only_zero = (value.lo == 0) & (value.hi == 0)
    return ~holds_zero, ~only_zero


def conjugate(equation: Equation) -> Ends:
    """The real part as it is, the imaginary part mirrored."""
    value = equation.values[0]
    if value.exact or not equation.is_complex:
        return monotone("+")(equation)
    low, high = value.lo.conj(), value.hi.conj()
    low.imag, high.imag = high.imag.copy(), low.imag.copy()
    return low, high


_SAMPLES = 8


def estimate(equation: Equation) -> Ends:
    """Monte Carlo: twice the spread over points of the operands' intervals, the ends among them.

    All lower ends together, all upper ends together, then seeded random combinations.
    """
    if equation.exact:
        return equation.point, equation.point
    rng = np.random.default_rng(0)
    low = high = equation.point
    for choices in ([0.0], [1.0], *[[0.0, 0.5, 1.0]] * _SAMPLES):
        sample = equation.evaluate(*(_draw(rng, value, choices) for value in equation.values))
        low, high = parts(np.fmin, low, sample), parts(np.fmax, high, sample)
    if not equation.declared.is_inexact:
        return low, high
    return 2 * low - equation.point, 2 * high - equation.point


def _draw(rng: np.random.Generator, value: Value, choices: list[float]) -> np.ndarray:
    if value.exact or value.point.dtype.kind not in "fc":
        return value.point

    def between(lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        share = rng.choice(choices, size=lo.shape)
        return np.where(np.isfinite(hi - lo), lo + share * (hi - lo), lo)

    return parts(between, value.lo, value.hi)


def rounds(count: float, *dtypes: str) -> Callable[[Equation], float]:
    """`count` rounded operations, in any dtype or only in the ones named."""
    return lambda equation: count if not dtypes or equation.declared.name in dtypes else 0.0


def power_rounds(equation: Equation) -> float:
    """The multiplications, and the division, that an integer power is lowered to."""
    power = abs(equation.eqn.params["y"])
    return (power - 1 if power > 2 else 0) + (power if equation.eqn.params["y"] < -1 else 0)


def always(equation: Equation) -> bool:
    """For primitives whose result is one of the operands' values, perhaps with another sign."""
    return True


def widens(equation: Equation) -> bool:
    """Whether a conversion goes to a dtype that holds every value of the operand's."""
    return holds(equation.declared, equation.operands[0])


def holds(target: DType, source: DType) -> bool:
    """Whether a floating dtype holds every value of another one."""
    a, b = target.format, source.format
    if a is None or b is None:
        return False
    lowest = a.smallest_subnormal <= b.smallest_subnormal
    return a.precision >= b.precision and a.max_finite >= b.max_finite and lowest
