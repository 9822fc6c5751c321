"""`jax.numpy.einsum`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
from jax import Array

from parity.program.precision import precision
from parity.program.spelling import call


def build(attributes: Mapping[str, Any]) -> Callable[..., Array]:
    """The operands, in order -> `jnp.einsum(subscripts, …)`."""
    arguments = dict(attributes)
    subscripts = arguments.pop("subscripts")
    arguments["precision"] = precision(arguments.get("precision"))
    return lambda *operands: jnp.einsum(subscripts, *operands, **arguments)


def arity(attributes: Mapping[str, Any]) -> int:
    """One operand per comma-separated term of `subscripts`."""
    return str(attributes["subscripts"]).split("->")[0].count(",") + 1


def statements(
    attributes: Mapping[str, Any], operands: Mapping[str, str], parameters: Mapping[str, str]
) -> list[str]:
    """See `program.ops.statements`."""
    others = {name: of for name, of in attributes.items() if name != "subscripts"}
    return call("jnp.einsum", [repr(attributes["subscripts"]), *operands.values()], others)
