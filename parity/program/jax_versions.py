"""Everything that differs between the JAX versions parity runs on (0.4.38 to 0.10)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import jax
from jax.extend import core as jex_core

VERSION: tuple[int, ...] = tuple(int(part) for part in jax.__version__.split(".")[:3])

LAST_NONNATIVE = (0, 7, 1)
"""From 0.7.2 on `jax2tf.convert(native_serialization=False)` silently converts natively."""

Literal = jex_core.Literal
ClosedJaxpr = jex_core.ClosedJaxpr
Jaxpr = jex_core.Jaxpr

CALLS: Mapping[str, str] = {
    "jit": "jaxpr",  # called pjit before 0.7
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",  # before 0.5
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
}
"""Primitives that only call a jaxpr, and the parameter that holds it."""


def enable_x64(value: bool) -> AbstractContextManager[Any]:
    """A context in which 64-bit types are on or off (`jax.experimental.enable_x64` before 0.8)."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(value)  # type: ignore[no-any-return]
    from jax.experimental import enable_x64 as experimental

    return experimental(value)  # type: ignore[no-any-return]


def called_jaxpr(eqn: Any) -> Any:
    """The jaxpr an equation merely calls, closed; None for any other equation."""
    parameter = CALLS.get(eqn.primitive.name)
    if parameter is None:
        return None
    inner = eqn.params[parameter]
    if isinstance(inner, Jaxpr):
        return ClosedJaxpr(inner, ())
    return inner


def bind(eqn: Any, values: list[Any]) -> list[Any]:
    """Evaluate one equation with JAX on the given operands; the outputs as a list."""
    bound = eqn.primitive.get_bind_params(eqn.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # a dict from 0.10 on
    out = eqn.primitive.bind(*functions, *values, **params)
    return list(out) if eqn.primitive.multiple_results else [out]
