"""What cannot be told apart from a change of the question."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.casefile.case import Expectation, Operand, Tolerance, Variant
from parity.program.spec import OperandSpec, ProgramSpec
from parity.report.diff.comparable import largest_gap
from parity.report.diff.compare import diff
from parity.report.diff.model import Diff

F64 = [3.0, 4.0]


def only(found: Diff) -> Any:
    (change,) = found.changes
    return change


class TestNotComparable:
    @pytest.mark.parametrize(
        ("changes", "kind", "reason"),
        [
            (
                {"tolerance": Tolerance(rtol=0.5)},
                "case changed",
                'tolerance: null became {"rtol":0.5,"atol":null,"max_ulp":null,',
            ),
            (
                {"program": ProgramSpec("einsum", (OperandSpec("lhs", (2,), "float32"),))},
                "case changed",
                'program.op: "dot_general" became "einsum"',
            ),
            ({"baseline": "jit"}, "case changed", 'baseline: "eager" became "jit"'),
            ({"licences": ()}, "case changed", "licences: "),
            (
                {"operands": (Operand("lhs", (2,), "float32", values=[1.0, 3.0]),)},
                "operands changed",
                "operands: ",
            ),
        ],
    )
    def test_another_question(self, maker: Any, changes: Any, kind: str, reason: str) -> None:
        made = {"eager": maker.gave([3, 4]), "jit": maker.gave([9, 9], "mismatched")}
        found = diff(
            maker.record("A", maker.result(maker.case(), made, f64=F64)),
            maker.record("B", maker.result(maker.case(**changes), made, f64=F64)),
        )
        (one,) = found.not_comparable
        assert (one.case, one.path, one.output, one.rows) == ("cases/a.yaml::a", "", "", 2)
        assert one.kind == kind
        assert one.reason.startswith(reason)
        assert (found.changes, found.unchanged, found.exit_code) == ((), 0, 0)

    def test_words_links_expectations_and_places_are_no_other_question(self, maker: Any) -> None:
        entry = Expectation(
            ("jit",), None, ("divergent",), None, None, None, "why", None,
            datetime.date(2030, 1, 1), {}, 12,
        )  # fmt: skip
        other = maker.case(
            about="Else.", links=("https://example.org/2",), expect=(entry,), line=9,
            file=Path("/elsewhere/a.yaml"), timeout=5.0, paths=("eager",),
        )  # fmt: skip
        made = {"eager": maker.gave([3, 4])}
        found = diff(
            maker.record("A", maker.result(maker.case(), made, f64=F64)),
            maker.record("B", maker.result(other, made, f64=F64)),
        )
        assert (found.not_comparable, found.unchanged) == ((), 1)

    def test_flags_of_a_path(self, maker: Any) -> None:
        def case(value: bool) -> Any:
            return maker.case(variants={"v": Variant("v", "jit", {"fast": value})})

        made = {"eager": maker.gave([3, 4]), "v": maker.gave([3, 4])}
        found = diff(
            maker.record("A", maker.result(case(False), made)),
            maker.record("B", maker.result(case(True), made)),
        )
        (one,) = found.not_comparable
        assert (one.kind, one.path, one.rows) == ("flags changed", "v", 1)
        assert found.unchanged == 1

    @pytest.mark.parametrize(
        ("b", "errors", "reason"),
        [
            ([3.0, 4.0 + 2**-30], (0.0, 0.0), "f64 differs by 9.313e-10, of which its own error"),
            ([3.0, 4.0 + 2**-30], (2**-31, 2**-31), ""),  # just as far apart as they may be
            ([3.0, 4.0 + 2**-30], (2**-31, 2**-32), "f64 differs by 9.313e-10"),
            ([3.0, np.nan], (1.0, 1.0), "f64 differs by inf"),
            ([3.0], (9.0, 9.0), "f64 was float64[2] and is float64[1]"),
            ([3.0, 5.0], (None, 9.0), "f64 differs, and its own error is not known"),
        ],
    )
    def test_references_that_are_apart(self, maker: Any, b: Any, errors: Any, reason: str) -> None:
        case = maker.case()
        results = [
            maker.result(case, {"eager": maker.gave(v)}, f64=f, own_error=e)
            for v, f, e in (([3, 4], F64, errors[0]), ([3, 5], b, errors[1]))
        ]
        found = diff(maker.record("A", results[0]), maker.record("B", results[1]))
        if not reason:
            assert (len(found.changes), found.not_comparable) == (1, ())
            return
        (one,) = found.not_comparable
        assert (one.kind, one.output, one.rows) == ("reference changed", "out", 1)
        assert one.reason.startswith(reason)
        assert found.changes == ()

    def test_references_without_bits(self, maker: Any) -> None:
        case = maker.case()
        a, b = (
            maker.result(case, {"eager": maker.gave([3, 4])}, f64=np.full(17, value))
            for value in (1.0, 2.0)
        )
        found = diff(maker.record("A", a, keep="none"), maker.record("B", b, keep="none"))
        (one,) = found.not_comparable
        assert one.reason == "f64 differs, and its bits were not kept in A and B"

    def test_a_reference_that_is_missing_on_one_side(self, maker: Any) -> None:
        case, made = maker.case(), {"eager": maker.gave([3, 4]), "jit": maker.failed()}
        a = maker.result(case, made, f64=F64)
        b = maker.result(case, made, f64=maker.failed(type="TypeError", said="cannot"))
        found = diff(maker.record("A", a), maker.record("B", b))
        (one,) = found.not_comparable
        assert one.reason == "no f64 in B: TypeError: cannot"
        assert (one.rows, found.unchanged) == (1, 1)  # the failure is the same all the same
        none = diff(maker.record("C", b), maker.record("D", b))
        assert (none.not_comparable, none.unchanged) == ((), 2)

    def test_a_failure_is_no_matter_of_the_reference(self, maker: Any) -> None:
        case = maker.case()
        a = maker.result(case, {"eager": maker.gave([3, 4])}, f64=F64)
        b = maker.result(case, {"eager": maker.failed()}, f64=[7.0, 7.0])
        found = diff(maker.record("A", a), maker.record("B", b))
        assert (only(found).direction, found.not_comparable) == ("new error", ())

    @pytest.mark.parametrize(
        ("a", "b", "gap"),
        [
            ([1.0, np.nan, np.inf], [1.0, np.nan, np.inf], 0.0),
            ([1.0, np.inf], [1.0, -np.inf], np.inf),
            ([1.0, 2.0], [1.5, 2.25], 0.5),
            ([3 + 4j], [0j], 5.0),
            (np.int64([-(2**63)]), np.int64([2**63 - 1]), 2.0**64),
            ([True], [False], 1.0),
            (np.zeros((0, 2)), np.zeros((0, 2)), 0.0),
        ],
    )
    def test_gaps(self, a: Any, b: Any, gap: float) -> None:
        assert largest_gap(np.asarray(a), np.asarray(b)) == gap
