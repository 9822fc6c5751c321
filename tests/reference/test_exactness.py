"""Which sums are exact in every order, element by element, against the rule in fractions."""

from fractions import Fraction

import jax
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from parity.dtypes import DTYPES
from parity.reference.exactness import exact_products
from parity.reference.wide import widen

bf16 = ml_dtypes.bfloat16
F32 = np.float32


def by_rule(terms, precision=24, smallest=-149):
    """All terms multiples of 2**q, Σ|x| <= 2**(p + q); no q below the smallest number."""
    terms = [abs(term) for term in terms if term]
    if not terms:
        return True
    q = 0
    while any((term / Fraction(2) ** q).denominator != 1 for term in terms):
        q -= 1
    while all((term / Fraction(2) ** (q + 1)).denominator == 1 for term in terms):
        q += 1
    return q >= smallest and sum(terms) <= Fraction(2) ** (precision + q)


def found(function, lhs, rhs):
    """The answer for the one contraction of a function."""
    eqn = jax.make_jaxpr(function)(lhs, rhs).eqns[-1]
    total = np.asarray(function(np.abs(lhs).astype(F32), np.abs(rhs).astype(F32)), np.float64)
    return exact_products(eqn, widen(lhs), widen(rhs), total, DTYPES["float32"].format)


def matmul(a, b):
    return lax.dot(a, b, preferred_element_type=F32)


@pytest.mark.parametrize("terms", [1, 2, 3, 8])
@pytest.mark.parametrize("dtype", [bf16, np.float16, F32], ids=lambda d: d.__name__)
def test_a_dot(dtype, terms):
    rng = np.random.default_rng(terms)
    lhs, rhs = rng.standard_normal((12, terms)), rng.standard_normal((terms, 9))
    lhs[3], rhs[:, 4] = np.round(lhs[3] * 8), np.round(rhs[:, 4] * 8)
    lhs[5, 0] = rhs[0, 2] = 0
    lhs, rhs = lhs.astype(dtype), rhs.astype(dtype)
    want = [
        [by_rule([Fraction(float(x)) * Fraction(float(y)) for x, y in zip(row, col, strict=True)])
         for col in rhs.T]
        for row in lhs
    ]  # fmt: skip
    got = found(matmul, lhs, rhs)
    assert got.tolist() == want
    assert got.any()
    assert dtype != F32 or not got.all()


def test_padding_puts_no_bound_on_a_sum():
    """A window that holds only one of 1/3 and 2**20, beside zeros, is exact."""
    lhs = np.array([1 / 3, 0, 0, 2.0**20, 0], bf16).reshape(1, 5, 1)
    rhs = np.ones((3, 1, 1), bf16)

    def convolve(x, k):
        numbers = ("NWC", "WIO", "NWC")
        return lax.conv_general_dilated(
            x, k, (1,), [(1, 1)], dimension_numbers=numbers, preferred_element_type=F32
        )

    assert found(convolve, lhs, rhs).reshape(-1).tolist() == [True] * 5
    lhs[0, 1, 0] = 2.0**20  # 1/3 is 171 · 2**-9: 2**15 is the limit
    assert found(convolve, lhs, rhs).reshape(-1).tolist() == [False, False, True, True, True]


def test_products_below_the_smallest_number_are_not_exact():
    lhs, rhs = np.full((1, 2), 2.0**-75, F32), np.full((2, 1), 2.0**-75, F32)
    assert not found(matmul, lhs, rhs).any()
    assert found(matmul, lhs, rhs * 2).all()
