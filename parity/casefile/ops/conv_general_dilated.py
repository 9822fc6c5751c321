"""`jax.lax.conv_general_dilated`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from parity.casefile.fields import Count, DType, Precision, any_case, fail
from parity.casefile.op import (
    Attributes as BaseAttributes,
)
from parity.casefile.op import (
    Keywords,
    Result,
    contracted,
    lhs_and_rhs,
    refuse,
    shapes,
)
from parity.casefile.problem import Problem, listed, show
from parity.program.spec import OperandSpec

EXAMPLE = """\
operands:
  lhs: {shape: [2, 8, 8, 3], dtype: float32, draw: normal}  # N H W C
  rhs: {shape: [3, 3, 3, 4], dtype: float32, draw: normal}  # H W I O
attributes:
  window_strides: [1, 1]
  padding: SAME  # or SAME_LOWER, VALID, [[low, high], [low, high]]
  dimension_numbers: [NHWC, HWIO, NHWC]
"""

takes = lhs_and_rhs

PADDINGS = ("SAME", "SAME_LOWER", "VALID")

_LETTERS = (("lhs", "N", "C"), ("rhs", "O", "I"), ("output", "N", "C"))


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list) and len(value) == 2 and all(type(number) is int for number in value)
    )


def _padding(value: Any) -> str | list[list[int]]:
    if isinstance(value, str) and value.upper() in PADDINGS:
        return value.upper()
    allowed = f"{listed(PADDINGS)}, or one [low, high] per spatial dimension"
    if not isinstance(value, list):
        fail(f"is no padding (got {show(value)}; allowed {allowed})")
    for index, pair in enumerate(value):
        if not _is_pair(pair):
            what = f"is no pair of integers (got {show(pair)}; allowed [low, high])"
            fail(what, within=(index,))
    return value


_PAIR = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
Padding = Annotated[
    Any,
    PlainValidator(_padding),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": any_case(PADDINGS)},
                {"type": "array", "items": _PAIR},
            ]
        }
    ),
]


class Attributes(BaseAttributes):
    """Keyword arguments of `lax.conv_general_dilated`."""

    window_strides: list[Count] = Field(description="one per spatial dimension")
    padding: Padding = Field(description="SAME, SAME_LOWER, VALID or [[low, high], …]")
    lhs_dilation: list[Count] | None = Field(default=None, description="one per spatial dimension")
    rhs_dilation: list[Count] | None = Field(default=None, description="one per spatial dimension")
    dimension_numbers: list[str] | None = Field(
        default=None, min_length=3, max_length=3, description="lhs, rhs, output: [NHWC, HWIO, NHWC]"
    )
    feature_group_count: Count | None = Field(default=None, description="groups of input features")
    batch_group_count: Count | None = Field(default=None, description="groups of the batch")
    precision: Precision | None = Field(
        default=None, description="a name, a pair of names, or a preset"
    )
    preferred_element_type: DType | None = Field(default=None, description="the result's dtype")


def infer(operands: Sequence[OperandSpec], keywords: Keywords) -> Result:
    """Shape, dtype and K of a convolution.

    A dilated size is max(0, 1 + dilation * (size - 1)) and an output size
    max(0, (padded - kernel) // stride + 1): a kernel larger than its padded input gives an empty
    output.

    Source: https://openxla.org/stablehlo/spec#convolution

    Raises:
        Problem: the shapes and attributes contradict each other.
    """
    lhs, rhs = operands
    letters = _letters(lhs, rhs, keywords)
    spatial = [letter for letter in letters[1] if letter not in "OI"]
    sizes = [dict(zip(letters[side], operands[side].shape, strict=True)) for side in (0, 1)]
    images, features = _grouped(sizes[0], sizes[1], letters, keywords)
    kernel = [sizes[1][letter] for letter in spatial]
    window = _window([sizes[0][letter] for letter in spatial], kernel, keywords)
    output = {"N": images, "C": features, **dict(zip(spatial, window, strict=True))}
    dtype = contracted((lhs.dtype, rhs.dtype), keywords.get("preferred_element_type"))
    terms = sizes[1]["I"] * math.prod(kernel)
    return Result(tuple(output[letter] for letter in letters[2]), dtype, terms)


def _letters(lhs: OperandSpec, rhs: OperandSpec, keywords: Keywords) -> tuple[str, str, str]:
    """The letters of the dimensions of lhs, rhs and output, checked against the shapes."""
    at = ("attributes", "dimension_numbers")
    rank = len(lhs.shape)
    if rank != len(rhs.shape):
        what = f"lhs and rhs differ in rank (got {shapes((lhs, rhs))}; allowed equal ranks)"
        raise Problem(what, ("operands", "rhs", "shape"), instead=("operands", "rhs"))
    if rank < 2:
        got = f"got {shapes((lhs,))}; allowed rank 2 or more"
        what = f"lhs has no batch and feature dimension ({got})"
        raise Problem(what, ("operands", "lhs", "shape"), instead=("operands", "lhs"))
    given = keywords.get("dimension_numbers")
    if given is None:
        digits = "".join(map(chr, range(ord("a"), ord("a") + rank - 2)))
        return f"NC{digits}", f"OI{digits}", f"NC{digits}"
    for index, ((side, *needed), spec) in enumerate(zip(_LETTERS, given, strict=True)):
        allowed = f"{rank} different letters, {needed[0]} and {needed[1]} among them"
        if len(spec) != rank:
            raise refuse((*at, index), f"does not name each dimension of {side}", spec, allowed)
        if len(set(spec)) != rank or not set(needed) <= set(spec):
            raise refuse((*at, index), f"does not spell the dimensions of {side}", spec, allowed)
    left, right, out = given
    if not set(left) - set("NC") == set(right) - set("OI") == set(out) - set("NC"):
        what, allowed = "name different spatial dimensions", "the same ones in all three"
        raise refuse(at, what, list(given), allowed)
    return left, right, out


def _grouped(
    left: dict[str, int], right: dict[str, int], letters: tuple[str, str, str], keywords: Keywords
) -> tuple[int, int]:
    """Sizes of the output's batch and feature dimensions."""
    groups = keywords.get("feature_group_count", 1)
    batches = keywords.get("batch_group_count", 1)
    at = ("attributes", "feature_group_count")
    if left["C"] % groups:
        divides = f"a divisor of lhs C = {left['C']}"
        raise refuse(at, f"does not divide the features of lhs ({letters[0]})", groups, divides)
    if left["C"] // groups != right["I"]:
        what = (
            f"rhs I must be lhs C / feature_group_count (got I = {right['I']} in {letters[1]}; "
            f"allowed {left['C']} / {groups} = {left['C'] // groups})"
        )
        raise Problem(what, ("operands", "rhs", "shape"), instead=("operands", "rhs"))
    for name, count in (("feature_group_count", groups), ("batch_group_count", batches)):
        if right["O"] % count:
            divides = f"a divisor of rhs O = {right['O']}"
            what = f"does not divide the output features of rhs ({letters[1]})"
            raise refuse(("attributes", name), what, count, divides)
    at = ("attributes", "batch_group_count")
    if left["N"] % batches:
        divides = f"a divisor of lhs N = {left['N']}"
        raise refuse(at, f"does not divide the batch of lhs ({letters[0]})", batches, divides)
    if groups > 1 and batches > 1:
        raise refuse(at, f"cannot stand beside feature_group_count {groups}", batches, "1")
    return left["N"] // batches, right["O"]


def _window(size: list[int], kernel: list[int], keywords: Keywords) -> list[int]:
    """Sizes of the output's spatial dimensions, in the order of the kernel's."""
    rank = len(size)
    ones = (1,) * rank
    for name in ("window_strides", "lhs_dilation", "rhs_dilation", "padding"):
        value = keywords.get(name)
        if value is not None and not isinstance(value, str) and len(value) != rank:
            allowed = f"{rank}, one per spatial dimension"
            what = f"has {len(value)} {'entry' if len(value) == 1 else 'entries'}"
            raise refuse(("attributes", name), what, list(value), allowed)
    strides = keywords["window_strides"]
    dilation = keywords.get("lhs_dilation") or ones
    padding = keywords["padding"]
    at = ("attributes", "padding")
    if isinstance(padding, str) and set(dilation) - {1}:
        hint = "give the padding as [[low, high], …]"
        raise refuse(at, "cannot stand beside lhs_dilation", padding, "[[low, high], …]", hint=hint)
    window = _dilated(kernel, keywords.get("rhs_dilation") or ones)
    if isinstance(padding, str):
        return [_by_name(padding, *sizes) for sizes in zip(size, window, strides, strict=True)]
    output = []
    rows = zip(_dilated(size, dilation), window, strides, padding, strict=True)
    for index, (base, width, stride, (low, high)) in enumerate(rows):
        if base + low + high < 0:
            allowed = f"low + high of at least {-base}"
            raise refuse((*at, index), "cuts away more than there is", [low, high], allowed)
        output.append(_strided(base + low + high, width, stride))
    return output


def _dilated(sizes: Sequence[int], dilation: Sequence[int]) -> list[int]:
    return [max(0, 1 + d * (size - 1)) for size, d in zip(sizes, dilation, strict=True)]


def _strided(padded: int, window: int, stride: int) -> int:
    return max(0, (padded - window) // stride + 1)


def _by_name(padding: str, size: int, window: int, stride: int) -> int:
    """Output size under VALID, SAME or SAME_LOWER (which differ in where the padding goes)."""
    if padding == "VALID":
        return _strided(size, window, stride)
    total = max(0, (-(-size // stride) - 1) * stride + window - size)
    return _strided(size + total, window, stride)
