"""Two records compared: what is a change and what is the same, one cause as one finding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from parity.compare.shards import ShardError
from parity.report.diff import wording
from parity.report.diff.compare import diff
from parity.report.diff.model import Diff

F64 = [3.0, 4.0]


def only(found: Diff) -> Any:
    (change,) = found.changes
    return change


class TestChanges:
    def test_the_same_is_unchanged(self, maker: Any) -> None:
        made = {"eager": maker.gave([3, 4]), "jit": maker.failed()}
        found = diff(*maker.pair(made, made, f64=F64))
        assert (found.changes, found.unchanged, found.cases) == ((), 2, 1)
        assert (found.facts, found.exit_code) == ((), 0)

    def test_a_change_has_both_sides_their_distance_and_the_ideal(self, maker: Any) -> None:
        a, b = maker.pair(
            {"eager": maker.gave([3, 4])},
            {"eager": maker.gave([3, 4.5], "inaccurate", detail="far", bound_share=2.0)},
            f64=F64,
        )
        change = only(diff(a, b))
        assert (change.case, change.op, change.path, change.output) == (
            "cases/a.yaml::a", "dot_general", "eager", "out",
        )  # fmt: skip
        assert (change.direction, change.worse) == ("newly inaccurate", True)
        assert (change.a.grade, change.b.grade, change.b.detail) == (
            "identical",
            "inaccurate",
            "far",
        )
        assert (change.a.f64.rms_rel, change.b.f64.rms_rel) == (0, 0.1)
        assert change.distance.metrics.max_abs == 0.5
        (one,) = change.distance.worst
        assert (one.index, one.a, one.b, one.f64) == ((1,), 4.0, 4.5, 4.0)
        assert (one.a_bits, one.b_bits, one.ulp) == ("0x40800000", "0x40900000", 2**20)

    def test_nans_are_equal_whatever_their_bits(self, maker: Any) -> None:
        a = np.uint32([0x7FC00000, 0x40800000]).view(np.float32)
        b = np.uint32([0xFFC00001, 0x40800000]).view(np.float32)
        for keep in ("all", "none"):
            pair = maker.pair({"eager": maker.gave(a)}, {"eager": maker.gave(b)}, keep=keep)
            assert diff(*pair).changes == ()

    def test_another_answer_on_another_device_is_a_change(self, maker: Any) -> None:
        """The elements of the output itself are those of the first device."""
        first, other = (
            (ShardError(0, (0,), (2,), 0), ShardError(1, (0,), (2,), 1, apart=1, sha256=of * 64))
            for of in "ab"
        )
        a, b = (maker.gave([3, 4], "divergent", shards=held) for held in (first, other))
        assert diff(*maker.pair({"eager": a}, {"eager": a}, f64=F64)).changes == ()
        assert only(diff(*maker.pair({"eager": a}, {"eager": b}, f64=F64))).path == "eager"

    def test_a_new_nan_is_a_change(self, maker: Any) -> None:
        a, b = maker.gave([3, 4], faithful=False), maker.gave([3, np.nan], faithful=False)
        change = only(diff(*maker.pair({"eager": a}, {"eager": b}, f64=F64)))
        assert change.direction == "farther from f64"
        assert np.isnan(change.distance.worst[0].b)
        assert np.isnan(change.b.f64.rms_rel)

    def test_zeros_of_other_signs_are_other_bits(self, maker: Any) -> None:
        pair = maker.pair({"eager": maker.gave([0.0])}, {"eager": maker.gave([-0.0])}, f64=[0.0])
        assert only(diff(*pair)).direction == "same grade but other bits"

    def test_small_outputs_are_compared_though_no_bits_are_kept(self, maker: Any) -> None:
        pair = maker.pair(
            {"eager": maker.gave([3, 4])}, {"eager": maker.gave([3, 5])}, f64=F64, keep="none"
        )
        change = only(diff(*pair))
        assert (change.distance.metrics.max_abs, change.unread) == (1.0, "")

    def test_large_ones_say_that_no_bits_are_kept(self, maker: Any) -> None:
        ones, twos = (np.full(17, value, np.float32) for value in (1, 2))
        pair = maker.pair(
            {"eager": maker.gave(ones)}, {"eager": maker.gave(twos)}, f64=np.ones(17), keep="none"
        )
        change = only(diff(*pair))
        assert change.distance is None
        assert change.unread.startswith("bits were not kept in A and B (parity run --keep all")

    @pytest.mark.parametrize("name", ["bfloat16", "int4", "complex64", "bool", "float8_e4m3fn"])
    def test_every_kind_of_element(self, maker: Any, name: str) -> None:
        from parity.dtypes import dtype

        a, b = (np.array(v).astype(dtype(name).numpy()) for v in ([0, 1], [1, 1]))
        pair = maker.pair({"eager": maker.gave(a)}, {"eager": maker.gave(b)}, keep="none")
        (one,) = only(diff(*pair)).distance.worst
        assert (one.index, one.a, one.b) == ((0,), 0, 1)

    def test_another_form_has_no_distance(self, maker: Any) -> None:
        pair = maker.pair(
            {"eager": maker.gave([3, 4])}, {"eager": maker.gave(np.float16([3, 4]))}, f64=F64
        )
        change = only(diff(*pair))
        assert (change.direction, change.distance) == ("newly mismatched", None)
        assert change.unread == "was float32[2], is float16[2]"

    def test_a_failure_stands_beside_each_output(self, maker: Any) -> None:
        several = [maker.gave([1], output="x"), maker.gave([2], output="y")]
        found = diff(*maker.pair({"jit": several}, {"jit": maker.failed()}))
        assert [(c.output, c.direction) for c in found.changes] == [
            ("x", "new error"), ("y", "new error"),
        ]  # fmt: skip
        back = diff(*maker.pair({"jit": maker.failed()}, {"jit": several}))
        assert [(c.output, c.direction) for c in back.changes] == [
            ("x", "recovered"), ("y", "recovered"),
        ]  # fmt: skip

    def test_paths_and_outputs_of_one_side(self, maker: Any) -> None:
        one = maker.gave([1], output="x")
        found = diff(
            *maker.pair(
                {"eager": [one, maker.gave([2], output="y")], "jit": one},
                {"eager": one, "new": one},
            )
        )
        assert [(c.path, c.output, c.direction) for c in found.changes] == [
            ("eager", "y", "gone"), ("jit", "x", "gone"), ("new", "x", "new"),
        ]  # fmt: skip
        assert found.exit_code == 0

    def test_a_grade_that_changed_with_the_baseline_says_so(self, maker: Any) -> None:
        found = diff(
            *maker.pair(
                {"eager": maker.gave([3, 4]), "jit": maker.gave([3, 4])},
                {"eager": maker.gave([3, 5]), "jit": maker.gave([3, 4], "divergent")},
                f64=F64,
            )
        )
        eager, jit = found.changes
        assert (jit.direction, jit.cause) == ("newly divergent", "same bits")
        assert jit.detail == "baseline eager changed"
        assert jit.distance is None
        assert eager.detail == ""

    def test_a_baseline_that_fails_changed(self, maker: Any) -> None:
        found = diff(
            *maker.pair(
                {"eager": maker.gave([3, 4]), "jit": maker.gave([3, 4])},
                {"eager": maker.failed(), "jit": maker.gave([3, 4], "equivalent")},
            )
        )
        assert found.changes[1].detail == "baseline eager changed"

    def test_what_is_declared_may_change(self, maker: Any) -> None:
        case = maker.case()
        a = maker.result(case, {"eager": maker.gave([3, 4])}, f64=F64, strict=np.float32(F64))
        b = maker.result(case, {"eager": maker.gave([3, 5])}, f64=F64, strict=np.float32([3, 5]))
        change = only(diff(maker.record("A", a), maker.record("B", b)))
        assert change.detail == "what is declared changed (strict)"

    def test_a_grade_that_nothing_explains_says_so(self, maker: Any) -> None:
        pair = maker.pair(
            {"eager": maker.gave([3, 4])}, {"eager": maker.gave([3, 4], "inaccurate")}, f64=F64
        )
        detail = only(diff(*pair)).detail
        assert detail == "graded otherwise: neither its bits nor those of the baseline changed"

    def test_unspecified_elements_are_named(self, maker: Any) -> None:
        case = maker.case()
        results = []
        for value in (5, 6):
            result, outputs = maker.result(case, {"eager": maker.gave([3, value])}, f64=F64)
            (row,) = result.rows
            row = replace(row, f64=replace(row.f64, excluded=1))
            results.append((replace(result, rows=(row,)), outputs))
        change = only(diff(maker.record("A", results[0]), maker.record("B", results[1])))
        assert change.detail == (
            "1 of its elements are unspecified: A to B counts them, no grade does"
        )

    def test_what_is_fixed_says_what_it_was_and_that_it_is_as_declared(self, maker: Any) -> None:
        line = "jit keeps the product in float32: closer to float64 than eager"
        was = maker.gave([3, 5], "divergent", faithful=False, detail="excess-precision")
        result, outputs = maker.result(maker.case(), {"jit": was}, f64=F64)
        a = maker.record("A", (replace(result, words=(f"jit2 {line}", line)), outputs))
        b = maker.record("B", maker.result(maker.case(), {"jit": maker.gave([3, 4])}, f64=F64))
        change = only(diff(a, b))
        assert change.direction == "fixed"
        assert wording.remarks(change) == [
            "A to B: 1 of 2 elements differ, by at most 1 (2097152 ulp)",
            f"A: {line}",
            "B: what the program declares is honoured",
        ]

    def test_what_is_expected_never_fails(self, maker: Any) -> None:
        known = {"status": "expected", "because": "known", "link": "https://example.org/1"}
        pair = maker.pair(
            {"eager": maker.gave([3, 4]), "jit": maker.gave([3, 4], "divergent", **known)},
            {
                "eager": maker.gave([3, 5], "inaccurate", **known),
                "jit": maker.gave([3, 5], "divergent", **known),
            },
            f64=F64,
        )
        found = diff(*pair)
        assert [(c.direction, c.expected, c.worse) for c in found.changes] == [
            ("newly inaccurate", True, False), ("same grade but other bits", True, False),
        ]  # fmt: skip
        assert found.exit_code == 0
        assert [f.because for f in found.findings] == ["known", "known"]
        for fail_on in ("newly-inaccurate", "same-grade-but-other-bits", "any"):
            assert diff(*pair, fail_on=fail_on).exit_code == 0

    def test_what_became_better_is_better_also_where_it_is_expected(self, maker: Any) -> None:
        failed = maker.failed() | {"status": "expected", "because": "cannot be read"}
        known = {"status": "expected", "because": "known"}
        found = diff(
            *maker.pair({"jit": failed}, {"jit": maker.gave([3, 5], "divergent", **known)}, f64=F64)
        )
        (finding,) = found.findings
        assert wording.tag(finding) == "better"
        assert wording.headline(finding) == (
            "recovered: dot_general on jit: outcome changed (expected in A, because cannot be read)"
        )
        assert wording.because(finding) == "divergent in B, as expected, because known"
        said = wording.verdict(found)
        assert said == "ok: nothing got worse; 1 got better: 1 recovered; 0 unchanged"


class TestGroups:
    def test_four_hundred_rows_with_one_cause_are_one_finding(self, maker: Any) -> None:
        def results(scale: float) -> Any:
            for n in range(400):
                program = maker.evidence(stablehlo="s", hlo="h" if scale == 1 else "i")
                value = np.float32([1 + (scale - 1) * n])
                made = {"jit": maker.gave(value, evidence=program, faithful=False)}
                yield maker.result(maker.case(f"c{n}"), made, f64=[1.0])

        found = diff(maker.record("A", *results(1)), maker.record("B", *results(2)))
        (finding,) = found.findings
        assert (finding.direction, finding.cause) == ("farther from f64", "compiler changed")
        assert (finding.op, finding.path) == ("dot_general", "jit")
        assert (len(finding.cases), finding.worst.case) == (399, "cases/c399.yaml::c399")
        assert (finding.fails, found.exit_code, found.unchanged) == (True, 1, 1)

    def test_what_differs_in_direction_path_cause_or_reason_stands_apart(self, maker: Any) -> None:
        a = {
            "p": maker.gave([3, 4]),
            "q": maker.gave([3, 4]),
            "r": maker.gave([3, 4]),
            "s": maker.gave([3, 4]),
        }
        b = {
            "p": maker.gave([3, 4.5], "divergent"),
            "q": maker.gave([3, 4.5], "divergent", status="expected", because="known"),
            "r": maker.failed("error", said="cannot do 1 of 2"),
            "s": maker.gave([3, 4.5]),
        }
        case, other = maker.case("a"), maker.case("b")
        old = [maker.result(one, a, f64=F64) for one in (case, other)]
        new = [maker.result(case, b, f64=F64), maker.result(other, b, f64=F64)]
        found = diff(maker.record("A", *old), maker.record("B", *new))
        assert [(f.direction, f.path, f.worse, len(f.changes)) for f in found.findings] == [
            ("new error", "r", True, 2),
            ("newly divergent", "p", True, 2),
            ("newly divergent", "q", False, 2),
            ("same grade but other bits", "s", False, 2),
        ]

    def test_digits_in_messages_do_not_tell_findings_apart(self, maker: Any) -> None:
        def result(name: str, made: Any) -> Any:
            return maker.result(maker.case(name), {"jit": made})

        a = maker.record("A", *(result(n, maker.gave([1])) for n in "xyz"))
        words = {"x": "no 1", "y": "no 23", "z": "other"}
        b = maker.record("B", *(result(n, maker.failed(said=words[n])) for n in "xyz"))
        assert [len(f.changes) for f in diff(a, b).findings] == [2, 1]
