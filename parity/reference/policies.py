"""Arithmetic models under which a jaxpr is interpreted: what is rounded, and to what.

Values are held wide (`wide`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from parity.dtypes import DTYPES, DType
from parity.program.spec import LICENCES
from parity.reference.accumulators import FLUSHING, smallest
from parity.reference.rounding import round_to
from parity.reference.value import parts
from parity.reference.wide import saturated, wrap

_ACCUMULATING = frozenset({"dot_general", "conv_general_dilated", "reduce_sum", "cumsum"})
_SUMS = _ACCUMULATING | {"reduce_window_sum", "scatter-add", "select_and_scatter_add"}
_CASTS = frozenset({"convert_element_type", "reduce_precision"})


@dataclass(frozen=True)
class Policy:
    """What becomes of each equation's wide result.

    Attributes:
        name: as reports call it.
        rounds: whether floating results are rounded at all. Where they are not, the interval
            bounds the error of an evaluation that does round (the accuracy bound); where they
            are, it bounds what another correct evaluation may give (the order interval).
        floor: the narrowest format that results are rounded to; the declared one if None.
        operand_casts: with `floor`, whether a cast of a program's own input still rounds as
            declared.
        optional: with `floor`, whether each result may also be rounded as declared: the interval
            then holds every choice of which roundings are dropped.
        wraps: whether the accumulators of integer contractions and sums wrap.
        licences: which of `LICENCES` the interval grants.
        order: in which order contractions are added in their accumulator's dtype (`honest`), or
            None for one exact sum, rounded once.
        jolts: whether each sum is off by one rounding error of the largest size and random sign.
        errs: in which direction each function is off by all that its implementation may add
            (`implementations`), or None.
        encloses: whether intervals are computed at all.
        flushes: whether subnormal values of a flushing dtype become zero, operands included.
        algorithm: the name in `algorithms.PRESETS` of what contractions of float32 operands do to
            these, "" for what the program asks for.
        narrow_sums: whether contractions and sums are added in the narrowest dtype they are of.
        integers: in what integers are added and multiplied: "" as declared, "narrow" in the dtype
            that they were cast up from, or the name of a dtype that a wider one is taken for.
        saturates: what stops at the ends of its dtype instead of wrapping or overflowing: "",
            "casts" or "all".
        via: a format that casts to a narrower one pass through, or None.
        ulps: at least so many ulps of the compute dtype are allowed to each function.
        declared_ulps: further ulps, of its declared dtype.
        reassociates: whether the whole program may be rearranged as if arithmetic were exact, and
            NaN, infinities and signs of zeros ignored.
        any_order: whether the interval holds what the order of a sum changes.
    """

    name: str
    rounds: bool = True
    floor: DType | None = None
    operand_casts: bool = True
    optional: bool = False
    wraps: bool = True
    licences: frozenset[str] = frozenset()
    order: str | None = None
    jolts: bool = False
    errs: str | None = None
    encloses: bool = True
    flushes: bool = False
    algorithm: str = ""
    narrow_sums: bool = False
    integers: str = ""
    saturates: str = ""
    via: DType | None = None
    ulps: float = 0.0
    declared_ulps: float = 0.0
    reassociates: bool = False
    any_order: bool = True

    @property
    def keeps_subnormals(self) -> bool:
        """Whether its intervals suppose that no subnormal value is flushed."""
        return self.rounds and not self.flushes

    def granting(self, *licences: str) -> Policy:
        """The same model with further licences."""
        return dataclasses.replace(self, licences=self.licences | frozenset(licences))

    def adding(self, order: str) -> Policy:
        """The same model, without intervals, with every contraction added in a given order."""
        return dataclasses.replace(self, order=order, encloses=False)

    def jolted(self) -> Policy:
        """The same model, without intervals, with one rounding error in each sum."""
        return dataclasses.replace(self, jolts=True, encloses=False)

    def erring(self, direction: str) -> Policy:
        """The same model, without intervals, with each function as far off as stated."""
        return dataclasses.replace(self, errs=direction, encloses=False)

    def in_one_order(self) -> Policy:
        """The same model, its intervals without what the order of a sum changes."""
        return dataclasses.replace(self, any_order=False)

    def stops(self, primitive: str) -> bool:
        """Whether a primitive's results stop at the ends of their dtype."""
        return self.saturates == "all" or (self.saturates == "casts" and primitive in _CASTS)

    def format_of(self, primitive: str, declared: DType, *, of_input: bool) -> DType:
        """The dtype that the model rounds an equation's result to."""
        if self.floor is None or declared.kind == "complex" or primitive == "optimization_barrier":
            return declared
        if self.operand_casts and of_input and primitive in _CASTS:
            return declared
        return self.floor if declared.bits < self.floor.bits else declared

    def finish(
        self,
        primitive: str,
        point: np.ndarray,
        lo: np.ndarray,
        hi: np.ndarray,
        declared: DType,
        *,
        of_input: bool = False,
        exact: bool = False,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The point and the interval that the model keeps of an equation's wide result.

        Args:
            primitive: which one computed it.
            point: its result, wide.
            lo: lower ends of what the result may be before it is rounded; `point` itself if exact.
            hi: upper ends.
            declared: the dtype that the program declares for it.
            of_input: whether the equation reads the program's inputs directly.
            exact: whether the declared dtype holds the result, so that nothing is rounded.
        """
        if declared.is_integer:
            if primitive in _ACCUMULATING and not self.wraps:
                return point, point, point
            held = saturated if self.stops(primitive) else wrap
            point = held(point, declared)
            return point, point, point
        if not declared.is_inexact:
            return point, point, point
        if not self.rounds:
            if exact or not self.encloses:
                return point, lo, hi
            return (point, *_accuracy(point, lo, hi, declared))
        target = self.format_of(primitive, declared, of_input=of_input)
        rounded = self.flush(self._round(primitive, point, target), target)
        if self.optional and target is not declared:
            low, high = (self._end(primitive, end, target) for end in (lo, hi))
            return (
                rounded,
                parts(np.minimum, low, self._end(primitive, lo, declared)),
                parts(np.maximum, high, self._end(primitive, hi, declared)),
            )
        low = high = rounded
        if lo is not point or hi is not point:
            low, high = (self._end(primitive, end, target) for end in (lo, hi))
        if self.flushes and primitive in _SUMS:
            low, high = _either_zero(low, -0.0), _either_zero(high, 0.0)
        return rounded, low, high

    def _round(self, primitive: str, value: np.ndarray, target: DType) -> np.ndarray:
        """A value in a format; at its largest finite value where it overflows and stops there.

        In a program that may be rearranged nothing need overflow: there it stays as it is.
        """
        rounded = round_to(value, target)
        if self.reassociates:

            def kept(x: np.ndarray, rounded: np.ndarray) -> np.ndarray:
                return np.where(np.isfinite(x) & np.isinf(rounded), x, rounded)

            return parts(kept, value, rounded)
        if not self.stops(primitive) or target.bits > 16:
            return rounded
        assert target.format is not None
        largest = target.format.max_finite

        def stopped(x: np.ndarray, rounded: np.ndarray) -> np.ndarray:
            over = ~np.isfinite(rounded) & ~np.isnan(x)
            return np.where(over, np.copysign(largest, x), rounded)

        return parts(stopped, value, rounded)

    def _end(self, primitive: str, end: np.ndarray, target: DType) -> np.ndarray:
        """An end, rounded; infinite where a dtype without infinity turns it into NaN."""

        def opened(wide: np.ndarray, rounded: np.ndarray) -> np.ndarray:
            beyond = np.isnan(rounded) & ~np.isnan(wide)
            return np.where(beyond, np.copysign(np.inf, wide), rounded)

        return parts(opened, end, self.flush(self._round(primitive, end, target), target))

    def flush(self, value: np.ndarray, declared: DType) -> np.ndarray:
        """The value with its subnormals at a zero of their sign, where the model flushes."""
        if not self.flushes or declared.name not in FLUSHING:
            return value

        def flushed(x: np.ndarray) -> np.ndarray:
            return np.where(is_subnormal(x, declared), np.copysign(0.0, x), x)

        return parts(flushed, value)


def _either_zero(end: np.ndarray, zero: float) -> np.ndarray:
    """An end with its zeros of a sign: which one a sum of flushed products has is its order's."""
    return parts(lambda x: np.where(x == 0, zero, x), end) if not np.all(end) else end


def is_subnormal(value: np.ndarray, declared: DType) -> np.ndarray:
    """Which elements of a real array are nonzero and below the smallest normal number."""
    assert declared.format is not None
    return np.asarray((value != 0) & (np.abs(value) < 2.0**declared.format.emin))


def _accuracy(
    point: np.ndarray, lo: np.ndarray, hi: np.ndarray, declared: DType
) -> tuple[np.ndarray, np.ndarray]:
    """Ends that hold every evaluation within B of the point after it is rounded once.

    (1 + u)·B + u·|y| + η on each side; infinite where that lets the result overflow.
    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.3.
    """
    assert declared.format is not None
    u, eta = declared.format.unit_roundoff, smallest(declared)
    overflow = declared.format.max_finite * (1 + u)
    own = parts(lambda y: u * np.abs(y) + eta, point)

    def above(y: np.ndarray, end: np.ndarray, own: np.ndarray) -> np.ndarray:
        reached = y + ((1 + u) * (end - y) + own)
        reached = np.where(reached >= overflow, np.inf, reached)
        return np.where(np.isfinite(y), reached, y)

    def below(y: np.ndarray, end: np.ndarray, own: np.ndarray) -> np.ndarray:
        return -above(-y, -end, own)

    return parts(below, point, lo, own), parts(above, point, hi, own)


F64 = Policy("f64", rounds=False, wraps=False, licences=frozenset(LICENCES))
"""The ideal: no float rounding, no accumulator overflow. Its bound allows what a licence allows."""

STRICT = Policy("strict")
"""As declared: every result rounded once to its dtype."""

EXCESS_PRECISION = Policy(
    "excess-precision", floor=DTYPES["float32"], optional=True, licences=frozenset(LICENCES)
)
"""Any of the narrow intermediates may be kept in float32; casts of the program's inputs round.

Source: XLA's `xla_allow_excess_precision`, https://github.com/jax-ml/jax/issues/25873.
"""

FLUSH = Policy("flush-subnormals", flushes=True)
"""As declared, but subnormal operands and results of float32 and bfloat16 are zero.

Source: https://github.com/jax-ml/jax/issues/16200.
"""

WIDE = Policy("wide", floor=DTYPES["float32"], operand_casts=False, licences=frozenset(LICENCES))
"""Narrow dtypes are ignored altogether: everything in float32."""
