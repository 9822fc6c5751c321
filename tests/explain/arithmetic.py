"""Roundings and sums written anew, from bits and exact rationals: nothing here is parity's."""

from fractions import Fraction

import numpy as np


def to_bf16(x):
    """Float32 values rounded to bfloat16, to nearest even on their bits; kept in float32."""
    return _cut(x, 16)


def to_tf32(x):
    """Float32 values rounded to eleven significant bits, likewise."""
    return _cut(x, 13)


def _cut(x, dropped):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    half = (1 << (dropped - 1)) - 1
    rounded = bits + half + ((bits >> dropped) & 1)
    kept = (rounded >> dropped) << dropped
    return kept.astype(np.uint32).view(np.float32).reshape(np.shape(x))


def to_f16(x):
    """Float32 values rounded to float16, by NumPy in one step; kept in float32."""
    with np.errstate(over="ignore"):
        return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


def parts(x, count):
    """Float32 values as a sum of bfloat16 ones, largest first."""
    found = []
    for _ in range(count):
        found.append(to_bf16(x))
        x = np.float32(x) - found[-1]
    return found


def dot(lhs, rhs, rounded=lambda x: x):
    """[M, K] times [K, N] in float32, product by product; each result rounded once more."""
    total = np.zeros((lhs.shape[0], rhs.shape[1]), np.float32)
    for k in range(lhs.shape[1]):
        product = rounded(np.float32(lhs[:, k, None]) * np.float32(rhs[None, k, :]))
        total = rounded(total + product)
    return total


def fused(a, b, c):
    """a·b + c in exact rationals, rounded once to float32."""
    flat = zip(*(np.broadcast_arrays(a, b, c)[i].ravel() for i in range(3)), strict=True)
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in flat]
    return np.array([_nearest(f, 24) for f in exact], np.float32).reshape(np.shape(a))


def _nearest(value, precision):
    """The nearest number of so many bits, ties to even; normal numbers only."""
    if value == 0:
        return 0.0
    size, exponent = abs(value), 0
    while size >= 2:
        size, exponent = size / 2, exponent + 1
    while size < 1:
        size, exponent = size * 2, exponent - 1
    scaled = size * 2 ** (precision - 1)
    whole = round(scaled)  # Python rounds a Fraction's ties to even
    return float(np.copysign(whole * 2.0 ** (exponent - precision + 1), float(value)))


_E4M3FN = sorted({
    float(m) * 2.0**-9 if not e else (8 + m) * 2.0 ** (e - 10)
    for e in range(16)
    for m in range(8)
    if (e, m) != (15, 7)
})  # fmt: skip


def to_e4m3fn(x, *, beyond=np.nan):
    """Values rounded to float8_e4m3fn by comparison with all of its values; kept in float64.

    Args:
        x: any floats.
        beyond: what is larger than 464, the midpoint after 448, becomes.
    """
    grid = np.array([*_E4M3FN, 480.0])
    size = np.abs(np.asarray(x, np.float64))
    above = np.searchsorted(grid, np.minimum(size, 470.0))
    above = np.clip(above, 1, len(grid) - 1)
    low, high = grid[above - 1], grid[above]
    middle = (low + high) / 2
    even = (above - 1) % 2 == 0
    nearest = np.where((size < middle) | ((size == middle) & even), low, high)
    nearest = np.where(nearest > 448, beyond, nearest)
    return np.copysign(nearest, x)
