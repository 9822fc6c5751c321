"""Over how many devices a program spreads its arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jax.sharding import Sharding

from parity.program.jax_versions import ClosedJaxpr, equations


def devices(closed: ClosedJaxpr) -> int:
    """The most devices that any equation asks for, those of inner jaxprs included; 1 for none.

    Meshes (`shard_map`), shardings (`with_sharding_constraint`, `device_put`, `jit`) and the axes
    of `pmap` ask for some.
    """
    return max((count for eqn in equations(closed) for count in _asked(eqn)), default=1)


def _asked(eqn: Any) -> Iterator[int]:
    if eqn.primitive.name == "shard_map":
        yield int(eqn.params["mesh"].size)
    if eqn.primitive.name == "xla_pmap":
        yield int(eqn.params["axis_size"])
    for parameter in eqn.params.values():
        for one in parameter if isinstance(parameter, list | tuple) else (parameter,):
            if isinstance(one, Sharding):
                yield int(one.num_devices)
