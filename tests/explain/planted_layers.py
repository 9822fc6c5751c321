"""Longer programs whose paths are wrong throughout: layers, attention, norms."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from .arithmetic import dot, fused, to_bf16, to_f16, to_tf32
from .planted import f32, integers, normal, planted

E5M2 = ml_dtypes.float8_e5m2


def _layers(x, a, b):
    return jnp.tanh(x @ a) @ b + x


def _layers_of(rounded):
    def path(x, a, b):
        hidden = np.tanh(dot(rounded(x), rounded(a)))
        return dot(rounded(f32(hidden)), rounded(b)) + x

    return path


_SHAPES = ((6, 8), (8, 12), (12, 8))


@planted("tf32-operands", normal(*_SHAPES), _layers)
def layers_of_tf32(x, a, b):
    return _layers_of(to_tf32)(x, a, b)


@planted("bf16-operands", normal(*_SHAPES), _layers)
def layers_of_bf16(x, a, b):
    return _layers_of(to_bf16)(x, a, b)


def _bf16_layers(x, a, b):
    x, a, b = (one.astype(jnp.bfloat16) for one in (x, a, b))
    return (jnp.maximum(x @ a, 0) @ b + x).astype(jnp.float32)


@planted("excess-precision", normal(*_SHAPES), _bf16_layers)
def bf16_layers_kept(x, a, b):
    x, a, b = (to_bf16(one) for one in (x, a, b))
    return dot(np.maximum(dot(x, a), 0), b) + x


@planted("wide", normal(*_SHAPES), _bf16_layers)
def bf16_layers_all_wide(x, a, b):
    return dot(np.maximum(dot(x, a), 0), b) + x


@planted("excess-precision", normal(*_SHAPES), _bf16_layers)
def bf16_layers_kept_in_the_first(x, a, b):
    """The first dot is not rounded, the second and the sum are."""
    x, a, b = (to_bf16(one) for one in (x, a, b))
    return to_bf16(to_bf16(dot(np.maximum(dot(x, a), 0), b)) + x)


def _norm(x, scale):
    x = x.astype(jnp.bfloat16)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = jnp.square(centred).mean(axis=-1, keepdims=True)
    return (centred * lax.rsqrt(variance + 1e-3) * scale.astype(jnp.bfloat16)).astype(jnp.float32)


@planted("excess-precision", normal((6, 32), (32,)), _norm)
def bf16_norm_kept(x, scale):
    x, scale = to_bf16(x), to_bf16(scale)
    centred = x - x.mean(axis=-1, keepdims=True, dtype=np.float32)
    variance = np.square(centred).mean(axis=-1, keepdims=True, dtype=np.float32)
    return centred * (1 / np.sqrt(variance + np.float32(to_bf16(1e-3)))) * scale


def _attention(q, k, v):
    weights = jax.nn.softmax(q @ k.T / 4.0, axis=-1)
    return weights @ v


@planted("tf32-operands", normal((8, 16), (8, 16), (8, 16)), _attention)
def attention_of_tf32(q, k, v):
    scores = dot(to_tf32(q), to_tf32(k.T)) / np.float32(4)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return dot(to_tf32(weights), to_tf32(v))


@planted("narrow-accumulator", normal((8, 40), (40, 8)), lambda a, b: (
    a.astype(jnp.float16) @ b.astype(jnp.float16)).astype(jnp.float32))  # fmt: skip
def f16_product_in_f16(a, b):
    return dot(to_f16(a), to_f16(b), to_f16)


@planted("fma-contraction", normal((48,), (48,), (48,)), lambda x, a, b: (x * a + b) * x + a)
def horner_in_fused_steps(x, a, b):
    return fused(fused(x, a, b), x, a)


@planted("saturation", normal((64,), scale=3e4), lambda a: (a * 3).astype(jnp.float8_e5m2))
def fp8_e5m2_stops(a):
    grid = np.arange(256, dtype=np.uint8).view(E5M2).astype(np.float64)
    grid = np.unique(grid[np.isfinite(grid)])
    value = (a * np.float32(3)).astype(np.float64)
    nearest = np.abs(grid[None] - value[:, None]).argmin(axis=1)
    return grid[nearest].astype(E5M2)


def _int_convolution(x, w):
    return lax.conv_general_dilated(
        x, w, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC"),
        preferred_element_type=jnp.int32,
    )  # fmt: skip


def _taps(x, w):
    size = x.shape[1] - w.shape[0] + 1
    return sum(x[:, i : i + size].astype(int) @ w[i].astype(int) for i in range(w.shape[0]))


@planted("integer-wrap", integers(np.int8, (1, 12, 3), (3, 3, 4)), _int_convolution)
def int8_convolution_in_int8(x, w):
    return _taps(x, w).astype(np.int8).astype(np.int32)


@planted("other-implementation", normal((6, 16)), lambda x: jax.nn.softmax(x, axis=-1))
def softmax_with_a_poor_exp(x):
    """2**n times a polynomial of third degree: some fourteen bits."""
    y = (x - x.max(axis=-1, keepdims=True)) * np.float32(1.4426950408889634)
    n = np.round(y)
    r = (y - n) * np.float32(0.6931471805599453)
    p = 1 + r * (1 + r * (np.float32(0.5) + r * (np.float32(1 / 6) + r * np.float32(1 / 24))))
    e = np.ldexp(f32(p), n.astype(int))
    return e / e.sum(axis=-1, keepdims=True)
