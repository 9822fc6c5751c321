"""Dot algorithms: what a `jax.lax.DotAlgorithmPreset` makes of a dot's operands and of its sums.

An operand is split into parts that the algorithm's format holds: the first is the nearest to it,
each further one the nearest to what is left. Products of parts are exact and added up in the
algorithm's accumulator. Here the parts stand on an axis of their own, which is contracted as well:
everything that holds of contractions then holds of them.

Source: StableHLO specification, `dot_general`, `DotAlgorithm`; for the parts Henry, Tang and
Heinecke, Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
Computations, ARITH 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parity.dtypes import DTYPES, DType, FloatFormat, dtype
from parity.program.precision import precision_name
from parity.reference import accumulators
from parity.reference.accumulators import smallest
from parity.reference.elementwise import holds
from parity.reference.equation import Equation, declared_dtype
from parity.reference.narrowing import SUMMED, narrow_sum
from parity.reference.rounding import round_to
from parity.reference.value import Mask, Value, parts

TF32 = DType("tf32", "float", 19, FloatFormat(11, -126, (2.0 - 2.0**-10) * 2.0**127))

_X1 = ((0, 0),)
_X3 = (*_X1, (0, 1), (1, 0))
_X6 = (*_X3, (1, 1), (0, 2), (2, 0))
_X9 = (*_X6, (1, 2), (2, 1), (2, 2))
_KEPT = {len(kept): kept for kept in (_X1, _X3, _X6, _X9)}


@dataclass(frozen=True)
class Algorithm:
    """How a dot is computed.

    Attributes:
        operands: the formats of the parts of lhs and rhs; None where they are taken as they are.
        accumulator: what products are added in; None for what the dtypes imply.
        kept: pairs of a part of lhs and a part of rhs whose products are added, by number.
    """

    operands: tuple[DType | None, DType | None]
    accumulator: DType | None
    kept: tuple[tuple[int, int], ...] = _X1

    @property
    def narrows(self) -> bool:
        """Whether it drops bits of float32 operands that the sum would show."""
        return any(one is not None and one.bits < 32 for one in self.operands)

    def applied(
        self, eqn: Any, values: Sequence[Value], *, rounds: bool
    ) -> tuple[Any, list[Value]]:
        """The equation and its operands with the parts on a new last axis, or among the features.

        Args:
            eqn: a `dot_general` or `conv_general_dilated` equation.
            values: lhs and rhs.
            rounds: whether operands are split; else the first part is the whole operand and its
                interval holds what the split one may be, which is that if the format holds it.
        """
        dtypes = map(declared_dtype, eqn.invars)
        whole = [h is None or holds(h, d) for h, d in zip(self.operands, dtypes, strict=True)]
        dropped = (0.0 if any(whole) else self._dropped(), 0.0)
        split = [
            self._split(value, side, dropped[side], rounds=rounds, whole=whole[side])
            for side, value in enumerate(values)
        ]
        if eqn.primitive.name == "conv_general_dilated":
            numbers = eqn.params["dimension_numbers"]
            features = numbers.lhs_spec[1], numbers.rhs_spec[1]
            return eqn, [_merged(v, axis) for v, axis in zip(split, features, strict=True)]
        (lhs, rhs), batch = eqn.params["dimension_numbers"]
        axes = [value.point.ndim for value in values]
        numbers = (((*lhs, axes[0]), (*rhs, axes[1])), batch)
        return eqn.replace(params={**eqn.params, "dimension_numbers": numbers}), split

    def _split(
        self, value: Value, side: int, dropped: float, *, rounds: bool, whole: bool
    ) -> Value:
        """The parts of lhs (side 0) or rhs; what is not finite counts in the first product alone.

        Source: XLA puts 0 for a NaN that the other products add up to, triton-lang/triton
        test/TritonGPU/bf16x3-matmul.mlir.
        """
        held = self.operands[side]
        numbers = [pair[side] for pair in self.kept]
        count = 1 + max(numbers)
        first = np.array(numbers) == 0
        if rounds and held is not None:
            found = _parts(value.point, held, count)
            point = np.stack([found[number] for number in numbers], axis=-1)
            point[..., 1:][~np.isfinite(point[..., 1:])] = 0.0
        else:
            point = np.where(np.arange(len(numbers)) == 0, value.point[..., None], 0.0)
        lo, hi = _ends(value, None if whole and not rounds else held, count, dropped, rounds)
        low, high = (point if end is None else point + first * end[..., None] for end in (lo, hi))

        def mask(marked: Mask) -> Mask:
            return None if marked is None else np.broadcast_to(marked[..., None], point.shape)

        unspecified, undecided = mask(value.unspecified), mask(value.undecided)
        return Value(point, low, high, unspecified, undecided, constant=value.constant)

    def _dropped(self) -> float:
        """What the products that are left out are at most, relative to |a||b|.

        The n-th part after the first is at most u^n (1 + u)^n of the operand.
        """
        formats = [one.format for one in self.operands if one is not None]
        if not formats or formats[0] is None:
            return 0.0
        u = formats[0].unit_roundoff
        parts = range(1 + max(max(pair) for pair in self.kept))
        left_out = [(i, j) for i in parts for j in parts if (i, j) not in self.kept]
        return sum((u * (1 + u)) ** (i + j) for i, j in left_out)


def _merged(value: Value, axis: int) -> Value:
    """The value with its last axis, of parts, made part of another one; groups stay together."""
    shape = list(value.point.shape[:-1])
    shape[axis] *= value.point.shape[-1]

    def merged(x: np.ndarray) -> np.ndarray:
        return np.moveaxis(x, -1, axis + 1).reshape(shape)

    point = merged(value.point)
    lo, hi = (point if end is value.point else merged(end) for end in (value.lo, value.hi))
    unspecified, undecided = (
        None if mask is None else merged(mask) for mask in (value.unspecified, value.undecided)
    )
    return Value(point, lo, hi, unspecified, undecided, constant=value.constant)


def _ends(
    value: Value, held: DType | None, count: int, dropped: float, rounds: bool
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """How far the sum of the parts may lie below and above that of the point's."""
    if value.exact and (rounds or held is None):
        return None, None
    if held is None:
        return value.lo - value.point, value.hi - value.point
    if rounds:
        middle, low, high = (sum(_parts(x, held, count)) for x in (value.point, value.lo, value.hi))
        slack = 2 * dropped * value.magnitude
        return low - middle - slack, high - middle + slack
    return _error(value, held, count, dropped)


def _error(value: Value, held: DType, count: int, dropped: float) -> tuple[np.ndarray, np.ndarray]:
    """What splitting may change the operand by, and dropped products the result by."""
    fmt = held.format
    assert fmt is not None
    least = max(smallest(held), smallest(DTYPES["float32"]))

    def slack(size: np.ndarray) -> np.ndarray:
        error = (fmt.unit_roundoff**count + dropped) * size + least
        return np.where(size * (1 + fmt.unit_roundoff) >= fmt.max_finite, np.inf, error)

    around = parts(slack, value.magnitude)
    return value.lo - value.point - around, value.hi - value.point + around


def _parts(x: np.ndarray, held: DType, count: int) -> list[np.ndarray]:
    """Float64 values of a format that add up to the nearest that so many of them can."""
    found = []
    for _ in range(count):
        found.append(round_to(x, held))
        x = np.where(np.isfinite(found[-1]), x - found[-1], 0.0)
    return found


def _named(operand: DType, accumulator: str, products: int = 1) -> Algorithm:
    return Algorithm((operand, operand), DTYPES[accumulator], _KEPT[products])


_AS_THEY_ARE = Algorithm((None, None), None)

PRESETS: Mapping[str, Algorithm] = {
    "ANY_F8_ANY_F8_ANY": _AS_THEY_ARE,
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM": _AS_THEY_ARE,
    "ANY_F8_ANY_F8_F32": Algorithm((None, None), DTYPES["float32"]),
    "ANY_F8_ANY_F8_F32_FAST_ACCUM": Algorithm((None, None), DTYPES["float32"]),
    "BF16_BF16_BF16": _named(DTYPES["bfloat16"], "bfloat16"),
    "BF16_BF16_F32": _named(DTYPES["bfloat16"], "float32"),
    "BF16_BF16_F32_X3": _named(DTYPES["bfloat16"], "float32", 3),
    "BF16_BF16_F32_X6": _named(DTYPES["bfloat16"], "float32", 6),
    "BF16_BF16_F32_X9": _named(DTYPES["bfloat16"], "float32", 9),
    "F16_F16_F16": _named(DTYPES["float16"], "float16"),
    "F16_F16_F32": _named(DTYPES["float16"], "float32"),
    "F32_F32_F32": _named(DTYPES["float32"], "float32"),
    "F64_F64_F64": _named(DTYPES["float64"], "float64"),
    "TF32_TF32_F32": _named(TF32, "float32"),
    "TF32_TF32_F32_X3": _named(TF32, "float32", 3),
}
"""By the name of a `jax.lax.DotAlgorithmPreset`; DEFAULT asks for nothing."""


def algorithm_of(eqn: Any) -> Algorithm | None:
    """The algorithm that an equation asks for; None for what is no dot or leaves it open."""
    asked = eqn.params.get("precision") if eqn.primitive.name == "dot_general" else None
    if asked is None:
        return None
    if hasattr(asked, "num_primitive_operations"):  # a lax.DotAlgorithm
        types = asked.lhs_precision_type, asked.rhs_precision_type, asked.accumulation_type
        lhs, rhs, accumulator = (dtype(np.dtype(one)) for one in types)
        return Algorithm((lhs, rhs), accumulator, _KEPT[asked.num_primitive_operations])
    name = precision_name(asked)
    return PRESETS.get(name) if isinstance(name, str) else None


def imposed(eqn: Any, name: str) -> Algorithm | None:
    """The algorithm that a model takes a contraction of float32 or complex64 operands to have.

    Args:
        eqn: any equation.
        name: in `PRESETS`; "" for none.
    """
    if not name or eqn.primitive.name not in ("dot_general", "conv_general_dilated"):
        return None
    formats = [declared_dtype(atom).format for atom in eqn.invars]
    return PRESETS[name] if all(f == DTYPES["float32"].format for f in formats) else None


def accumulator_of(equation: Equation) -> DType:
    """What the products of a contraction are added in."""
    if equation.policy.narrow_sums:
        found = narrow_sum(equation.operands, equation.values, equation.declared)
        if found is not None:
            return found
    algorithm = algorithm_of(equation.eqn) if equation.policy.operand_casts else None
    if algorithm is not None and algorithm.accumulator is not None:
        return algorithm.accumulator
    left, right = equation.operands
    return accumulators.accumulator((left, right), equation.declared)


def sum_dtype(equation: Equation) -> DType:
    """What the terms of a `reduce_sum` and the like are added in."""
    if not equation.policy.narrow_sums:
        return equation.declared
    summed = equation.operands[:1], equation.values[:1]
    return narrow_sum(*summed, equation.declared) or equation.declared


def narrower_accumulator(equation: Equation) -> DType | None:
    """The accumulator whose last value is cast up to the result's dtype; None for any other."""
    if equation.products:
        accumulator = accumulator_of(equation)
    elif equation.eqn.primitive.name in SUMMED:
        accumulator = sum_dtype(equation)
    else:
        return None
    held, declared = accumulator.format, equation.declared.format
    if held is None or declared is None or held.precision >= declared.precision:
        return None
    return accumulator
