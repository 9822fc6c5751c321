from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import numpy as np

from parity.compare.result import CaseResult
from parity.record.result import RunResult
from parity.report import render as rendering
from parity.report.render import FORMATS


def render(result: RunResult, kind: str, **how: bool) -> str:
    return "".join(rendering.render(result, kind, **how))


def test_every_format_ends_in_a_newline(maker: Any, founding: CaseResult) -> None:
    for kind in FORMATS:
        assert render(maker.run(founding), kind).endswith("\n")


def test_colours_only_add_escapes(maker: Any, founding: CaseResult) -> None:
    run = maker.run(founding)
    plain, colored = render(run, "table"), render(run, "table", color=True)
    assert "\x1b[" not in plain
    assert "\x1b[33mdivergent" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


def test_brackets_are_not_markup(maker: Any) -> None:
    one = {"out": np.float32([1])}
    run = maker.run(maker.result("cases/a.yaml::a", {"eager": one}, about="[red]about[/red] :x:"))
    for color in (False, True):
        shown = re.sub(r"\x1b\[[0-9;]*m", "", render(run, "table", color=color))
        assert "  [red]about[/red] :x:\n" in shown


def test_csv_has_one_line_for_each_row_and_spells_nan_out(maker: Any) -> None:
    run = maker.run(
        maker.result(
            "cases/a.yaml::a",
            {
                "eager": {"out": np.float32([1, 2])},
                "jit": {"out": np.float32([np.nan, 2])},
            },
            about='with, comma and "quote"',
        )
    )
    rows = list(csv.DictReader(io.StringIO(render(run, "csv"))))
    assert [(row["case"], row["path"], row["output"]) for row in rows] == [
        ("cases/a.yaml::a", "eager", "out"),
        ("cases/a.yaml::a", "jit", "out"),
    ]
    assert rows[1]["max_abs_baseline"] == "NaN"
    assert json.loads(rows[1]["values"]) == ["NaN", 2.0]
    assert rows[0]["sqnr_db_baseline"] == "Infinity"
    assert rows[0]["max_abs_f64"] == ""


def test_csv_of_a_run_without_rows_is_empty(maker: Any) -> None:
    assert render(maker.run(wanted=2, interrupted=True), "csv") == ""


def test_markdown_tables_are_well_formed(maker: Any, founding: CaseResult) -> None:
    shown = render(maker.run(founding), "markdown")
    table = [line for line in shown.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 4
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1
    assert "### `cases/conv.yaml::conv:compute_dtype=bfloat16`" in shown
    assert "| jit | out | expected | divergent | 2 | 0.002441 |" in shown
    assert "- equal bits: {eager, nonnative, strict} {jit, native}" in shown


def test_markdown_escapes_what_would_break_a_cell(maker: Any) -> None:
    from parity.worker.protocol import Failure

    one = {"out": np.float32([1])}
    run = maker.run(
        maker.result(
            "cases/a.yaml::a",
            {"eager": one, "jit": Failure("error", "run", "E", "a | b <script> \\")},
        )
    )
    row = next(line for line in render(run, "markdown").splitlines() if line.startswith("| jit"))
    assert "a \\| b &lt;script> \\\\" in row
