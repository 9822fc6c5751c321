"""A module of flax, linen or nnx."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from parity.casefile.fields import CallableName, KeywordArguments, Seed, Strict, fail
from parity.casefile.op import Attributes as BaseAttributes
from parity.casefile.op import Keywords, Result
from parity.casefile.problem import Location, Problem, show
from parity.casefile.sources import nested_names
from parity.program.spec import OperandSpec

EXAMPLE = """\
flax:
  module: flax.linen:Dense  # linen or nnx; or NAME:Class of NAME.py beside this file
  kwargs: {features: 16, dtype: bfloat16}
  parameters: {seed: 0}     # or {file: weights.safetensors}
  # intermediates: true     # further outputs: what is sown, and what submodules give
operands:
  inputs: {shape: [8, 16], dtype: float32, draw: normal}
# gradients: [operands, parameters]                  # what vjp and jvp differentiate
# cotangent: {shape: [8, 16], dtype: bfloat16}       # of the output, for vjp
"""


def _intermediates(value: Any) -> bool | list[str]:
    if isinstance(value, bool):
        return value
    if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
        allowed = "true, false or patterns such as ['Dense_0.*']"
        fail(f"does not say which (got {show(value)}; allowed {allowed})")
    return value


_PATTERNS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
Intermediates = Annotated[
    Any,
    PlainValidator(_intermediates),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, _PATTERNS]}),
]


class Parameters(Strict):
    """Where a module's parameters come from."""

    seed: Seed | None = Field(default=None, description="seed of the draw; default 0")
    file: str | None = Field(
        default=None, description=".npz or .safetensors, beside this file or below"
    )


class Attributes(BaseAttributes):
    """A module and how it is called."""

    module: CallableName = Field(description="module:Class, or a function that makes a module")
    kwargs: KeywordArguments | None = Field(
        default=None, description="what it is made of: plain data, or {callable: module:name}"
    )
    parameters: Parameters | None = Field(
        default=None, description="a seed or a file; default: seed 0"
    )
    arguments: KeywordArguments | None = Field(
        default=None, description="keyword arguments of the call"
    )
    method: str | None = Field(default=None, description="the method called; default __call__")
    intermediates: Intermediates | None = Field(
        default=None, description="true, or patterns of the intermediates that are outputs"
    )

    def keywords(self) -> dict[str, Any]:
        """Those that were given; the parameters as a mapping of `seed` or `file`.

        Raises:
            Problem: the parameters have both or neither.
        """
        keywords = super().keywords()
        if self.parameters is not None:
            given = self.parameters.model_dump(exclude_none=True)
            if len(given) != 1:
                got = " and ".join(given) or "neither"
                what = f"flax.parameters needs either seed or file (got {got})"
                raise Problem(what, ("flax", "parameters"))
            keywords["parameters"] = given
        return keywords


def takes(names: Sequence[str], keywords: Keywords, residual: str | None) -> tuple[str, ...]:
    """All operands, in file order."""
    return tuple(names)


def infer(operands: Sequence[OperandSpec], keywords: Keywords) -> Result | None:
    """None: only JAX knows."""
    return None


def names(keywords: Keywords) -> Iterator[tuple[Location, str]]:
    """Everything that is named, `module:name`, and where."""
    yield ("module",), keywords["module"]
    for name in ("kwargs", "arguments"):
        yield from nested_names(keywords.get(name), (name,))
