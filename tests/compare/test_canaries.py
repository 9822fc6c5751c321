"""Faults seen in shipped comparison tools, each planted against a test that notices it."""

import math

import ml_dtypes
import numpy as np
import pytest

from parity.casefile.case import Tolerance
from parity.compare.metrics import measure
from parity.compare.rows import as_dict, compare_case
from parity.compare.tolerance import within
from parity.worker.protocol import References

bf16 = ml_dtypes.bfloat16
F32 = np.float32


def passes(got, want, **limits):
    return within(got, want, Tolerance(**limits), measure(got, want))


def test_rtol_and_atol_are_not_swapped():
    """An error of 1 at 1000: rtol 1e-2 allows 10, atol 1e-2 does not; at 1e-3, the reverse."""
    large = np.array([1001.0], F32), np.array([1000.0], F32)
    assert passes(*large, rtol=1e-2, atol=1e-9)
    assert not passes(*large, rtol=1e-9, atol=1e-2)
    small = np.array([2e-3], F32), np.array([1e-3], F32)
    assert passes(*small, rtol=1e-9, atol=1e-2)
    assert not passes(*small, rtol=1e-2, atol=1e-9)


def test_rtol_scales_with_what_is_wanted_not_with_what_is_got():
    assert passes(np.array([2.0]), np.array([4.0]), rtol=0.5)
    assert not passes(np.array([4.0]), np.array([2.0]), rtol=0.5)


def test_the_two_limits_add_and_max_ulp_does_not_replace_them():
    """|error| = 0.03 exactly between each limit alone and their sum (numpy's own rule)."""
    got, want = np.array([1.03125]), np.array([1.0])
    assert passes(got, want, rtol=0.02, atol=0.02)
    assert not passes(got, want, rtol=0.02)
    assert not passes(got, want, atol=0.02)
    np.testing.assert_allclose(got, want, rtol=0.02, atol=0.02)


def test_no_either_or():
    """One element passes by max_ulp only, the other by rtol only: neither limit holds for all."""
    tiny_ulp = np.array([1 + 2.0**-23], F32), np.array([1.0], F32)
    assert passes(*tiny_ulp, max_ulp=1)
    assert passes(*tiny_ulp, rtol=1e-6)
    assert not passes(*tiny_ulp, max_ulp=1, rtol=1e-8)
    assert not passes(*tiny_ulp, max_ulp=0.5, rtol=1e-6)


def test_nan_is_not_replaced_by_a_small_number():
    """np.nan_to_num or nanmax would call these equal or close."""
    got, want = np.array([np.nan, 1.0], F32), np.array([1e-30, 1.0])
    m = measure(got, want)
    for name in ("max_abs", "mean_abs", "max_rel", "max_ulp", "mean_ulp", "rms_rel", "cosine",
                 "sqnr_db", "bias_ulp", "min_rtol", "min_atol"):  # fmt: skip
        assert math.isnan(getattr(m, name)), name
    assert (m.nan_got, m.nan_want, m.pattern, m.differing) == (1, 0, 1, 1)
    assert math.isnan(m.worst[0].got)
    assert not passes(got, want, rtol=1e9, atol=1e9, max_ulp=1e300)


@pytest.mark.parametrize("wanted", [np.nan, np.inf, -np.inf])
def test_a_number_where_nan_or_infinity_is_wanted_does_not_pass(wanted):
    """Such elements have no error in figures; leaving them out must not let them through."""
    want = np.array([wanted, 1.0])
    assert not passes(np.array([1.0, 1.0]), want, rtol=1e9, atol=1e9, max_ulp=1e9)
    assert passes(np.array([wanted, 1.5]), want, rtol=1)


def test_nan_against_zero_and_inf_against_the_largest_number():
    assert not passes(np.array([np.nan]), np.array([0.0]), atol=1e300)
    largest = np.finfo(F32).max
    assert measure(np.array([np.inf], F32), np.array([largest], F32)).max_abs == math.inf
    assert not passes(np.array([np.inf], F32), np.array([largest], F32), max_ulp=1)


@pytest.mark.parametrize("wrong", [0, 499, 999])
def test_a_single_wrong_element_counts(wrong, make_case, make_outcome):
    """A mismatch that needs every element, or the mean, to differ would pass here."""
    base = np.ones(1000, F32)
    got = base.copy()
    got[wrong] = 1.5
    outcomes = [make_outcome("eager", base), make_outcome("jit", got)]
    row = compare_case(make_case(tolerance=Tolerance(rtol=0.1)), outcomes, References())[1]
    assert row.grade == "divergent"
    assert row.differing == 1
    assert row.baseline.worst[0].index == (wrong,)


@pytest.mark.parametrize("n", [1, 1000, 200_000])
def test_a_tolerance_does_not_grow_with_the_array(n):
    want = np.ones(n)
    got = want.copy()
    got[-1] += 1.5e-3
    assert not passes(got, want, rtol=1e-3)
    assert not passes(got, want, atol=1e-3)
    assert passes(got, want, rtol=1.6e-3)
    assert measure(got, want).min_rtol == measure(got[-1:], want[-1:]).min_rtol


def test_paths_are_compared_with_the_baseline_not_with_the_next_one(make_case, make_outcome):
    """Each step is 0.1, the whole way 0.3: neighbours agree within 0.15, the last does not."""
    outcomes = [
        make_outcome(path, np.array([value], F32))
        for path, value in (("eager", 1.0), ("jit", 1.1), ("native", 1.2), ("nonnative", 1.3))
    ]
    case = make_case(tolerance=Tolerance(atol=0.15))
    rows = compare_case(case, outcomes, References())
    assert [row.grade for row in rows] == ["identical", "equivalent", "divergent", "divergent"]
    assert rows[3].baseline.max_abs == pytest.approx(0.3, rel=1e-6)


def test_ulps_of_bfloat16_are_not_those_of_float32():
    """The neighbour of 1 in bfloat16 is 2^16 float32 steps away and 2^45 of float64."""
    got, want = np.array([1.0078125], bf16), np.array([1.0], bf16)
    assert measure(got, want).max_ulp == 1
    assert measure(got, want.astype(np.float64)).max_ulp == 1
    assert measure(np.array([448.0], ml_dtypes.float8_e4m3fn), np.array([416.0])).max_ulp == 1


def test_worst_elements_are_ordered_as_numbers_not_as_strings():
    ulps = np.array([9.0, 10.0, 100.0, 1e-5, 2.0])
    m = measure(np.ones(5, F32), 1 + ulps * 2.0**-23)
    assert [e.index[0] for e in m.worst] == [2, 1, 0, 4, 3]


def test_small_errors_are_not_rounded_away():
    m = measure(np.array([1.0], F32), np.array([1 + 1e-9]))
    assert m.max_abs == pytest.approx(1e-9, rel=1e-6)
    assert m.max_ulp == pytest.approx(1e-9 * 2**23, rel=1e-6)
    assert m.differing == 1


def test_metrics_do_not_depend_on_the_position_of_elements():
    generator = np.random.default_rng(3)
    want = generator.standard_normal(1000)
    got = want.astype(bf16)
    order = generator.permutation(1000)
    one, other = measure(got, want), measure(got[order], want[order])
    for name in ("max_abs", "max_rel", "max_ulp", "p99_ulp", "min_rtol", "histogram", "differing"):
        assert getattr(one, name) == getattr(other, name)


def test_rows_keep_the_sign_of_zero_and_the_bits(make_case, make_outcome):
    outcomes = [
        make_outcome("eager", np.array([0.0], F32)), make_outcome("jit", np.array([-0.0], F32)),
    ]  # fmt: skip
    row = compare_case(make_case(), outcomes, References())[1]
    assert row.grade == "divergent"
    flat = as_dict(row)
    assert math.copysign(1, flat["values"][0]) == -1
    assert flat["worst_baseline"][0]["got_bits"] == "0x80000000"
