"""How many devices a program asks for."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

from parity.program.devices import devices

X = jnp.ones((8, 2))
MESH = AbstractMesh((4,), ("d",))


def total(x):
    return jax.shard_map(lambda p: lax.psum(p, "d"), mesh=MESH, in_specs=P("d"), out_specs=P())(x)


def constrained(x):
    return lax.with_sharding_constraint(x, NamedSharding(MESH, P("d"))) + 1


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: x + x, 1),
        (jax.vmap(lambda row: lax.psum(row, "d"), axis_name="d"), 1),
        (total, 4),
        (jax.jit(total), 4),
        (lambda x: lax.scan(lambda c, _: (c + total(x).sum(), None), 0.0, None, length=2)[0], 4),
        (jax.grad(lambda x: total(x).sum()), 4),
        (constrained, 4),
    ],
)
def test_meshes_and_shardings_are_counted(function, count):
    assert devices(jax.make_jaxpr(function)(X)) == count
