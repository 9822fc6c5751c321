"""ProgramSpec -> Program: the callable that every path and every reference executes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax import lax

from parity.dtypes import dtype
from parity.errors import Unsupported
from parity.program import ops, source, transforms
from parity.program.jax_versions import ClosedJaxpr, jaxpr_as_fun
from parity.program.outputs import OUT, NotTaken, ProgramError, named
from parity.program.parameters import tangents
from parity.program.precision import precisions, without_precisions
from parity.program.rewriting import rewritten
from parity.program.spec import PROGRAMS, OperandSpec, ProgramSpec


@dataclass(frozen=True)
class Program:
    """A JAX callable with the names of its outputs.

    Attributes:
        spec: what it was built from.
        function: takes `arrays`, returns a tuple of arrays.
        names: a name for each member of that tuple; of a program beyond one op, empty until the
            function was called.
        drawn: arrays that the function takes after those of the host, by name: parameters of a
            model, and their tangents.
    """

    spec: ProgramSpec
    function: Callable[..., tuple[Any, ...]]
    names: Sequence[str]
    drawn: Mapping[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def jaxpr(self) -> ClosedJaxpr:
        """The program traced once, abstractly, on the shapes and dtypes of its inputs."""
        inputs = [jax.ShapeDtypeStruct(i.shape, dtype(i.dtype).numpy()) for i in self.inputs]
        return jax.make_jaxpr(self.function)(*inputs)

    @property
    def traced(self) -> list[jax.ShapeDtypeStruct]:
        """Shapes and dtypes of the inputs as JAX traces them: narrower ones where x64 is off."""
        return [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in self.jaxpr.in_avals]

    @property
    def outputs(self) -> tuple[str, ...]:
        """A name for each output; traces the program where it was not called yet."""
        if not self.names:
            _ = self.jaxpr
        return tuple(self.names)

    @property
    def inputs(self) -> tuple[OperandSpec, ...]:
        """Every array that the function takes, in order."""
        drawn = (OperandSpec(n, a.shape, a.dtype.name) for n, a in self.drawn.items())
        return (*self.spec.inputs(), *drawn)

    def arrays(self, given: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """What the function takes, of which the host gives `spec.inputs()`."""
        return (*given, *self.drawn.values())

    @property
    def differentiated(self) -> list[str]:
        """The operands and parameters, by name, that vjp and jvp differentiate."""
        parameters = [parameter.name for parameter in self.spec.parameters]
        return transforms.differentiated(self.spec, [*parameters, *self.drawn])

    def cotangents(self, forward: Program) -> dict[str, str | None]:
        """The outputs of the program without its transform that vjp differentiates.

        Returns:
            For each the input that is its cotangent; None stands for 1.
        """
        shapes = dict(zip(forward.outputs, forward.jaxpr.out_avals, strict=True))
        return transforms.cotangents(self.spec, shapes)

    def forward(self) -> Program:
        """The same program without its transform; takes the operands and parameters alone.

        Raises:
            Unsupported: its equations are rewritten, which that program does not have.
        """
        if self.spec.barriers or self.spec.observed:
            raise Unsupported("no barriers in a program that JAX does not differentiate itself")
        return build(dataclasses.replace(self.spec, transform="forward", extra=(), batch=0))

    def without(self, attribute: str) -> Program:
        """The same program with one attribute of its op left at its default."""
        attributes = {k: v for k, v in self.spec.attributes.items() if k != attribute}
        return build(dataclasses.replace(self.spec, attributes=attributes))

    def precisions(self) -> tuple[str, ...]:
        """The names of the precisions that it asks for, whoever does; traces it beyond one op."""
        if self.spec.op in PROGRAMS:
            return precisions(self.jaxpr)
        asked = self.spec.attributes.get("precision")
        both = (asked,) if asked is None or isinstance(asked, str) else tuple(asked)
        return () if set(both) <= {None, "default"} else tuple(map(str, both))

    def without_precisions(self) -> Program:
        """The same program with every precision left at its default."""
        if self.spec.op not in PROGRAMS:
            return self.without("precision")
        function = jaxpr_as_fun(without_precisions(self.jaxpr))
        return Program(
            self.spec, lambda *arrays: tuple(function(*arrays)), self.outputs, self.drawn
        )


def build(spec: ProgramSpec) -> Program:
    """The program that a spec denotes.

    Raises:
        Unsupported: the installed JAX or ml_dtypes lacks something it asks for.
        ProgramError: its code lacks what is named.
    """
    source.use(spec.attributes)
    op = ops.build(spec.op, spec.attributes)
    drawn = ops.parameters(spec)
    parameters = [parameter.name for parameter in spec.parameters] + list(drawn)
    transformed = transforms.apply(spec, _forward(spec, op, parameters), parameters)
    if spec.transform == "jvp":
        drawn = drawn | tangents(spec, drawn)
    inputs = [operand.name for operand in spec.inputs()] + list(drawn)
    outputs: list[str] = []

    def function(*arrays: Any) -> tuple[Any, ...]:
        found = transformed(dict(zip(inputs, arrays, strict=True)))
        outputs[:] = found
        return tuple(found.values())

    changed = function
    if spec.barriers or spec.observed:
        changed = rewritten(function, spec.barriers, spec.observed, outputs)
    return Program(spec, changed, outputs, drawn)


def _forward(
    spec: ProgramSpec, op: Callable[..., Any], parameters: Sequence[str]
) -> transforms.Function:
    """The op between its casts, of all operands and parameters by name."""
    names = [operand.name for operand in spec.operands]
    taken = list(names)
    if len(names) > ops.arity(spec.op, spec.attributes):
        taken.remove(spec.residual or names[-1])
    only_floating = spec.op in PROGRAMS

    def cast(array: Any, to: str | None) -> Any:
        if to is None or (only_floating and not dtype(array.dtype).is_inexact):
            return array
        return lax.convert_element_type(array, dtype(to).numpy())

    def forward(inputs: Mapping[str, Any]) -> dict[str, Any]:
        keywords = {"parameters": {n: inputs[n] for n in parameters}} if parameters else {}
        operands = (cast(inputs[name], spec.compute_dtype) for name in taken)
        try:
            result = op(*operands, **keywords)
        except NotTaken as error:
            passed = ", ".join(taken)
            raise ProgramError(f"{error} (the operands are, in order: {passed})") from None
        outputs = {name: cast(out, spec.output_dtype) for name, out in named(result).items()}
        if spec.residual is not None:
            if list(outputs) != [OUT]:
                listed = ", ".join(outputs)
                raise ProgramError(f"a residual needs a program of one output (got {listed})")
            outputs[OUT] = outputs[OUT] + inputs[spec.residual]
        return outputs

    return forward
