"""The yardstick of the suite, checked against fractions, JAX and enumeration."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from parity.program.build import build

from .contraction import DRAWS, DTYPES, EMIN, PRECISION, SCHEMES, Contraction, draw
from .faults import to_tf32
from .geometry import GEOMETRIES, Dot
from .honest import HONEST, fused
from .visible import exact_sums, judge, nearest


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_the_products_are_those_that_jax_adds(geometry):
    """On integers every order is exact; the fields of the op and the list of products agree."""
    contraction = draw(geometry, SCHEMES[0], "integers", 3)
    (want,) = build(contraction.spec).function(*contraction.inputs)
    for name in ("sequential", "8 lanes", "split in 7", "fma"):
        assert np.array_equal(contraction.output(HONEST[name](*contraction.factors)), want)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)
def test_the_declared_dtypes_are_those_of_the_program(scheme):
    contraction = draw(GEOMETRIES[3], scheme, "integers", 3)
    (want,) = build(contraction.spec).function(*contraction.inputs)
    got = contraction.output(HONEST["sequential"](*contraction.factors))
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert np.array_equal(got, np.asarray(want))


@pytest.mark.parametrize("data", [data for data in DRAWS if data != "nan"])
def test_exact_sums_are_those_of_fractions(data):
    a, b = draw(GEOMETRIES[5], SCHEMES[0], data, 5).factors
    exact = exact_sums(a, b)
    unit = Fraction(2) ** exact.exponent
    for g, m, n in np.ndindex(exact.value.shape):
        terms = [
            Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[g, m], b[g, n], strict=True)
        ]
        assert exact.value[g, m, n] * unit == sum(terms)
        assert exact.magnitude[g, m, n] * unit == sum(map(abs, terms))
        quantum = Fraction(2) ** int(exact.quantum[g, m, n])
        assert all((term / quantum).denominator == 1 for term in terms)
        if any(terms):
            assert any((term / (2 * quantum)).denominator != 1 for term in terms)


@pytest.mark.parametrize("name", DTYPES)
def test_rounding_takes_the_nearest_neighbour_and_the_even_one_of_two(name):
    rng = np.random.default_rng(0)
    p, emin = PRECISION[name], EMIN[name]
    for _ in range(400):
        exponent = int(rng.integers(emin - 3, emin + 25))  # subnormals, the border, normals
        value = int(rng.integers(1, 1 << (p + 3))) * (1 if rng.random() < 0.5 else -1)
        unit = exponent - p - 1
        got = Fraction(nearest(value, unit, name))
        exact = value * Fraction(2) ** unit
        top = (value.bit_length() - 1) + unit
        step = Fraction(2) ** (max(top, emin) - p + 1)
        assert (got / step).denominator == 1
        assert abs(got - exact) <= step / 2
        if abs(got - exact) == step / 2:
            assert (got / step).numerator % 2 == 0
    assert nearest(1, 200, name) == np.inf
    assert nearest(-1, 200, name) == -np.inf


def test_fma_rounds_once():
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((1, 40, 2)).astype(np.float32) for _ in range(2))
    got = fused(a, b)
    for m, n in product(range(40), repeat=2):
        first = nearest(*_dyadic(_exact(a[0, m, 0]) * _exact(b[0, n, 0])), "float32")
        second = _exact(first) + _exact(a[0, m, 1]) * _exact(b[0, n, 1])
        assert got[0, m, n] == nearest(*_dyadic(second), "float32")


def _exact(x):
    return Fraction(float(x))


def _dyadic(x):
    return x.numerator, 1 - x.denominator.bit_length()


def test_tf32_keeps_ten_explicit_bits():
    rng = np.random.default_rng(2)
    x = (rng.standard_normal(500) * 2.0 ** rng.integers(-20, 20, 500)).astype(np.float32)
    x[:4] = [1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11, np.nan]  # ties, then NaN
    got = to_tf32(x)
    mantissa, exponent = np.frexp(x[:-1].astype(float))
    want = np.ldexp(np.round(np.ldexp(mantissa, 11)), exponent - 11)  # np.round: ties to even
    assert np.array_equal(got[:-1], want, equal_nan=True)
    assert got[:3].tolist() == [1.0, 1 + 2.0**-9, -1.0]


def of_two(scheme, *rhs):
    """1·rhs[0] + 1·rhs[1]."""
    dot = Dot("two products", (1, 2), (2, 1), ("mk", "kn"))
    cast = DTYPES[scheme.operands]
    inputs = (np.ones((1, 2), cast), np.array(rhs)[:, None].astype(cast))
    return judge(Contraction(dot, scheme, "by hand", inputs))


def test_an_enclosure_worked_out_by_hand():
    """1 + 2**-24 ± 2 · 2**-24 · (1 + 2**-24); float32 has steps of 2**-24 below 1, 2**-23 above."""
    f32 = of_two(SCHEMES[0], 1.0, 2.0**-24)
    assert (f32.low, f32.declared, f32.high) == (1 - 2.0**-24, 1.0, 1 + 2.0**-22)


def test_an_exact_sum_has_one_value():
    """1 + 2**-8 is exact in float32 in either order, and a tie in bfloat16."""
    bf16 = next(scheme for scheme in SCHEMES if scheme.name == "bf16")
    found = of_two(bf16, 1.0, 2.0**-8)
    assert (found.low, found.declared, found.high) == (1.0, 1.0, 1.0)


def test_what_is_possible_of_zeros():
    contraction = draw(GEOMETRIES[0], SCHEMES[0], "zeros", 0)
    exact = judge(contraction)
    out = contraction.output(HONEST["sequential"](*contraction.factors))
    assert np.signbit(out).any()
    assert not exact.visible(out)
    assert not exact.visible(np.abs(out))  # an accumulator that begins at +0
    assert exact.visible(out.astype(DTYPES["bfloat16"]))
    assert exact.visible(out[:-1])
    moved = out.copy()
    moved[3, 4] = 2.0**-149
    assert exact.impossible(moved).sum() == 1


def test_what_is_possible_beside_nans():
    """A NaN in lhs is a NaN in the output; where it meets a hole of rhs, nothing is declared."""
    dilated = next(geometry for geometry in GEOMETRIES if geometry.name == "conv dilated")
    contraction = draw(dilated, SCHEMES[0], "nan", 1)
    exact = judge(contraction)
    nan = np.isnan(exact.declared)
    assert nan.any()
    assert exact.unspecified.any()
    assert not (nan & exact.unspecified).any()
    zeros = np.zeros_like(exact.honest["sequential"])
    assert exact.impossible(zeros)[nan].all()
    assert not exact.impossible(zeros)[exact.unspecified].any()
