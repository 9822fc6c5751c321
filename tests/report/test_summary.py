from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.compare.result import CaseResult
from parity.record.result import RunResult
from parity.report.summary import run_lines
from parity.worker.protocol import Failure


def lines(result: RunResult, width: int | None = None, *, verbose: bool = False) -> list[str]:
    return [line.plain for line in run_lines(result, width, verbose=verbose)]


def same(maker: Any, name: str, file: str = "a") -> CaseResult:
    one = {"out": np.float32([1])}
    return maker.result(f"cases/{file}.yaml::{name}", {"eager": one, "jit": one}, about=file)


def failing(maker: Any, name: str, of: object) -> CaseResult:
    return maker.result(
        f"cases/a.yaml::{name}", {"eager": {"out": np.float32([1])}, "jit": of}, about="a"
    )


def test_a_hundred_cases_are_one_line_each_but_those_that_differ(hundred: RunResult) -> None:
    shown = lines(hundred)
    assert sum(line.startswith("ok  cases/dot.yaml::dot:k=") for line in shown) == 95
    titles = [line for line in shown if line.startswith("cases/dot.yaml::")]
    assert titles == [f"cases/dot.yaml::dot:k={k}  float32[1000]" for k in (7, 40, 41, 50, 60)]


def test_the_summary_has_the_worst_first_grouped_by_cause(hundred: RunResult) -> None:
    shown = lines(hundred)
    worst = next(r for r in hundred.rows if r.case.endswith("k=40") and r.path == "jit")
    assert worst.baseline is not None
    assert shown[-5:] == [
        "finding: jit error at trace in 2 cases: TypeError: cannot do 50 dots; "
        "first cases/dot.yaml::dot:k=50[jit]",
        f"finding: jit divergent in 3 cases, at worst {worst.baseline.max_abs:.4g} "
        f"({worst.baseline.max_ulp:.0f} ulp) from the baseline; "
        "worst cases/dot.yaml::dot:k=40[jit]",
        "unsupported: jit in 1 case: removed in JAX 0.7.2",
        "100 cases, 200 rows: 194 identical, 3 divergent, 2 error at trace, 1 unsupported",
        "findings: 5 rows in 5 cases | record: none (--out DIR keeps one) | "
        "look further: parity run cases/dot.yaml::dot:k=50 --format json",
    ]


def test_verbose_shows_every_table(hundred: RunResult) -> None:
    shown = lines(hundred, verbose=True)
    assert sum(line.startswith("cases/dot.yaml::") for line in shown) == 100
    assert not any(line.startswith("ok  ") for line in shown)


def test_a_dozen_cases_show_every_table_and_more_do_not(maker: Any) -> None:
    cases = [same(maker, f"c{n}") for n in range(13)]
    few, many = lines(maker.run(*cases[:12])), lines(maker.run(*cases))
    assert sum("float32[1]" in line for line in few) == 12
    assert sum("float32[1]" in line for line in many) == 0
    assert sum(line.startswith("ok  ") for line in many) == 13


def test_what_a_file_is_about_stands_once(maker: Any) -> None:
    shown = lines(maker.run(same(maker, "x"), same(maker, "y"), same(maker, "z", "b")))
    assert [line for line in shown if line in ("  a", "  b")] == ["  a", "  b"]
    assert shown[:2] == ["cases/a.yaml", "  a"]


def test_one_fine_case_ends_in_verdict_record_and_command(maker: Any) -> None:
    shown = lines(maker.run(same(maker, "x"), record=Path("reports/r.sqlite")))
    assert shown[-1] == (
        "ok | record: reports/r.sqlite | "
        "look further: parity show reports/r.sqlite --case cases/a.yaml::x --format json"
    )
    shown = lines(maker.run(same(maker, "x"), same(maker, "y"), record=Path("r.sqlite")))
    assert shown[-1] == (
        "ok | record: r.sqlite | look further: parity show r.sqlite --case cases/a.yaml::x"
    )
    assert "1 case" not in "\n".join(shown)


def test_severity_goes_before_distance(maker: Any) -> None:
    cases = [
        failing(maker, "far", {"out": np.float32([1e30])}),
        failing(maker, "shape", {"out": np.float32([1, 1])}),
        failing(maker, "slow", Failure("timeout", "run", "", "no answer within 3 s")),
        failing(maker, "dead", Failure("crashed", "compile", "SIGSEGV", "died of SIGSEGV")),
    ]
    shown = [line for line in lines(maker.run(*cases)) if line.startswith("finding: ")]
    assert [line.split("::")[1] for line in shown] == [
        "dead[jit]",
        "slow[jit]",
        "shape[jit]",
        "far[jit]",
    ]
    assert shown[0] == (
        "finding: jit crashed at compile: SIGSEGV: died of SIGSEGV; cases/a.yaml::dead[jit]"
    )


def test_what_is_inaccurate_is_measured_from_float64(maker: Any) -> None:
    """Made with a bound of an eighth of the ideal: 0.5 / (1 / 8) = 4."""
    result = maker.result(
        "cases/a.yaml::a",
        {"eager": {"out": np.float32([1])}, "jit": {"out": np.float32([1.5])}},
        f64={"out": np.array([1.0])},
        strict={"out": np.float32([1])},
    )
    shown = [line for line in lines(maker.run(result)) if line.startswith("finding: ")]
    assert shown == [
        "finding: jit inaccurate, 0.5 (4194304 ulp) from float64, 4 times the bound; "
        "cases/a.yaml::a[jit]"
    ]


def test_a_nan_is_worse_than_any_number(maker: Any) -> None:
    near, nan = (
        maker.result(
            f"cases/a.yaml::{name}",
            {"eager": {"out": np.float32([1])}, "jit": {"out": np.float32([value])}},
        )
        for name, value in (("near", 1e9), ("nan", np.nan))
    )
    shown = [line for line in lines(maker.run(near, nan)) if line.startswith("finding: ")]
    assert "::nan[jit]" in shown[0]


def test_stale_expectations_come_last(maker: Any) -> None:
    one = {"out": np.float32([1])}
    stale = maker.result(
        "cases/a.yaml::stale",
        {"eager": one, "jit": one},
        expect=[maker.expectation("jit", "divergent", "x")],
    )
    cases = [stale, failing(maker, "near", {"out": np.float32([2])})]
    shown = [line for line in lines(maker.run(*cases)) if line.startswith(("finding:", "stale:"))]
    assert [line.partition(":")[0] for line in shown] == ["finding", "stale"]
    assert shown[1] == (
        "stale: jit identical: cases/a.yaml:12 expects divergent, came identical; "
        "cases/a.yaml::stale[jit]"
    )


def test_expected_differences_are_counted_by_reason(founding: CaseResult, maker: Any) -> None:
    shown = lines(maker.run(founding, same(maker, "x")))
    assert shown[-3:] == [
        "expected: jit, native divergent, because excess-precision (https://example.org/1)",
        "2 cases, 6 rows: 4 identical, 2 divergent",
        "ok | record: none (--out DIR keeps one) | look further: parity run "
        "cases/conv.yaml::conv:compute_dtype=bfloat16 --format json",
    ]


def test_an_interrupted_run_says_how_far_it_came(maker: Any) -> None:
    shown = lines(maker.run(same(maker, "x"), same(maker, "y"), wanted=9, interrupted=True))
    assert "2 of 9 cases, 4 rows: 4 identical" in shown
    assert shown[-1].startswith("interrupted after 2 of 9 cases | record: none")


def test_a_run_without_any_finished_case_has_a_last_line(maker: Any) -> None:
    assert lines(maker.run(wanted=3, interrupted=True))[-1] == (
        "interrupted after 0 of 3 cases | record: none (--out DIR keeps one)"
    )


@pytest.mark.parametrize("width", [60, 80])
def test_lines_that_are_not_copied_fit_the_width(hundred: RunResult, width: int) -> None:
    too_long = [line for line in lines(hundred, width) if len(line) > width]
    assert all(" | look further: " in line or line.startswith("ok  ") for line in too_long)


def test_a_quoted_command_can_be_pasted(maker: Any) -> None:
    import shlex

    one = {"eager": {"out": np.float32([1])}}
    result = maker.run(maker.result("cases/with space.yaml::x", one))
    command = lines(result)[-1].partition("look further: ")[2]
    assert shlex.split(command) == ["parity", "run", "cases/with space.yaml::x", "--format", "json"]


def test_where_all_is_expected_the_worst_case_is_the_one_to_look_at(maker: Any) -> None:
    """A first case that is expected to be divergent, a second that is expected to be inaccurate."""
    near, far = np.float32([1.0625]), np.float32([3])
    results = [
        maker.result(
            f"cases/a.yaml::a:k={at}",
            {"eager": {"out": np.float32([1])}, "jit": {"out": got}},
            f64={"out": np.array([1.0])},
            strict={"out": np.float32([1])},
            expect=[maker.expectation("jit", grade, "known")],
        )
        for at, (got, grade) in enumerate([(near, "divergent"), (far, "inaccurate")])
    ]
    assert "parity run cases/a.yaml::a:k=1" in lines(maker.run(*results))[-1]
