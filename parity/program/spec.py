"""What a case asks to be computed, as plain data that travels to a worker.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

TRANSFORMS = ("forward", "vjp", "jvp", "vmap")

LICENCES = ("fma", "reciprocal", "expansion")
"""What a compiler may do beside reordering sums and still compute what was declared.

fma         an f32 or f64 addition takes the product that feeds it unrounded
reciprocal  a division by a constant is a multiplication by its rounded reciprocal
expansion   a function is lowered to several operations, each rounded to the declared dtype
"""


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """An array that a program is given: its name, shape and declared dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """An op with its casts and residual, under one transform.

    The program computes `op(cast(operands))`, where `compute_dtype` casts the operands before the
    op and `output_dtype` its result after it; `residual` names an operand that is then added, as
    it was declared.

    Attributes:
        op: "conv_general_dilated", "dot_general", "einsum", … (one file each in `program/ops`).
        operands: in the order in which the op takes them; under `vmap` their shapes are those of
            one example.
        attributes: keyword arguments of the op; dtypes, precisions and presets by name; sequences
            are tuples.
        compute_dtype: dtype of the operands inside the op, None for the declared ones.
        output_dtype: dtype of the op's result after it, None for the op's own.
        residual: name of the operand added to the result.
        transform: one of `TRANSFORMS`.
        extra: arrays that the transform needs beside the operands: "cotangent" for vjp,
            "tangent.NAME" for each floating operand of jvp.
        batch: leading axis length of every operand under vmap, 0 otherwise.
        x64: whether JAX runs with 64-bit types enabled.
    """

    op: str
    operands: tuple[OperandSpec, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    compute_dtype: str | None = None
    output_dtype: str | None = None
    residual: str | None = None
    transform: str = "forward"
    extra: tuple[OperandSpec, ...] = ()
    batch: int = 0
    x64: bool = False

    def inputs(self) -> tuple[OperandSpec, ...]:
        """Every array the program takes, in order: operands (batched under vmap), then extra."""
        lead = (self.batch,) if self.transform == "vmap" else ()
        batched = tuple(OperandSpec(o.name, lead + o.shape, o.dtype) for o in self.operands)
        return batched + self.extra

    def to_wire(self) -> dict[str, Any]:
        """Nested builtins that `from_wire` reads back."""
        return asdict(self)

    @staticmethod
    def from_wire(wire: Mapping[str, Any]) -> ProgramSpec:
        """The spec that `to_wire` wrote."""
        fields = dict(wire)
        for name in ("operands", "extra"):
            fields[name] = tuple(
                OperandSpec(o["name"], tuple(o["shape"]), o["dtype"]) for o in fields[name]
            )
        return ProgramSpec(**fields)
