"""Sums and products to full double accuracy, against exact rationals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from parity.reference.double_double import matrix_product, sum_last_axis, two_product, two_sum
from parity.reference.matrices import by_parts


def ill_conditioned(terms, condition, rng):
    """x, y and the exact x·y, whose condition number is about the one that is asked for.

    Source: Ogita, Rump and Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 26(6), 2005,
    algorithm 6.1 (GenDot).
    """
    half, bits = terms // 2, math.log2(condition)
    x, y = np.zeros(terms), np.zeros(terms)
    exponents = np.rint(rng.random(half) * bits / 2)
    exponents[0], exponents[-1] = np.rint(bits / 2) + 1, 0
    x[:half] = rng.uniform(-1, 1, half) * 2.0**exponents
    y[:half] = rng.uniform(-1, 1, half) * 2.0**exponents
    exact = exact_dot(x[:half], y[:half])
    for i, exponent in zip(
        range(half, terms), np.rint(np.linspace(bits / 2, 0, terms - half)), strict=True
    ):
        x[i] = rng.uniform(-1, 1) * 2.0**exponent
        y[i] = (rng.uniform(-1, 1) * 2.0**exponent - float(exact)) / x[i]
        exact += Fraction(x[i]) * Fraction(y[i])
    order = rng.permutation(terms)
    return x[order], y[order], exact


def exact_dot(x, y):
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))


def condition_number(x, y, exact):
    return float(2 * exact_dot(abs(x), abs(y)) / abs(exact))


@pytest.mark.parametrize("terms", [6, 64, 1000, 4096])
@pytest.mark.parametrize("condition", [1e4, 1e8, 1e12, 1e16, 1e20, 1e24])
def test_an_ill_conditioned_dot_is_rounded_once(terms, condition):
    rng = np.random.default_rng(terms)
    x, y, exact = ill_conditioned(terms, condition, rng)
    assert condition / 100 < condition_number(x, y, exact) < condition * 1e4
    assert matrix_product(x[None, None], y[None, None])[0, 0, 0] == float(exact)


@pytest.mark.parametrize("condition", [1e4, 1e12, 1e20])
def test_an_ill_conditioned_sum_is_rounded_once(condition):
    """Every product of an ill-conditioned dot is two terms, without error."""
    for terms in (4, 50, 3000):
        x, y, exact = ill_conditioned(terms, condition, np.random.default_rng(terms))
        both = np.concatenate(two_product(x, y))
        assert sum_last_axis(both) == float(exact) == math.fsum(both)


finite = st.floats(-(2.0**400), 2.0**400).filter(lambda x: x == 0 or abs(x) > 2.0**-400)


@given(finite, finite)
def test_the_transformations_are_free_of_error(a, b):
    for transformed, exact in (
        (two_sum(np.float64(a), np.float64(b)), Fraction(a) + Fraction(b)),
        (two_product(np.float64(a), np.float64(b)), Fraction(a) * Fraction(b)),
    ):
        high, low = map(float, transformed)
        assert Fraction(high) + Fraction(low) == exact
        assert high == float(exact)


@given(st.lists(st.tuples(st.integers(-(2**53), 2**53), st.integers(-40, 40)), max_size=200))
def test_a_sum_is_the_rounded_sum(parts):
    terms = np.array([m * 2.0**e for m, e in parts])
    assert sum_last_axis(terms) == math.fsum(terms)


@pytest.mark.parametrize("shape", [(2, 3, 5, 1), (1, 1, 1, 700), (3, 2, 4, 37), (1, 40, 50, 129)])
def test_every_element_of_a_batch_is_rounded_once(shape):
    """The number of lanes that one sum is split into depends on the shape."""
    batch, rows, columns, terms = shape
    rng = np.random.default_rng(terms)
    lhs = rng.normal(size=(batch, rows, terms)) * 10.0 ** rng.integers(-6, 6, terms)
    rhs = rng.normal(size=(batch, columns, terms))
    found = matrix_product(lhs, rhs)
    assert found.shape == (batch, rows, columns)
    for index in [(0, 0, 0), (batch - 1, rows - 1, columns - 1), (batch // 2, 0, columns // 2)]:
        b, i, j = index
        assert found[index] == float(exact_dot(lhs[b, i], rhs[b, j]))
    sums = sum_last_axis(lhs)
    assert [sums[0, i] for i in range(rows)] == [math.fsum(row) for row in lhs[0]]


def test_complex_parts_are_each_rounded_once():
    rng = np.random.default_rng(5)
    (ar, br, real), (ai, bi, _) = (ill_conditioned(300, 1e18, rng) for _ in range(2))
    lhs, rhs = (ar + 1j * ai)[None, None], (br + 1j * bi)[None, None]
    found = by_parts(matrix_product, lhs, rhs)[0, 0, 0]
    assert found.real == float(exact_dot(ar, br) - exact_dot(ai, bi))
    assert found.imag == float(exact_dot(ar, bi) + exact_dot(ai, br))
    assert real == exact_dot(ar, br)
    total = sum_last_axis(ar + 1j * ai)
    assert (total.real, total.imag) == (math.fsum(ar), math.fsum(ai))


def test_operands_that_would_overflow_fall_back_to_plain_float64():
    lhs, rhs = np.array([[[2.0**1000, 1.0]]]), np.array([[[2.0**-1000, 1.0]]])
    assert matrix_product(lhs, rhs).tolist() == [[[2.0]]]
    for special in (np.inf, -np.inf, np.nan):
        found = matrix_product(np.array([[[special, 1.0]]]), np.ones((1, 1, 2)))
        assert np.array_equal(found, [[[special]]], equal_nan=True)
        assert np.array_equal(sum_last_axis(np.array([special, 1.0])), special, equal_nan=True)
    parts = sum_last_axis(np.array([complex(1, np.inf), complex(2, 0)]))
    assert (parts.real, parts.imag) == (3.0, np.inf)


def test_nothing_to_add_is_zero():
    assert matrix_product(np.zeros((1, 2, 0)), np.zeros((1, 3, 0))).tolist() == [[[0.0] * 3] * 2]
    assert matrix_product(np.zeros((0, 2, 5)), np.zeros((0, 3, 5))).shape == (0, 2, 3)
    assert sum_last_axis(np.zeros((2, 0))).tolist() == [0.0, 0.0]
    assert sum_last_axis(np.zeros((0, 100))).shape == (0,)


def dot(x, y):
    return lax.dot_general(x, y, (((0,), (0,)), ((), ())))


def convolution(x, y):
    return lax.conv_general_dilated(x[None, None], y[None, None], (1,), "VALID").reshape(())


@pytest.mark.parametrize("function", [dot, convolution])
@pytest.mark.parametrize("condition", [1e12, 1e18])
def test_the_references_of_a_float64_contraction_have_full_double_accuracy(
    interpret, function, condition
):
    x, y, exact = ill_conditioned(4096, condition, np.random.default_rng(12))
    assert abs(Fraction(float(x @ y)) - exact) > abs(exact) / 10**10  # plain float64 does not
    found = interpret(function, x, y, x64=True)
    assert float(found.strict["out"].point) == float(exact)
    assert float(found.f64["out"].point) == float(exact)
    assert found.notes == ()
    for plain in (x @ y, np.cumsum(x * y)[-1], np.cumsum((x * y)[::-1])[-1]):
        assert found.strict["out"].lo <= plain <= found.strict["out"].hi
        assert found.f64["out"].lo <= plain <= found.f64["out"].hi


def test_the_references_of_a_float64_sum_have_full_double_accuracy(interpret):
    x, y, exact = ill_conditioned(2048, 1e16, np.random.default_rng(3))
    terms = np.stack([np.concatenate(two_product(x, y))] * 2)
    found = interpret(lambda x: lax.reduce_sum(x, (1,)), terms, x64=True)
    assert found.strict["out"].point.tolist() == [float(exact)] * 2
    assert found.f64["out"].point.tolist() == [float(exact)] * 2


def test_products_that_overflow_are_left_to_plain_float64_and_said_to_be(interpret):
    big = np.array([2.0**600, 1.0])
    found = interpret(dot, big, big, x64=True)
    assert (found.strict["out"].point, found.notes) == (np.inf, ())
    found = interpret(dot, np.array([2.0**1000, 0.0]), np.array([2.0**-1000, 1.0]), x64=True)
    assert found.strict["out"].point == 1.0
    assert found.notes == ("reference no wider than float64 in dot_general",)
