"""`jax.lax.conv_general_dilated`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jax import Array, lax

from parity.program.precision import precision
from parity.program.spelling import call


def build(attributes: Mapping[str, Any]) -> Callable[[Array, Array], Array]:
    """`lhs`, `rhs` -> their convolution; attributes as `lax.conv_general_dilated` names them."""
    arguments = dict(attributes)
    arguments["precision"] = precision(arguments.get("precision"))
    if arguments.get("dimension_numbers") is not None:
        arguments["dimension_numbers"] = tuple(arguments["dimension_numbers"])
    return lambda lhs, rhs: lax.conv_general_dilated(lhs, rhs, **arguments)


def arity(attributes: Mapping[str, Any]) -> int:
    """`lhs` and `rhs`."""
    return 2


def statements(
    attributes: Mapping[str, Any], operands: Mapping[str, str], parameters: Mapping[str, str]
) -> list[str]:
    """See `program.ops.statements`."""
    return call("lax.conv_general_dilated", operands.values(), attributes)
