"""The cases of a file side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from parity.compare.result import CaseResult
from parity.report.across import MOST, Across, Comparison, across_lines, table
from parity.report.html.run import run_page
from parity.report.render import render
from parity.report.summary import run_lines
from parity.worker.protocol import Failure

F64 = {"out": np.array([1.0, 2.0])}


@pytest.fixture
def way(maker: Any) -> Any:
    """`way(label, outputs by path)`: a case of a.yaml whose sweep point is the label."""

    def make(label: str, made: dict[str, Any], file: str = "a", **changes: Any) -> CaseResult:
        made = {path: of if isinstance(of, Failure) else {"out": of} for path, of in made.items()}
        result = maker.result(f"cases/{file}.yaml::a:how={label}", made, f64=F64, strict=F64)
        program = replace(result.case.program, attributes={"precision": label})
        case = replace(result.case, point={"how": label, "k": "3"}, program=program)
        rows = tuple(replace(row, **changes) if row.outcome == "ok" else row for row in result.rows)
        return replace(result, case=case, rows=rows)

    return make


def compared(*results: CaseResult) -> list[Comparison]:
    across = Across()
    for result in results:
        across.add([result])
    return list(across.comparisons())


EXACT, NEAR, FAR = (np.float32(one) for one in ([1, 2], [1, 2.25], [1, 3]))


def test_paths_of_equal_bits_are_one_line_and_the_closest_is_marked(way: Any) -> None:
    (one,) = compared(way("x", {"eager": FAR, "jit": FAR}), way("y", {"eager": FAR, "jit": NEAR}))
    assert one.title == "k=3"
    assert [(w.label, w.paths, w.closest) for w in one.ways] == [
        ("x", ("eager", "jit"), False),
        ("y", ("eager",), False),
        ("y", ("jit",), True),
    ]
    # |error| / |(1, 2)|: 1 and 1/4 over the root of 5
    assert [w.rms_rel for w in one.ways] == pytest.approx([5**-0.5, 5**-0.5, 5**-0.5 / 4])


def test_nothing_is_closest_where_all_are_about_as_far(way: Any) -> None:
    (one,) = compared(way("x", {"eager": FAR}), way("y", {"eager": FAR}))
    assert not any(w.closest for w in one.ways)


def test_a_failure_is_one_line_for_all_stages(way: Any) -> None:
    gone = {
        path: Failure("error", stage, "ValueError", "not on CPU")
        for path, stage in (("eager", "run"), ("jit", "lower"))
    }
    (one,) = compared(way("x", {"eager": EXACT}), way("y", gone))
    (failed,) = one.ways[1:]
    assert (failed.paths, failed.verdict) == (("eager", "jit"), "error at run, lower")
    assert failed.remark == "not on CPU"


@pytest.mark.parametrize(
    "said",
    ["The precision 'X' is not supported by dot_general on CPU", "Unsupported precision: X"],
)
def test_what_jax_refuses_is_called_unsupported_and_stays_an_error(way: Any, said: str) -> None:
    gone = {"eager": Failure("error", "run", "ValueError", said)}
    (one,) = compared(way("x", {"eager": EXACT}), way("y", gone))
    assert one.ways[1].verdict == "unsupported (error at run)"


def test_rows_have_numbers_where_the_table_is_cut(way: Any) -> None:
    """60 columns: paths and errors stand apart, and each block says of which row."""
    dots = {"dots": "1 float32·float32 -> float32"}
    results = [
        way(name, {"eager": NEAR, "jit": FAR}, evidence=dots, delivered=8.0, named=8)
        for name in ("a_program", "another_program")
    ]
    lines = [line.plain for line in _lines(*results, width=60)]
    blocks = [line.split() for line in lines if line.split()[:1] == ["3"]]
    assert len(blocks) > 1
    assert {line[1] for line in blocks} == {"another_program"}
    assert not any(line.split()[:1] == ["row"] for line in map(_plain, _lines(*results)))
    assert "".join(lines[-2:]).split() == ["dots", "of", "a_program,", "another_program:",
                                           *dots["dots"].split()]  # fmt: skip
    assert max(map(len, lines)) <= 60


def _plain(line: Any) -> str:
    return str(line.plain)


def test_replicas_that_differ_are_not_the_closest(way: Any) -> None:
    said = "replicas differ: 1 of 2 elements, by at most 1, on device 1"
    wrong = way("x", {"eager": NEAR}, replicas=said, faithful=False)
    (one,) = compared(wrong, way("y", {"eager": FAR}))
    assert [w.closest for w in one.ways] == [False, False]
    assert one.ways[0].remark == said


def test_tensorflow_says_what_before_where(way: Any) -> None:
    said = "{{function_node __wrapped__X_device_/job:a/device:CPU:0}} Cannot read"
    failure = Failure("error", "run", "InvalidArgumentError", said)
    (one,) = compared(way("x", {"eager": failure}), way("y", {"eager": EXACT}))
    assert one.ways[0].remark == "Cannot read"


def test_other_operands_or_a_single_program_are_not_compared(way: Any, maker: Any) -> None:
    assert compared(way("x", {"eager": EXACT})) == []
    one = way("x", {"eager": EXACT})
    batched = replace(one.case.program, transform="vmap")
    assert compared(one, replace(one, case=replace(one.case, program=batched))) == []


def test_a_file_with_very_many_lines_has_no_comparison(way: Any) -> None:
    one = way("x", {"eager": EXACT})
    assert len(compared(*[one] * MOST)) == 1
    assert compared(*[one] * (MOST + 2)) == []


def test_a_ladder_says_what_it_delivers_and_where_it_is_not_monotone(way: Any) -> None:
    ladder = [
        way("BF16_BF16_F32", {"eager": EXACT}, delivered=24.0, named=8),
        way("TF32_TF32_F32", {"eager": EXACT}, delivered=8.0, named=11),
    ]
    idle = {"no_effect": "precision BF16_BF16_F32: accepted, no effect here"}
    (row,) = ladder[0].rows
    ladder[0] = replace(ladder[0], rows=(replace(row, evidence=idle),))
    (one,) = compared(*ladder)
    assert [w.remark for w in one.ways] == [
        "accepted, no effect here: the bits of a plain float32 dot",
        "delivers less than its name",
    ]
    assert one.notes == (
        "eager: not monotone: TF32_TF32_F32 delivers fewer bits than BF16_BF16_F32, which names "
        "fewer",
    )
    lines = [line.plain for line in _lines(*ladder)]
    assert lines[1] == "side by side  k=3"
    assert lines[-1] == f"  {one.notes[0]}"


def _lines(*results: CaseResult, width: int | None = None) -> Any:
    across = Across()
    for result in results:
        across.add([result])
    return across_lines(across, width)


def test_headings_without_anything_below_are_left_out(way: Any) -> None:
    dots = {"dots": "1 float32·float32 -> float32"}
    (one,) = compared(
        way("x", {"eager": NEAR, "jit": FAR}, evidence=dots), way("y", {"eager": EXACT})
    )
    shown = table(one.ways)
    assert list(shown[0]) == [
        "program", "paths", "grade", "dtype", "rms rel vs f64", "dots",
    ]  # fmt: skip
    assert [line["dots"] for line in shown] == [dots["dots"], dots["dots"], ""]


def test_a_run_of_one_file_shows_it_in_every_report_for_people(way: Any, maker: Any) -> None:
    run = maker.run(way("x", {"eager": NEAR}), way("y", {"eager": EXACT}))
    assert "side by side  k=3" in [line.plain for line in run_lines(run, 80)]
    assert "### Side by side `k=3`" in "".join(render(run, "markdown"))
    (name, one, lines) = run_page(run).context["across"][0]
    assert (name, one.title, [line["program"] for line in lines]) == (
        "cases/a.yaml",
        "k=3",
        ["x", "y"],
    )


def test_a_run_of_several_files_shows_it_on_the_page_alone(way: Any, maker: Any) -> None:
    run = maker.run(
        *(way(x, {"eager": EXACT}) for x in "xy"), *(way(x, {"eager": EXACT}, "b") for x in "xy")
    )
    assert not any("side by side" in line.plain for line in run_lines(run, 80))
    assert "Side by side" not in "".join(render(run, "markdown"))
    assert [name for name, *_ in run_page(run).context["across"]] == [
        "cases/a.yaml",
        "cases/b.yaml",
    ]
