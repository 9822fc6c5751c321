"""shard_map: what every device computes, as one program with an axis for each axis of the mesh.

The body is batched over the devices, which turns each collective into an operation along those
axes; the operands are split and the results put together as the specs say. What comes of it is
walked like any other program.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from parity.program import jax_versions
from parity.reference.control import Walk
from parity.reference.policies import F64
from parity.reference.value import Value, parts

_SUMS = frozenset({"psum", "psum2", "psum_invariant"})
_MARKS = frozenset({"pvary", "pbroadcast", "pcast"})
"""Say of a value that it may differ between devices, and change nothing."""


def shard_map(walk: Walk, eqn: Any, values: list[Value]) -> list[Value]:
    """The outputs of one `shard_map`; of what is replicated, the first device's.

    Where the same number is rounded otherwise on another device, the interval holds that, too. An
    element that is another number even without roundings is no answer of the first device's.
    """
    from parity.reference.interpreter import Interpreter

    shapes = [jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype) for var in eqn.invars]
    closed = jax.make_jaxpr(_unsharded(eqn))(*shapes)
    found = walk(closed, values)
    if all(map(_is_replicated, found)):
        return [value.at(0) for value in found]
    truth = Interpreter(F64).walk(closed, [Value.exactly(value.point) for value in values])
    return list(map(_of_any_device, found, truth))


def over_positions(walk: Walk, eqn: Any, values: list[Value]) -> list[Value]:
    """psum, pmax and pmin over an axis that vmap has turned into a position: reductions."""
    reduction = {"psum": _sum, "pmax": _largest, "pmin": _smallest}[eqn.primitive.name]
    shapes = [jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype) for var in eqn.invars]
    return walk(jax.make_jaxpr(lambda *xs: [reduction(x, eqn.params) for x in xs])(*shapes), values)


def _is_replicated(value: Value) -> bool:
    """Whether every device has the same; [replicas, whole]."""
    arrays = value.point, value.lo, value.hi, value.unspecified, value.undecided
    return all(bool(((x == x[:1]) | (x != x)).all()) for x in arrays if x is not None)


def _of_any_device(value: Value, truth: Value) -> Value:
    """[replicas, whole] as [whole].

    Args:
        value: of each device.
        truth: the same without roundings, with the bound of an evaluation that rounds.
    """
    first = value.at(0)
    alike = _within(truth.point, truth.at(0))

    def reach(extreme: Callable[..., np.ndarray], ends: np.ndarray, own: np.ndarray) -> np.ndarray:
        return parts(lambda x, y: extreme(np.where(alike, x, y), axis=0), ends, own[None])

    return dataclasses.replace(
        first,
        lo=reach(np.min, value.lo, first.lo),
        hi=reach(np.max, value.hi, first.hi),
        unspecified=None if value.unspecified is None else np.any(value.unspecified, axis=0),
        undecided=None if value.undecided is None else np.any(value.undecided, axis=0),
    )


def _within(points: np.ndarray, value: Value) -> np.ndarray:
    """Which elements of [replicas, whole] lie in a value's interval, of complex ones both parts."""
    inside = parts(lambda x, low, high: (low <= x) & (x <= high), points, value.lo, value.hi)
    if points.dtype.kind == "c":
        inside = (inside.real != 0) & (inside.imag != 0)
    return np.asarray((inside != 0) | (points == value.point))


def _unsharded(eqn: Any) -> Any:
    """A function of the whole operands that gives [replicas, whole results], not sharded."""
    sizes = _mesh_axes(eqn)
    specs, out_specs = _partitions(eqn)
    body = jax_versions.closed(eqn.params["jaxpr"])

    def function(*arrays: Any) -> list[Any]:
        layouts = [_Layout(sizes, spec) for spec in specs]
        shards = [layout.split(x) for layout, x in zip(layouts, arrays, strict=True)]

        def every(*local: Any) -> list[Any]:
            return _evaluate(body, local)

        for axis in reversed(sizes):
            axes = tuple(0 if axis in layout.used else None for layout in layouts)
            size = sizes[axis]
            every = jax.vmap(every, in_axes=axes, axis_name=axis, axis_size=size)
        outs = every(*shards)
        return [_Layout(sizes, s).joined(out) for s, out in zip(out_specs, outs, strict=True)]

    return function


@dataclass(frozen=True)
class _Layout:
    """How an array lies over the devices.

    Attributes:
        sizes: of the mesh axes, in order.
        spec: for each split dimension the mesh axes that split it, the slowest first.
    """

    sizes: Mapping[Any, int]
    spec: Mapping[int, tuple[Any, ...]]

    @property
    def used(self) -> list[Any]:
        """The mesh axes over which it is split, in the order of the mesh."""
        split = {axis for axes in self.spec.values() for axis in axes}
        return [axis for axis in self.sizes if axis in split]

    def split(self, array: Any) -> Any:
        """[whole] as [*used, local]."""
        names: list[Any] = []
        shape: list[int] = []
        for dim, size in enumerate(array.shape):
            axes = self.spec.get(dim, ())
            parts = [self.sizes[axis] for axis in axes]
            local = size
            for part in parts:
                local //= part
            names += [*axes, dim]
            shape += [*parts, local]
        order = [names.index(axis) for axis in self.used]
        order += [i for i in range(len(names)) if i not in order]
        return lax.transpose(lax.reshape(array, shape), order)

    def joined(self, array: Any) -> Any:
        """[*mesh, local] as [replicas, whole]."""
        mesh = list(self.sizes)
        order = [at for at, axis in enumerate(mesh) if axis not in self.used]
        shape = [math.prod(self.sizes[mesh[at]] for at in order)]
        for dim, size in enumerate(array.shape[len(mesh) :]):
            axes = self.spec.get(dim, ())
            order += [*map(mesh.index, axes), len(mesh) + dim]
            shape.append(size * math.prod(self.sizes[axis] for axis in axes))
        return lax.reshape(lax.transpose(array, order), shape)


def _evaluate(closed: Any, inputs: Sequence[Any]) -> list[Any]:
    """A body on one device's arrays, its sums over devices as sums of what was gathered."""
    env: dict[Any, Any] = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(closed.jaxpr.invars, inputs, strict=True))

    def read(atom: Any) -> Any:
        if isinstance(atom, jax_versions.Literal):
            return lax.full((), atom.val, atom.aval.dtype)
        return env[atom]

    for eqn in closed.jaxpr.eqns:
        given = [read(atom) for atom in eqn.invars]
        name, inner = eqn.primitive.name, jax_versions.called_jaxpr(eqn)
        if inner is not None:
            found = _evaluate(inner, given)
        elif name in _MARKS:
            found = given
        elif name in _SUMS:
            found = [_sum(x, eqn.params) for x in given]
        elif name in _OVER_AXES:
            found = _OVER_AXES[name](eqn, given)
        elif name in _BODIES:
            found = _BODIES[name](eqn.params, given)
        else:
            found = jax_versions.bind(eqn, given)
        env.update(zip(eqn.outvars, found, strict=True))
    return [read(atom) for atom in closed.jaxpr.outvars]


def _scan(params: Mapping[str, Any], given: list[Any]) -> list[Any]:
    """A scan whose body may have sums over devices, too."""
    first, last = params["num_consts"], params["num_consts"] + params["num_carry"]
    body = params["jaxpr"]

    def step(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        out = _evaluate(body, [*given[:first], *carry, *row])
        return out[: len(carry)], out[len(carry) :]

    carry, rows = lax.scan(
        step, given[first:last], given[last:], params["length"], params["reverse"]
    )
    return [*carry, *rows]


def _cond(params: Mapping[str, Any], given: list[Any]) -> list[Any]:
    branches = [
        lambda *operands, branch=branch: _evaluate(branch, operands)
        for branch in params["branches"]
    ]
    return list(lax.switch(given[0], branches, *given[1:]))


def _while(params: Mapping[str, Any], given: list[Any]) -> list[Any]:
    first = params["cond_nconsts"]
    last = first + params["body_nconsts"]

    def going(carry: list[Any]) -> Any:
        return _evaluate(params["cond_jaxpr"], [*given[:first], *carry])[0]

    def step(carry: list[Any]) -> list[Any]:
        return _evaluate(params["body_jaxpr"], [*given[first:last], *carry])

    return list(lax.while_loop(going, step, given[last:]))


_BODIES: Mapping[str, Callable[[Mapping[str, Any], list[Any]], list[Any]]] = {
    "cond": _cond,
    "scan": _scan,
    "while": _while,
}
"""Primitives whose jaxprs may have collectives, too."""


def _ppermute(eqn: Any, given: list[Any]) -> list[Any]:
    """Where a device receives nothing it has zeros, which vmap's own rule does not know.

    Of several axes JAX numbers the devices in the order of the mesh, not in that of the axes.
    """
    axes, pairs = _axes(eqn), eqn.params["perm"]
    if len(axes) > 1:
        raise NotImplementedError("a ppermute over several axes")
    size = lax.psum(1, axes)
    if len(pairs) == size:
        return jax_versions.bind(eqn, given)
    senders = np.full(size, -1)
    for source, into in pairs:
        senders[into] = source
    sender = lax.dynamic_index_in_dim(senders, lax.axis_index(axes[0]), keepdims=False)
    gathered = [lax.all_gather(x, axes[0]) for x in given]
    received = [lax.dynamic_index_in_dim(x, sender, keepdims=False) for x in gathered]
    return [
        lax.select(lax.full_like(x, sender >= 0, bool), x, lax.full_like(x, 0)) for x in received
    ]


def _axes(eqn: Any) -> tuple[Any, ...]:
    named = eqn.params["axis_name"]
    return named if isinstance(named, tuple) else (named,)


def _gathered(array: Any, axes: Sequence[Any], at: int) -> Any:
    """What all devices have, along a new axis; of several mesh axes the first is the slowest."""
    for axis in reversed(axes):
        array = lax.all_gather(array, axis, axis=at)
    shape = array.shape
    return lax.reshape(array, (*shape[:at], lax.psum(1, axes), *shape[at + len(axes) :]))


def _all_gather(eqn: Any, given: list[Any]) -> list[Any]:
    """Over several axes at once, which vmap's own rule does not know."""
    axes, at = _axes(eqn), eqn.params["all_gather_dimension"]
    if len(axes) == 1 or eqn.params["axis_index_groups"] is not None:
        return jax_versions.bind(eqn, given)
    if not eqn.params["tiled"]:
        return [_gathered(x, axes, at) for x in given]
    return [lax.collapse(_gathered(x, axes, at), at, at + 2) for x in given]


def _reduce_scatter(eqn: Any, given: list[Any]) -> list[Any]:
    """Over several axes at once: of one sum each device's part."""
    axes, at = _axes(eqn), eqn.params["scatter_dimension"]
    if len(axes) == 1 or eqn.params["axis_index_groups"] is not None:
        return jax_versions.bind(eqn, given)
    here, size = lax.axis_index(axes), lax.psum(1, axes)
    totals = [_sum(x, {"axes": axes}) for x in given]
    if not eqn.params["tiled"]:
        return [lax.dynamic_index_in_dim(x, here, at, keepdims=False) for x in totals]
    lengths = [x.shape[at] // size for x in totals]
    pairs = zip(totals, lengths, strict=True)
    return [lax.dynamic_slice_in_dim(x, here * length, length, at) for x, length in pairs]


_OVER_AXES: Mapping[str, Callable[[Any, list[Any]], list[Any]]] = {
    "all_gather": _all_gather,
    "all_gather_invariant": _all_gather,
    "ppermute": _ppermute,
    "reduce_scatter": _reduce_scatter,
}
"""Collectives of which vmap's own rules know only some."""


def _sum(array: Any, params: Mapping[str, Any]) -> Any:
    """The sum over named axes, whose order is no more specified than that of a `reduce_sum`."""
    if params.get("axis_index_groups") is not None:
        raise NotImplementedError("a sum over groups of devices")
    named = [axis for axis in params["axes"] if not isinstance(axis, int)]
    dims = [axis + len(named) for axis in params["axes"] if isinstance(axis, int)]
    for axis in named:
        array = lax.all_gather(array, axis)
    zero = np.zeros((), array.dtype)  # known while tracing: it makes a reduce_sum of the reduce
    return lax.reduce(array, zero, lax.add, [*range(len(named)), *dims])


def _largest(array: Any, params: Mapping[str, Any]) -> Any:
    return jnp.max(array, axis=_positions(params))


def _smallest(array: Any, params: Mapping[str, Any]) -> Any:
    return jnp.min(array, axis=_positions(params))


def _positions(params: Mapping[str, Any]) -> tuple[int, ...]:
    if params.get("axis_index_groups") is not None:
        raise NotImplementedError("an extreme of groups of devices")
    return tuple(params["axes"])


def _mesh_axes(eqn: Any) -> dict[Any, int]:
    """The axes that a `shard_map` maps over and their sizes, in the order of its mesh."""
    mesh, manual = eqn.params["mesh"], eqn.params.get("manual_axes")
    automatic = eqn.params.get("auto", ())  # before 0.6
    return {
        axis: int(size)
        for axis, size in mesh.shape.items()
        if axis not in automatic and (manual is None or axis in manual)
    }


def _partitions(eqn: Any) -> tuple[list[dict[int, tuple[Any, ...]]], ...]:
    """For operands and results of a `shard_map`: dimension -> the mesh axes that split it."""
    if "in_names" in eqn.params:  # before 0.6
        names = eqn.params["in_names"], eqn.params["out_names"]
        return tuple([{d: tuple(axes) for d, axes in of.items()} for of in n] for n in names)
    return tuple([_split(spec) for spec in eqn.params[key]] for key in ("in_specs", "out_specs"))


def _split(spec: Any) -> dict[int, tuple[Any, ...]]:
    axes = {d: a if isinstance(a, tuple) else (a,) for d, a in enumerate(spec) if a is not None}
    return {d: of for d, of in axes.items() if of}
