"""The convolution kernel against its definition, evaluated in exact rationals."""

import itertools
import math
from fractions import Fraction
from typing import NamedTuple
from unittest import mock

import jax
import numpy as np
import pytest
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.dtypes import DTYPES
from parity.reference import convolution
from parity.reference.kernels import conv_general_dilated, implicit_zero_mask

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


class Conv(NamedTuple):
    """Shapes and attributes of a convolution."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    attributes: dict


def placed(values, axes):
    """Values put at the positions `axes`."""
    out = [None] * len(axes)
    for value, axis in zip(values, axes, strict=True):
        out[axis] = value
    return tuple(out)


@st.composite
def convolutions(draw):
    """Small convolutions over every attribute, empty arrays included."""
    rank = draw(st.sampled_from([1, 2, 2, 3, 0]))
    largest_size, most_taps, widest = [(0, 1, 1), (9, 3, 3), (4, 3, 2), (2, 2, 2)][rank]

    def per_axis(low, high):
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    def few(largest, count):
        sizes = st.sampled_from([*range(1, largest + 1)] * 12 + [0])
        return draw(st.lists(sizes, min_size=count, max_size=count))

    spatial, taps = few(largest_size, rank), per_axis(1, most_taps)
    lhs_dilation, rhs_dilation = per_axis(1, widest), per_axis(1, widest)
    padding = []
    for size, dilation in zip(spatial, lhs_dilation, strict=True):
        room = (size - 1) * dilation + 1 if size else 0
        low = draw(st.integers(-min(room, 2), 2))
        padding.append((low, draw(st.integers(-min(room + low, 2), 2))))
    batch, features, out_features = few(2, 3)
    by_feature, by_batch = draw(st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]))
    layouts = [tuple(draw(st.permutations(range(rank + 2)))) for _ in range(3)]
    return Conv(
        lhs=placed([batch * by_batch, features * by_feature, *spatial], layouts[0]),
        rhs=placed([out_features * by_feature * by_batch, features, *taps], layouts[1]),
        attributes={
            "window_strides": per_axis(1, 3),
            "padding": padding,
            "lhs_dilation": lhs_dilation,
            "rhs_dilation": rhs_dilation,
            "dimension_numbers": tuple(layouts),
            "feature_group_count": by_feature,
            "batch_group_count": by_batch,
        },
    )


def element(position, sizes, dilation):
    """Index of the element at a position among dilation holes and padding, None for a zero."""
    index = [at // step for at, step in zip(position, dilation, strict=True)]
    hole = any(at % step for at, step in zip(position, dilation, strict=True))
    inside = all(0 <= i < size for i, size in zip(index, sizes, strict=True))
    return index if inside and not hole else None


def windows(conv):
    """Output shape, and a list of (out index, lhs index, rhs index) for every product in a window.

    An index is None for an implicit zero: padding, a dilation hole of lhs, or one of rhs.
    """
    a = conv.attributes
    lhs_spec, rhs_spec, out_spec = a["dimension_numbers"]
    by_batch, by_feature = a["batch_group_count"], a["feature_group_count"]
    batch, _, *sizes = (conv.lhs[i] for i in lhs_spec)
    out_features, features, *taps = (conv.rhs[i] for i in rhs_spec)
    spans = [(k - 1) * d + 1 for k, d in zip(taps, a["rhs_dilation"], strict=True)]
    corners = []
    for size, span, dilation, (low, high), stride in zip(
        sizes, spans, a["lhs_dilation"], a["padding"], a["window_strides"], strict=True
    ):
        end = high + ((size - 1) * dilation + 1 if size else 0)
        corners.append([at for at in range(-low, end, stride) if at + span <= end])
    batch //= by_batch
    products = []
    for n, o in itertools.product(range(batch), range(out_features)):
        group = o // (out_features // (by_batch * by_feature))
        image = n + (group * batch if by_batch > 1 else 0)
        first = group * features if by_feature > 1 else 0
        for where in itertools.product(*(range(len(axis)) for axis in corners)):
            out = placed([n, o, *where], out_spec)
            for offset in itertools.product(*map(range, spans)):
                at = [axis[i] + k for axis, i, k in zip(corners, where, offset, strict=True)]
                of_lhs = element(at, sizes, a["lhs_dilation"])
                of_rhs = element(offset, taps, a["rhs_dilation"])
                for c in range(features):
                    left = (
                        of_lhs if of_lhs is None else placed([image, first + c, *of_lhs], lhs_spec)
                    )
                    right = of_rhs if of_rhs is None else placed([o, c, *of_rhs], rhs_spec)
                    products.append((out, left, right))
    return placed([batch, out_features, *map(len, corners)], out_spec), products


def summed(conv, lhs, rhs, initial=0):
    """The convolution by its definition, in the arithmetic of the elements (Python's own)."""
    shape, products = windows(conv)
    out = np.full(shape, initial, dtype=object)
    left, right = lhs.astype(object), rhs.astype(object)
    for where, i, j in products:
        if i is not None and j is not None:
            out[where] += left[i] * right[j]
    return out


def as_fractions(values):
    return np.vectorize(Fraction, otypes=[object])(values)


def small_integers(rng, shape, dtype):
    """Integers up to 8 in magnitude, as far as the dtype has them."""
    low = 0 if dtype.kind in ("uint", "bool") else -8
    values = rng.integers(low, 2 if dtype.kind == "bool" else 8, shape)
    if dtype.kind == "complex":
        values = values + 1j * rng.integers(low, 8, shape)
    return values.astype(dtype.numpy())


RESULT = {"float": "float64", "complex": "complex128", "int": "int64", "uint": "int64"}
KINDS = ("float64", "bfloat16", "float8_e4m3fn", "complex128", "complex64", "bool")
INTEGERS = ("int4", "int8", "int32", "int64", "uint8", "uint64")


@pytest.mark.parametrize("name", KINDS + INTEGERS)
@settings(max_examples=30, deadline=None)
@given(conv=convolutions(), rng=seeds, block=st.sampled_from([1, 500, 2**22]))
def test_integer_values_are_exact(name, conv, rng, block):
    lhs, rhs = (small_integers(rng, shape, DTYPES[name]) for shape in (conv.lhs, conv.rhs))
    with (
        mock.patch.object(convolution, "_BLOCK_BYTES", block),
        mock.patch.object(convolution, "_MIN_BLOCK_ROWS", 1),
    ):
        got = conv_general_dilated(lhs, rhs, **conv.attributes)
    if name == "bool":
        want = summed(conv, lhs.astype(int), rhs.astype(int)) > 0
    else:
        wide = RESULT[DTYPES[name].kind]
        want = summed(conv, lhs.astype(wide), rhs.astype(wide)).astype(wide)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want, strict=True)


def relative_bound(conv):
    """K * 2**-53, K the number of products in an element."""
    shape, out_feature = conv.rhs, conv.attributes["dimension_numbers"][1][0]
    terms = math.prod(n for axis, n in enumerate(shape) if axis != out_feature)
    return terms * Fraction(1, 2**53)


@settings(max_examples=150, deadline=None)
@given(conv=convolutions(), rng=seeds)
def test_reals_stay_within_the_bound(conv, rng):
    lhs, rhs = rng.normal(size=conv.lhs), rng.normal(size=conv.rhs)
    exact = summed(conv, as_fractions(lhs), as_fractions(rhs))
    magnitude = summed(conv, as_fractions(abs(lhs)), as_fractions(abs(rhs)))
    got = conv_general_dilated(lhs, rhs, **conv.attributes)
    assert got.shape == exact.shape
    assert (abs(as_fractions(got) - exact) <= relative_bound(conv) * magnitude).all()


@settings(max_examples=30, deadline=None)
@given(conv=convolutions(), rng=seeds)
def test_complex_parts_stay_within_the_bound(conv, rng):
    lhs, rhs = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in (conv.lhs, conv.rhs))
    a, b, c, d = map(as_fractions, (lhs.real, lhs.imag, rhs.real, rhs.imag))
    got = conv_general_dilated(lhs, rhs, **conv.attributes)
    for part, plus, minus in ((got.real, (a, c), (-b, d)), (got.imag, (a, d), (b, c))):
        exact = summed(conv, *plus) + summed(conv, *minus)
        magnitude = summed(conv, *map(abs, plus)) + summed(conv, *map(abs, minus))
        assert (abs(as_fractions(part) - exact) <= 2 * relative_bound(conv) * magnitude).all()


@pytest.mark.parametrize("name", ["int32", "int64", "uint32", "uint64"])
@settings(max_examples=20, deadline=None)
@given(conv=convolutions(), rng=seeds)
def test_wide_integers_do_not_wrap(name, conv, rng):
    low, high = DTYPES[name].integer_range
    lhs, rhs = (
        rng.integers(low, high, shape, name, endpoint=True) for shape in (conv.lhs, conv.rhs)
    )
    want = summed(conv, lhs, rhs)
    got = conv_general_dilated(lhs, rhs, **conv.attributes)
    assert got.shape == want.shape
    assert (got.astype(object) == want).all()


@settings(max_examples=100, deadline=None)
@given(conv=convolutions(), rng=seeds)
def test_implicit_zeros_do_not_meet_non_finite_values(conv, rng):
    operands = []
    for shape in (conv.lhs, conv.rhs):
        values = rng.integers(-3, 4, shape).astype(float)
        special = rng.choice([np.nan, np.inf, -np.inf], shape)
        operands.append(np.where(rng.random(shape) < 0.2, special, values))
    got = conv_general_dilated(*operands, **conv.attributes)
    np.testing.assert_array_equal(got, summed(conv, *operands, 0.0).astype(float), strict=True)


@settings(max_examples=100, deadline=None)
@given(conv=convolutions(), rng=seeds)
def test_mask_of_implicit_zeros(conv, rng):
    lhs, rhs = (rng.random(shape) < 0.1 for shape in (conv.lhs, conv.rhs))
    shape, products = windows(conv)
    want = np.zeros(shape, bool)
    for where, i, j in products:
        if i is None and j is not None:
            want[where] |= rhs[j]
        if j is None and i is not None:
            want[where] |= lhs[i]
    got = implicit_zero_mask(lhs, rhs, **conv.attributes)
    assert (got is None) == (not want.any())
    if got is not None:
        np.testing.assert_array_equal(got, want, strict=True)


def attributes(rank, **changes):
    """Plain attributes in the layout NC…, OI…, NC…."""
    spec = tuple(range(rank + 2))
    plain = {
        "window_strides": [1] * rank,
        "padding": [(0, 0)] * rank,
        "lhs_dilation": [1] * rank,
        "rhs_dilation": [1] * rank,
        "dimension_numbers": (spec, spec, spec),
        "feature_group_count": 1,
        "batch_group_count": 1,
    }
    return plain | changes


def test_complex_infinity_beside_padding_stays_where_it_is():
    lhs = np.full((1, 1, 3), 1 + 0j)
    rhs = np.array([[[complex(np.inf, 0), 1, 1]]])
    got = conv_general_dilated(lhs, rhs, **attributes(1, padding=[(1, 0)]))
    assert got[0, 0, 0] == 2
    assert not np.isfinite(got[0, 0, 1])


def test_cropped_values_do_not_contribute():
    lhs = np.array([[[np.nan, 1.0, 2.0, np.inf]]])
    rhs = np.array([[[3.0]]])
    got = conv_general_dilated(lhs, rhs, **attributes(1, padding=[(-1, -1)]))
    np.testing.assert_array_equal(got, [[[3.0, 6.0]]])


def test_a_kernel_larger_than_the_padded_input_gives_an_empty_output():
    got = conv_general_dilated(np.ones((2, 1, 3)), np.ones((4, 1, 5)), **attributes(1))
    assert got.shape == (2, 4, 0)


def test_overflow_is_silent():
    got = conv_general_dilated(
        np.full((1, 1, 1), 1e200), np.full((1, 1, 1), 1e200), **attributes(1)
    )
    assert got == np.inf


def test_the_operands_are_left_alone():
    lhs, rhs = np.ones((1, 1, 2)), np.ones((1, 1, 1))
    got = conv_general_dilated(lhs, rhs, **attributes(1))
    got[:] = 5
    assert (lhs == 1).all()


NHWC = ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
LARGER = {
    "same": ((2, 17, 19, 6), (3, 5, 6, 8), {"padding": [(1, 1), (2, 2)]}),
    "strided": ((2, 40, 40, 3), (7, 7, 3, 16), {"window_strides": [2, 3]}),
    "depthwise": ((1, 20, 20, 32), (3, 3, 1, 64), {"feature_group_count": 32}),
    "batch groups": ((6, 12, 12, 5), (3, 3, 5, 9), {"batch_group_count": 3}),
    "transposed": ((1, 9, 9, 8), (4, 4, 8, 8), {"lhs_dilation": [2, 2], "padding": [(2, 2)] * 2}),
    "dilated": ((2, 25, 25, 4), (3, 3, 4, 4), {"rhs_dilation": [3, 5], "padding": [(-1, 3)] * 2}),
    "as large as the input": ((3, 30, 30, 2), (30, 28, 2, 4), {"padding": [(1, 1), (0, 0)]}),
}


@pytest.mark.parametrize("name", LARGER)
def test_agrees_with_jax_in_float64(name):
    lhs_shape, rhs_shape, changes = LARGER[name]
    conv = attributes(2, dimension_numbers=NHWC, **changes)
    rng = np.random.default_rng(7)
    lhs, rhs = rng.normal(size=lhs_shape), rng.normal(size=rhs_shape)
    with jax.experimental.enable_x64():
        specs = jax.lax.ConvDimensionNumbers(*NHWC)
        want = jax.lax.conv_general_dilated(lhs, rhs, **conv | {"dimension_numbers": specs})
    size = conv_general_dilated(abs(lhs), abs(rhs), **conv)
    error = abs(conv_general_dilated(lhs, rhs, **conv) - np.asarray(want))
    assert want.dtype == np.float64
    assert (error <= 2 * math.prod(rhs_shape[:3]) * 2**-53 * size).all()


def test_agrees_with_scipy():
    rng = np.random.default_rng(8)
    lhs, rhs = rng.normal(size=(1, 5, 60, 50)), rng.normal(size=(1, 5, 9, 11))
    want = scipy.signal.correlate(lhs[0], rhs[0], mode="valid", method="direct")
    size = scipy.signal.correlate(abs(lhs[0]), abs(rhs[0]), mode="valid", method="direct")
    got = conv_general_dilated(lhs, rhs, **attributes(2))
    assert (abs(got[0] - want) <= 2 * rhs.size * 2**-53 * size).all()
