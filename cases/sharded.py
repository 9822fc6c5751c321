"""Programs whose operands lie on several devices."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec
from meshes import AXIS, SPLIT, WHOLE, mesh, on_each, replicated


def _put(array, spec):
    return lax.with_sharding_constraint(array, NamedSharding(mesh(), spec))


def contraction(x, w):
    """A dot whose K lies on all devices, summed by hand or by the compiler, and the whole dot."""
    columns = PartitionSpec(None, AXIS)
    sharded = replicated(lambda x, w: lax.psum(jnp.dot(x, w), AXIS), columns, SPLIT)(x, w)
    whole = jnp.dot(_put(x, WHOLE), _put(w, WHOLE))
    return {
        "unsharded": whole,
        "sharded": sharded,
        "partitioned": jnp.dot(_put(x, columns), _put(w, SPLIT)),
        "changed": jnp.sum(sharded != whole, dtype=jnp.float32),
    }


def ring_sum(x):
    """The sum over devices, each of which begins with its own part and adds its neighbour's."""
    size = jax.device_count()
    ring = [(i, (i + 1) % size) for i in range(size)]

    def local(part):
        total = arrived = part[0]
        for _ in range(size - 1):
            arrived = lax.ppermute(arrived, AXIS, ring)
            total = total + arrived
        return total

    return replicated(local, SPLIT)(x)


def conv_gradients(x, w):
    """The gradient of a convolution for each example of a batch that lies on all devices."""

    def loss(w, one):
        numbers = ("NWC", "WIO", "NWC")
        out = lax.conv_general_dilated(one[None], w, (1,), "VALID", dimension_numbers=numbers)
        return jnp.sum(out * out)

    return jax.vmap(jax.grad(loss), (None, 0))(_put(w, WHOLE), _put(x, SPLIT))


def replicated_weight(x, w):
    """On each device the gradient of the dot of its own row and a weight that all of them have."""
    return on_each(lambda row, w: jax.grad(lambda w: jnp.dot(row[0], w))(w), SPLIT, WHOLE)(x, w)
