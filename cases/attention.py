"""Attention written by hand: bfloat16 operands, float32 scores, and ways to go backward.

Operands are [batch, heads, length, depth].
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax


def plain(query, key, value, *, dtype="bfloat16"):
    """As JAX differentiates it: float32 cotangents meet narrow operands in the backward dots."""
    return _attention(query, key, value, dtype)


def in_float32(query, key, value, *, dtype="bfloat16"):
    """Backward dots of float32 by float32, their results cast to the operands' dtype."""
    return _attention(query, key, value, dtype, _dot_general=_widened)


def in_narrow(query, key, value, *, dtype="bfloat16"):
    """Cotangents cast to the operands' dtype before each backward dot."""
    return _attention(query, key, value, dtype, _dot_general=_narrowed)


def by_preset(query, key, value, *, dtype="bfloat16"):
    """A dot algorithm that says bfloat16 operands, float32 sums, forward and backward."""
    return _attention(query, key, value, dtype, precision=lax.DotAlgorithmPreset.BF16_BF16_F32)


def masked(query, key, value, mask):
    """That of JAX; operands are [batch, length, heads, depth], mask [1, 1, length, length]."""
    return jax.nn.dot_product_attention(query, key, value, mask=mask)


def _attention(query, key, value, dtype, **how):
    einsum = functools.partial(jnp.einsum, preferred_element_type=jnp.float32, **how)
    query, key, value = (operand.astype(dtype) for operand in (query, key, value))
    scores = einsum("bnth,bnsh->bnts", query, key) / query.shape[-1] ** 0.5
    weights = jax.nn.softmax(scores).astype(dtype)
    return einsum("bnts,bnsh->bnth", weights, value)


def _dot(lhs, rhs, dimension_numbers):
    return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=jnp.float32)


_dot_widened = jax.custom_vjp(_dot, nondiff_argnums=(2,))


def _widened_forward(lhs, rhs, dimension_numbers):
    return _dot(lhs, rhs, dimension_numbers), (lhs, rhs)


def _widened_backward(dimension_numbers, operands, cotangent):
    lhs, rhs = (operand.astype(jnp.float32) for operand in operands)
    of_lhs = jax.linear_transpose(lambda lhs: _dot(lhs, rhs, dimension_numbers), lhs)
    of_rhs = jax.linear_transpose(lambda rhs: _dot(lhs, rhs, dimension_numbers), rhs)
    gradients = (*of_lhs(cotangent), *of_rhs(cotangent))
    pairs = zip(gradients, operands, strict=True)
    return tuple(gradient.astype(operand.dtype) for gradient, operand in pairs)


_dot_widened.defvjp(_widened_forward, _widened_backward)


def _widened(lhs, rhs, dimension_numbers, *unused, **also_unused):
    return _dot_widened(lhs, rhs, dimension_numbers)


_dot_narrowed = jax.custom_jvp(_dot, nondiff_argnums=(2,))


@_dot_narrowed.defjvp
def _narrowed_tangent(dimension_numbers, operands, tangents):
    (lhs, rhs), (lhs_tangent, rhs_tangent) = operands, tangents
    left = lax.dot_general(lhs_tangent, rhs, dimension_numbers)
    right = lax.dot_general(lhs, rhs_tangent, dimension_numbers)
    return _dot_narrowed(lhs, rhs, dimension_numbers), (left + right).astype(jnp.float32)


def _narrowed(lhs, rhs, dimension_numbers, *unused, **also_unused):
    return _dot_narrowed(lhs, rhs, dimension_numbers)
