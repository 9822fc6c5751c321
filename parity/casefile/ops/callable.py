"""A Python function: one of a file beside the case file, or an installed one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from parity.casefile.fields import CallableName, KeywordArguments
from parity.casefile.op import Attributes as BaseAttributes
from parity.casefile.op import Keywords, Result
from parity.casefile.problem import Location
from parity.casefile.sources import nested_names
from parity.program.spec import OperandSpec

EXAMPLE = """\
program:
  callable: jax.nn:dot_product_attention  # or NAME:function of NAME.py beside this file
  arguments: {is_causal: true}
operands:  # passed in this order
  query: {shape: [2, 8, 2, 4], dtype: float32, draw: normal}
  key: {shape: [2, 8, 2, 4], dtype: float32, draw: normal}
  value: {shape: [2, 8, 2, 4], dtype: float32, draw: normal}
# cotangent: {shape: [2, 8, 2, 4], dtype: float32}  # of the output, for vjp
"""


class Attributes(BaseAttributes):
    """A function and its keyword arguments."""

    callable: CallableName = Field(description="module:function")
    arguments: KeywordArguments | None = Field(
        default=None, description="keyword arguments: plain data, or {callable: module:name}"
    )


def takes(names: Sequence[str], keywords: Keywords, residual: str | None) -> tuple[str, ...]:
    """All operands, in file order."""
    return tuple(names)


def infer(operands: Sequence[OperandSpec], keywords: Keywords) -> Result | None:
    """None: only JAX knows."""
    return None


def names(keywords: Keywords) -> Iterator[tuple[Location, str]]:
    """Everything that is named, `module:name`, and where."""
    yield ("callable",), keywords["callable"]
    yield from nested_names(keywords.get("arguments"), ("arguments",))
