"""The one-step rounding against exact rationals: every value and midpoint of the narrow formats.

The values of a format come from ml_dtypes (NumPy for float16) by reading every bit pattern; what
a rational rounds to is then a search among them.
"""

import math
from bisect import bisect_right
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.dtypes import DTYPES, DType
from parity.reference.rounding import cast, round_to

NARROW = [d for d in DTYPES.values() if d.kind == "float" and d.bits <= 16]
SIGNED = [d for d in NARROW if d.name != "float8_e8m0fnu"]
NO_INFINITY = {
    "float8_e4m3fn": math.nan,
    "float8_e4m3fnuz": math.nan,
    "float8_e4m3b11fnuz": math.nan,
    "float8_e5m2fnuz": math.nan,
    "float8_e8m0fnu": math.nan,
    "float4_e2m1fn": 6.0,
}

by_name = pytest.mark.parametrize("dtype", NARROW, ids=lambda d: d.name)


@cache
def grid(dtype: DType) -> list[Fraction]:
    """The nonnegative finite values in the order of their codes, and the value that would follow.

    A code's lowest bit is that of the significand, so that an even index is an even significand.
    """
    codes = np.arange(2 ** (dtype.bits - 1) if dtype.bits < 16 else 2**15)
    if dtype.name == "float8_e8m0fnu":
        codes = np.arange(2**8)
    raw = codes.astype(np.uint16 if dtype.bits == 16 else np.uint8).view(dtype.numpy())
    with np.errstate(invalid="ignore"):  # half of the NaN codes are signalling
        decoded = raw.astype(np.float64).tolist()
    values = [Fraction(v) for v in decoded if math.isfinite(v)]
    assert values == sorted(values)
    step = values[-1] if dtype.name == "float8_e8m0fnu" else values[-1] - values[-2]
    return [*values, values[-1] + step]


def exactly_rounded(value: Fraction, dtype: DType) -> float:
    """A nonnegative rational rounded to nearest, ties to even, by comparison with each value."""
    values = grid(dtype)
    below = min(bisect_right(values, value) - 1, len(values) - 2)
    if below < 0:
        return float(values[0])  # float8_e8m0fnu has neither zero nor subnormals
    distance, gap = value - values[below], values[below + 1] - values[below]
    tie_goes_up = below % 2 == 1 or dtype.name == "float8_e8m0fnu"
    nearest = below + (2 * distance > gap or (2 * distance == gap and tie_goes_up))
    if nearest == len(values) - 1:
        return NO_INFINITY.get(dtype.name, math.inf)
    return float(values[nearest])


def assert_same(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])


@by_name
def test_every_value_is_kept(dtype):
    values = np.array([float(v) for v in grid(dtype)[:-1]])
    assert_same(round_to(values, dtype), values)
    if dtype in SIGNED:
        assert_same(round_to(-values[1:], dtype), -values[1:])


@by_name
def test_every_midpoint_and_its_neighbours(dtype):
    exact = [(a + b) / 2 for a, b in pairwise(grid(dtype))]
    midpoints = np.array([float(m) for m in exact])
    assert [Fraction(m) for m in midpoints.tolist()] == exact
    for doubles in (midpoints, np.nextafter(midpoints, 0), np.nextafter(midpoints, np.inf)):
        want = np.array([exactly_rounded(Fraction(d), dtype) for d in doubles.tolist()])
        assert_same(round_to(doubles, dtype), want)
        if dtype in SIGNED:
            negative = -want if dtype.format.negative_zero else -want + 0.0
            assert_same(round_to(-doubles, dtype), negative)


@by_name
@given(value=st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_any_double(dtype, value):
    want = exactly_rounded(Fraction(value), dtype)
    assert_same(round_to(np.array([value]), dtype), np.array([want]))


@given(code=st.integers(0, 0x7F7FFFFF), side=st.sampled_from([0.0, math.inf, None]))
def test_float32_midpoints(code, side):
    """Of two neighbours the nearer, at the midpoint the one with the even code."""
    low, high = (float(np.uint32(c).view(np.float32)) for c in (code, code + 1))
    exact_high = 2**128 if math.isinf(high) else Fraction(high)
    middle = float((Fraction(low) + exact_high) / 2)
    assert Fraction(middle) * 2 == Fraction(low) + exact_high
    double = middle if side is None else math.nextafter(middle, side)
    want = {0.0: low, math.inf: high, None: high if code % 2 else low}[side]
    for sign in (1.0, -1.0):
        got = round_to(np.array([sign * double]), DTYPES["float32"])
        assert_same(got, np.array([sign * want]))


def test_rounds_once_whatever_ml_dtypes_does():
    """ml_dtypes before 0.7 casts by way of float32: 1 + 2^-8 + 2^-30 is a tie there, then 1."""
    value = np.array([1 + 2**-8 + 2**-30])
    bfloat16 = DTYPES["bfloat16"]
    through_float32 = value.astype(np.float32).astype(bfloat16.numpy())
    assert through_float32.astype(np.float64) == 1.0
    assert round_to(value, bfloat16) == 1 + 2**-7
    assert cast(value, bfloat16).astype(np.float64) == 1 + 2**-7


@pytest.mark.parametrize(
    ("name", "value", "want"),
    [
        ("float8_e4m3fn", 464.0, 448.0),  # the tie between 448 and the NaN's 480
        ("float8_e4m3fn", 465.0, math.nan),
        ("float8_e4m3fn", math.inf, math.nan),
        ("float8_e5m2", 61440.0, math.inf),
        ("float8_e5m2", 61439.0, 57344.0),
        ("float8_e5m2", -math.inf, -math.inf),
        ("float16", 65519.99, 65504.0),
        ("float16", 65520.0, math.inf),
        ("float16", 2.0**-25, 0.0),
        ("float16", -(2.0**-25), -0.0),
        ("float4_e2m1fn", 5.0, 4.0),
        ("float4_e2m1fn", 1e300, 6.0),
        ("float4_e2m1fn", -math.inf, -6.0),
        ("float8_e4m3fnuz", -0.0, 0.0),
        ("float8_e4m3fnuz", -(2.0**-30), 0.0),
        ("float8_e8m0fnu", 0.0, math.nan),
        ("float8_e8m0fnu", -0.0, math.nan),
        ("float8_e8m0fnu", -1.0, math.nan),
        ("float8_e8m0fnu", 5e-324, 2.0**-127),
        ("float8_e8m0fnu", 3.0, 4.0),
        ("float8_e8m0fnu", math.inf, math.nan),
        ("bfloat16", 1.7e308, math.inf),
        ("float64", -0.0, -0.0),
        ("float64", 5e-324, 5e-324),
    ],
)
def test_edges(name, value, want):
    assert_same(round_to(np.array([value]), DTYPES[name]), np.array([want]))


@pytest.mark.parametrize(
    "dtype", [d for d in DTYPES.values() if d.is_inexact], ids=lambda d: d.name
)
def test_nan_stays_nan(dtype):
    wide = np.complex128 if dtype.kind == "complex" else np.float64
    nans = np.array([np.nan, -np.nan], dtype=wide)
    assert np.isnan(round_to(nans, dtype)).all()
    if dtype.name != "float4_e2m1fn":
        assert np.isnan(cast(nans, dtype).astype(wide)).all()


@by_name
def test_cast_gives_the_code_of_each_value(dtype):
    values = np.array([float(v) for v in grid(dtype)[:-1]])
    got = cast(values, dtype)
    assert got.dtype == dtype.numpy()
    codes = got.view(np.uint16 if dtype.bits == 16 else np.uint8)
    np.testing.assert_array_equal(codes, np.arange(len(values)))


@by_name
def test_cast_beyond_the_largest_value(dtype):
    got = cast(np.array([1e300]), dtype).astype(np.float64)
    assert_same(got, np.array([NO_INFINITY.get(dtype.name, math.inf)]))


def test_complex_parts_are_rounded_apart():
    half = 2.0**-24
    values = np.array([[complex(1 + half, 1e300), complex(-0.0, 3 * half + 1)]])
    want = np.array([[complex(1.0, math.inf), complex(-0.0, 1 + 4 * half)]])
    got = round_to(values, DTYPES["complex64"])
    assert got.dtype == np.complex128
    assert_same(got.view(np.float64), want.view(np.float64))
    assert cast(values, DTYPES["complex64"]).dtype == np.complex64


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (3, 4)])
def test_shape_is_kept(shape):
    values = np.full(shape, 1.001)
    assert round_to(values, DTYPES["bfloat16"]).shape == shape
    assert cast(values, DTYPES["bfloat16"]).shape == shape


@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16"])
def test_the_argument_is_left_alone_and_may_be_strided(name):
    values = np.arange(12.0).reshape(3, 4).T / 3
    before = values.copy()
    rounded = round_to(values, DTYPES[name])
    rounded[:] = 0
    np.testing.assert_array_equal(values, before)
    assert_same(
        round_to(values, DTYPES[name]), round_to(np.ascontiguousarray(values), DTYPES[name])
    )


@pytest.mark.parametrize("name", ["int8", "bool"])
def test_integers_are_refused(name):
    with pytest.raises(ValueError, match=f"cannot round to {name} .allowed: floating and complex"):
        round_to(np.zeros(1), DTYPES[name])
