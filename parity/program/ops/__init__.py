"""One file per op; each has three functions of the op's attributes.

`build(attributes)` is the callable of the operands, `arity(attributes)` how many it takes,
`statements(attributes, operands, parameters)` the same in Python source (`program.written`). The
file of a model has a fourth, `parameters(spec)`: the arrays by name that the callable takes as
`parameters` and that the host does not give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from parity.program.spec import ProgramSpec

EVERY = 2**31
"""The arity of what takes all operands, however many there are."""


def build(op: str, attributes: Mapping[str, Any]) -> Callable[..., Any]:
    """The JAX callable of an op: takes the operands, in order, and returns a pytree of arrays.

    Raises:
        Unsupported: the installed JAX lacks an attribute's value.
        ProgramError: its code lacks what is named.
    """
    function: Callable[..., Any] = import_module(f"parity.program.ops.{op}").build(attributes)
    return function


def arity(op: str, attributes: Mapping[str, Any]) -> int:
    """How many operands an op takes."""
    count: int = import_module(f"parity.program.ops.{op}").arity(attributes)
    return count


def statements(
    op: str,
    attributes: Mapping[str, Any],
    operands: Mapping[str, str],
    parameters: Mapping[str, str],
) -> list[str]:
    """Python statements that assign to `out` what `build` computes.

    Args:
        op: which.
        attributes: of it.
        operands: those it takes, in order: the expression of each by its name.
        parameters: likewise those of a model.

    Raises:
        NotWritten: it cannot be said without parity.
    """
    found: list[str] = import_module(f"parity.program.ops.{op}").statements(
        attributes, operands, parameters
    )
    return found


def parameters(spec: ProgramSpec) -> dict[str, np.ndarray]:
    """The arrays, by name, that a model takes beside its operands and that the host does not give.

    Raises:
        ProgramError: those that the host gives are not the model's.
    """
    find = getattr(import_module(f"parity.program.ops.{spec.op}"), "parameters", None)
    found: dict[str, np.ndarray] = {} if find is None else find(spec)
    return found
