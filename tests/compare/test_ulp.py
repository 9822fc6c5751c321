"""Ulps against enumeration of every value and against exact rationals."""

import math
from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.compare.ulp import bits, ordinal, parts, steps, ulp
from parity.dtypes import DTYPES

SMALL = [d for d in DTYPES.values() if d.kind == "float" and d.bits <= 16]
FLOATS = [d for d in DTYPES.values() if d.kind == "float"]


def every_value(element):
    """The bits of a dtype's numbers, and these as Python floats."""
    raw = np.arange(1 << element.bits, dtype=f"u{element.numpy().itemsize}")
    with np.errstate(invalid="ignore"):
        values = raw.view(element.numpy()).astype(np.float64)
    number = ~np.isnan(values)
    return raw[number], values[number]


@pytest.mark.parametrize("element", SMALL, ids=lambda d: d.name)
def test_ordinals_number_all_values_without_gaps(element):
    raw, values = every_value(element)
    numbers = ordinal(raw, element)
    by_value = {}
    for value, number in zip(values.tolist(), numbers.tolist(), strict=True):
        assert by_value.setdefault(value, number) == number  # both zeros share theirs
    ascending = [by_value[v] for v in sorted(by_value)]
    assert ascending == list(range(ascending[0], ascending[0] + len(ascending)))
    if element.format.has_zero:
        assert by_value[0.0] == 0


@pytest.mark.parametrize("element", SMALL, ids=lambda d: d.name)
def test_ulp_is_the_gap_to_the_next_larger_magnitude(element):
    _, values = every_value(element)
    grid = sorted({v for v in values.tolist() if v >= 0 and math.isfinite(v)})
    for low, high in pairwise(grid):
        inside = [low, low + (high - low) / 2, math.nextafter(high, 0)]
        assert ulp(np.array(inside), element).tolist() == [high - low] * 3
        assert ulp(-np.array(inside), element).tolist() == [high - low] * 3


@pytest.mark.parametrize("element", FLOATS, ids=lambda d: d.name)
@given(x=st.floats(allow_nan=False, allow_infinity=False))
def test_ulp_by_its_definition(element, x):
    """The power of two 2^(e-p+1), 2^e <= |x| < 2^(e+1), by exact comparison of rationals."""
    e = max(math.frexp(x)[1] - 1, element.format.emin) if x else element.format.emin
    assert Fraction(2) ** e <= abs(Fraction(x)) < Fraction(2) ** (e + 1) or e == element.format.emin
    expected = Fraction(2) ** (e - element.format.precision + 1)
    assert Fraction(float(ulp(np.array(x), element))) == expected


def test_ulp_of_what_is_not_finite_is_nan():
    got = ulp(np.array([np.nan, np.inf, -np.inf, 1.0]), DTYPES["float32"])
    assert np.isnan(got[:3]).all()
    assert got[3] == 2.0**-23


def test_ulp_of_an_integer_type_is_refused():
    with pytest.raises(ValueError, match="int8 has no ulp: it is not floating"):
        ulp(np.array(1.0), DTYPES["int8"])


@given(
    a=st.floats(width=32, allow_nan=False),
    b=st.floats(width=32, allow_nan=False),
)
def test_steps_between_float32_are_symmetric_and_add_up(a, b):
    element = DTYPES["float32"]
    pair = np.array([a, b], np.float32)
    raw, zero = bits(pair), bits(np.zeros(2, np.float32))
    there = steps(raw[:1], raw[1:], element)
    assert there == steps(raw[1:], raw[:1], element)
    from_zero = [int(n) for n in steps(raw, zero, element)]
    apart = sum(from_zero) if (a < 0) != (b < 0) else abs(from_zero[0] - from_zero[1])
    assert int(there[0]) == apart


def test_steps_follow_nextafter():
    x = np.array([0.0, 1.0, -1.0, 65472.0, 5.96e-8], np.float16)
    up = np.nextafter(x, np.float16(np.inf))
    assert steps(bits(up), bits(x), DTYPES["float16"]).tolist() == [1] * 5


def test_steps_of_float64_may_exceed_int64():
    """From -max to max: twice the (2^11 - 2) 2^52 + 2^52 - 1 positive steps."""
    ends = np.array([np.finfo(float).max, -np.finfo(float).max])
    apart = steps(bits(ends[:1]), bits(ends[1:]), DTYPES["float64"])
    assert int(apart[0]) == 2 * ((2046 << 52) | ((1 << 52) - 1))
    assert int(apart[0]) > 2**63


def test_both_zeros_are_no_step_apart():
    for element in FLOATS:
        if element.format.negative_zero:
            zeros = bits(np.array([0.0, -0.0]).astype(element.numpy()))
            assert zeros[0] != zeros[1]
            assert steps(zeros[:1], zeros[1:], element) == 0


def test_parts_of_complex():
    z = np.array([[1 + 2j, 3 - 4j]], np.complex64)
    assert parts(z).tolist() == [[[1, 2], [3, -4]]]
    assert parts(z).dtype == np.float32
    assert parts(z[0, 1]).tolist() == [3, -4]
    bf16 = np.ones(2, ml_dtypes.bfloat16)
    assert parts(bf16) is bf16
