import ml_dtypes
import numpy as np
import pytest

from parity.casefile.case import Tolerance
from parity.compare.grade import Graded, Targets, grade

bf16 = ml_dtypes.bfloat16
F32 = np.float32


def graded(got, *, tolerance=None, is_baseline=False, **targets):
    targets = Targets(**targets)
    return grade(got, targets, targets.measure(got), tolerance=tolerance, is_baseline=is_baseline)


def array(*values, dtype=F32):
    return np.array(values, dtype)


def test_equal_bits_are_identical_all_nans_equal():
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
def test_mismatched(got, baseline, detail):
    assert graded(got, baseline=baseline) == Graded("mismatched", detail)


def test_a_different_bit_is_divergent_and_says_how_much():
    got = graded(array(1, 2 + 2.0**-22, 3), baseline=array(1, 2, 3))
    assert got == Graded(
        "divergent", "differs from the baseline in 1 of 3 elements, by at most 1 ulp"
    )
    assert graded(array(0.0), baseline=array(-0.0)).grade == "divergent"


def test_zero_size_is_decided_by_shape_and_dtype():
    empty = np.zeros((0, 4), F32)
    assert graded(empty, baseline=empty.copy()) == Graded("identical")


def test_unspecified_elements_are_left_out():
    exclude = np.array([True, False])
    got = graded(array(np.nan, 1), baseline=array(2, 1), exclude=exclude)
    assert got == Graded("identical")
    got = graded(array(np.nan, 1), baseline=array(2, 3), exclude=exclude)
    assert got.grade == "divergent"
    assert got.detail.endswith("(1 unspecified left out)")


def test_baseline_against_the_references():
    nan, inf = np.nan, np.inf
    own = {"is_baseline": True}
    assert graded(array(1.5), f64=np.array([1.0]), strict=array(1.0), **own).grade == "identical"
    got = graded(array(nan, 1), f64=np.array([2.0, 1.0]), strict=array(2, 1), **own)
    assert got == Graded("inaccurate", "NaN where f64 has numbers: 1 element")
    # 1e39 is beyond float32: strict overflows as well, which is what was declared
    overflow = {"f64": np.array([1e39, -1e39]), "strict": array(inf, -inf)}
    assert graded(array(inf, -inf), **overflow, **own).grade == "identical"
    assert graded(array(inf, inf), **overflow, **own) == Graded(
        "inaccurate", "inf where f64 has numbers: 1 element"
    )
    got = graded(np.zeros(1), f64=np.zeros(1), strict=np.zeros(1, F32), **own)
    assert got == Graded("inaccurate", "dtype float64, declared float32")


def test_without_a_baseline_strict_stands_in_and_equivalent_is_the_best():
    strict, f64 = array(1, 2), np.array([1.0, 2.0])
    assert graded(strict.copy(), strict=strict, f64=f64) == Graded("equivalent", "no baseline")
    got = graded(array(1, 3), strict=strict, f64=f64)
    assert got.grade == "divergent"
    assert got.detail.startswith("no baseline; differs from strict in 1 of 2 elements")
    assert graded(array(1, np.nan), strict=strict, f64=f64).grade == "mismatched"
    assert graded(array(1, 2)) == Graded("divergent", "no baseline, no reference")


def test_a_tolerance_lifts_to_equivalent():
    baseline = strict = array(1, 2, dtype=bf16)
    got = array(1.0078125, 2, dtype=bf16)
    targets = {"baseline": baseline, "strict": strict, "f64": strict.astype(float)}
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


def test_all_given_limits_must_hold():
    targets = {"baseline": array(1.0), "strict": array(1.0)}
    got = array(1 + 2.0**-20)  # 8 ulp
    assert graded(got, tolerance=Tolerance(rtol=1e-3, max_ulp=8), **targets).grade == "equivalent"
    assert graded(got, tolerance=Tolerance(rtol=1e-3, max_ulp=7), **targets).grade == "divergent"


def test_a_tolerance_does_not_lift_nan_or_another_dtype():
    loose = Tolerance(rtol=1e9, atol=1e9)
    assert graded(array(np.nan), baseline=array(1.0), tolerance=loose).grade == "mismatched"
    assert graded(np.ones(1), baseline=array(2.0), tolerance=loose).grade == "mismatched"
    against = Tolerance(atol=1e9, against="f64")
    got = graded(array(np.inf), baseline=array(np.inf), f64=np.ones(1), tolerance=against)
    assert got.grade == "identical"
    got = graded(array(np.inf, 1), baseline=array(np.inf, 2), f64=np.ones(2), tolerance=against)
    assert got.grade == "divergent"


def test_a_tolerance_that_strict_itself_fails_is_refused():
    targets = {"baseline": array(1.5), "f64": np.array([1.0]), "strict": array(1 + 3 * 2.0**-23)}
    got = graded(array(1.0), tolerance=Tolerance(max_ulp=2, against="f64"), **targets)
    assert got == Graded("divergent", "tolerance refused: strict itself is 3 ulp from f64", True)
    got = graded(array(1.0), tolerance=Tolerance(max_ulp=4, against="f64"), **targets)
    assert (got.grade, got.refused) == ("equivalent", False)


def test_integers_and_bool():
    ints = {"baseline": np.array([1, 2]), "strict": np.array([1, 2])}
    assert graded(np.array([1, 4]), tolerance=Tolerance(atol=2), **ints).grade == "equivalent"
    assert graded(np.array([1, 4]), tolerance=Tolerance(atol=1), **ints).grade == "divergent"
    bools = {"baseline": np.array([True]), "strict": np.array([True])}
    got = graded(np.array([False]), tolerance=Tolerance(atol=9), **bools)
    assert got.grade == "divergent"
