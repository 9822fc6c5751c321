"""What is visible of a fault, computed in exact rational arithmetic.

All values are dyadic rationals: Python integers times a power of two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .contraction import EMIN, PRECISION, Contraction
from .honest import HONEST

_LIMB = 20
"""Bits of a limb: products of two, added 2**12 times, stay exact in float64."""

_UNDERFLOW = -149
"""The smallest float32 is 2**-149; a product that is no multiple of it is rounded absolutely."""


@dataclass(frozen=True)
class Exact:
    """Sums of products [B, M, N], exactly: `value`, and `magnitude` = Σ|a||b|, times 2**exponent.

    Attributes:
        value: Python integers.
        magnitude: Python integers.
        exponent: of the unit of both.
        quantum: the largest q such that all products of a sum are multiples of 2**q.
        undefined: sums that have a NaN among their products.
    """

    value: np.ndarray
    magnitude: np.ndarray
    exponent: int
    quantum: np.ndarray
    undefined: np.ndarray


def exact_sums(a: np.ndarray, b: np.ndarray) -> Exact:
    """Σ ab over the last axis of [B, M, K] and [B, N, K], float32."""
    nan = np.isnan(a).any(axis=-1)[:, :, None] | np.isnan(b).any(axis=-1)[:, None, :]
    a, b = (np.where(np.isnan(x), 0.0, x.astype(np.float64)) for x in (a, b))
    (left, e), (right, f) = _limbs(a), _limbs(b)
    value = np.zeros((a.shape[0], a.shape[1], b.shape[1]), object)
    magnitude = value.copy()
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            shift = 1 << (_LIMB * (i + j))
            value += np.matmul(x, y.swapaxes(-1, -2)).astype(np.int64).astype(object) * shift
            size = np.matmul(np.abs(x), np.abs(y).swapaxes(-1, -2))
            magnitude += size.astype(np.int64).astype(object) * shift
    return Exact(value, magnitude, e + f, _quantum(a, b), nan)


def _limbs(x: np.ndarray) -> tuple[list[np.ndarray], int]:
    """Integers below 2**20 in size, float64, and e such that x = Σ limb[i]·2**(20i + e)."""
    used = x[x != 0]
    if not used.size:
        return [x], 0
    lowest = int(granule(used).min())
    count = -(-(int(np.frexp(used)[1].max()) - lowest) // _LIMB)
    found, rest = [], np.ldexp(x, -lowest)
    for i in reversed(range(count)):
        limb = np.trunc(np.ldexp(rest, -_LIMB * i))
        rest = rest - np.ldexp(limb, _LIMB * i)
        found.append(limb)
    assert not rest.any()
    return found[::-1], lowest


_FREE = 4000
"""The granule of 0: every power of two divides it."""


def granule(x: np.ndarray) -> np.ndarray:
    """The largest q of each element such that it is a multiple of 2**q."""
    fraction, exponent = np.frexp(x)
    whole = np.ldexp(fraction, 53).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(x == 0, _FREE, exponent - 53 + trailing).astype(np.int16)


def _quantum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    left, right = granule(a), granule(b)
    found = np.empty((a.shape[0], a.shape[1], b.shape[1]), np.int64)
    for row in range(a.shape[1]):
        found[:, row] = (left[:, row, None, :] + right).min(axis=-1)
    return found


def nearest(value: int, exponent: int, dtype: str) -> float:
    """value·2**exponent rounded to nearest, ties to even, in a floating dtype.

    Source: IEEE 754-2019, section 4.3.1.
    """
    if not value:
        return 0.0
    size = abs(value)
    quantum = max(size.bit_length() + exponent, EMIN[dtype] + 1) - PRECISION[dtype]
    if quantum <= exponent:
        whole = size << (exponent - quantum)
    else:
        whole, rest = divmod(size, 1 << (quantum - exponent))
        half = 1 << (quantum - exponent - 1)
        whole += rest > half or (rest == half and whole % 2)
    rounded = math.ldexp(whole, quantum)
    beyond = 2.0 ** (2 - EMIN[dtype])  # emax = 1 - emin in every IEEE format
    return math.copysign(math.inf if rounded >= beyond else rounded, value)


@dataclass(frozen=True)
class Judge:
    """What a contraction's output may be, and how far honest evaluations are from the exact one.

    Attributes:
        declared: the exact sums rounded as declared, in the shape of the output, float64.
        low: the least that any order of summation may give, rounded as declared.
        high: the greatest.
        unspecified: elements of which nothing is declared.
        spread: the largest rms distance from `declared` over honest evaluations, but not less than
            what honest ones may show that were not tried (`judge`).
        honest: their outputs.
    """

    declared: np.ndarray
    low: np.ndarray
    high: np.ndarray
    unspecified: np.ndarray
    spread: float
    honest: Mapping[str, np.ndarray]

    def visible(self, got: np.ndarray) -> bool:
        """Whether an output is visibly not what was declared, in an element or as a whole."""
        form = got.shape == self.declared.shape and got.dtype == self.honest["sequential"].dtype
        return not form or bool(self.impossible(got).any()) or self.apart(got)

    def impossible(self, got: np.ndarray) -> np.ndarray:
        """Elements that no order of summation and no legal rounding gives."""
        value = got.astype(np.float64)
        undefined = np.isnan(self.declared)
        inside = (self.low <= value) & (value <= self.high)
        zero, sign = value == 0, np.signbit(value)
        inside &= ~(zero & sign & (self.low == 0) & ~np.signbit(self.low))
        inside &= ~(zero & ~sign & (self.high == 0) & np.signbit(self.high))
        return np.where(undefined, ~np.isnan(value), ~inside) & ~self.unspecified

    def apart(self, got: np.ndarray) -> bool:
        """Whether the whole output is ten times as far from the exact one as honest ones are."""
        declared = self.declared[~self.unspecified]
        distinct = len(np.unique(declared[np.isfinite(declared)]))
        return distinct >= 16 and _rms(got[~self.unspecified], declared) > 10 * self.spread


def _rms(got: np.ndarray, want: np.ndarray) -> float:
    """Root mean square distance; elements that are not finite are left out."""
    with np.errstate(invalid="ignore"):  # infinities of one sign
        distance = got.astype(np.float64) - want
    kept = distance[np.isfinite(distance)]
    largest = float(np.max(np.abs(kept), initial=0.0))
    return largest * float(np.sqrt(np.mean((kept / largest) ** 2))) if largest else 0.0


def judge(contraction: Contraction) -> Judge:
    """Enclose a contraction's output in exact arithmetic and evaluate it honestly in many ways.

    Any order of summation in float32 is within K·2**-24·Σ|a||b| of the exact sum, and each product
    that float32 cannot hold for its smallness adds half the smallest float32; nothing is added
    where every order is exact: all products multiples of 2**q and Σ|a||b| <= 2**(24 + q); nor
    where there is one product and its rounding is the declared one.
    Source: Jeannerod and Rump, SIMAX 34(2), 2013.

    Where sums are mostly exact or rounded far, all the orders tried may agree by luck. So the
    spread is not less than one rounding error of 2**-24·Σ|a||b| in every sum that has an order, nor
    than one of all the roundings of all evaluations falling the other way.
    """
    a, b = contraction.factors
    exact = exact_sums(a, b)
    chain, terms = contraction.scheme.chain, contraction.geometry.terms
    unit = min(exact.exponent, _UNDERFLOW - 1) - 24
    low, high, declared = (np.empty(exact.value.shape) for _ in range(3))
    steps, errors = np.zeros(exact.value.shape), np.zeros(exact.value.shape)
    for at in np.ndindex(exact.value.shape):
        value = exact.value[at] << (exact.exponent - unit)
        size = exact.magnitude[at] << (exact.exponent - unit)
        quantum = int(exact.quantum[at])
        slack = 0
        holds = quantum >= _UNDERFLOW and size <= 1 << (24 + quantum - unit)
        if not holds and not (terms == 1 and chain[0] == "float32"):
            slack = terms * (size >> 24) + terms * (1 << (_UNDERFLOW - 1 - unit))
        ends = [_as_declared(end, unit, chain) for end in (value - slack, value, value + slack)]
        low[at], declared[at], high[at] = ends
        # Whether a sum of zero is -0 depends on whether the accumulator begins at +0.
        if abs(value) - slack <= 1 << (_UNDERFLOW - 1 - unit):
            low[at] = -0.0 if low[at] == 0 else low[at]
            high[at] = 0.0 if high[at] == 0 else high[at]
        if slack:
            steps[at] = _step(declared[at], chain) if low[at] != high[at] else 0.0
            errors[at] = math.ldexp(size >> 24, unit)
    declared[exact.undefined] = np.nan
    unspecified = np.broadcast_to(contraction.unspecified, declared.shape)
    declared, low, high, unspecified = map(contraction.arranged, (declared, low, high, unspecified))
    honest = {name: contraction.output(sums(a, b)) for name, sums in HONEST.items()}
    spread = max(
        _rms(errors, np.zeros_like(errors)),
        float(steps.max()) / math.sqrt(declared.size * len(honest)),
        *(_rms(out, declared) for out in honest.values()),
    )
    return Judge(declared, low, high, unspecified, spread, honest)


def _as_declared(value: int, unit: int, chain: tuple[str, ...]) -> float:
    """value·2**unit rounded to one dtype after the other; a sum that vanishes keeps its sign."""
    whole, exponent, rounded = value, unit, 0.0
    for name in chain:
        rounded = nearest(whole, exponent, name)
        if math.isinf(rounded):
            break
        whole, denominator = rounded.as_integer_ratio()
        exponent = 1 - denominator.bit_length()
    return math.copysign(rounded, value)


def _step(value: float, chain: tuple[str, ...]) -> float:
    """The spacing, at a value, of the coarsest dtype that the output is rounded to."""
    if not math.isfinite(value):
        return 0.0
    exponent = math.frexp(value)[1]
    return max(2.0 ** (max(exponent, EMIN[name] + 1) - PRECISION[name]) for name in chain)
