"""What the programs over several devices share: a mesh of all devices, and `shard_map`."""

import inspect

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

try:
    from jax import shard_map
except ImportError:  # JAX 0.4
    from jax.experimental.shard_map import shard_map

AXIS = "shards"
SPLIT = PartitionSpec(AXIS)
WHOLE = PartitionSpec()


def mesh():
    """One axis over every device."""
    return Mesh(np.array(jax.devices()), (AXIS,))


def on_each(function, *specs):
    """`function` of each device's part; the results stand one after another on a new first axis."""

    def local(*parts):
        return jax.tree_util.tree_map(lambda out: out[None], function(*parts))

    return shard_map(local, mesh=mesh(), in_specs=specs, out_specs=SPLIT)


def replicated(function, *specs):
    """`function` of each device's part, which every device is to give alike; not checked."""
    checks = {"check_rep", "check_vma"} & set(inspect.signature(shard_map).parameters)
    unchecked = dict.fromkeys(checks, False)
    return shard_map(function, mesh=mesh(), in_specs=specs, out_specs=WHOLE, **unchecked)
