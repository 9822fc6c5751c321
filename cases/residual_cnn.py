"""A convolutional network whose layers compute in bfloat16 and whose residual stream is float32."""

import jax.numpy as jnp
from flax import linen as nn


class Block(nn.Module):
    """Two convolutions whose result is added to what they were given."""

    features: int

    @nn.compact
    def __call__(self, x):
        """Images to images."""
        y = nn.Conv(self.features, (3, 3), dtype=jnp.bfloat16, use_bias=False)(x)
        y = nn.relu(y)
        y = nn.Conv(self.features, (3, 3), dtype=jnp.bfloat16, use_bias=False)(y)
        return x + y.astype(jnp.float32)


class ResidualCNN(nn.Module):
    """A stem and three blocks: seven convolutions."""

    features: int = 8
    blocks: int = 3

    @nn.compact
    def __call__(self, images):
        """Images to images."""
        x = nn.Conv(self.features, (3, 3), dtype=jnp.bfloat16, use_bias=False)(images)
        x = x.astype(jnp.float32)
        for _ in range(self.blocks):
            x = Block(self.features)(x)
        return x
