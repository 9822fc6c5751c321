"""`jax.lax.dot_general`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jax import Array, lax

from parity.program.precision import precision
from parity.program.spelling import call


def build(attributes: Mapping[str, Any]) -> Callable[[Array, Array], Array]:
    """`lhs`, `rhs` -> their contraction; attributes as `lax.dot_general` names them."""
    arguments = dict(attributes)
    arguments["precision"] = precision(arguments.get("precision"))
    contracting, batch = arguments["dimension_numbers"]
    arguments["dimension_numbers"] = (
        tuple(tuple(side) for side in contracting),
        tuple(tuple(side) for side in batch),
    )
    return lambda lhs, rhs: lax.dot_general(lhs, rhs, **arguments)


def arity(attributes: Mapping[str, Any]) -> int:
    """`lhs` and `rhs`."""
    return 2


def statements(
    attributes: Mapping[str, Any], operands: Mapping[str, str], parameters: Mapping[str, str]
) -> list[str]:
    """See `program.ops.statements`."""
    return call("lax.dot_general", operands.values(), attributes)
