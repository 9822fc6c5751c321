"""Where an output stands with its references; every interval here is written out by hand."""

import math

import ml_dtypes
import numpy as np
import pytest

from parity.compare.standing import FEWEST, contains, standing
from parity.worker.protocol import Enclosure

bf16 = ml_dtypes.bfloat16
F32 = np.float32
INF, NAN = np.inf, np.nan


def array(*values, dtype=F32):
    return np.array(values, dtype)


@pytest.fixture
def stands(make_references):
    """Where an output stands, of references given by keyword."""
    return lambda got, **references: standing(got, "out", make_references(**references))


@pytest.fixture
def inside():
    """Whether a value lies inside [lo, hi] about a point."""

    def one(value, point, lo, hi, dtype=F32):
        arrays = (np.array([x], dtype) for x in (point, lo, hi))
        return contains(Enclosure(*arrays), np.array([value], dtype)).all()

    return one


def test_an_interval_holds_its_ends(inside):
    assert inside(1.0, 2.0, 1.0, 3.0)
    assert inside(3.0, 2.0, 1.0, 3.0)
    assert not inside(np.nextafter(F32(1), F32(0)), 2.0, 1.0, 3.0)
    assert not inside(np.nextafter(F32(3), F32(4)), 2.0, 1.0, 3.0)


@pytest.mark.parametrize(
    ("lo", "hi", "zeros"),
    [
        (0.0, 0.0, "+"),
        (-0.0, -0.0, "-"),
        (-0.0, 0.0, "-+"),
        (-1.0, 1.0, "-+"),
        (-1.0, 0.0, "-+"),
        (-1.0, -0.0, "-"),
        (0.0, 1.0, "+"),
        (-0.0, 1.0, "-+"),
        (1.0, 2.0, ""),
    ],
)
def test_a_zero_is_inside_only_with_its_own_sign(inside, lo, hi, zeros):
    """-0 is below +0; only an interval that holds both by its ends holds the other sign."""
    assert inside(-0.0, hi, lo, hi) == ("-" in zeros)
    assert inside(0.0, hi, lo, hi) == ("+" in zeros)


def test_nan_is_inside_only_where_it_is_wanted(inside):
    assert inside(NAN, NAN, NAN, NAN)
    assert not inside(1.0, NAN, NAN, NAN)
    assert not inside(NAN, 1.0, -INF, INF)
    assert inside(INF, 3e38, 3e38, INF)
    assert not inside(INF, 3e38, 3e38, 3e38)


def test_an_end_that_overflows_to_nan_excludes_nothing(inside):
    """float8_e4m3fn has no infinity: beyond 448 an evaluation gives NaN."""
    fp8 = ml_dtypes.float8_e4m3fn
    assert inside(448.0, 448.0, 416.0, NAN, fp8)
    assert inside(NAN, 448.0, 416.0, NAN, fp8)
    assert not inside(384.0, 448.0, 416.0, NAN, fp8)
    assert inside(416.0, NAN, 416.0, NAN, fp8)
    assert not inside(384.0, NAN, 416.0, NAN, fp8)


def test_both_parts_of_a_complex_value_count(stands):
    strict = (array(1 + 1j, dtype="c8"), array(0 + 1j, dtype="c8"), array(2 + 1j, dtype="c8"))
    f64 = tuple(x.astype("c16") for x in strict)
    for value, held in ((2 + 1j, True), (1 + 2j, False), (3 + 1j, False), (complex(1, NAN), False)):
        found = stands(array(value, dtype="c8"), strict=strict, f64=f64)
        assert found.faithful == held
        assert found.inside.tolist() == [held]
        assert found.accurate == held


def test_integers_and_bool_have_no_interval(stands):
    strict, f64 = array(-56, dtype=np.int8), array(200, dtype=np.int64)
    assert stands(strict.copy(), strict=strict, f64=f64).faithful
    for value, accurate in ((-56, True), (-55, False)):
        found = stands(array(value, dtype=np.int8), strict=strict, f64=f64)
        assert (found.accurate, found.share) == (accurate, None)
    beyond = stands(
        np.array([2**63], np.uint64), strict=np.zeros(1, np.uint64), f64=np.array([2.0**63])
    )
    assert (beyond.faithful, beyond.accurate) == (False, True)
    yes = np.array([True])
    assert stands(yes, strict=yes, f64=yes).faithful
    assert not stands(~yes, strict=yes, f64=yes).accurate


def test_an_undecided_integer_is_neither_wrong_nor_unseen(stands):
    strict = array(3, 7, dtype=np.int32)
    got = array(4, 7, dtype=np.int32)
    found = stands(got, strict=strict, f64=strict, undecided=np.array([True, False]))
    assert (found.faithful, found.accurate, found.undecided) == (True, True, 1)
    found = stands(array(3, 8, dtype=np.int32), strict=strict, f64=strict,
                   undecided=np.array([True, False]))  # fmt: skip
    assert (found.faithful, found.accurate, found.undecided) == (False, False, 1)


def test_zero_size_is_faithful_and_has_no_share(stands):
    empty = np.zeros((0, 3), F32)
    found = stands(empty, strict=empty, f64=empty.astype(float))
    assert (found.faithful, found.accurate, found.share, found.vacuous) == (True, True, None, 0.0)


def test_no_standing_without_a_reference_of_the_same_form(stands):
    one = array(1.0)
    assert stands(one) is None
    assert stands(one, strict=one) is None
    assert stands(one, f64=one.astype(float)) is None
    assert stands(np.ones(1), strict=one, f64=np.ones(1)) is None
    assert stands(np.ones(2, F32), strict=one, f64=np.ones(1)) is None


def test_the_share_of_the_bound_is_taken_on_the_side_of_the_error(stands):
    """Above, 1 of 4 is used; below, 1 of 2."""
    f64 = (array(8.0, 8.0, dtype=float), array(6.0, 6.0, dtype=float), array(12.0, 12, dtype=float))
    strict = array(8, 8)
    assert stands(array(9, 8), strict=strict, f64=f64).share == 0.25
    assert stands(array(8, 7), strict=strict, f64=f64).share == 0.5
    assert stands(array(8, 8), strict=strict, f64=f64).share == 0.0
    beyond = stands(array(8, 5), strict=strict, f64=f64)
    assert (beyond.share, beyond.accurate) == (1.5, False)
    exactly = stands(array(12, 6), strict=strict, f64=f64)
    assert (exactly.share, exactly.accurate) == (1.0, True)
    of_nothing = stands(array(np.nextafter(F32(8), F32(9))), strict=array(8), f64=np.array([8.0]))
    assert (of_nothing.share, of_nothing.accurate) == (INF, False)


def test_infinities_in_outputs_and_bounds(stands):
    f64 = (array(3.4e38, dtype=float), array(3.3e38, dtype=float), array(INF, dtype=float))
    overflow = stands(array(INF), strict=array(3.4e38), f64=f64)
    assert (overflow.accurate, overflow.share) == (True, 0.0)
    finite = (array(8.0, dtype=float), array(6.0, dtype=float), array(12.0, dtype=float))
    nan = stands(array(NAN), strict=array(8.0), f64=finite)
    assert not nan.accurate
    assert math.isnan(nan.share)
    wanted = array(INF, 1.0, dtype=float)
    beside = stands(array(INF, 1.0), strict=array(INF, 1.0), f64=wanted)
    assert (beside.accurate, beside.faithful, beside.share) == (True, True, 0.0)
    huge = np.array([1e200, 3e200])  # the rms is 2.24e200, which no square of them shows
    assert stands(huge, strict=huge, f64=(huge, huge / 2, huge * 2)).vacuous == 0.5


def test_a_bound_beyond_the_rms_of_the_ideal_is_vacuous(stands):
    """rms of (3, 4, 0, 0) is 2.5: a bound of 2.5 still says something, 2.75 does not."""
    point = array(3.0, 4.0, 0.0, 0.0, dtype=float)
    f64 = (point, point - [0.5, 2.5, 0.5, 2.75], point + 0.5)
    strict = point.astype(F32)
    assert stands(strict.copy(), strict=strict, f64=f64).vacuous == 0.25
    astray = stands(array(3, 4, 0, 100), strict=strict, f64=f64)
    assert (astray.accurate, astray.faithful) == (True, False)
    assert not stands(array(3, 4, 100, 0), strict=strict, f64=f64).accurate


def test_unspecified_elements_count_nowhere(stands):
    mask = np.array([True, False])
    strict = array(NAN, 1.0)
    found = stands(array(5.0, 1.0), strict=strict, f64=strict.astype(float), unspecified=mask)
    assert (found.faithful, found.accurate, found.share, found.undecided) == (True, True, 0.0, 0)


def test_the_smallest_set_of_licences_that_holds_the_output(stands):
    point = array(1.0, 1.0)
    licensed = {
        "fma": (point, point, array(2.0, 1.0)),
        "expansion": (point, point, array(1.0, 2.0)),
        "fma+expansion": (point, point, array(2.0, 2.0)),
    }
    wide = {"strict": point, "licensed": licensed, "f64": (np.ones(2), np.zeros(2), np.full(2, 3))}
    for got, needed in (((1, 1), ""), ((2, 1), "fma"), ((1, 2), "expansion"),
                        ((2, 2), "fma+expansion")):  # fmt: skip
        found = stands(array(*got), **wide)
        assert (found.faithful, found.licences) == (True, needed)
    astray = stands(array(2.0, 3.0), **wide)
    assert (astray.faithful, astray.licences) == (False, "fma")
    assert astray.inside.tolist() == [True, False]


def test_a_model_is_named_only_where_strict_does_not_hold_the_output(stands):
    strict, kept = array(1.0, 2.0), array(1.5, 2.5)
    models = {"excess-precision": (kept, kept - 0.25, kept), "wide": kept + 1}
    wide = {"strict": strict, "models": models, "f64": (strict * 1.0, strict - 2, strict + 2)}
    assert stands(strict.copy(), **wide).model == ""
    assert stands(array(1.25, 2.5), **wide).model == "excess-precision"
    assert stands(array(2.5, 3.5), **wide).model == "wide"
    assert stands(array(1.5, 3.5), **wide).model == ""


STEP = 2.0**-22
POINT = 1 + np.arange(64, dtype=F32) * F32(2.0**-7)


def off_by(errors):
    """`POINT` with errors of so many steps of 2**-22, two ulps of float32; exact."""
    return (POINT + np.asarray(errors, float) * STEP).astype(F32)


@pytest.fixture
def summed(stands):
    """The aggregate test of a path inside a wide interval; honest orders are off by one step."""

    def of(got, honest, **more):
        reach = F32(64 * STEP)
        strict = (POINT, POINT - reach, POINT + reach)
        f64 = tuple(x.astype(float) for x in strict)
        orders = {name: (rms * STEP, mean * STEP) for name, (rms, mean) in honest.items()}
        found = stands(got, strict=strict, f64=f64, honest=orders, **more)
        assert found.inside.all()
        assert found.faithful == (not found.aggregate)
        return found.aggregate

    return of


ALTERNATING = np.tile([1.0, -1.0], 32)


def test_the_rms_distance_may_be_three_times_the_largest_of_the_honest_orders(summed):
    honest = {"sequential": (1.0, 0.0), "pairwise": (0.5, 0.0)}
    assert summed(off_by(3 * ALTERNATING), honest) == ""
    assert summed(off_by(4 * ALTERNATING), honest) == (
        "rms distance from strict 9.537e-07, honest orders at most 2.384e-07"
    )
    assert summed(off_by(4 * ALTERNATING), honest | {"reversed": (1.5, 0.0)}) == ""


def test_a_bias_counts_although_the_rms_distance_is_small(summed):
    """All errors of one sign: rms 2 of 3 allowed, mean 2 where chance alone gives 1/8."""
    honest = {"sequential": (1.0, 1 / 16)}
    assert summed(off_by(2 * ALTERNATING), honest) == ""
    assert summed(off_by(np.full(64, 2.0)), honest) == (
        "mean signed distance from strict 4.768e-07, honest orders at most 1.49e-08"
    )
    assert summed(off_by(np.full(64, -2.0)), honest).startswith("mean signed distance")
    assert summed(off_by(np.full(64, 2.0)), {"sequential": (1.0, -1.0)}) == ""


def test_a_few_ties_that_fall_the_other_way_are_chance(summed):
    """Honest orders made none fall: four flips of one ulp (half a step) may, sixteen may not."""
    exact = {"sequential": (0.0, 0.0)}
    flips = np.zeros(64)
    flips[[3, 40]], flips[[11, 50]] = 0.5, -0.5
    assert summed(off_by(flips), exact) == ""
    assert summed(off_by(ALTERNATING / 2 * (np.arange(64) < 16)), exact).startswith("rms distance")


def test_too_few_distinct_values_say_nothing_about_an_order(stands):
    def aggregate(distinct):
        point = np.repeat(POINT[:distinct], 4)
        strict = (point, point - 1, point + 1)
        f64 = tuple(x.astype(float) for x in strict)
        return stands(point + F32(0.5), strict=strict, f64=f64, honest={"a": (0.0, 0.0)}).aggregate

    assert aggregate(FEWEST - 1) == ""
    assert aggregate(FEWEST).startswith("rms distance")


def test_roundings_of_a_single_ideal_value_say_nothing_about_an_order(stands):
    """A difference of equal sums is 0 in `f64`, and what is left of them is their roundings."""
    strict = (POINT, POINT - 1, POINT + 1)
    f64 = tuple(np.full(POINT.shape, end) for end in (0.0, -100.0, 100.0))
    found = stands(POINT + F32(0.5), strict=strict, f64=f64, honest={"a": (0.0, 0.0)})
    assert (found.faithful, found.aggregate) == (True, "")


def test_no_aggregate_test_without_honest_orders(summed):
    assert summed(off_by(30 * ALTERNATING), {}) == ""


@pytest.mark.parametrize(
    ("ordered", "granted", "steps", "licences", "aggregate"),
    [
        (0, 8, 7, "expansion", ""),
        (64, 96, 30, "expansion", ""),
        (64, 65, 30, "", "rms distance from strict 7.153e-06, honest orders at most 2.384e-07"),
        (64, 65, 3, "", ""),
    ],
)
def test_a_licence_adds_what_it_widens_the_interval_by(
    stands, ordered, granted, steps, licences, aggregate
):
    """Honest orders are off by 1 step: 3 steps are theirs, the rest must be the licence's."""
    widths = [F32(n * STEP) for n in (ordered, granted, 128)]
    strict, licensed, wide = ((POINT, POINT - width, POINT + width) for width in widths)
    found = stands(
        off_by(steps * ALTERNATING),
        strict=strict,
        licensed={"expansion": licensed},
        f64=tuple(x.astype(float) for x in wide),
        honest={"sequential": (STEP, 0.0)},
    )
    assert (found.licences, found.aggregate) == (licences, aggregate)
    assert found.faithful == (not aggregate)


def test_unspecified_and_undecided_elements_are_not_in_the_aggregate(summed):
    """One element is 60 steps off: rms 7.5 of 3 allowed, unless it is left out."""
    errors, mask = np.zeros(64), np.zeros(64, bool)
    errors[5], mask[5] = 60, True
    honest = {"sequential": (1.0, 0.0)}
    assert summed(off_by(errors), honest).startswith("rms distance")
    assert summed(off_by(errors), honest, undecided=mask) == ""
    assert summed(off_by(errors), honest, unspecified=mask) == ""
