"""Small programs in which a compiler drops a rounding, contracts a sum or hides an overflow."""

import jax
import jax.numpy as jnp
from jax import lax


def product(x, y):
    """A product in bfloat16, then float32."""
    return (x * y).astype(jnp.float32)


def dot(x, y):
    """A dot in bfloat16, then float32."""
    return jnp.dot(x, y.T).astype(jnp.float32)


def softmax(x, y):
    """A softmax in bfloat16, then float32."""
    return jax.nn.softmax(x).astype(jnp.float32)


def lost_part(x, y):
    """What x loses when it is added to y, in bfloat16."""
    return y - ((x + y) - x)


def sum_of_products(a, b, x):
    """a·x + b·x."""
    return a * x + b * x


def log_of_exp(x):
    """x, unless the exponential overflows."""
    return jnp.log(jnp.exp(x))


def residual_layers(x, w, *, remat):
    """Residual tanh layers; w [layers, n, n]."""

    def layer(x, w):
        return x + jnp.tanh(x @ w)

    for one in w:
        x = (jax.checkpoint(layer) if remat else layer)(x, one)
    return x


def iterated(a, x, *, steps, precomputed):
    """tanh of (a a) x again and again, the square computed in each step or once."""
    square = a @ a

    def step(x, _):
        x = jnp.tanh((square if precomputed else a @ a) @ x)
        return x, x

    states = lax.scan(step, x, None, length=steps)[1]
    return {f"after_{n:02}": states[n - 1] for n in (1, 8, 16, steps)}
