from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from parity.compare.result import CaseResult
from parity.pytest_plugin import Finding
from parity.report.table import (
    case_lines,
    folded,
    is_fine,
    merged,
    one_line,
    side_by_side,
    verdict_of,
)
from parity.worker.protocol import Failure, References


def text(result: CaseResult, width: int | None = None) -> str:
    return "\n".join(line.plain for line in case_lines(result, width))


@pytest.fixture
def small(maker: Any) -> CaseResult:
    """Differences that are worked out by hand: one ulp of float32 at 2 is 2**-22."""
    return maker.result(
        "cases/a.yaml::a",
        {
            "eager": {"out": np.float32([1, 2])},
            "jit": {"out": np.float32([1, 2.5])},
        },
        f64={"out": np.array([1, 2.25])},
        strict={"out": np.float32([1, 2])},
    )


def test_a_case_as_a_person_sees_it(small: CaseResult) -> None:
    # |2.5 - 2| = 0.5 = 2**21 ulp; |2.25 - 2| = 0.25 = 2**20 ulp; 0.25 / sqrt(1 + 2.25**2) = 0.1015;
    # the bound is made to be 2.25 / 8, of which 0.25 is 8 / 9
    assert text(small) == (
        "cases/a.yaml::a  float32[2]\n"
        "                                differ   max abs   max ulp  max abs  max ulp  rms rel"
        "  share of\n"
        "  path    status   grade      vs eager  vs eager  vs eager   vs f64   vs f64   vs f64"
        "     bound  faithful  values\n"
        "  eager   ok       baseline                                    0.25  1048576   0.1015"
        "    0.8889  yes       [1.0, 2.0]\n"
        "  jit     finding  divergent       1/2       0.5   2097152     0.25  1048576   0.1015"
        "    0.8889  no        [1.0, 2.5]\n"
        "  strict           reference                                   0.25  1048576   0.1015"
        "                      [1.0, 2.0]\n"
        "  f64              reference                                                         "
        "                      [1, 2.25]\n"
        "  equal bits: {eager, strict} {jit}\n"
        "  jit differs from eager in 1 of 2 elements, by at most 2097152 ulp of float32; about as "
        "far from float64 as eager; eager is what the program declares"
    )


def test_references_stand_below_the_paths_of_their_environment(small: CaseResult) -> None:
    def placed(name: str) -> CaseResult:
        rows = tuple(replace(row, environment=name) for row in small.rows)
        references = tuple(replace(row, environment="") for row in small.references)
        return replace(small, environment=name, rows=rows, references=references)

    def paths(result: CaseResult) -> list[str]:
        lines = [line.split() for line in text(result).splitlines()[3:]]
        return [" ".join(words[: 1 + (words[0] in ("old", "new"))]) for words in lines]

    assert paths(placed("new"))[:4] == paths(small)[:4] == ["eager", "jit", "strict", "f64"]
    assert paths(side_by_side([placed("old"), placed("new")]))[:8] == [
        f"{name} {path}" for name in ("old", "new") for path in ("eager", "jit", "strict", "f64")
    ]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_width_loses_anything(founding: CaseResult, width: int) -> None:
    lines = case_lines(founding, width)
    shown = {word for line in lines for word in line.plain.replace(",", " ").split()}
    whole = set(text(founding).replace(",", " ").split())
    assert whole - {"cases/conv.yaml::conv:compute_dtype=bfloat16"} <= shown
    assert max(line.cell_len for line in lines[1:]) <= width


def test_expected_differences_say_why(founding: CaseResult) -> None:
    assert (
        "expected: jit, native divergent, because excess-precision (https://example.org/1)"
        in text(founding)
    )
    assert "equal bits: {eager, nonnative, strict} {jit, native}" in text(founding)


def test_large_outputs_show_their_worst_element_and_no_row_for_f64(maker: Any) -> None:
    good = np.zeros((4, 5), np.float32)
    off = good.copy()
    off[3, 1] = 0.5
    off[0, 0] = 0.25
    shown = text(
        maker.result(
            "cases/a.yaml::a",
            {"eager": {"out": good}, "jit": {"out": off}},
            f64={"out": good.astype(np.float64)},
            strict={"out": good},
        )
    )
    assert "worst element" in shown
    assert "[3,1] 0.5 for 0.0" in shown
    assert "values" not in shown
    assert "\n  f64" not in shown


def test_what_has_no_numbers_is_told_in_words(maker: Any) -> None:
    result = maker.result(
        "cases/a.yaml::a",
        {
            "eager": {"out": np.float32([1])},
            "jit": Failure("error", "trace", "TypeError", "no such [dtype]\nsecond line"),
            "native": Failure("unsupported", "build", "Unsupported", "removed in JAX 0.7.2"),
            "odd": Failure("crashed", "run", "SIGSEGV", "the worker died of SIGSEGV"),
        },
        references=References(failure=Failure("error", "reference", "KeyError", "custom_call")),
    )
    shown = text(result)
    paths = [line.split()[0] for line in shown.splitlines()[2:6]]
    assert paths == ["eager", "jit", "native", "odd"]
    assert "jit     finding  error at trace" in shown
    assert "native  ok       unsupported" in shown
    assert "odd     finding  crashed at run" in shown
    assert "  jit: error at trace: TypeError: no such [dtype]" in shown
    assert "  native: unsupported: removed in JAX 0.7.2" in shown
    assert "no reference f64, strict: KeyError: custom_call" in shown
    assert [verdict_of(row) for row in result.rows] == [
        "identical",
        "error at trace",
        "unsupported",
        "crashed at run",
    ]


def test_nan_is_shown(maker: Any) -> None:
    shown = text(
        maker.result(
            "cases/a.yaml::a",
            {"eager": {"out": np.float32([1, 2])}, "jit": {"out": np.float32([1, np.nan])}},
            f64={"out": np.array([1.0, 2.0])},
        )
    )
    assert "mismatched" in shown
    assert "[1.0, nan]" in shown
    assert " nan " in shown.replace("[1.0, nan]", "")


def test_several_outputs_stand_one_after_the_other(maker: Any) -> None:
    one = {"vjp.lhs": np.float32([1]), "vjp.rhs": np.float32([[2]])}
    result = maker.result(
        "cases/a.yaml::a:transform=vjp",
        {"eager": one, "jit": one | {"vjp.rhs": np.float32([[3]])}},
        strict=one,
    )
    rows = [line.split()[:3] for line in text(result).splitlines() if " float32[" in line]
    assert rows == [
        ["eager", "vjp.lhs", "float32[1]"],
        ["jit", "vjp.lhs", "float32[1]"],
        ["strict", "vjp.lhs", "float32[1]"],
        ["eager", "vjp.rhs", "float32[1,1]"],
        ["jit", "vjp.rhs", "float32[1,1]"],
        ["strict", "vjp.rhs", "float32[1,1]"],
    ]
    assert "equal bits of vjp.lhs: {eager, jit, strict}" in text(result)
    assert "equal bits of vjp.rhs: {eager, strict} {jit}" in text(result)


def test_a_stale_expectation_is_named(maker: Any) -> None:
    result = maker.result(
        "cases/a.yaml::a",
        {"eager": {"out": np.float32([1])}, "jit": {"out": np.float32([1])}},
        expect=[maker.expectation("jit", "divergent", "excess-precision")],
    )
    assert text(result).count("cases/a.yaml:12 expects divergent, came identical") == 1
    assert "  stale: jit: cases/a.yaml:12 expects divergent, came identical" in text(result)
    said = str(Finding(result, [row for row in result.rows if row.is_finding]))
    assert said.startswith(
        "stale: jit identical: cases/a.yaml:12 expects divergent, came identical"
    )
    assert said.count("cases/a.yaml:12 expects divergent, came identical") == 1


def test_a_fine_case_is_one_line(maker: Any) -> None:
    result = maker.result(
        "cases/a.yaml::a",
        {
            "eager": {"out": np.float32([2])},
            "jit": {"out": np.float32([2])},
            "gone": Failure("unsupported", "build", "Unsupported", "removed"),
        },
        f64={"out": np.array([2 + 2**-23])},
        strict={"out": np.float32([2])},
    )
    assert all(map(is_fine, result.rows))
    assert one_line(result).plain == (
        "ok  cases/a.yaml::a  2 identical, 1 unsupported, max 0.5 ulp vs f64"
    )


def test_an_expected_difference_is_not_fine(founding: CaseResult) -> None:
    assert [is_fine(row) for row in founding.rows] == [True, False, False, True]


def test_paths_that_say_the_same_share_a_line() -> None:
    lines = ["jit: error: x", "jit keeps the product", "native: error: x", "native keeps: it"]
    assert list(merged(lines)) == [
        "jit, native: error: x",
        "jit keeps the product",
        "native keeps: it",
    ]


def test_doubts_about_the_baseline_are_told(maker: Any) -> None:
    one = {"out": np.float32([1])}
    result = maker.result(
        "cases/a.yaml::a",
        {"eager": one, "jit": one},
        f64={"out": np.array([1.0])},
        strict={"out": np.float32([1.25])},
    )
    doubt = "not faithful: outside the order interval in 1 of 1 elements"
    assert f"  eager: {doubt}" in text(result)
    assert one_line(result).plain == f"ok  cases/a.yaml::a  2 identical, max 0 ulp vs f64; {doubt}"


def test_long_lines_are_folded_at_spaces_only() -> None:
    from rich.text import Text

    link = "https://example.org/" + "x" * 60
    lines = folded(Text(f"expected: jit divergent, because {link} says so"), 40)
    assert [line.plain for line in lines] == [
        "  expected: jit divergent, because",
        f"    {link}",
        "    says so",
    ]


def test_notes_and_headings_of_several_outputs_say_of_which(maker: Any) -> None:
    two = {"a": np.float32([1, 2]), "b": np.float32([1, 2]), "c": np.float32([3])}
    result = maker.result("cases/a.yaml::a", {"eager": two}, f64=two, strict=two)
    doubts = {"a": "4 undecided", "b": "4 undecided", "c": "1 undecided"}
    rows = tuple(replace(row, detail=doubts[row.output]) for row in result.rows)
    lines = text(replace(result, rows=rows)).splitlines()
    assert lines[1].split()[:2] == ["path", "dtype"]
    assert lines[2].split()[:4] == ["and", "output", "and", "shape"]
    assert "  eager (a, b): 4 undecided" in lines
    assert "  eager (c): 1 undecided" in lines
