"""Two meanings of a transposed convolution that share one name."""

import jax.numpy as jnp
from jax import lax

HOW = {"strides": (2, 2), "padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC")}


def both(x, kernel):
    """The kernel as JAX and flax take it, and as the gradient of a convolution takes it.

    x [N, H, W, I], kernel [H, W, I, O]. The second is what TensorFlow and Keras call transposed:
    of the kernel [H, W, O, I], flipped in space.
    """
    swapped = jnp.swapaxes(kernel, 2, 3)
    return {
        "plain": lax.conv_transpose(x, kernel, **HOW),
        "gradient": lax.conv_transpose(x, swapped, transpose_kernel=True, **HOW),
        "gradient_of_flipped": lax.conv_transpose(
            x, jnp.flip(swapped, (0, 1)), transpose_kernel=True, **HOW
        ),
    }


def apart(x, kernel):
    """How far the others are from the first meaning at most, as a share of its largest value."""
    found = both(x, kernel)
    plain = found.pop("plain")
    largest = jnp.max(jnp.abs(plain))
    return {name: jnp.max(jnp.abs(out - plain)) / largest for name, out in found.items()}
