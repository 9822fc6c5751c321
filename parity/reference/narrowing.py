"""Models that compute in narrower dtypes than declared: which ones, and through which formats.

Source: accumulators as wide as their operands, StableHLO `dot_general`, where the accumulation type
is the implementation's; integers of 32 bits for 64, jax-ml/jax `jax_enable_x64`; double rounding,
Boldo and Melquiond, IEEE Trans. Computers 57(4), 2008.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parity.dtypes import DTYPES, DType
from parity.reference.policies import Policy
from parity.reference.value import Value

SUMMED = frozenset({
    "conv_general_dilated", "cumsum", "dot_general", "reduce_sum", "reduce_window_sum",
    "scatter-add", "select_and_scatter_add",
})  # fmt: skip
"""Primitives that add many terms up."""

_COMPUTED = SUMMED | {"add", "add_any", "integer_pow", "mul", "neg", "sub"}


def narrow_sum(operands: Sequence[DType], values: Sequence[Value], declared: DType) -> DType | None:
    """The least precise format of 16 bits or more that a sum is of, if it is under 32 bits.

    Formats of 8 bits and fewer are no accumulators.

    Args:
        operands: the declared dtypes of a sum's operands.
        values: these, with the dtypes they were cast up from.
        declared: of the result.
    """
    given = [value.cast_from or of for value, of in zip(values, operands, strict=True)]
    formats = [d for d in (*given, declared) if d.format is not None and 16 <= d.bits < 32]
    return min(formats, key=lambda d: d.format.precision if d.format else 0, default=None)


def narrow_integer(
    policy: Policy, name: str, operands: Sequence[DType], values: Sequence[Value], declared: DType
) -> DType | None:
    """The narrower integer dtype that a model computes an equation in, None for the declared one.

    Args:
        policy: the model; its `integers` says how.
        name: of the primitive.
        operands: the declared dtypes of its operands.
        values: its operands.
        declared: of the result.
    """
    known = [
        value.cast_from or of
        for value, of in zip(values, operands, strict=True)
        if not value.constant
    ]
    if name not in _COMPUTED or not known or not all(d.is_integer for d in known):
        return None
    if policy.integers != "narrow":
        limit = DTYPES[policy.integers]
        found = DTYPES[limit.name if declared.kind != "uint" else f"u{limit.name}"]
    else:
        found = max(known, key=lambda d: d.bits)
    return found if not declared.is_integer or found.bits < declared.bits else None


def passes_through(via: DType | None, source: DType, target: DType) -> bool:
    """Whether a cast may go through a format: one that neither holds the source nor is held."""
    if via is None or via.format is None or target.format is None or target.kind == "complex":
        return False
    precision = source.format.precision if source.format else source.bits
    narrower = via.format.precision < precision or (
        source.format is not None and via.format.max_finite < source.format.max_finite
    )
    return narrower and target.format.precision < via.format.precision and source.bits > target.bits


def whole_numbers(x: np.ndarray) -> np.ndarray:
    """Floats toward zero as int64: what is beyond is at its ends, NaN is 0 as in a saturating cast.

    Source: `static_cast` by way of a wider integer, which the narrow one then wraps or stops.
    """
    with np.errstate(invalid="ignore"):
        limited = np.clip(np.trunc(np.nan_to_num(x, nan=0.0)), -(2.0**62), 2.0**62)
    return np.asarray(limited.astype(np.int64))


def cast_from(value: Value, source: DType, target: DType) -> DType | None:
    """The dtype that still holds the result of a cast to a wider one, None for any other."""
    held = value.cast_from or source
    both = (held.is_integer and target.is_integer) or (held.kind == target.kind == "float")
    return held if both and held.bits < target.bits else None
