"""Every collective over a named axis: of vmap, or of a mesh of devices."""

import jax
import jax.numpy as jnp
from jax import lax
from meshes import AXIS, SPLIT, on_each


def differentiable(x, size):
    """The collectives that have a gradient, of one member's part, [8, 3]."""
    parts = x.reshape(size, 8 // size, 3)
    ring = [(i, (i + 1) % size) for i in range(size)]
    return {
        "psum": lax.psum(x, AXIS),
        "pmean": lax.pmean(x, AXIS),
        "all_gather": lax.all_gather(x, AXIS),
        "all_to_all": lax.all_to_all(parts, AXIS, 0, 0),
        "ppermute": lax.ppermute(x, AXIS, ring),
        "psum_scatter": lax.psum_scatter(parts, AXIS),
    }


def every(x, size):
    """All collectives."""
    others = {"pmax": lax.pmax(x, AXIS), "axis_index": lax.axis_index(AXIS)}
    return differentiable(x, size) | others


def over_batch(x, collectives=every):
    """Under vmap with an axis name; x [members, 8, 3]."""
    return jax.vmap(lambda part: collectives(part, len(x)), axis_name=AXIS)(x)


def over_devices(x, collectives=every):
    """A member on each device; what each of them has, one after another."""
    return on_each(lambda part: collectives(part[0], jax.device_count()), SPLIT)(x)


def gathered_batch(x):
    """An axis of vmap gathered inside each device's part, x [devices, members, 8, 3]."""

    def local(part):
        return jax.vmap(lambda y: lax.all_gather(y, "members"), axis_name="members")(part[0])

    return on_each(local, SPLIT)(x)


def gradient(x, over):
    """Of the sum of the squares of all that the collectives give."""

    def loss(x):
        found = {"batch": over_batch, "devices": over_devices}[over](x, differentiable)
        return sum(jnp.sum(part * part) for part in found.values())

    return jax.grad(loss)(x)
