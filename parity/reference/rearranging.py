"""What `fast-math` allows beside `strict`: the program rearranged as if arithmetic were exact.

An addition in another association errs by the sizes of what is added, not of the result; a quotient
or function may be replaced by an approximation or a product of others. Four rounding errors of the
compute dtype are allowed to each operation, relative to its operands for additions. What is NaN or
infinite in exact arithmetic may be anything, nothing need overflow, and zeros have either sign.

Source: LLVM language reference, fast-math flags `reassoc arcp nnan ninf nsz`; XLA
`xla_cpu_enable_fast_math`, `DebugOptions` in xla/xla.proto.
"""

from __future__ import annotations

import numpy as np

from parity.reference import accumulators
from parity.reference.bounds import Bound
from parity.reference.contractions import either_sign
from parity.reference.equation import Ends, Equation
from parity.reference.narrowing import SUMMED
from parity.reference.value import parts

_ERRORS = 4
"""Rounding errors that each operation may add."""

_DECLARED = {"convert_element_type", "reduce_precision", *SUMMED}
"""What is rounded as declared: casts; and sums, whose order is theirs anyway."""

_SUMS_OF_TWO = ("add", "add_any", "sub")


def rearranged(bound: Bound, equation: Equation, lo: np.ndarray, hi: np.ndarray) -> Ends:
    """The ends of a floating result, not yet rounded, under `fast-math`.

    Args:
        bound: of the equation's primitive.
        equation: whose result is enclosed.
        lo: its lower end as declared.
        hi: its upper end.
    """
    if not equation.declared.is_inexact:
        return lo, hi
    slack = np.zeros_like(equation.point)
    if not bound.exact(equation) and equation.eqn.primitive.name not in _DECLARED:
        fmt = accumulators.compute(equation.declared).format
        assert fmt is not None
        sizes = [parts(np.maximum, parts(np.abs, lo), parts(np.abs, hi))]
        if equation.eqn.primitive.name in _SUMS_OF_TWO:
            sizes = [value.magnitude for value in equation.values]
        slack = _ERRORS * fmt.unit_roundoff * sum(sizes, slack)

    def opened(end: np.ndarray, point: np.ndarray, infinity: float) -> np.ndarray:
        return np.where(np.isfinite(point), end, infinity)

    return either_sign(
        parts(lambda x, y: opened(x, y, -np.inf), lo - slack, equation.point),
        parts(lambda x, y: opened(x, y, np.inf), hi + slack, equation.point),
    )
