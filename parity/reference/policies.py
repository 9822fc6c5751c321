"""Arithmetic models under which a jaxpr is interpreted: what is rounded, and to what.

Values are held wide: float64, complex128, int64, uint64 or Python integers, bool.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parity.dtypes import DTYPES, DType
from parity.reference.rounding import cast, round_to

_ACCUMULATING = frozenset({"dot_general", "conv_general_dilated", "reduce_sum", "cumsum"})
_CASTS = frozenset({"convert_element_type", "reduce_precision"})


@dataclass(frozen=True)
class Policy:
    """What becomes of each equation's wide result.

    Attributes:
        name: as reports call it.
        rounds: whether floating results are rounded at all.
        floor: the narrowest format that results are rounded to; the declared one if None.
        operand_casts: with `floor`, whether a cast of a program's own input still rounds as
            declared.
        wraps: whether the accumulators of integer contractions and sums wrap.
    """

    name: str
    rounds: bool = True
    floor: DType | None = None
    operand_casts: bool = True
    wraps: bool = True

    def finish(
        self, primitive: str, value: np.ndarray, declared: DType, *, of_input: bool = False
    ) -> np.ndarray:
        """The wide value that the model keeps of an equation's wide result.

        Args:
            primitive: which one computed it.
            value: its result, wide.
            declared: the dtype that the program declares for it.
            of_input: whether the equation reads the program's inputs directly.
        """
        if declared.is_integer:
            accumulator = primitive in _ACCUMULATING
            return value if accumulator and not self.wraps else wrap(value, declared)
        if not declared.is_inexact or not self.rounds:
            return value
        return round_to(value, self._target(primitive, declared, of_input))

    def _target(self, primitive: str, declared: DType, of_input: bool) -> DType:
        if self.floor is None or declared.kind == "complex":
            return declared
        if self.operand_casts and of_input and primitive in _CASTS:
            return declared
        return self.floor if declared.bits < self.floor.bits else declared


F64 = Policy("f64", rounds=False, wraps=False)
"""The ideal: no float rounding, no accumulator overflow."""

STRICT = Policy("strict")
"""As declared: every result rounded once to its dtype."""

EXCESS_PRECISION = Policy("excess-precision", floor=DTYPES["float32"])
"""Narrow intermediates are kept in float32; only casts of the program's inputs round as declared.

Source: XLA's `xla_allow_excess_precision`, https://github.com/jax-ml/jax/issues/25873.
"""

WIDE = Policy("wide", floor=DTYPES["float32"], operand_casts=False)
"""Narrow dtypes are ignored altogether: everything in float32."""


def widen(array: np.ndarray) -> np.ndarray:
    """An array of any dtype in its wide form; every value stays exact."""
    kind = DTYPES[array.dtype.name].kind
    if kind == "float":
        return array.astype(np.float64)
    if kind == "complex":
        return array.astype(np.complex128)
    if kind == "uint" and array.dtype.itemsize == 8:
        return array.astype(np.uint64)
    return array if kind == "bool" else array.astype(np.int64)


def wrap(value: np.ndarray, declared: DType) -> np.ndarray:
    """Integers modulo 2**bits, in the range of the declared dtype (two's complement)."""
    low, high = declared.integer_range
    span = 1 << declared.bits
    if value.dtype == object:
        value = np.asarray((value - low) % span + low, dtype=object)
    elif declared.bits == 64:
        return value.astype(declared.numpy())
    elif value.size and (value.min() < low or value.max() > high):
        value = (value.astype(np.int64) - low) % span + low
    return value.astype(np.uint64 if declared.name == "uint64" else np.int64)


def narrow(value: np.ndarray, declared: DType) -> np.ndarray:
    """A wide value in the declared dtype itself, rounded once or wrapped."""
    if declared.is_inexact:
        return cast(value, declared)
    if declared.is_integer:
        return wrap(value, declared).astype(declared.numpy())
    return value.astype(bool)


def ideal(value: np.ndarray) -> np.ndarray:
    """A wide value as it is compared: Python integers become int64, uint64 or, beyond, float64."""
    if value.dtype != object:
        return value
    for target in (np.int64, np.uint64):
        info = np.iinfo(target)
        if all(info.min <= v <= info.max for v in value.flat):
            return value.astype(target)
    return value.astype(np.float64)
