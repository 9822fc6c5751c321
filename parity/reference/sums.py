"""How far sums and products of many elements may be from their exact value, whatever the order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from parity.reference import pooling
from parity.reference.accumulators import smallest
from parity.reference.algorithms import sum_dtype
from parity.reference.contractions import either_sign, magnitudes, order_slack, unless
from parity.reference.equation import Ends, Equation
from parity.reference.exactness import exact_terms
from parity.reference.matrices import summed_last
from parity.reference.positions import of_windows, ranked, scatter_window
from parity.reference.value import Value, parts

Pair = tuple[np.ndarray, np.ndarray]

SUMMANDS: Mapping[str, tuple[int, ...]] = {
    "cumsum": (0,),
    "reduce_sum": (0,),
    "reduce_window_sum": (0,),
    "scatter-add": (0, 2),
    "select_and_scatter_add": (0,),
}
"""Primitives that add elements up, and which of their operands hold these."""


def _on_summands(equation: Equation, part: Callable[[Value], np.ndarray]) -> np.ndarray:
    """The sums of a part of each summand; the other operands are as they are."""
    chosen = SUMMANDS[equation.eqn.primitive.name]
    values = enumerate(equation.values)
    return equation.evaluate(*(part(v) if i in chosen else v.point for i, v in values))


def one_rounding(equation: Equation) -> np.ndarray:
    """What a single rounding in its accumulator may move each sum by: u·Σ|x|.

    0 where no order of the sum rounds anything.

    Args:
        equation: of a contraction or of a primitive in `SUMMANDS`, under a policy that rounds.
    """
    if equation.eqn.primitive.name not in SUMMANDS:
        lhs, rhs = equation.values
        total = magnitudes(equation.evaluate, lhs.magnitude, rhs.magnitude)
        terms = equation.products * (2 if equation.declared.kind == "complex" else 1)
        return order_slack(equation, total) / max(terms, 1)
    total = _on_summands(equation, lambda value: value.magnitude)
    return _slack(equation, total, np.minimum(_additions(equation), 1))


def sum_of_many(equation: Equation) -> Ends:
    """A sum of N elements in its declared dtype: N·u·Σ|x| for the order, as for a contraction."""
    if not equation.declared.is_inexact:
        return equation.point, equation.point
    low = _on_summands(equation, lambda value: value.lo)
    high = _on_summands(equation, lambda value: value.hi)
    total = _on_summands(equation, lambda value: value.magnitude)
    slack = _slack(equation, total, _additions(equation))
    exact = equation.policy.rounds and _exact(equation) and not np.any(slack)
    if exact and not np.any(parts(lambda x: x == 0, equation.point)):
        return equation.point, equation.point
    return either_sign(low - slack, high + slack)


def _exact(equation: Equation) -> bool:
    return all(equation.values[i].fixed for i in SUMMANDS[equation.eqn.primitive.name])


def _additions(equation: Equation) -> np.ndarray:
    """How many additions of a sum may round: as many as it has terms, none of a single one.

    Where terms are scattered, few sums have many: there each counts its own that are not 0, less
    the first.
    """
    name, params = equation.eqn.primitive.name, equation.eqn.params
    if name == "reduce_window_sum":
        terms = math.prod(params["window_dimensions"])
        return np.asarray(terms if terms > 1 else 0)
    if "scatter" not in name:
        shape = equation.values[0].point.shape
        axes = params.get("axes", (params.get("axis"),))
        terms = math.prod(shape[axis] for axis in axes)
        return np.asarray(terms if terms > 1 else 0)
    terms = _on_summands(equation, lambda value: (value.magnitude != 0).astype(np.float64))
    return np.asarray(np.maximum(terms - 1, 0))


def _slack(equation: Equation, total: np.ndarray, additions: np.ndarray) -> np.ndarray:
    held = sum_dtype(equation)
    fmt = held.format
    assert fmt is not None
    if not equation.policy.any_order:
        return np.zeros(np.shape(total), total.dtype)
    eta = 0.0 if equation.policy.keeps_subnormals else smallest(held)
    slack = np.asarray(additions * ((fmt.unit_roundoff + 2.0**-53) * total + eta))
    if equation.policy.rounds and _exact(equation):
        chosen = SUMMANDS[equation.eqn.primitive.name]
        terms = np.concatenate([equation.values[i].point.ravel() for i in chosen])
        slack = unless(exact_terms(terms, total, fmt), slack)
    return slack


def routed(equation: Equation) -> Ends:
    """select_and_scatter_add: a sum; with either, where a window may choose another element."""
    low, high = sum_of_many(equation)
    source, operand = equation.values
    rivals = list(pooling.rivals(equation.eqn, operand))
    if not rivals:
        return low, high
    low, high = (np.array(end).ravel() for end in (low, high))
    for positions, may_gain, may_lose in rivals:
        from_lo, from_hi = np.minimum(source.lo, 0), np.maximum(source.hi, 0)
        np.add.at(low, positions[may_gain], from_lo[may_gain])
        np.add.at(high, positions[may_gain], from_hi[may_gain])
        np.add.at(low, positions[may_lose], -from_hi[may_lose])
        np.add.at(high, positions[may_lose], -from_lo[may_lose])
    return low.reshape(operand.point.shape), high.reshape(operand.point.shape)


def product_of_many(equation: Equation) -> Ends:
    """A product of N factors: (1 + u)^N - 1 of it for the order, and what may over- or underflow.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., lemma 3.1.
    """
    declared = equation.declared
    if not declared.is_inexact:
        return equation.point, equation.point
    fmt = declared.format
    assert fmt is not None
    factors = [(value.lo, value.hi) for value in equation.values]
    low, high = _folded(equation.eqn, factors, _corners)
    sizes = [(value.magnitude, value.magnitude) for value in equation.values]
    most, least = (
        _folded(equation.eqn, [(f(a, 1.0), f(b, 1.0)) for a, b in sizes], _corners)[0]
        for f in (np.maximum, np.minimum)
    )
    count = max(value.point.size for value in equation.values)
    if "axis" in equation.eqn.params or "axes" in equation.eqn.params:
        shape = equation.values[0].point.shape
        axes = equation.eqn.params.get("axes", (equation.eqn.params.get("axis"),))
        count = math.prod(shape[axis] for axis in axes)
    relative = math.expm1(count * math.log1p(fmt.unit_roundoff + 2.0**-53))
    slack = relative * np.maximum(np.abs(low), np.abs(high))
    slack = slack + np.where(least < 2.0**fmt.emin, count * smallest(declared) * most, 0.0)
    slack = np.where(most > fmt.max_finite, np.inf, slack)
    if equation.policy.rounds and equation.exact and count <= 1:
        return equation.point, equation.point
    return low - slack, high + slack


def _corners(a: Pair, b: Pair) -> Pair:
    ends = [x * y for x in a for y in b]
    return np.minimum.reduce(ends), np.maximum.reduce(ends)


def _folded(eqn: Any, factors: list[Pair], multiply: Callable[[Pair, Pair], Pair]) -> Pair:
    """The products of reduce_prod, cumprod or scatter-mul, factor by factor."""
    params = eqn.params
    if "dimension_numbers" in params:
        return _scattered(eqn, factors, multiply)
    if "axes" in params:
        lows, highs = (summed_last(x, params["axes"]) for x in factors[0])
        total = np.ones(lows.shape[:-1]), np.ones(lows.shape[:-1])
        for i in range(lows.shape[-1]):
            total = multiply(total, (lows[..., i], highs[..., i]))
        return total
    axis, flip = params["axis"], params["reverse"]
    lows, highs = (np.moveaxis(x, axis, -1)[..., :: -1 if flip else 1] for x in factors[0])
    steps = [(np.ones(lows.shape[:-1]), np.ones(lows.shape[:-1]))]
    for i in range(lows.shape[-1]):
        steps.append(multiply(steps[-1], (lows[..., i], highs[..., i])))
    ends = (np.stack([step[end] for step in steps[1:]], axis=-1) for end in (0, 1))
    low, high = (np.moveaxis(x[..., :: -1 if flip else 1], -1, axis) for x in ends)
    return low, high


def _scattered(eqn: Any, factors: list[Pair], multiply: Callable[[Pair, Pair], Pair]) -> Pair:
    operand, indices, updates = factors
    window = scatter_window(eqn.params, operand[0].shape, updates[0].shape)
    into = of_windows(operand[0].shape, indices[0].astype(np.int64), window).ravel()
    low, high = (np.array(x, np.float64).ravel() for x in operand)
    for at, number in ranked(into):
        step = updates[0].ravel()[number], updates[1].ravel()[number]
        low[at], high[at] = multiply((low[at], high[at]), step)
    return low.reshape(operand[0].shape), high.reshape(operand[0].shape)


def log_of_sum(equation: Equation) -> Ends:
    """cumlogsumexp: rises with every term; each of its N steps errs by a few u of what it holds.

    A step is max + log1p(exp(-d)), at most 8 u of its parts and a rounding of the sum; errors of
    earlier steps come into later ones with weights of at most 1.
    """
    fmt = equation.declared.format
    assert fmt is not None
    value = equation.values[0]
    low, high = equation.evaluate(value.lo), equation.evaluate(value.hi)
    count = value.point.shape[equation.eqn.params["axis"]]
    finite = np.where(np.isfinite(value.magnitude), value.magnitude, 0.0)
    largest = np.max(finite, axis=equation.eqn.params["axis"], keepdims=True, initial=0.0)
    slack = count * fmt.unit_roundoff * (2 * largest + math.log(max(count, 1)) + 8)
    return low - slack, high + slack
