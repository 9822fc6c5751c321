"""ProgramSpec -> Program: the callable that every path and every reference executes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
from jax import lax

from parity.program import ops, transforms
from parity.program.jax_versions import ClosedJaxpr
from parity.program.spec import ProgramSpec


@dataclass(frozen=True)
class Program:
    """A JAX callable with the names of its outputs.

    Attributes:
        spec: what it was built from.
        function: takes the arrays of `spec.inputs()`, returns a tuple of arrays.
        outputs: a name for each member of that tuple.
    """

    spec: ProgramSpec
    function: Callable[..., tuple[Any, ...]]
    outputs: tuple[str, ...]

    @cached_property
    def jaxpr(self) -> ClosedJaxpr:
        """The program traced once, abstractly, on the shapes and dtypes of its inputs."""
        inputs = [jax.ShapeDtypeStruct(i.shape, _dtype(i.dtype)) for i in self.spec.inputs()]
        return jax.make_jaxpr(self.function)(*inputs)

    def forward(self) -> Program:
        """The same program without its transform; takes the operands alone."""
        return build(dataclasses.replace(self.spec, transform="forward", extra=(), batch=0))

    def without(self, attribute: str) -> Program:
        """The same program with one attribute of its op left at its default."""
        attributes = {k: v for k, v in self.spec.attributes.items() if k != attribute}
        return build(dataclasses.replace(self.spec, attributes=attributes))


def build(spec: ProgramSpec) -> Program:
    """The program that a spec denotes.

    Raises:
        Unsupported: the installed JAX or ml_dtypes lacks something it asks for.
    """
    op = ops.build(spec.op, spec.attributes)
    names = [operand.name for operand in spec.operands]
    taken = list(range(len(names)))
    if len(names) > ops.arity(spec.op, spec.attributes):
        taken.remove(names.index(spec.residual or names[-1]))
    residual = None if spec.residual is None else names.index(spec.residual)

    def forward(*operands: Any) -> Any:
        out = op(*(_cast(operands[i], spec.compute_dtype) for i in taken))
        out = _cast(out, spec.output_dtype)
        return out if residual is None else out + operands[residual]

    function, outputs = transforms.apply(spec, forward)
    return Program(spec, function, outputs)


def _cast(array: Any, dtype: str | None) -> Any:
    return array if dtype is None else lax.convert_element_type(array, _dtype(dtype))


def _dtype(name: str) -> Any:
    from parity.dtypes import dtype

    return dtype(name).numpy()
