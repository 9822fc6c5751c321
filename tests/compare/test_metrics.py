"""Metrics against values worked out by hand, by fractions or by another library."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.compare import metrics as module
from parity.compare.metrics import comparable, measure, scan_blocks
from parity.compare.tally import BUCKETS, LOWEST_BUCKET
from parity.dtypes import DTYPES
from parity.errors import ParityFault

bf16 = ml_dtypes.bfloat16
NUMERIC = (
    "max_abs", "mean_abs", "max_rel", "max_ulp", "mean_ulp", "p99_ulp", "bias_ulp", "rms_rel",
    "cosine", "sqnr_db", "min_rtol", "min_atol",
)  # fmt: skip


def test_every_metric_of_a_small_example():
    """got - want = 1/64, 0, -1/32; the ulps of bfloat16 at 1, 2, 4 are 1/128, 1/64, 1/32."""
    got = np.array([1 + 1 / 64, 2, 4 - 1 / 32], bf16)
    want = np.array([1.0, 2.0, 4.0])
    m = measure(got, want)
    assert (m.count, m.differing, m.excluded, m.nonfinite_want, m.pattern) == (3, 2, 0, 0, 0)
    assert m.max_abs == 1 / 32
    assert m.mean_abs == (1 / 64 + 1 / 32) / 3
    assert m.max_rel == 1 / 64
    assert m.max_ulp == 2
    assert m.mean_ulp == 1
    assert m.p99_ulp == 2
    assert m.bias_ulp == pytest.approx((2 - 1) / 3, rel=1e-15)
    assert m.rms_rel == pytest.approx(math.sqrt((1 / 64**2 + 1 / 32**2) / 21), rel=1e-14)
    dot = float(1 + 1 / 64 + 4 + 4 * (4 - 1 / 32))
    norm = math.sqrt((1 + 1 / 64) ** 2 + 4 + (4 - 1 / 32) ** 2)
    assert m.cosine == pytest.approx(dot / norm / math.sqrt(21), rel=1e-14)
    assert m.sqnr_db == pytest.approx(-10 * math.log10((1 / 64**2 + 1 / 32**2) / 21), rel=1e-14)
    assert m.min_rtol == 1 / 64
    assert m.min_atol == 1 / 32
    first, second = m.worst
    assert (first.index, first.got, first.want, first.ulp) == ((0,), 1 + 1 / 64, 1.0, 2)
    assert (first.got_bits, first.want_bits) == ("0x3f82", "0x3ff0000000000000")
    assert (second.index, second.ulp) == ((2,), 1)


def test_ulps_against_the_same_dtype_are_steps_on_its_grid():
    """Below 4 the spacing halves: 4 - 1/32 is two steps of 1/64 from 4, yet one ulp(4) from it."""
    got = np.array([4 - 1 / 32], bf16)
    assert measure(got, np.array([4.0])).max_ulp == 1
    assert measure(got, np.array([4.0], bf16)).max_ulp == 2


def test_identical_outputs():
    x = np.array([[1.5, -0.0], [3.0, 4.0]], np.float32)
    for want in (x, x.astype(np.float64)):
        m = measure(x, want)
        assert m.differing == m.max_abs == m.max_rel == m.max_ulp == m.rms_rel == m.min_rtol == 0
        assert m.sqnr_db == math.inf
        assert m.cosine == pytest.approx(1, rel=1e-15)
        assert m.worst == ()
        assert m.histogram == (4,) + (0,) * (BUCKETS - 1)


def test_signed_zeros_differ_between_equal_dtypes_and_are_equal_values_against_a_wider_one():
    got = np.array([-0.0, 0.0, -0.0], np.float32)
    strict = np.array([0.0, 0.0, -0.0], np.float32)
    m = measure(got, strict)
    assert (m.differing, m.max_ulp, m.max_abs) == (1, 0, 0)
    assert (m.negzero_got, m.negzero_want) == (2, 1)
    assert [e.index for e in m.worst] == [(0,)]
    assert measure(got, strict.astype(np.float64)).differing == 0


def test_special_values_are_counted_on_both_sides():
    nan, inf, tiny = math.nan, math.inf, 2.0**-130
    got = np.array([nan, inf, -inf, -0.0, tiny, 1.0, nan], np.float32)
    want = np.array([nan, inf, -inf, 0.0, 0.0, 2.0**-127, nan], np.float64)
    m = measure(got, want)
    assert (m.nan_got, m.posinf_got, m.neginf_got, m.negzero_got, m.subnormal_got) == (
        2,
        1,
        1,
        1,
        1,
    )
    assert (m.nan_want, m.posinf_want, m.neginf_want) == (2, 1, 1)
    assert (m.negzero_want, m.subnormal_want) == (0, 1)  # 2^-127 is subnormal in float32
    assert (m.nonfinite_want, m.pattern) == (4, 0)


def test_all_nans_are_equal_whatever_their_bits():
    got = np.array([0x7FC00000, 0xFFC00001, 0x7F800001], np.uint32).view(np.float32)
    want = np.full(3, np.nan, np.float32)
    m = measure(got, want)
    assert (m.differing, m.pattern, m.nonfinite_want) == (0, 0, 3)
    assert all(getattr(m, name) is None for name in NUMERIC)


def test_an_infinity_against_a_number_is_infinitely_far():
    m = measure(np.array([np.inf, 1.0], np.float32), np.array([1e30, 1.0]))
    assert m.max_abs == m.max_ulp == m.max_rel == m.rms_rel == m.min_atol == math.inf
    assert m.pattern == 1
    assert m.worst[0].ulp == math.inf


@pytest.mark.parametrize("bad", [1.0, -np.inf, np.nan])
def test_no_tolerance_passes_where_want_is_infinite_and_got_is_not(bad):
    m = measure(np.array([bad, 1.0], np.float32), np.array([np.inf, 1.0]))
    assert (m.max_abs, m.nonfinite_want, m.pattern, m.differing) == (0, 1, 1, 1)
    assert math.isnan(m.min_rtol)
    assert math.isnan(m.min_atol)
    assert m.worst[0].index == (0,)


def test_a_wanted_zero_makes_the_relative_error_infinite_or_zero():
    m = measure(np.array([0.0, 1e-30], np.float32), np.array([0.0, 0.0]))
    assert m.max_rel == m.rms_rel == m.min_rtol == math.inf
    assert m.cosine is None
    assert measure(np.zeros(2, np.float32), np.zeros(2)).max_rel == 0
    assert measure(np.zeros(2, np.float32), np.zeros(2)).rms_rel == 0


def test_zero_size_and_scalar():
    m = measure(np.zeros((0, 8), np.float32), np.zeros((0, 8)))
    assert (m.count, m.differing, m.histogram, m.worst) == (0, 0, None, ())
    assert all(getattr(m, name) is None for name in NUMERIC)
    m = measure(np.array(3.0, np.float32), np.array(4.0))
    assert (m.count, m.max_abs, m.worst[0].index) == (1, 1, ())


def test_excluded_elements_count_nowhere():
    got = np.array([[1.0, np.nan], [3.0, 5.0]], np.float32)
    want = np.array([[1.0, 2.0], [np.inf, 4.0]])
    m = measure(got, want, exclude=np.array([[False, True], [True, False]]))
    assert (m.count, m.excluded, m.differing, m.nan_got, m.pattern) == (4, 2, 1, 0, 0)
    assert m.max_abs == 1
    assert [e.index for e in m.worst] == [(1, 1)]


def test_complex_takes_modulus_for_size_and_the_worse_part_for_ulps():
    got = np.array([3 + 4j, 1 + 2.0**-22 * 1j], np.complex64)
    m = measure(got, np.array([0, 1], np.complex128))
    assert m.max_abs == 5
    assert m.mean_abs == (5 + 2.0**-22) / 2
    smallest = 2.0**-149  # ulp(0) in float32: the reference's part is 0
    assert m.max_ulp == 4 / smallest
    assert m.worst[1].ulp == 2.0**-22 / smallest
    assert m.worst[1].got_bits == "0x3f800000 0x34800000"


def test_complex_nan_in_one_part_is_not_hidden_by_an_infinity_in_the_other():
    m = measure(np.array([complex(np.nan, np.inf)], np.complex64), np.array([1 + 1j]))
    assert math.isnan(m.max_abs)
    assert math.isnan(m.max_ulp)


@pytest.mark.parametrize(
    ("got", "want", "distance"),
    [
        (np.array([127], np.int8), np.array([-128], np.int8), 255),
        (np.array([-(2**63)]), np.array([2**63 - 1]), 2**64 - 1),
        (np.array([-(2**63)]), np.array([2**64 - 1], np.uint64), 2**63 + 2**64 - 1),
        (np.array([0], np.uint64), np.array([2**64 - 1], np.uint64), 2**64 - 1),
        (np.array([2**53 + 1]), np.array([2**53]), 1),
        (np.array([7], np.int32), np.array([2.0**70]), 2**70 - 7),
        (np.array([3], ml_dtypes.int4), np.array([-5], ml_dtypes.int4), 8),
    ],
)
def test_integer_distances_are_exact_and_do_not_wrap(got, want, distance):
    m = measure(got, want)
    assert m.max_abs == distance
    assert isinstance(m.max_abs, int)
    assert m.differing == 1


@pytest.mark.parametrize("dtype", [np.int32, np.int64, ml_dtypes.int4])
def test_integers_of_what_is_no_number_are_left_out(dtype):
    """What the ideal has for `convert(NaN)` to an integer: no distance, but another pattern."""
    m = measure(np.array([-8, 7, 2, 5], dtype), np.array([np.nan, np.inf, 2.0, 3.0]))
    assert (m.count, m.nonfinite_want, m.pattern, m.differing) == (4, 2, 2, 3)
    assert (m.max_abs, m.max_ulp) == (2, 2)


def test_bool_is_only_counted():
    m = measure(np.array([[True, False]]), np.array([[True, True]]))
    assert (m.count, m.differing) == (2, 1)
    assert all(getattr(m, name) is None for name in NUMERIC)
    assert [(e.index, e.got, e.want, e.ulp) for e in m.worst] == [((0, 1), False, True, None)]


def test_worst_elements_are_eight_worst_first_and_ties_by_position():
    got = np.zeros((3, 4), np.float32)
    want = np.array([[1, 5, 5, 2], [9, 0, 3, 4], [7, np.nan, 6, 8]], np.float32)
    m = measure(got, want)
    assert [e.want for e in m.worst[1:]] == [9, 8, 7, 6, 5, 5, 4]
    assert math.isnan(m.worst[0].want)
    assert [e.index for e in m.worst[5:7]] == [(0, 1), (0, 2)]


def test_histogram_buckets():
    """Errors of 0, 2^-9, 2^-8, 1/2, 1, 3, 2^23, 2^24 ulp and NaN, one element each."""
    step = 2.0**-23  # of float32 from 1 to 2
    want = np.array([1, 1 + step * 2**-9, 1 + step * 2**-8, 1 + step / 2, 1 + step, 1 + 3 * step])
    got = np.array([1, 1, 1, 1, 1, 1, 2, 3, np.nan], np.float32)
    histogram = measure(got, np.append(want, [1, 1, 1])).histogram
    expected = [0] * BUCKETS
    for exponent in (-8, -1, 0, 1, 23):
        expected[exponent - LOWEST_BUCKET + 2] += 1
    expected[0] = expected[1] = 1
    expected[-1] = 2
    assert list(histogram) == expected


@pytest.mark.parametrize("n", [1, 2, 99, 100, 101, 200, 1000])
def test_p99_is_an_order_statistic(n):
    """Errors of 1..n ulp in any order: the smallest that ceil(0.99 n) of them do not exceed."""
    ulps = np.random.default_rng(n).permutation(np.arange(1, n + 1))
    want = np.ones(n, np.float32)
    got = (1 + ulps * 2.0**-23).astype(np.float32)
    assert measure(got, want).p99_ulp == -(-99 * n // 100)


def test_p99_of_a_large_output_is_within_one_part_in_256(monkeypatch):
    errors = np.random.default_rng(0).lognormal(size=5000)
    got, want = np.ones(5000, np.float32), 1 + errors * 2.0**-23
    exact = scan_blocks(got, want, DTYPES["float32"])[1]
    monkeypatch.setattr(module, "LARGE", 100)
    coarse = scan_blocks(got, want, DTYPES["float32"], block=1000)[1]
    assert coarse <= exact < coarse * (1 + 1 / 256)


def test_huge_and_tiny_float64_neither_overflow_nor_vanish():
    want = np.array([3.0, 4.0])
    for scale in (2.0**1000, 2.0**-1040):
        m = measure(want * scale * 1.5, want * scale)
        assert m.rms_rel == pytest.approx(0.5, rel=1e-14)
        assert m.cosine == pytest.approx(1, rel=1e-14)


@given(
    pairs=st.lists(
        st.tuples(st.floats(width=16, allow_nan=False, allow_infinity=False),
                  st.floats(-1e5, 1e5)),
        min_size=1, max_size=20,
    )
)  # fmt: skip
def test_min_rtol_passes_and_nothing_noticeably_smaller_does(pairs):
    got, want = (np.array(side) for side in zip(*pairs, strict=True))
    m = measure(got.astype(np.float16), want)
    if m.min_rtol == math.inf:
        largest = Fraction(np.finfo(float).max)
        assert any(abs(Fraction(g) - Fraction(w)) > largest * abs(Fraction(w)) for g, w in pairs)
        return
    error = np.abs(got - want)
    with np.errstate(over="ignore"):
        assert (error <= m.min_rtol * np.abs(want)).all()
        np.testing.assert_allclose(got, want, rtol=m.min_rtol, atol=0)
    smaller = Fraction(m.min_rtol) * (1 - Fraction(1, 2**50))
    if m.min_rtol > 0:
        exact = [(abs(Fraction(e)), abs(Fraction(w))) for e, w in zip(error, want, strict=True)]
        assert any(e > smaller * w for e, w in exact)


@given(
    st.lists(st.floats(allow_nan=True), min_size=1, max_size=40),
    st.lists(st.floats(allow_nan=True), min_size=1, max_size=40),
    st.sampled_from(["float32", "bfloat16", "float8_e4m3fn"]),
    st.integers(1, 7),
)
def test_blocks_do_not_change_the_metrics(a, b, name, block):
    n = min(len(a), len(b))
    with np.errstate(all="ignore"):
        got, want = (np.array(x[:n]).astype(DTYPES[name].numpy()) for x in (a, b))
        for target in (want, want.astype(np.float64)):
            whole = scan_blocks(got, target, DTYPES[name])
            cut = scan_blocks(got, target, DTYPES[name], block=block)
            assert_same(whole, cut)


def assert_same(one, other):
    """Equal tallies and percentiles; sums up to the order of addition."""
    (a, p), (b, q) = one, other
    assert p == q or (math.isnan(p) and math.isnan(q))
    for name in a.__slots__:
        if name == "sums":
            continue
        x, y = getattr(a, name), getattr(b, name)
        assert x == y or (x != x and y != y), name
    for name in ("absolute", "ulp"):
        np.testing.assert_allclose(getattr(a.sums, name), getattr(b.sums, name), rtol=1e-14)
    scale = 2.0 ** (2 * (a.sums.exponent - b.sums.exponent))
    for name in ("error_squared", "want_squared", "got_squared"):
        np.testing.assert_allclose(getattr(a.sums, name) * scale, getattr(b.sums, name), rtol=1e-13)


def test_what_can_be_compared():
    f32, f64 = np.zeros(2, np.float32), np.zeros(2)
    assert comparable(f32, f32)
    assert comparable(f32, f64)
    assert not comparable(f64, f32)
    assert not comparable(f32, np.zeros(3, np.float32))
    assert not comparable(f32, np.zeros(2, np.complex128))
    assert comparable(np.zeros(2, np.int8), np.zeros(2, np.uint64))
    assert not comparable(np.zeros(2, bool), np.zeros(2, np.int64))
    with pytest.raises(ParityFault, match=r"float32\(2,\) cannot be measured against float16"):
        measure(f32, np.zeros(2, np.float16))
