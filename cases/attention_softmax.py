"""Attention by flax and by JAX, with large logits.

Operands are [batch, length, heads, depth].
"""

import flax.linen as nn
import jax

SHARP = 12.0


def by_flax(query, key, value):
    """Softmax in the dtype of the operands; logits are 144 times larger than usual."""
    return nn.dot_product_attention(SHARP * query, SHARP * key, value)


def by_flax_in_float32(query, key, value):
    """The same with `force_fp32_for_softmax`."""
    return nn.dot_product_attention(SHARP * query, SHARP * key, value, force_fp32_for_softmax=True)


def by_jax(query, key, value):
    """The same by `jax.nn`, whose scores are float32."""
    return jax.nn.dot_product_attention(SHARP * query, SHARP * key, value)
