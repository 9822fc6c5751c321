"""Scans over functions whose backward pass is written by hand."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import primal_tangent_dtype


@jax.custom_vjp
def _identity(x):
    return x


def _forward(x):
    return x, None


def _backward(_, cotangent):
    return (cotangent.astype(jnp.float32),)


_identity.defvjp(_forward, _backward)


def _copied(x):
    """x, element by element."""
    return lax.scan(lambda carry, element: (carry, element), None, x)[1]


def below(x):
    """The gradient of a sum; its float32 cotangent enters the scan."""
    return jax.grad(lambda x: jnp.sum(_identity(_copied(x))))(x)


def above(x):
    """The same, where the cotangent becomes float32 only after it left the scan."""
    return jax.grad(lambda x: jnp.sum(_copied(_identity(x))))(x)


def carried(x):
    """The same, where the cotangent becomes float32 from one step to the next."""

    def total(x):
        return jnp.sum(lax.scan(lambda carry, _: (_identity(carry), None), x, None, length=3)[0])

    return jax.grad(total)(x)


@jax.custom_vjp
def _matmul(x, w):
    return x @ w


def _matmul_forward(x, w):
    return x @ w, (x, w)


def _matmul_backward(operands, cotangent):
    x, w = (operand.astype(jnp.float32) for operand in operands)
    cotangent = cotangent.astype(jnp.float32)
    return cotangent @ w.T, x.T @ cotangent


_matmul.defvjp(_matmul_forward, _matmul_backward)


def unrolled(x, w):
    """Two products, one after the other; w [2, n, n]."""
    return _matmul(_matmul(x, w[0]), w[1])


def once(x, w):
    """One product; w [n, n]."""
    return _matmul(x, w)


def scanned(x, w):
    """Two products under a scan; w [2, n, n]."""
    return lax.scan(lambda carry, w: (_matmul(carry, w), None), x, w)[0]


def extended(x):
    """The last element and its gradient, where bfloat16 primals have float32 tangents by dtype."""
    dtype = primal_tangent_dtype(jnp.dtype("bfloat16"), jnp.dtype("float32"))

    def last(x):
        carried = lax.scan(lambda _, element: (element, None), x[0], x)[0]
        return lax.convert_element_type(carried, jnp.bfloat16)

    value, pull = jax.vjp(last, lax.convert_element_type(x, dtype))
    (gradient,) = pull(jnp.ones((), value.dtype))
    return {"value": value, "gradient": gradient}
