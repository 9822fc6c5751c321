"""What a case asks to be computed, as plain data that travels to a worker.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

TRANSFORMS = ("forward", "vjp", "jvp", "vmap")

PROGRAMS = ("callable", "flax", "steps")
"""What stands for an op where a program is more than one."""

CODE = ("callable", "flax")
"""Those of them that run code which a case names."""

PARAMETERS = "parameters"
"""Stands in `ProgramSpec.gradients` for all parameters of a model."""

REWRITING = ("barriers", "observed")
"""The fields of `ProgramSpec` that rewrite a program; no case file gives them."""

LICENCES = ("fma", "reciprocal", "expansion")
"""What a compiler may do beside reordering sums and still compute what was declared.

fma         an f16, f32 or f64 addition takes the product that feeds it unrounded
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
    it was declared. Of a program beyond one op (`PROGRAMS`) only what is floating is cast.

    Attributes:
        op: "conv_general_dilated", "dot_general", "einsum", "callable", … (one file each in
            `program/ops`).
        operands: in the order in which the op takes them; under `vmap` their shapes are those of
            one example.
        attributes: keyword arguments of the op; dtypes, precisions and presets by name; sequences
            are tuples.
        compute_dtype: dtype of the operands inside the op, None for the declared ones.
        output_dtype: dtype of the op's result after it, None for the op's own.
        residual: name of the operand added to the result.
        transform: one of `TRANSFORMS`.
        extra: arrays that the transform needs beside the operands: "cotangent" of the output "out"
            and "cotangent.OUTPUT" of others for vjp, "tangent.NAME" for each operand of jvp.
        batch: leading axis length of the batched operands under vmap, 0 otherwise.
        x64: whether JAX runs with 64-bit types enabled.
        devices: how many devices the host is divided into.
        parameters: arrays of a model that the host gives; the others are drawn in the worker.
        gradients: what vjp and jvp differentiate: names of operands, "parameters"; all floating
            operands if empty.
        batched: names of the operands that vmap maps over, all if empty.
        barriers: addresses (`program.sites`) of the equations whose floating results are rounded
            by `lax.reduce_precision` to their own dtype.
        observed: addresses of the equations whose results are further outputs, `observed.ADDRESS`
            (and a colon and a number where an equation has several).
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
    devices: int = 1
    parameters: tuple[OperandSpec, ...] = ()
    gradients: tuple[str, ...] = ()
    batched: tuple[str, ...] = ()
    barriers: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()

    def inputs(self) -> tuple[OperandSpec, ...]:
        """Every array the host gives: operands (batched under vmap), extra, parameters."""
        operands = (
            OperandSpec(o.name, (self.batch, *o.shape), o.dtype) if self.is_batched(o.name) else o
            for o in self.operands
        )
        return (*operands, *self.extra, *self.parameters)

    def is_batched(self, name: str) -> bool:
        """Whether vmap maps over an operand."""
        return self.transform == "vmap" and name in (
            self.batched or [o.name for o in self.operands]
        )

    def to_wire(self) -> dict[str, Any]:
        """Nested builtins that `from_wire` reads back."""
        return asdict(self)

    @staticmethod
    def from_wire(wire: Mapping[str, Any]) -> ProgramSpec:
        """The spec that `to_wire` wrote."""
        fields = dict(wire)
        for name in REWRITING:
            fields[name] = tuple(fields.get(name, ()))
        for name in ("operands", "extra", "parameters"):
            fields[name] = tuple(
                OperandSpec(o["name"], tuple(o["shape"]), o["dtype"]) for o in fields.get(name, ())
            )
        return ProgramSpec(**fields)


def strings(value: Any) -> Iterator[str]:
    """All strings in nested attributes."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from strings(tuple(value.values()))
    elif isinstance(value, tuple):
        for item in value:
            yield from strings(item)
