"""The formats that a model lets a result pass through on its way to the declared dtype."""

from __future__ import annotations

import numpy as np

from parity.dtypes import DType
from parity.reference import algorithms, narrowing
from parity.reference.equation import Equation
from parity.reference.wide import wrap

Triple = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A point and the ends of its interval, wide."""


def first(equation: Equation, ends: Triple) -> Triple:
    """A wide result rounded to, or wrapped in, the narrower dtype that the model keeps it in first.

    The accumulator of a contraction or sum, what a cast goes through, the dtype that integers were
    cast up from; `ends` itself where there is none.
    """
    policy, name = equation.policy, equation.eqn.primitive.name
    held = algorithms.narrower_accumulator(equation)
    if policy.via is not None and name == "convert_element_type":
        source = equation.operands[0]
        if narrowing.passes_through(policy.via, source, equation.declared):
            held = policy.via
    if held is not None:
        return policy.finish(name, *ends, held)
    held = _narrow_integer(equation)
    if held is None:
        return ends
    whole = ends[0] if ends[0].dtype == object else ends[0].astype(np.int64)
    wrapped = wrap(whole, held)
    return (wrapped if equation.declared.is_integer else wrapped.astype(np.float64),) * 3


def held_by(equation: Equation) -> DType | None:
    """The narrower dtype that still holds a result; None where that is the declared one."""
    held = _narrow_integer(equation)
    if held is not None:
        return held if equation.declared.is_integer else None
    if equation.eqn.primitive.name != "convert_element_type":
        return None
    return narrowing.cast_from(equation.values[0], equation.operands[0], equation.declared)


def _narrow_integer(equation: Equation) -> DType | None:
    if not equation.policy.integers:
        return None
    return narrowing.narrow_integer(
        equation.policy,
        equation.eqn.primitive.name,
        equation.operands,
        equation.values,
        equation.declared,
    )
