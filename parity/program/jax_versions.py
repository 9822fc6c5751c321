"""Everything that differs between the JAX versions parity runs on (0.4.38 to 0.10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
Var = jex_core.Var
jaxpr_as_fun = jex_core.jaxpr_as_fun

CALLS: Mapping[str, str] = {
    "jit": "jaxpr",  # called pjit before 0.7
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",  # before 0.5
    "custom_vmap_call": "call",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
}
"""Primitives that only call a jaxpr, and the parameter that holds it."""

BODIES: Mapping[str, tuple[str, ...]] = {
    **{name: (parameter,) for name, parameter in CALLS.items()},
    "scan": ("jaxpr",),
    "while": ("cond_jaxpr", "body_jaxpr"),
    "cond": ("branches",),
    "shard_map": ("jaxpr",),
}
"""Primitives that run jaxprs as part of the program, and the parameters that hold them."""


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
    return closed(eqn.params[parameter])


def closed(jaxpr: Any) -> Any:
    """A jaxpr, open or closed, as a closed one."""
    return ClosedJaxpr(jaxpr, ()) if isinstance(jaxpr, Jaxpr) else jaxpr


def inner_jaxprs(eqn: Any) -> list[Any]:
    """Every jaxpr among an equation's parameters, closed: bodies, branches, calls."""
    found = []
    for parameter in eqn.params.values():
        for one in parameter if isinstance(parameter, (tuple, list)) else (parameter,):
            if isinstance(one, (Jaxpr, ClosedJaxpr)):
                found.append(closed(one))
    return found


def equations(closed: Any) -> Iterator[Any]:
    """Every equation of a closed jaxpr, those of calls, branches and loops included."""
    for eqn in closed.jaxpr.eqns:
        yield eqn
        for inner in inner_jaxprs(eqn):
            yield from equations(inner)


def bodies(eqn: Any) -> list[Any]:
    """The jaxprs that an equation runs as part of the program, as they stand in its parameters."""
    found: list[Any] = []
    for name in BODIES.get(eqn.primitive.name, ()):
        parameter = eqn.params[name]
        found += parameter if isinstance(parameter, tuple | list) else [parameter]
    return found


def with_bodies(eqn: Any, jaxprs: Iterator[Any]) -> Any:
    """An equation with other jaxprs in place of its `bodies`, in the same order."""
    params = dict(eqn.params)
    for name in BODIES[eqn.primitive.name]:
        held = params[name]
        several = isinstance(held, tuple | list)
        params[name] = type(held)(next(jaxprs) for _ in held) if several else next(jaxprs)
    return eqn.replace(params=params)


def with_outputs(jaxpr: Any, eqns: list[Any], outvars: list[Any]) -> Any:
    """An open jaxpr with other equations and further outputs; those of JAX 0.4 know their names."""
    known = {"debug_info": None} if VERSION < (0, 5) else {}
    return jaxpr.replace(eqns=eqns, outvars=outvars, **known)


def variable(aval: Any) -> Any:
    """A new variable of a jaxpr (called with a suffix of its name before 0.5)."""
    return Var("", aval) if "suffix" in Var.__slots__ else Var(aval)


def is_dropped(var: Any) -> bool:
    """Whether an equation's result is not kept under a variable (no public name before 0.8)."""
    return type(var).__name__ == "DropVar"


def is_array(aval: Any) -> bool:
    """Whether a variable holds an array of numbers, no random keys, references or tokens."""
    return isinstance(aval, jax.core.ShapedArray) and not is_key(aval)


def is_key(aval: Any) -> bool:
    """Whether a variable holds random keys (`jax.random.key`), which have a dtype of their own."""
    return bool(jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key))


def keys_of(data: Any, aval: Any) -> Any:
    """Random keys of a variable's dtype from their words, uint32 [..., words]."""
    return jax.random.wrap_key_data(data, impl=aval.dtype._impl)


def words_of(keys: Any) -> Any:
    """The words of random keys, uint32 [..., words]."""
    return jax.random.key_data(keys)


def words_of_key(aval: Any) -> int:
    """How many uint32 words a random key of a variable's dtype has."""
    return int(aval.dtype._impl.key_shape[0])


def bind(eqn: Any, values: list[Any]) -> list[Any]:
    """Evaluate one equation with JAX on the given operands; the outputs as a list."""
    bound = eqn.primitive.get_bind_params(eqn.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # a dict from 0.10 on
    out = eqn.primitive.bind(*functions, *values, **params)
    return list(out) if eqn.primitive.multiple_results else [out]
