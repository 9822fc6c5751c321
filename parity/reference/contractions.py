"""How far a contraction may be from its exact value: operands' spread and the order of its sum."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from parity.dtypes import DType
from parity.reference import accumulators
from parity.reference.accumulators import smallest
from parity.reference.algorithms import accumulator_of
from parity.reference.elementwise import corners
from parity.reference.equation import Ends, Equation
from parity.reference.exactness import exact_products
from parity.reference.value import Value, parts


def product(equation: Equation) -> Ends:
    """The extremes over all four corners; each part of a complex product is a sum of two."""
    if equation.declared.kind != "complex":
        return (equation.point, equation.point) if equation.exact else corners(equation)
    a, b = equation.values
    compute = accumulators.compute(equation.declared)
    assert compute.format is not None
    total = magnitudes(np.multiply, a.magnitude, b.magnitude)
    reach = (
        2 * (compute.format.unit_roundoff + 2.0**-53) * total
        + magnitudes(np.multiply, parts(np.abs, a.point), b.radius)
        + magnitudes(np.multiply, a.radius, b.magnitude)
    )
    return equation.point - reach, equation.point + reach


def magnitudes(product: Callable[..., np.ndarray], a: np.ndarray, b: np.ndarray) -> np.ndarray:
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
    total = magnitudes(equation.evaluate, lhs.magnitude, rhs.magnitude)
    spread = order_slack(equation, total)
    if not equation.exact:
        left = np.abs(lhs.point) if lhs.point.dtype.kind != "c" else parts(np.abs, lhs.point)
        spread = (
            spread
            + magnitudes(equation.evaluate, left, rhs.radius)
            + magnitudes(equation.evaluate, lhs.radius, rhs.magnitude)
        )
    if equation.point.dtype.kind != "c":  # of complex operands, where a real type is preferred
        spread = np.real(spread)
    return _either_zero(equation, spread)


def _either_zero(equation: Equation, spread: np.ndarray) -> Ends:
    """point ± spread, where a sum of zero may have either sign.

    It depends on whether the accumulator begins at +0; so does a negative sum that is too small
    for the accumulator and rounds to a zero.
    """
    point, acc = equation.point, accumulator_of(equation).format
    assert acc is not None
    vanishing = acc.smallest_subnormal / 2
    if not np.any(spread) and not np.any(parts(lambda x: np.abs(x) <= vanishing, point)):
        return point, point
    low, high = point - spread, point + spread
    return either_sign(low, parts(lambda x: np.where((x <= 0) & (x >= -vanishing), 0.0, x), high))


def either_sign(low: np.ndarray, high: np.ndarray) -> Ends:
    """Ends at zero hold both zeros: -0 is below +0."""
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


def order_slack(equation: Equation, total: np.ndarray) -> np.ndarray:
    """How far the order of a contraction's sums may move them, K·u_acc·Σ|a||b|.

    Args:
        equation: of the contraction.
        total: Σ|a||b| of each sum (complex: of its two parts apart).
    """
    left, right = equation.operands
    acc = accumulator_of(equation)
    assert acc.format is not None
    terms = equation.products * (2 if equation.declared.kind == "complex" else 1)
    own = 0.0 if equation.wide else 2.0**-53  # what the reference's own sum in float64 may err
    eta = acc.format.smallest_subnormal / 2 if equation.policy.keeps_subnormals else smallest(acc)
    if not equation.policy.any_order:
        return np.zeros_like(total)
    slack = terms * ((acc.format.unit_roundoff + own) * total + eta)
    if not equation.policy.rounds:
        return slack + 2.0**-53 * parts(np.abs, equation.point)
    if terms <= 1 and _holds_product(acc, left, right, equation.declared):
        return np.zeros_like(slack)
    if all(value.fixed for value in equation.values):
        lhs, rhs = (value.point for value in equation.values)
        slack = unless(exact_products(equation.eqn, lhs, rhs, total, acc.format), slack)
    return slack


def unless(exact: np.ndarray, slack: np.ndarray) -> np.ndarray:
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
