"""One file per op; each has two functions of the op's attributes.

`build(attributes)` is the callable of the operands, `arity(attributes)` how many it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def build(op: str, attributes: Mapping[str, Any]) -> Callable[..., Any]:
    """The JAX callable of an op: takes the operands, in order, and returns one array.

    Raises:
        Unsupported: the installed JAX lacks an attribute's value.
    """
    function: Callable[..., Any] = import_module(f"parity.program.ops.{op}").build(attributes)
    return function


def arity(op: str, attributes: Mapping[str, Any]) -> int:
    """How many operands an op takes."""
    count: int = import_module(f"parity.program.ops.{op}").arity(attributes)
    return count
