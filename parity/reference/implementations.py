"""Results as far off as their implementation is stated to be: what no order of summation shows.

The order interval lets an elementary function err by `Bound.ulps` and a product of many factors by
the roundings of its steps. That widening comes beside what the order of a sum allows, so a path may
be that far from `strict` where no sum moves at all: after a rounding to a narrow dtype, say. How
far it leads through the rest of a program is found by evaluating it with such errors. An error's
size is bounded, its sign is not. It may be the same throughout (a polynomial a little too steep, a
`tanh` that saturates below 1) or change from argument to argument, which the operations that follow
treat differently: a quotient cancels the former, a sum averages the latter. Hence `DIRECTIONS`.

Source: errors that are all of one sign, and random ones that grow as a root: Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., section 2.8.
"""

from __future__ import annotations

import numpy as np

from parity.reference.bounds import Bound, enclose
from parity.reference.equation import Equation
from parity.reference.honest import REORDERED
from parity.reference.sums import product_of_many
from parity.reference.value import parts

DIRECTIONS = ("up", "down", "outward", "inward", "random")
"""Towards one infinity, away from zero or towards it everywhere; or either way by chance."""


def errs(bound: Bound, equation: Equation) -> bool:
    """Whether an implementation may err by itself, the order of a sum apart."""
    if equation.eqn.primitive.name in REORDERED or not equation.declared.is_inexact:
        return False
    return bound.ulps > 0 or bound.enclose is product_of_many


def off(bound: Bound, equation: Equation, direction: str, seed: int) -> np.ndarray:
    """A result off by all that its implementation is stated to add, not yet rounded.

    Args:
        bound: of the equation's primitive.
        equation: with exact operands, so that its ends differ by that error alone.
        direction: one of `DIRECTIONS`.
        seed: of the signs, where they are random. The same one gives the same signs: a function
            that a loop calls again errs the same way again.

    Returns:
        The end of the interval on that side; the point where that end is not finite.
    """
    rng = np.random.default_rng(seed)

    def shifted(point: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        rises = {
            "up": np.True_,
            "down": np.False_,
            "outward": ~np.signbit(point),
            "inward": np.signbit(point),
            "random": rng.random(point.shape) < 0.5,
        }
        end = np.where(rises[direction], high, low)
        return np.where(np.isfinite(end), end, point)

    return parts(shifted, equation.point, *enclose(bound, equation))
