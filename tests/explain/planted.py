"""Programs with paths that compute something else, one family for each way to do so.

A program is a JAX function, which parity interprets; its path is plain NumPy of the same operands,
written without the interpreter.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from .arithmetic import dot, fused, parts, to_bf16, to_e4m3fn, to_f16, to_tf32

BF16 = ml_dtypes.bfloat16
E4M3 = ml_dtypes.float8_e4m3fn


@dataclass(frozen=True)
class Family:
    """One way to be wrong.

    Attributes:
        model: the name of the model that is planted.
        name: of the family.
        draw: from a generator, the operands.
        program: a JAX function of these.
        path: NumPy arrays to the output that the wrong path gives.
        x64: whether 64-bit types are on.
    """

    model: str
    name: str
    draw: Callable
    program: Callable
    path: Callable
    x64: bool = False


FAMILIES: list[Family] = []


def planted(model, draw, program, *, x64=False):
    """Register a path that computes as a model says, by its function's name."""

    def register(path):
        FAMILIES.append(Family(model, path.__name__, draw, program, path, x64))
        return path

    return register


def normal(*shapes, scale=1.0):
    return lambda rng: tuple((scale * rng.standard_normal(s)).astype(np.float32) for s in shapes)


def matrices(terms, *, rows=8, columns=8, dtype=np.float32):
    def draw(rng):
        return (
            rng.standard_normal((rows, terms)).astype(np.float32).astype(dtype),
            rng.standard_normal((terms, columns)).astype(np.float32).astype(dtype),
        )

    return draw


def f32(x):
    return np.asarray(x, np.float32)


# excess-precision and wide


def _bf16_product(a, b, c):
    product = a.astype(jnp.bfloat16) * b.astype(jnp.bfloat16)
    return product.astype(jnp.float32) + c


@planted("excess-precision", normal((40,), (40,), (40,)), _bf16_product)
def bf16_product_kept(a, b, c):
    return to_bf16(a) * to_bf16(b) + c


@planted("wide", normal((40,), (40,), (40,)), _bf16_product)
def bf16_product_all_wide(a, b, c):
    return a * b + c


def _f16_chain(a, b, c):
    a, b, c = (x.astype(jnp.float16) for x in (a, b, c))
    return ((a * b) * c + a).astype(jnp.float32)


@planted("excess-precision", normal((64,), (64,), (64,)), _f16_chain)
def f16_chain_kept(a, b, c):
    a, b, c = (to_f16(x) for x in (a, b, c))
    return (a * b) * c + a


@planted("wide", normal((64,), (64,), (64,)), _f16_chain)
def f16_chain_all_wide(a, b, c):
    return (a * b) * c + a


def _bf16_dot(a, b):
    return lax.dot(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)).astype(jnp.float32)


@planted("excess-precision", matrices(16), _bf16_dot)
def bf16_dot_kept(a, b):
    return dot(to_bf16(a), to_bf16(b))


@planted("wide", matrices(16), _bf16_dot)
def bf16_dot_all_wide(a, b):
    return dot(a, b)


def _bf16_softmax(x, y):
    x = x.astype(jnp.bfloat16) * y.astype(jnp.bfloat16)
    e = jnp.exp(x - x.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).astype(jnp.float32)


@planted("excess-precision", normal((8, 16), (8, 16)), _bf16_softmax)
def bf16_softmax_kept(x, y):
    x = to_bf16(x) * to_bf16(y)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# operands of contractions


def _dot(a, b):
    return lax.dot(a, b)


@planted("bf16-operands", matrices(64), _dot)
def dot_of_bf16(a, b):
    return dot(to_bf16(a), to_bf16(b))


@planted("bf16-operands", matrices(2048, rows=4, columns=8), _dot)
def long_dot_of_bf16(a, b):
    return dot(to_bf16(a), to_bf16(b))


@planted("tf32-operands", matrices(64), _dot)
def dot_of_tf32(a, b):
    return dot(to_tf32(a), to_tf32(b))


@planted("tf32-operands", matrices(2048, rows=4, columns=8), _dot)
def long_dot_of_tf32(a, b):
    return dot(to_tf32(a), to_tf32(b))


def _split_dot(a, b, kept):
    count = 1 + max(max(pair) for pair in kept)
    lhs, rhs = parts(a, count), parts(b, count)
    return sum((dot(lhs[i], rhs[j]) for i, j in reversed(kept)), np.float32(0))


X3 = ((0, 0), (0, 1), (1, 0))
X6 = (*X3, (1, 1), (0, 2), (2, 0))


@planted("bf16x3", matrices(8), _dot)
def dot_of_three(a, b):
    return _split_dot(a, b, X3)


def _conv(x, w):
    return lax.conv_general_dilated(
        x, w, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=2
    )


def _windows(x, w, product):
    out = []
    for group in range(2):
        channels = slice(2 * group, 2 * group + 2)
        columns = np.concatenate([x[0, i : x.shape[1] - 2 + i, channels] for i in range(3)], axis=1)
        out.append(product(columns, w[:, :, 2 * group : 2 * group + 2].reshape(6, 2)))
    return np.concatenate(out, axis=1)[None]


@planted("bf16x3", normal((1, 18, 4), (3, 2, 4)), _conv)
def convolution_of_three(x, w):
    return _windows(x, w, lambda a, b: _split_dot(a, b, X3))


@planted("tf32-operands", normal((1, 18, 4), (3, 2, 4)), _conv)
def convolution_of_tf32(x, w):
    return _windows(x, w, lambda a, b: dot(to_tf32(a), to_tf32(b)))


@planted("bf16x6", matrices(1, rows=24, columns=24), _dot)
def outer_product_of_six(a, b):
    return _split_dot(a, b, X6)


# narrow-accumulator


def _to_f32(a, b):
    return lax.dot(a, b, preferred_element_type=jnp.float32)


@planted("narrow-accumulator", matrices(48, dtype=BF16), _to_f32)
def bf16_dot_in_bf16(a, b):
    return dot(f32(a), f32(b), to_bf16)


@planted("narrow-accumulator", matrices(48, dtype=np.float16), _to_f32)
def f16_dot_in_f16(a, b):
    return dot(f32(a), f32(b), to_f16)


@planted("narrow-accumulator", matrices(64, rows=32, dtype=BF16), lambda a, b: a.sum(axis=1))
def bf16_sum_in_bf16(a, b):
    total = np.zeros(a.shape[0], np.float32)
    for column in f32(a).T:
        total = to_bf16(total + column)
    return total.astype(BF16)


# integers


def integers(dtype, *shapes, low=None, high=None):
    info = np.iinfo(dtype)
    ends = info.min if low is None else low, info.max if high is None else high
    return lambda rng: tuple(rng.integers(*ends, s, dtype, endpoint=True) for s in shapes)


@planted(
    "integer-wrap",
    integers(np.int8, (6, 10), (10, 6)),
    lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32),
)
def int8_dot_in_int8(a, b):
    return (a.astype(int) @ b.astype(int)).astype(np.int8).astype(np.int32)


@planted(
    "integer-wrap",
    integers(np.int8, (40,), (40,), (40,)),
    lambda a, b, c: a.astype(jnp.int32) * b.astype(jnp.int32) + c.astype(jnp.int32),
)
def widened_product_in_int8(a, b, c):
    return (a.astype(int) * b.astype(int) + c).astype(np.int8).astype(np.int32)


@planted(
    "integer-wrap",
    integers(np.int64, (40,), (40,), low=-(2**40), high=2**40),
    lambda a, b: a * b + b,
    x64=True,
)
def int64_in_int32(a, b):
    with np.errstate(over="ignore"):
        return (a * b + b).astype(np.int32).astype(np.int64)


@planted("saturation", integers(np.int32, (60,), low=-400, high=400), lambda a: a.astype(jnp.int8))
def int32_cast_stops(a):
    return np.clip(a, -128, 127).astype(np.int8)


@planted("saturation", integers(np.uint8, (60,), (60,)), lambda a, b: a + b)
def uint8_sum_stops(a, b):
    return np.minimum(a.astype(int) + b, 255).astype(np.uint8)


@planted("saturation", integers(np.int8, (6, 10), (10, 6)), lambda a, b: lax.dot(a, b))
def int8_dot_stops(a, b):
    return np.clip(a.astype(int) @ b.astype(int), -128, 127).astype(np.int8)


@planted("saturation", normal((64,), scale=400), lambda a: a.astype(jnp.float8_e4m3fn))
def fp8_cast_stops(a):
    return to_e4m3fn(a, beyond=448.0).astype(E4M3)


# roundings


def beside_midpoints(bits, scale, nudges):
    """Float32 values beside the midpoints of numbers of so many bits, by a relative nudge."""

    def draw(rng):
        middle = (2 * rng.integers(2 ** (bits - 1), 2**bits, 80) + 1) / 2.0**bits
        nudge = rng.choice(nudges, 80)
        return (f32(scale * middle * (1 + nudge) * rng.choice([-1, 1], 80)),)

    return draw


@planted(
    "double-rounding",
    beside_midpoints(4, 8.0, [-(2.0**-20), 2.0**-20]),
    lambda a: a.astype(jnp.float8_e4m3fn),
)
def fp8_by_way_of_f16(a):
    return to_e4m3fn(to_f16(a)).astype(E4M3)


@planted(
    "double-rounding",
    beside_midpoints(4, 8.0, [-1.5 * 2.0**-10, 1.5 * 2.0**-10]),
    lambda a: a.astype(jnp.float8_e4m3fn),
)
def fp8_by_way_of_bf16(a):
    return to_e4m3fn(to_bf16(a)).astype(E4M3)


def _near_bf16_midpoints(rng):
    middle = (2 * rng.integers(128, 256, 80) + 1) / 256.0
    return (middle * (1 + rng.choice([-1, 1], 80) * 2.0**-40),)


@planted("double-rounding", _near_bf16_midpoints, lambda a: a.astype(jnp.bfloat16), x64=True)
def bf16_by_way_of_f32(a):
    return to_bf16(a.astype(np.float32)).astype(BF16)


def small(rng):
    size = np.ldexp(rng.uniform(0.5, 1, (2, 64)), rng.integers(-68, -58, (2, 64)))
    return tuple(f32(size))


@planted("flush-subnormals", small, lambda a, b: a * b)
def subnormal_products_flushed(a, b):
    product = a.astype(np.float64) * b
    return f32(np.where(np.abs(product) < 2.0**-126, np.copysign(0, product), product))


@planted("flush-subnormals", small, lambda a, b: (a * b) * jnp.float32(2.0**64) + a)
def subnormal_products_flushed_inside(a, b):
    product = f32(a.astype(np.float64) * b)
    product = np.where(np.abs(product) < 2.0**-126, np.copysign(np.float32(0), product), product)
    return product * np.float32(2.0**64) + a


@planted("fma-contraction", normal((64,), (64,), (64,)), lambda a, b, c: a * b + c)
def product_into_sum(a, b, c):
    return fused(a, b, c)


@planted("fma-contraction", normal((64,), (64,), (64,)), lambda a, b, c: a * b - c * c)
def product_into_difference(a, b, c):
    return fused(a, b, -(c * c))


# fast-math


def cancelling(rng):
    a = rng.standard_normal(64) * 2.0 ** rng.integers(0, 12, 64)
    b, c = rng.standard_normal((2, 64))
    return f32(a), f32(b), f32(c)


@planted("fast-math", cancelling, lambda a, b, c: ((a + b) - a) + c)
def difference_simplified(a, b, c):
    return b + c


@planted("fast-math", normal((64,), (64,), (64,)), lambda a, b, c: (a + b) + c)
def sum_reassociated(a, b, c):
    return a + (b + c)


@planted("fast-math", normal((64,), (64,), (64,)), lambda a, b, c: a / c + b / c)
def reciprocal_shared(a, b, c):
    return (a + b) * (np.float32(1) / c)


# other-implementation


@planted("other-implementation", normal((64,)), jnp.exp)
def exp_by_squaring(a):
    """Of arguments twice as large, one draw in eight is beyond 2048 ulps: then no model holds."""
    x = np.float32(1) + f32(a / np.float32(64)) * (
        np.float32(1) + f32(a / np.float32(64)) * (np.float32(0.5) + f32(a) / np.float32(384))
    )
    for _ in range(6):
        x = x * x
    return f32(x)


@planted("other-implementation", normal((64,), scale=0.2), lambda a: jnp.tanh(a) * 2)
def tanh_by_exp(a):
    """Of arguments near 1, one draw in five is inside 4 ulps: then it is what was declared."""
    e = np.exp(f32(-2 * np.abs(a)))
    return np.copysign(f32((1 - e) / (1 + e)), a) * np.float32(2)


@planted(
    "other-implementation",
    normal((64,)),
    lambda a: jnp.tanh(a.astype(jnp.bfloat16)).astype(jnp.float32),
)
def tanh_off_in_bf16(a):
    off = np.abs(a.view(np.int32)) % 7 - 3  # -3 to 3 ulps of bfloat16
    return to_bf16(np.tanh(to_bf16(a)) * (1 + off * np.float32(2.0**-8)))
