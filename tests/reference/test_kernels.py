"""The dot kernel against its definition, evaluated in exact rationals, and the kernels' dtypes."""

import itertools
import math
from fractions import Fraction
from typing import NamedTuple

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.dtypes import DTYPES
from parity.reference.kernels import dot_general

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


class Dot(NamedTuple):
    """A `dot_general` with a letter for each axis, as in einsum."""

    lhs: str
    rhs: str
    out: str
    dimension_numbers: tuple
    sizes: dict[str, int]

    def shape(self, letters):
        return tuple(self.sizes[letter] for letter in letters)

    @property
    def terms(self):
        return math.prod(self.sizes[k] for k in self.lhs if k not in self.out)


@st.composite
def dots(draw):
    """Small dots: up to two axes of each kind, in any order, empty arrays included."""
    batch, contract, lhs_free, rhs_free = (
        letters[: draw(st.integers(0, 2))] for letters in ("ab", "kl", "mn", "pq")
    )
    lhs = "".join(draw(st.permutations(batch + contract + lhs_free)))
    rhs = "".join(draw(st.permutations(batch + contract + rhs_free)))
    size = st.sampled_from([1, 2, 3] * 12 + [0])
    sizes = {letter: draw(size) for letter in sorted({*lhs, *rhs})}
    free = [x for x in lhs if x in lhs_free] + [x for x in rhs if x in rhs_free]
    return Dot(
        lhs,
        rhs,
        batch + "".join(free),
        tuple((tuple(map(lhs.index, x)), tuple(map(rhs.index, x))) for x in (contract, batch)),
        sizes,
    )


def summed(dot, lhs, rhs):
    """The dot by its definition, in the arithmetic of the elements (Python's own)."""
    out = np.full(dot.shape(dot.out), 0, dtype=object)
    left, right = np.asarray(lhs, object), np.asarray(rhs, object)
    for values in itertools.product(*map(range, dot.sizes.values())):
        at = dict(zip(dot.sizes, values, strict=True))
        i, j, where = (tuple(at[x] for x in letters) for letters in (dot.lhs, dot.rhs, dot.out))
        out[where] += left[i] * right[j]
    return out


def as_fractions(values):
    return np.vectorize(Fraction, otypes=[object])(values)


@pytest.mark.parametrize("name", ["float64", "float16", "complex64", "int8", "uint64", "bool"])
@settings(max_examples=40, deadline=None)
@given(dot=dots(), rng=seeds)
def test_integer_values_are_exact(name, dot, rng):
    kind = DTYPES[name].kind
    low, high = {"bool": (0, 2), "uint": (0, 9)}.get(kind, (-8, 9))
    lhs, rhs = (
        rng.integers(low, high, dot.shape(x)).astype(DTYPES[name].numpy())
        for x in (dot.lhs, dot.rhs)
    )
    if kind == "complex":
        lhs, rhs = lhs * (1 + 2j), rhs * (3 - 1j)
    wide = {"float": float, "complex": complex}.get(kind, int)
    want = summed(dot, lhs.astype(wide), rhs.astype(wide))
    want = want > 0 if kind == "bool" else want.astype(wide)
    got = dot_general(lhs, rhs, dimension_numbers=dot.dimension_numbers)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want, strict=True)


@settings(max_examples=150, deadline=None)
@given(dot=dots(), rng=seeds)
def test_reals_stay_within_the_bound(dot, rng):
    lhs, rhs = (rng.normal(size=dot.shape(x)) for x in (dot.lhs, dot.rhs))
    exact = summed(dot, as_fractions(lhs), as_fractions(rhs))
    magnitude = summed(dot, as_fractions(abs(lhs)), as_fractions(abs(rhs)))
    got = dot_general(lhs, rhs, dimension_numbers=dot.dimension_numbers)
    assert got.shape == exact.shape
    assert np.all(abs(as_fractions(got) - exact) <= dot.terms * Fraction(1, 2**53) * magnitude)


@settings(max_examples=50, deadline=None)
@given(dot=dots(), rng=seeds)
def test_complex_parts_stay_within_the_bound(dot, rng):
    a, b = (rng.normal(size=dot.shape(dot.lhs)) for _ in range(2))
    c, d = (rng.normal(size=dot.shape(dot.rhs)) for _ in range(2))
    got = dot_general(a + 1j * b, c + 1j * d, dimension_numbers=dot.dimension_numbers)
    a, b, c, d = map(as_fractions, (a, b, c, d))
    bound = 2 * dot.terms * Fraction(1, 2**53)
    for part, plus, minus in ((got.real, (a, c), (-b, d)), (got.imag, (a, d), (b, c))):
        exact = summed(dot, *plus) + summed(dot, *minus)
        magnitude = summed(dot, *map(abs, plus)) + summed(dot, *map(abs, minus))
        assert np.all(abs(as_fractions(part) - exact) <= bound * magnitude)


@pytest.mark.parametrize("name", ["int8", "int32", "int64", "uint32", "uint64"])
@settings(max_examples=30, deadline=None)
@given(dot=dots(), rng=seeds)
def test_wide_integers_do_not_wrap(name, dot, rng):
    lowest, highest = DTYPES[name].integer_range
    lhs, rhs = (
        rng.integers(lowest, highest, dot.shape(x), name, endpoint=True) for x in (dot.lhs, dot.rhs)
    )
    got = dot_general(lhs, rhs, dimension_numbers=dot.dimension_numbers)
    want = summed(dot, lhs, rhs)
    assert got.shape == want.shape
    assert (got.astype(object) == want).all()


def inner(lhs, rhs):
    return dot_general(lhs, rhs, dimension_numbers=(((0,), (0,)), ((), ())))


@pytest.mark.parametrize(
    ("lhs", "rhs", "want", "dtype"),
    [
        (np.full(3, -128, np.int8), np.full(3, -128, np.int8), 3 * 2**14, "int64"),
        (
            np.full(2, -(2**31), np.int32),
            np.full(2, 2**31 - 1, np.int32),
            -(2**63) + 2**32,
            "int64",
        ),
        (np.array([2**53 + 1]), np.array([1]), 2**53 + 1, "int64"),
        (np.full(2, -(2**63)), np.array([-1, 0]), 2**63, "uint64"),
        (np.array([2**64 - 1], np.uint64), np.array([1], np.uint8), 2**64 - 1, "uint64"),
        (np.full(2, 2**62), np.full(2, -4), -(2**65), "object"),
        (np.full(2, 2**63, np.uint64), np.full(2, 2, np.uint64), 2**65, "object"),
        (np.array([2**70], object), np.array([4], np.int8), 2**72, "object"),
        (np.array([-8, 7], ml_dtypes.int4), np.array([3, 15], ml_dtypes.uint4), 81, "int64"),
        (np.array([True, True]), np.array([5, 6], np.int8), 11, "int64"),
        (np.array([True, True]), np.array([True, True]), True, "bool"),
        (np.array([True, False]), np.array([False, True]), False, "bool"),
        (
            np.array([1.5, 2], ml_dtypes.bfloat16),
            np.array([2, 2**-24], np.float16),
            3 + 2**-23,
            "float64",
        ),
        (np.array([0.5], np.float32), np.array([3], np.int32), 1.5, "float64"),
        (np.array([1j], np.complex64), np.array([0.5]), 0.5j, "complex128"),
        (np.array([], np.int8), np.array([], np.int8), 0, "int64"),
    ],
)
def test_result(lhs, rhs, want, dtype):
    got = inner(lhs, rhs)
    assert got.dtype == dtype
    assert got.shape == ()
    assert got == want


def test_explicit_zero_times_infinity_is_nan():
    lhs = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    got = dot_general(lhs, np.array([[np.inf], [1.0]]), dimension_numbers=(((1,), (0,)), ((), ())))
    np.testing.assert_array_equal(got, [[np.nan], [np.inf], [np.inf]])


def test_overflow_is_silent():
    assert inner(np.array([1e200, 1.0]), np.array([-1e200, 1.0])) == -np.inf


def test_agrees_with_jax_in_float64():
    rng = np.random.default_rng(9)
    lhs, rhs = rng.normal(size=(4, 60, 3, 70)), rng.normal(size=(70, 4, 50, 3))
    numbers = (((2, 3), (3, 0)), ((0,), (1,)))
    with jax.experimental.enable_x64():
        want = np.asarray(jax.lax.dot_general(lhs, rhs, numbers))
    assert want.dtype == np.float64
    got = dot_general(lhs, rhs, dimension_numbers=numbers)
    magnitude = dot_general(abs(lhs), abs(rhs), dimension_numbers=numbers)
    assert got.shape == want.shape == (4, 60, 50)
    assert (abs(got - want) <= 2 * 210 * 2**-53 * magnitude).all()
