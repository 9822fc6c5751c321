"""The depthwise convolution of conv_bf16.yaml, written in three ways."""

import jax.numpy as jnp
from flax import linen as nn
from jax import lax


def convolution(inputs, kernel, *, dtype):
    """By `lax.conv_general_dilated`."""
    product = lax.conv_general_dilated(
        inputs.astype(dtype),
        kernel.astype(dtype),
        window_strides=(1,),
        padding="VALID",
        dimension_numbers=("NWC", "WIO", "NWC"),
        feature_group_count=2,
    )
    return product.astype(jnp.float32) + inputs


def multiplication(inputs, kernel, *, dtype):
    """By hand: a depthwise kernel of width one multiplies."""
    return (inputs.astype(dtype) * kernel[0].astype(dtype)).astype(jnp.float32) + inputs


def module(inputs, kernel, *, dtype):
    """By flax."""
    conv = nn.Conv(2, (1,), padding=0, feature_group_count=2, use_bias=False, dtype=dtype)
    return conv.apply({"params": {"kernel": kernel}}, inputs).astype(jnp.float32) + inputs
