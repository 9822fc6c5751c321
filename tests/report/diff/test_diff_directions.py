"""Every direction, with rows whose numbers are worked out here.

The ideal is [3, 4], of norm 5: an error of 0.5 in one element is an rms of 0.1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from parity.casefile.case import GRADES
from parity.errors import UserError
from parity.report.diff.directions import DIRECTIONS, WORSE, direction_of, nearer, parse

F64 = [3.0, 4.0]
NAN, INF = math.nan, math.inf


def way(maker: Any, a: Any, b: Any, f64: Any = F64) -> str | None:
    rows = [None if made is None else maker.row("jit", made, f64) for made in (a, b)]
    old, new = rows
    same = old is not None and new is not None and old.sha256 == new.sha256
    return direction_of(old, new, same=same)


@pytest.mark.parametrize(
    ("was", "now", "direction"),
    [
        ("identical", "identical", None),
        ("identical", "equivalent", "newly equivalent"),
        ("identical", "divergent", "newly divergent"),
        ("equivalent", "divergent", "newly divergent"),
        ("divergent", "inaccurate", "newly inaccurate"),
        ("inaccurate", "mismatched", "newly mismatched"),
        ("divergent", "equivalent", "fixed"),
        ("mismatched", "identical", "fixed"),
        ("equivalent", "identical", "better grade"),
        ("inaccurate", "divergent", "better grade"),
        ("mismatched", "inaccurate", "better grade"),
    ],
)
def test_grades(maker: Any, was: str, now: str, direction: str | None) -> None:
    assert way(maker, maker.gave([3, 4], was), maker.gave([3, 4], now)) == direction


def test_the_grade_decides_before_the_distance(maker: Any) -> None:
    far, near = maker.gave([3, 9], "equivalent"), maker.gave([3, 4], "divergent")
    assert way(maker, far, near) == "newly divergent"


@pytest.mark.parametrize(
    ("a", "b", "direction"),
    [
        ([3, 4.5], [3, 4.25], "closer to f64"),  # rms 0.1, 0.05
        ([3, 4.25], [3, 4.5], "farther from f64"),
        ([3, 4.5], [3.5, 4], "farther from f64"),  # rms 0.1 both; ulp(3) is half of ulp(4)
        ([3, 4.5], [3, 3.5], "same grade but other bits"),  # the same errors, of other signs
        ([3, 4.5], [3, 4.503], "same grade but other bits"),  # 0.6% apart
        ([3, 4.5], [3, 4.51], "farther from f64"),  # 2% apart
        ([3, 4.5], [3, NAN], "farther from f64"),
        ([3, NAN], [3, 9e9], "closer to f64"),
        ([3, INF], [3, 9e9], "closer to f64"),
        ([3, INF], [3, NAN], "farther from f64"),
        ([NAN, NAN], [3, NAN], "closer to f64"),
        ([3, NAN], [9, NAN], "same grade but other bits"),  # NaN metrics tell nothing
    ],
)
def test_unfaithful_outputs_of_one_grade(maker: Any, a: Any, b: Any, direction: str) -> None:
    made = [maker.gave(v, "inaccurate", faithful=False) for v in (a, b)]
    assert way(maker, *made) == direction


def test_a_nan_where_the_ideal_is_infinite_is_farther_whatever_the_rms(maker: Any) -> None:
    a = maker.gave([INF, 4.5], "divergent", faithful=False)
    b = maker.gave([NAN, 4.0], "divergent", faithful=False)
    assert way(maker, a, b, [INF, 4.0]) == "farther from f64"
    assert way(maker, b, a, [INF, 4.0]) == "closer to f64"


@pytest.mark.parametrize(("a", "b"), [(True, False), (False, True), (False, False), (None, True)])
def test_one_unfaithful_side_is_enough(maker: Any, a: bool | None, b: bool | None) -> None:
    made = maker.gave([3, 4.25], faithful=a), maker.gave([3, 4.5], faithful=b)
    assert way(maker, *made) == "farther from f64"


def test_where_both_are_faithful_the_program_allows_either(maker: Any) -> None:
    made = maker.gave([3, 4.25]), maker.gave([3, 4.5])
    assert way(maker, *made) == "same grade but other bits"


def test_without_an_ideal_nothing_is_closer(maker: Any) -> None:
    made = [maker.gave(v, faithful=None) for v in ([3, 4.25], [3, 4.5])]
    assert way(maker, *made, f64=None) == "same grade but other bits"


@pytest.mark.parametrize(
    ("a", "b", "direction"),
    [
        ([True, True], [True, False], "farther from f64"),
        ([False, False], [True, False], "closer to f64"),
        ([True, False], [False, True], "same grade but other bits"),
    ],
)
def test_bools_count(maker: Any, a: Any, b: Any, direction: str) -> None:
    made = [maker.gave(np.array(v), "divergent", faithful=False) for v in (a, b)]
    assert way(maker, *made, f64=np.array([True, True])) == direction


def test_complex_and_integers_are_measured_as_such(maker: Any) -> None:
    a, b = (np.array([v], np.complex64) for v in (3 + 4j, 3 + 5j))
    made = [maker.gave(v, "divergent", faithful=False) for v in (a, b)]
    assert way(maker, *made, f64=np.array([3 + 4j])) == "farther from f64"
    made = [maker.gave(np.int32([v]), "divergent", faithful=False) for v in (12, 11)]
    assert way(maker, *made, f64=np.int64([10])) == "closer to f64"


@pytest.mark.parametrize(
    ("a", "b", "direction"),
    [
        ("ok", "error", "new error"),
        ("ok", "crashed", "new error"),
        ("ok", "timeout", "new error"),
        ("ok", "out-of-memory", "new error"),
        ("ok", "unsupported", "newly unsupported"),
        ("unsupported", "error", "new error"),
        ("error", "crashed", "new error"),
        ("error", "unsupported", "other failure"),
        ("crashed", "error", "other failure"),
        ("error", "ok", "recovered"),
        ("unsupported", "ok", "recovered"),
        ("crashed", "ok", "recovered"),
        ("error", "error", None),
        ("timeout", "timeout", None),
        ("unsupported", "unsupported", None),
    ],
)
def test_outcomes(maker: Any, a: str, b: str, direction: str | None) -> None:
    made = [maker.gave([3, 4]) if of == "ok" else maker.failed(of) for of in (a, b)]
    assert way(maker, *made) == direction


def test_errors_are_told_apart_by_their_stage_and_not_by_their_words(maker: Any) -> None:
    error = maker.failed(stage="trace", type="XlaRuntimeError", said="no")
    assert way(maker, error, maker.failed(stage="trace", type="JaxRuntimeError")) is None
    assert way(maker, error, maker.failed(stage="run")) == "other failure"


@pytest.mark.parametrize(
    ("grade", "direction"),
    [
        ("identical", "recovered"),
        ("divergent", "recovered"),
        ("inaccurate", "newly inaccurate"),
        ("mismatched", "newly mismatched"),
    ],
)
def test_a_wrong_number_in_place_of_an_error_is_no_recovery(
    maker: Any, grade: str, direction: str
) -> None:
    assert way(maker, maker.failed(), maker.gave([3, 4], grade)) == direction


def test_rows_of_one_side(maker: Any) -> None:
    assert way(maker, maker.gave([3, 4]), None) == "gone"
    assert way(maker, None, maker.gave([3, 4])) == "new"


def test_another_dtype_or_shape_is_a_mismatch_even_where_the_baseline_has_it_too(
    maker: Any,
) -> None:
    was = maker.gave([3, 4])
    assert way(maker, was, maker.gave(np.float16([3, 4]))) == "newly mismatched"
    assert way(maker, was, maker.gave([[3, 4]])) == "newly mismatched"


def test_zero_size_outputs(maker: Any) -> None:
    empty = np.zeros((0, 3), np.float32)
    assert way(maker, maker.gave(empty), maker.gave(empty), f64=np.zeros((0, 3))) is None
    other = maker.gave(np.zeros((3, 0), np.float32))
    assert way(maker, maker.gave(empty), other, f64=np.zeros((0, 3))) == "newly mismatched"


def test_bits_that_begin_to_change_from_run_to_run_are_a_change(maker: Any) -> None:
    steady, shaky = maker.gave([3, 4]), maker.gave([3, 4], nondeterministic=True)
    assert way(maker, steady, shaky) == "same grade but other bits"
    assert way(maker, shaky, shaky) is None


def test_every_grade_and_direction_is_covered() -> None:
    assert len(DIRECTIONS) == len(set(DIRECTIONS)) == 15
    assert set(DIRECTIONS) > WORSE
    newly = {name.removeprefix("newly ") for name in DIRECTIONS if name.startswith("newly ")}
    assert set(GRADES[1:]) <= newly


def test_nearer_is_symmetric(maker: Any) -> None:
    rng = np.random.default_rng(0)
    names = {"closer to f64": "farther from f64", "farther from f64": "closer to f64"}
    for _ in range(50):
        a, b = (
            maker.row(
                "jit", maker.gave(np.float32(rng.normal(size=3)), faithful=False), [1, 2, 3.0]
            )
            for _ in range(2)
        )
        assert nearer(a, b) == names.get(nearer(b, a), "same grade but other bits")


class TestParse:
    def test_names_with_spaces_or_hyphens(self) -> None:
        assert parse("newly divergent, Newly-Inaccurate") == {"newly divergent", "newly inaccurate"}
        assert parse(["gone"]) == {"gone"}

    def test_words_for_several(self) -> None:
        assert parse("worse") == WORSE
        assert parse("any") == set(DIRECTIONS)
        assert parse("none") == set()
        assert parse("worse,gone") == WORSE | {"gone"}

    def test_a_typo_gets_the_allowed_ones(self) -> None:
        with pytest.raises(UserError) as caught:
            parse("newly-divergnt")
        assert str(caught.value) == (
            "unknown direction (got newly-divergnt; allowed new-error, newly-mismatched, "
            "newly-inaccurate, newly-divergent, newly-unsupported, farther-from-f64, "
            "newly-equivalent, other-failure, same-grade-but-other-bits, closer-to-f64, "
            "better-grade, fixed, recovered, gone, new, worse, any, none)\n"
            "hint: did you mean 'newly-divergent'?"
        )

    @pytest.mark.parametrize("wrong", ["", ",", "none,gone"])
    def test_nonsense(self, wrong: str) -> None:
        with pytest.raises(UserError, match=r"got nothing|stands alone"):
            parse(wrong)
