"""A program with barriers after some of its equations, or with their results as further outputs.

A *barrier* is `lax.reduce_precision` to the exponent and mantissa bits of the result's own dtype:
it changes no value that was rounded to that dtype, and a compiler has to keep it. What a program is
rewritten to is again a JAX function, so every path and every reference executes it as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
from jax import lax

from parity.dtypes import dtype
from parity.program import jax_versions
from parity.program.jax_versions import ClosedJaxpr, Jaxpr
from parity.program.outputs import ProgramError
from parity.program.sites import OPAQUE, Address, address, barrier_bits, output, spelt


@dataclass(frozen=True)
class Rewriting:
    """What is done to the equations of one jaxpr, by address from there."""

    barriers: frozenset[Address]
    observed: frozenset[Address]

    def inside(self, eqn: int, body: int) -> Rewriting:
        """What of it concerns a jaxpr that an equation runs."""

        def of(addresses: Iterable[Address]) -> frozenset[Address]:
            return frozenset(a[2:] for a in addresses if a[:2] == (eqn, body) and len(a) > 2)

        return Rewriting(of(self.barriers), of(self.observed))

    def __bool__(self) -> bool:
        return bool(self.barriers or self.observed)


@dataclass(frozen=True)
class _Further:
    """A result that becomes an output: of which equation, which one, of how many."""

    address: Address
    at: int
    count: int
    var: Any


def rewritten(
    function: Callable[..., tuple[Any, ...]],
    barriers: Sequence[str],
    observed: Sequence[str],
    names: list[str],
) -> Callable[..., tuple[Any, ...]]:
    """A function that is traced, rewritten and evaluated equation by equation at each call.

    Args:
        function: of arrays, gives a tuple of arrays.
        barriers: addresses of the equations with a barrier.
        observed: addresses of the equations whose results are further outputs.
        names: filled by each call of `function` with the names of its outputs; those of the further
            ones are added.

    Raises:
        ProgramError: when it is called: there is no such equation, or it cannot be observed.
    """
    asked = Rewriting(frozenset(map(address, barriers)), frozenset(map(address, observed)))
    own: list[str] = []

    def traced(*arrays: Any) -> tuple[Any, ...]:
        outputs = function(*arrays)
        own[:] = names
        return outputs

    def evaluated(*arrays: Any) -> tuple[Any, ...]:
        closed, further = rewrite(jax.make_jaxpr(traced)(*arrays), asked)
        names[:] = [*own, *further]
        return tuple(jax_versions.jaxpr_as_fun(closed)(*arrays))

    return evaluated


def rewrite(closed: ClosedJaxpr, asked: Rewriting) -> tuple[ClosedJaxpr, list[str]]:
    """A rewritten program, and the names of its further outputs.

    Raises:
        ProgramError: there is no such equation, or it cannot be observed.
    """
    jaxpr, further = _jaxpr(closed.jaxpr, asked, ())
    if further:
        outvars = [*jaxpr.outvars, *(one.var for one in further)]
        jaxpr = jax_versions.with_outputs(jaxpr, jaxpr.eqns, outvars)
    names = [output(spelt(one.address), one.at, one.count) for one in further]
    return closed.replace(jaxpr=jaxpr), names


def _jaxpr(jaxpr: Jaxpr, asked: Rewriting, above: Address) -> tuple[Jaxpr, list[_Further]]:
    """A jaxpr with its equations rewritten, not yet with further outputs, and those."""
    for one in asked.barriers | asked.observed:
        if one[0] >= len(jaxpr.eqns):
            raise _missing(above + one)
    eqns: list[Any] = []
    further: list[_Further] = []
    for number, eqn in enumerate(jaxpr.eqns):
        here = (*above, number)
        if (number,) in asked.observed:  # before it has the results of what it runs beside its own
            eqn, own = _kept(eqn, here)
            further += own
        eqn, found = _walked(eqn, asked, number, above)
        further += found
        eqns += _held(eqn) if (number,) in asked.barriers else [eqn]
    return jaxpr.replace(eqns=eqns), further


def _walked(eqn: Any, asked: Rewriting, number: int, above: Address) -> tuple[Any, list[_Further]]:
    """An equation with the jaxprs that it runs rewritten."""
    bodies = jax_versions.bodies(eqn)
    inner = [asked.inside(number, body) for body in range(len(bodies))]
    below = {a[1] for a in asked.barriers | asked.observed if a[0] == number and len(a) > 1}
    if any(body >= len(bodies) for body in below):
        raise _missing((*above, number, max(below), 0))
    if not any(inner):
        return eqn, []
    walked = [
        _jaxpr(jax_versions.closed(body).jaxpr, one, (*above, number, at))
        for at, (body, one) in enumerate(zip(bodies, inner, strict=True))
    ]
    further = [one for _, found in walked for one in found]
    if further and eqn.primitive.name in OPAQUE:
        raise ProgramError(
            f"equation {spelt(further[0].address)} cannot be observed: it is inside a "
            f"{eqn.primitive.name}"
        )
    changed = [
        _with_jaxpr(body, _giving(jaxpr, further, found))
        for body, (jaxpr, found) in zip(bodies, walked, strict=True)
    ]
    eqn = jax_versions.with_bodies(eqn, iter(changed))
    return _more_outputs(eqn, further) if further else (eqn, [])


def _giving(jaxpr: Jaxpr, every: Sequence[_Further], own: Sequence[_Further]) -> Jaxpr:
    """A body that gives all further outputs, zeros for those of other branches."""
    if not every:
        return jaxpr
    eqns, outvars = list(jaxpr.eqns), list(jaxpr.outvars)
    for one in every:
        if one in own:
            outvars.append(one.var)
            continue
        zeros = jax.make_jaxpr(lambda aval=one.var.aval: lax.full(aval.shape, 0, aval.dtype))()
        eqns += zeros.jaxpr.eqns
        outvars += zeros.jaxpr.outvars
    return jax_versions.with_outputs(jaxpr, eqns, outvars)


def _with_jaxpr(body: Any, jaxpr: Jaxpr) -> Any:
    return body.replace(jaxpr=jaxpr) if isinstance(body, ClosedJaxpr) else jaxpr


def _more_outputs(eqn: Any, further: Sequence[_Further]) -> tuple[Any, list[_Further]]:
    """An equation that gives what its bodies give beside: a loop, stacked."""
    params = dict(eqn.params)
    for name, of_one in _of_an_output().items():
        if name in params:
            params[name] = (*params[name], *[of_one] * len(further))
    found = []
    for one in further:
        aval = one.var.aval
        if eqn.primitive.name == "scan":
            aval = jax.core.ShapedArray((params["length"], *aval.shape), aval.dtype)
        found.append(_Further(one.address, one.at, one.count, jax_versions.variable(aval)))
    outvars = [*eqn.outvars, *(one.var for one in found)]
    return eqn.replace(params=params, outvars=outvars), found


@cache
def _of_an_output() -> Mapping[str, Any]:
    """What the parameters of a `jax.jit` say of each output that is left to the compiler."""
    closed = jax.make_jaxpr(jax.jit(lambda x: x + 1, inline=False))(np.float32(0))
    params = closed.jaxpr.eqns[0].params
    return {name: params[name][0] for name in ("out_shardings", "out_layouts") if name in params}


def _kept(eqn: Any, here: Address) -> tuple[Any, list[_Further]]:
    """An equation with all its results under variables, and those that are arrays."""
    outvars = [
        jax_versions.variable(var.aval) if jax_versions.is_dropped(var) else var
        for var in eqn.outvars
    ]
    found = [
        _Further(here, at, len(outvars), var)
        for at, var in enumerate(outvars)
        if jax_versions.is_array(var.aval)
    ]
    return eqn.replace(outvars=outvars), found


def _held(eqn: Any) -> Iterator[Any]:
    """An equation followed by a barrier for each floating result."""
    barriers, outvars = [], []
    for var in eqn.outvars:
        if jax_versions.is_dropped(var) or not is_floating(var.aval):
            outvars.append(var)
            continue
        given = jax_versions.variable(var.aval)
        outvars.append(given)
        barrier = _barrier(dtype(var.aval.dtype).name)
        barriers.append(barrier.replace(invars=[given], outvars=[var], source_info=eqn.source_info))
    yield eqn.replace(outvars=outvars)
    yield from barriers


def is_floating(aval: Any) -> bool:
    """Whether a barrier can be after a variable: an array of a real floating dtype."""
    return jax_versions.is_array(aval) and barrier_bits(np.dtype(aval.dtype).name) is not None


def _barrier(name: str) -> Any:
    """The equation of a barrier for a dtype."""
    bits = barrier_bits(name)
    assert bits is not None  # `is_floating` has seen to it

    def barrier(x: Any) -> Any:
        return lax.reduce_precision(x, *bits)

    closed = jax.make_jaxpr(barrier)(jax.ShapeDtypeStruct((), dtype(name).numpy()))
    return closed.jaxpr.eqns[0]


def _missing(at: Address) -> ProgramError:
    return ProgramError(f"the program has no equation {spelt(at)}")
