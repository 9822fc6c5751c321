import ml_dtypes
import numpy as np
import pytest

from parity.casefile.case import Tolerance
from parity.compare.grade import Graded, Targets, grade
from parity.compare.standing import standing

bf16 = ml_dtypes.bfloat16
F32 = np.float32


@pytest.fixture
def graded(make_references):
    """The grade of an output, of a baseline's output and of references given by keyword."""

    def one(got, *, baseline=None, tolerance=None, is_baseline=False, **given):
        references = make_references(**given)
        f64, strict = (
            of["out"].point if "out" in of else None for of in (references.f64, references.strict)
        )
        exclude = references.unspecified.get("out")
        targets = Targets(f64=f64, strict=strict, baseline=baseline, exclude=exclude)
        return grade(
            got,
            targets,
            targets.measure(got),
            own=standing(got, "out", references),
            other=None if baseline is None else standing(baseline, "out", references),
            tolerance=tolerance,
            is_baseline=is_baseline,
        )

    return one


def array(*values, dtype=F32):
    return np.array(values, dtype)


def test_equal_bits_are_identical_all_nans_equal(graded):
    got = array(1.0, np.nan)
    other = np.array([0x3F800000, 0xFFC00123], np.uint32).view(F32)
    assert graded(got, baseline=other) == Graded("identical")


@pytest.mark.parametrize(
    ("got", "baseline", "detail"),
    [
        (np.zeros((0, 8, 3), F32), np.zeros((0, 8, 2), F32), "shape (0,8,3), baseline (0,8,2)"),
        (np.zeros(2), np.zeros(2, F32), "dtype float64, baseline float32"),
        (array(np.nan, np.nan, np.nan), array(1, 2, 3),
         "NaN where the baseline has numbers: 3 elements"),
        (array(1.0, np.inf), array(np.inf, np.nan),
         "numbers where the baseline has inf: 1 element; "
         "inf where the baseline has NaN: 1 element"),
        (array(complex(1, np.nan), dtype=np.complex64), array(complex(1, -np.inf),
         dtype=np.complex64), "NaN where the baseline has -inf: 1 part"),
    ],
)  # fmt: skip
def test_mismatched(graded, got, baseline, detail):
    assert graded(got, baseline=baseline) == Graded("mismatched", detail)


def test_without_references_a_different_bit_is_divergent_and_says_how_much(graded):
    got = graded(array(1, 2 + 2.0**-22, 3), baseline=array(1, 2, 3))
    assert got == Graded(
        "divergent",
        "no reference; differs from the baseline in 1 of 3 elements, by at most 1 ulp",
    )
    assert graded(array(0.0), baseline=array(-0.0)).grade == "divergent"


# Powers of two in float32. The order interval reaches two ulps to each side (below a power of two
# that is four steps), the accuracy bound a quarter of the value; every value below is exact.
POINT = array(2, 4, 8)
ULP = POINT * F32(2.0**-23)
WITHIN = {"strict": (POINT, POINT - 2 * ULP, POINT + 2 * ULP)}
WITHIN["f64"] = tuple(np.array(x, float) for x in ([2, 4, 8], [1.5, 3, 6], [2.5, 5, 10]))
ACCURATE = POINT + array(0, 0.5, 0)
ASTRAY = POINT + array(0, 1.5, 0)


def test_other_bits_inside_the_order_interval_are_equivalent(graded):
    assert graded(POINT + 2 * ULP, baseline=POINT - 2 * ULP, **WITHIN) == Graded(
        "equivalent", "differs from the baseline in 3 of 3 elements, by at most 6 ulp"
    )


def test_outside_it_is_divergent_while_accurate_and_inaccurate_beyond(graded):
    assert graded(ACCURATE, baseline=POINT, **WITHIN) == Graded(
        "divergent",
        "outside the order interval in 1 of 3 elements; "
        "differs from the baseline in 1 of 3 elements, by at most 1048576 ulp",
    )
    assert graded(ASTRAY, baseline=POINT, **WITHIN) == Graded(
        "inaccurate",
        "outside the order interval in 1 of 3 elements; "
        "differs from the baseline in 1 of 3 elements, by at most 3145728 ulp",
    )


def test_one_step_beyond_the_end_is_outside(graded):
    for side in (-1, 1):
        reached = POINT + 2 * side * ULP
        beyond = np.nextafter(reached, POINT + 4 * side * ULP)
        assert graded(reached, baseline=POINT, **WITHIN).grade == "equivalent"
        assert graded(beyond, baseline=POINT, **WITHIN).grade == "divergent"


def test_it_is_said_when_the_baseline_is_the_one_that_is_not_faithful(graded):
    got = graded(POINT.copy(), baseline=ACCURATE, **WITHIN)
    assert got == Graded(
        "divergent",
        "baseline not faithful: outside the order interval in 1 of 3 elements; "
        "differs from the baseline in 1 of 3 elements, by at most 1048576 ulp",
    )
    both = graded(POINT + array(0.25, 0, 0), baseline=ACCURATE, **WITHIN)
    assert both.detail.startswith(
        "outside the order interval in 1 of 3 elements; "
        "baseline not faithful: outside the order interval in 1 of 3 elements; "
    )


def test_elements_with_the_baselines_bits_need_not_be_inside(graded):
    got = graded(ACCURATE + ULP * array(1, 0, 0), baseline=ACCURATE, **WITHIN)
    assert got == Graded(
        "equivalent", "differs from the baseline in 1 of 3 elements, by at most 1 ulp"
    )


def test_the_licences_that_either_side_needs_are_named(graded):
    at = {
        name: (POINT, POINT - reach, POINT + reach)
        for name, reach in (
            ("fma", array(0.25, 0, 0)),
            ("expansion", array(0, 0.25, 0)),
            ("fma+expansion", array(0.25, 0.25, 0)),
        )
    }
    fma, expansion = POINT + array(0.25, 0, 0), POINT + array(0, 0.25, 0)
    given = WITHIN | {"licensed": at}
    assert graded(fma, baseline=POINT, **given).grade == "equivalent"
    assert graded(fma, baseline=POINT, **given).detail.startswith("needs fma; differs")
    assert graded(POINT, baseline=fma, **given).detail.startswith("needs fma; differs")
    assert graded(fma, baseline=expansion, **given).detail.startswith("needs fma+expansion; ")
    assert graded(fma + expansion - POINT, baseline=fma, **given).detail.startswith(
        "needs fma+expansion; differs"
    )
    assert graded(fma, baseline=POINT, **WITHIN).grade == "divergent"
    # Outside in an element where it has the baseline's bits: the others may need a licence still.
    astray = array(0, 0, 1)
    assert graded(fma + astray, baseline=POINT + astray, **given).grade == "equivalent"


@pytest.mark.parametrize("model", ["excess-precision", "wide", "bf16-operands"])
def test_the_model_that_holds_the_output_is_named(graded, model):
    given = WITHIN | {"models": {model: ACCURATE}}
    got = graded(ACCURATE.copy(), baseline=POINT, **given)
    assert got.grade == "divergent"
    assert got.detail.startswith(f"{model}; differs from the baseline in 1 of 3")
    got = graded(POINT.copy(), baseline=ACCURATE, **given)
    assert got.detail.startswith(f"baseline not faithful: {model}; differs")
    astray = graded(ASTRAY.copy(), baseline=POINT, **WITHIN | {"models": {model: ASTRAY}})
    assert astray.grade == "inaccurate"
    assert astray.detail.startswith(model)


def test_a_flushed_subnormal_is_divergent_although_it_is_beyond_the_bound(graded):
    strict, flushed = array(2.0**-130, 1.0), array(0.0, 1.0)
    given = {"strict": strict, "f64": strict.astype(float)}
    flushes = given | {"models": {"flush-subnormals": flushed}}
    got = graded(flushed.copy(), baseline=strict, **flushes)
    assert got.grade == "divergent"
    assert got.detail.startswith("flush-subnormals; differs from the baseline in 1 of 2")
    assert graded(flushed.copy(), baseline=strict, **given).grade == "inaccurate"
    own = graded(flushed.copy(), is_baseline=True, **flushes)
    assert own == Graded("identical", "not faithful: flush-subnormals")
    assert graded(flushed.copy(), is_baseline=True, **given).grade == "inaccurate"


def test_the_aggregate_test_keeps_an_output_inside_from_being_equivalent(graded):
    point = 1 + np.arange(64, dtype=F32) / F32(128)
    strict, f64 = (point, point - 1, point + 1), tuple(np.float64(point + x) for x in (0, -1, 1))
    given = {"strict": strict, "f64": f64, "honest": {"sequential": (2.0**-10, 0.0)}}
    near, far = (point + F32(2.0**e) * np.tile(array(1, -1), 32) for e in (-10, -8))
    assert graded(near, baseline=point, **given).grade == "equivalent"
    got = graded(far, baseline=point, **given)
    assert got.grade == "divergent"
    assert got.detail.startswith(
        "rms distance from strict 0.003906, honest orders at most 0.0009766; differs"
    )
    # The baseline lies outside then, although each of its elements is inside.
    got = graded(near, baseline=far, **given)
    assert got.grade == "divergent"
    assert got.detail.startswith("baseline not faithful: rms distance from strict 0.003906, ")


def test_what_the_references_leave_open_is_said(graded):
    undecided = np.array([False, True, False])
    got = graded(ASTRAY, baseline=POINT, undecided=undecided, **WITHIN)
    assert got.grade == "equivalent"
    assert got.detail.endswith("; 1 undecided")
    got = graded(ASTRAY + array(1, 0, 0), baseline=POINT, undecided=undecided, **WITHIN)
    assert got.grade == "inaccurate"
    vacuous = WITHIN | {"f64": (WITHIN["f64"][0], WITHIN["f64"][1], np.array([2.5, 40, 10]))}
    got = graded(ASTRAY, baseline=POINT, **vacuous)
    assert got.grade == "divergent"
    assert got.detail.endswith("; bound vacuous for 33.3% of the elements")
    assert graded(ASTRAY + array(1, 0, 0), baseline=POINT, **vacuous).grade == "inaccurate"


@pytest.mark.parametrize(
    ("lo", "hi", "grade"),
    [
        (0.0, 0.0, "divergent"),
        (-0.0, 0.0, "equivalent"),
        (-1.0, 1.0, "equivalent"),
        (0.0, 1.0, "divergent"),
    ],
)
def test_a_zero_of_the_other_sign_agrees_only_inside_the_interval(graded, lo, hi, grade):
    f64 = tuple(np.array([x]) for x in (0.0, -2.0, 2.0))
    strict = (array(0.0), array(lo), array(hi))
    assert graded(array(-0.0), baseline=array(0.0), strict=strict, f64=f64).grade == grade


def test_complex_parts_are_judged_apart(graded):
    point = array(2 + 4j, 8 + 0j, dtype=np.complex64)
    reach = array(0.5 + 0.25j, 0, dtype=np.complex64)
    strict = (point, point - reach, point + reach)
    f64 = tuple(x.astype(np.complex128) for x in (point, point - 1 - 1j, point + 1 + 1j))
    given = {"baseline": point, "strict": strict, "f64": f64}
    for error, expected in (
        (0.5 - 0.25j, "equivalent"),
        (0.25 + 0.5j, "divergent"),
        (0.75, "divergent"),
        (1 + 1.5j, "inaccurate"),
    ):
        got = graded(point + array(error, 0, dtype=np.complex64), **given)
        assert got.grade == expected
    assert "outside the order interval in 1 of 2 elements" in got.detail


def test_zero_size_is_decided_by_shape_and_dtype(graded):
    empty = np.zeros((0, 4), F32)
    assert graded(empty, baseline=empty.copy()) == Graded("identical")
    given = {"strict": empty, "f64": empty.astype(float)}
    assert graded(empty, baseline=empty.copy(), **given) == Graded("identical")
    assert graded(empty, is_baseline=True, **given) == Graded("identical")
    assert graded(empty, **given) == Graded("equivalent", "no baseline")


def test_unspecified_elements_are_left_out(graded):
    given = {"strict": (array(2, 2), array(2, 1), array(2, 3)), "f64": np.array([2.0, 2.0])}
    mask = {"unspecified": np.array([True, False])}
    got = graded(array(np.nan, 1), baseline=array(2, 1), **mask)
    assert got == Graded("identical")
    got = graded(array(np.nan, 1), baseline=array(2, 3), **mask)
    assert got.grade == "divergent"
    assert got.detail.endswith("(1 unspecified left out)")
    got = graded(array(np.nan, 1), baseline=array(2, 3), **given, **mask)
    assert got.grade == "equivalent"
    assert got.detail.endswith("(1 unspecified left out)")
    assert graded(array(np.nan, 1), baseline=array(2, 3), **given).grade == "mismatched"


def test_baseline_against_the_references(graded):
    nan, inf = np.nan, np.inf
    own = {"is_baseline": True}
    f64 = (np.array([1.0]), np.array([0.25]), np.array([1.75]))
    got = graded(array(1.5), f64=f64, strict=array(1.0), **own)
    assert got == Graded("identical", "not faithful: outside the order interval in 1 of 1 elements")
    got = graded(array(1.875), f64=f64, strict=array(1.0), **own)
    assert got.grade == "inaccurate"
    assert graded(array(1.0), f64=f64, strict=array(1.0), **own) == Graded("identical")
    assert graded(array(1.0), **own) == Graded("identical", "no reference")
    got = graded(array(nan, 1), f64=np.array([2.0, 1.0]), strict=array(2, 1), **own)
    assert got == Graded("inaccurate", "NaN where f64 has numbers: 1 element")
    # 1e39 is beyond float32: strict overflows as well, which is what was declared
    overflow = {"f64": np.array([1e39, -1e39]), "strict": array(inf, -inf)}
    assert graded(array(inf, -inf), **overflow, **own) == Graded("identical")
    assert graded(array(inf, inf), **overflow, **own) == Graded(
        "inaccurate", "inf where f64 has numbers: 1 element"
    )
    got = graded(np.zeros(1), f64=np.zeros(1), strict=np.zeros(1, F32), **own)
    assert got == Graded("inaccurate", "dtype float64, declared float32")


def test_the_baselines_own_row_says_what_the_references_leave_open(graded):
    undecided = np.array([False, True, False])
    got = graded(POINT.copy(), is_baseline=True, undecided=undecided, **WITHIN)
    assert got == Graded("identical", "1 undecided")


def test_without_a_baseline_strict_stands_in_and_equivalent_is_the_best(graded):
    assert graded(POINT.copy(), **WITHIN) == Graded("equivalent", "no baseline")
    got = graded(POINT + ULP, **WITHIN)
    assert got == Graded(
        "equivalent", "no baseline; differs from strict in 3 of 3 elements, by at most 1 ulp"
    )
    got = graded(ACCURATE, **WITHIN)
    assert got == Graded(
        "divergent",
        "no baseline; outside the order interval in 1 of 3 elements; "
        "differs from strict in 1 of 3 elements, by at most 1048576 ulp",
    )
    assert graded(ASTRAY, **WITHIN).grade == "inaccurate"
    assert graded(array(2, 4, np.nan), **WITHIN).grade == "mismatched"
    assert graded(array(1, 2)) == Graded("divergent", "no baseline, no reference")


def test_a_tolerance_lifts_to_equivalent(graded):
    baseline = strict = array(1, 2, dtype=bf16)
    got = array(1.0078125, 2, dtype=bf16)
    f64 = tuple(np.array([x, 2.0]) for x in (1.0, 0.5, 1.5))
    targets = {"baseline": baseline, "strict": strict, "f64": f64}
    met = graded(got, tolerance=Tolerance(rtol=2.0**-7), **targets)
    assert met.grade == "equivalent"
    assert met.detail.endswith("within rtol 0.0078125 against baseline")
    missed = graded(got, tolerance=Tolerance(rtol=2.0**-8), **targets)
    assert missed.grade == "divergent"
    assert missed.detail.endswith("not within rtol 0.00390625 against baseline")
    assert graded(got, tolerance=Tolerance(max_ulp=1), **targets).grade == "equivalent"
    assert graded(got, tolerance=Tolerance(max_ulp=0.5), **targets).grade == "divergent"
    assert graded(got, tolerance=Tolerance(atol=2.0**-7), **targets).grade == "equivalent"
    f64 = Tolerance(max_ulp=1, against="f64")
    assert graded(got, tolerance=f64, **targets).grade == "equivalent"


def test_all_given_limits_must_hold(graded):
    f64 = tuple(np.array([x]) for x in (1.0, 0.5, 1.5))
    targets = {"baseline": array(1.0), "strict": array(1.0), "f64": f64}
    got = array(1 + 2.0**-20)  # 8 ulp
    assert graded(got, tolerance=Tolerance(rtol=1e-3, max_ulp=8), **targets).grade == "equivalent"
    assert graded(got, tolerance=Tolerance(rtol=1e-3, max_ulp=7), **targets).grade == "divergent"


def test_a_tolerance_does_not_lift_nan_or_another_dtype(graded):
    loose = Tolerance(rtol=1e9, atol=1e9)
    assert graded(array(np.nan), baseline=array(1.0), tolerance=loose).grade == "mismatched"
    assert graded(np.ones(1), baseline=array(2.0), tolerance=loose).grade == "mismatched"
    against = Tolerance(atol=1e9, against="f64")
    got = graded(array(np.inf), baseline=array(np.inf), f64=np.ones(1), tolerance=against)
    assert got.grade == "identical"
    got = graded(array(np.inf, 1), baseline=array(np.inf, 2), f64=np.ones(2), tolerance=against)
    assert got.grade == "divergent"
    assert got.detail.endswith("not within atol 1e+09 against f64")


def test_a_tolerance_that_strict_itself_fails_is_refused(graded):
    f64 = tuple(np.array([x]) for x in (1.0, 0.5, 1.5))
    targets = {"baseline": array(1.5), "f64": f64, "strict": array(1 + 3 * 2.0**-23)}
    got = graded(array(1.0), tolerance=Tolerance(max_ulp=2, against="f64"), **targets)
    assert got == Graded("divergent", "tolerance refused: strict itself is 3 ulp from f64", True)
    got = graded(array(1.0), tolerance=Tolerance(max_ulp=4, against="f64"), **targets)
    assert (got.grade, got.refused) == ("equivalent", False)


def test_integers_and_bool(graded):
    one = np.array([1, 2])
    ints = {"baseline": one, "strict": one, "f64": one}
    assert graded(np.array([1, 4]), tolerance=Tolerance(atol=2), **ints).grade == "equivalent"
    assert graded(np.array([1, 4]), tolerance=Tolerance(atol=1), **ints) == Graded(
        "inaccurate",
        "outside the order interval in 1 of 2 elements; differs from the baseline in 1 of 2"
        " elements, by at most 2 ulp; not within atol 1 against baseline",
    )
    bools = dict.fromkeys(("baseline", "strict", "f64"), np.array([True]))
    got = graded(np.array([False]), tolerance=Tolerance(atol=9), **bools)
    assert got.grade == "inaccurate"


def test_an_integer_that_does_not_wrap_is_divergent_from_one_that_does(graded):
    wrapped, ideal = np.array([-56], np.int8), np.array([200])
    given = {"strict": wrapped, "f64": ideal}
    said = "1 of 1 elements wrapped: the exact values need 9 bits"  # 200 and a sign
    assert graded(wrapped.copy(), is_baseline=True, **given) == Graded("identical", said)
    partly = {"strict": np.array([2, 0, 7], np.int8), "f64": np.array([2.5, np.nan, 7.0])}
    assert "wrapped" not in graded(partly["strict"].copy(), is_baseline=True, **partly).detail
    other = graded(np.array([100], np.int8), baseline=wrapped, **given)
    assert other.grade == "inaccurate"
    held = graded(np.array([2**63], np.uint64), baseline=np.zeros(1, np.uint64),
                  strict=np.zeros(1, np.uint64), f64=np.array([2.0**63]))  # fmt: skip
    assert held.grade == "divergent"
