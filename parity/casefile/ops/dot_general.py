"""`jax.lax.dot_general`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from parity.casefile.fields import DType, Precision, Size
from parity.casefile.op import Attributes as BaseAttributes
from parity.casefile.op import Keywords, Result, contracted, frozen, lhs_and_rhs, shapes
from parity.casefile.problem import Location, Problem, show
from parity.program.spec import OperandSpec

EXAMPLE = """\
operands:
  lhs: {shape: [8, 64], dtype: float32, draw: normal}
  rhs: {shape: [64, 16], dtype: float32, draw: normal}
attributes:
  contracting: [[1], [0]]  # dimensions of lhs, of rhs
  # batch: [[0], [0]]
"""

takes = lhs_and_rhs

Dimensions = Annotated[list[list[Size]], Field(min_length=2, max_length=2)]
DimensionNumbers = Annotated[list[Dimensions], Field(min_length=2, max_length=2)]

_AT: Location = ("attributes", "dimension_numbers")


class Attributes(BaseAttributes):
    """Keyword arguments of `lax.dot_general`.

    `contracting` and `batch` are a readable way to write `dimension_numbers`.
    """

    dimension_numbers: DimensionNumbers | None = Field(
        default=None, description="[[lhs contracting, rhs contracting], [lhs batch, rhs batch]]"
    )
    contracting: Dimensions | None = Field(
        default=None, description="[lhs dimensions, rhs dimensions]"
    )
    batch: Dimensions | None = Field(default=None, description="[lhs dimensions, rhs dimensions]")
    precision: Precision | None = Field(
        default=None, description="a name, a pair of names, or a preset"
    )
    preferred_element_type: DType | None = Field(default=None, description="the result's dtype")

    def keywords(self) -> dict[str, Any]:
        """Those that were given; the dimensions as `dimension_numbers`, in nested tuples.

        Raises:
            Problem: the dimensions are given twice or not at all.
        """
        keywords = super().keywords()
        contracting, batch = keywords.pop("contracting", None), keywords.pop("batch", ((), ()))
        if (contracting is None) == (self.dimension_numbers is None):
            what = "give either dimension_numbers or contracting"
            raise Problem(what, _AT, key=True, hint="contracting: [[1], [0]] is a matrix product")
        if contracting is None and self.batch is not None:
            raise Problem("batch stands beside contracting only", ("attributes", "batch"), key=True)
        if contracting is not None:
            keywords["dimension_numbers"] = frozen((contracting, batch))
        return keywords


def infer(operands: Sequence[OperandSpec], keywords: Keywords) -> Result:
    """Shape, dtype and K of a contraction: batch, then free lhs, then free rhs dimensions.

    Source: https://openxla.org/stablehlo/spec#dot_general

    Raises:
        Problem: the shapes and dimension numbers contradict each other.
    """
    lhs, rhs = operands
    contracting, batch = keywords["dimension_numbers"]
    for side, operand in enumerate(operands):
        _check_dimensions(operand, side, contracting[side], batch[side])
    for kind, pair in (("contracting", contracting), ("batch", batch)):
        _check_equal(kind, lhs, rhs, pair)
    free = [
        size
        for side, operand in enumerate(operands)
        for dimension, size in enumerate(operand.shape)
        if dimension not in contracting[side] and dimension not in batch[side]
    ]
    shape = (*(lhs.shape[dimension] for dimension in batch[0]), *free)
    dtype = contracted((lhs.dtype, rhs.dtype), keywords.get("preferred_element_type"))
    return Result(shape, dtype, math.prod(lhs.shape[dimension] for dimension in contracting[0]))


def _at(kind: str, *side: int) -> tuple[Location, Location]:
    """Where `contracting` or `batch` stands, in either spelling."""
    return (*_AT, int(kind == "batch"), *side), ("attributes", kind, *side)


def _check_dimensions(
    operand: OperandSpec, side: int, contracting: Sequence[int], batch: Sequence[int]
) -> None:
    rank = len(operand.shape)
    for kind, dimensions in (("contracting", contracting), ("batch", batch)):
        at, instead = _at(kind, side)
        for dimension in dimensions:
            if dimension >= rank:
                what = (
                    f"{kind} dimension of {operand.name} does not exist "
                    f"(got {dimension} for {shapes((operand,))}; allowed 0 to {rank - 1})"
                )
                raise Problem(what, at, instead=instead)
        if len(set(dimensions)) != len(dimensions):
            what = f"{kind} dimensions of {operand.name} repeat (got {show(dimensions)})"
            raise Problem(what, at, instead=instead)
    both = sorted(set(contracting) & set(batch))
    if both:
        at, instead = _at("batch", side)
        what = f"dimension {both[0]} of {operand.name} is both contracting and batch"
        raise Problem(what, at, instead=instead)


def _check_equal(
    kind: str, lhs: OperandSpec, rhs: OperandSpec, pair: Sequence[Sequence[int]]
) -> None:
    at, instead = _at(kind)
    if len(pair[0]) != len(pair[1]):
        what = f"{kind} names different numbers of dimensions (got {show(pair)})"
        raise Problem(what, at, instead=instead)
    for left, right in zip(*pair, strict=True):
        if lhs.shape[left] != rhs.shape[right]:
            what = (
                f"{kind} dimensions differ in size (got lhs[{left}] = {lhs.shape[left]} and "
                f"rhs[{right}] = {rhs.shape[right]} of {shapes((lhs, rhs))}; allowed equal sizes)"
            )
            raise Problem(what, at, instead=instead)
