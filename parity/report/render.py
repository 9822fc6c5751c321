"""A run in one of the output formats, as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from parity.report.numbers import metric

if TYPE_CHECKING:
    from rich.text import Text

    from parity.engine.run import RunResult

FORMATS = ("table", "json", "csv", "markdown")


def render(
    result: RunResult,
    kind: str,
    *,
    width: int | None = None,
    color: bool = False,
    verbose: bool = False,
) -> str:
    """The run as text that ends in a newline.

    Args:
        result: the run.
        kind: one of `FORMATS`.
        width: terminal cells to a line of the table, None for no limit.
        color: whether the table has ANSI colours.
        verbose: a table for every case, however many there are.
    """
    if kind == "json":
        from parity.report.json import dumps, run_as_dict

        return dumps(run_as_dict(result), indent=1) + "\n"
    if kind == "csv":
        return _csv(result)
    if kind == "markdown":
        return _markdown(result)
    from parity.report.summary import run_lines

    return _text(run_lines(result, width, verbose=verbose), color=color)


def _csv(result: RunResult) -> str:
    """One line for each row; what has parts is JSON, NaN and Infinity are spelled out."""
    from parity.compare.rows import as_dict
    from parity.report.json import dumps

    rows = [as_dict(row) for row in result.rows]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
    for row in rows:
        writer.writerow(
            "" if v is None else v if isinstance(v, str) else dumps(v).strip('"')
            for v in row.values()
        )
    return stream.getvalue()


def _text(lines: Sequence[Text], *, color: bool) -> str:
    if not color:
        return "".join(f"{line.plain}\n" for line in lines)
    from rich.console import Console

    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=True, color_system="standard", highlight=False, width=10**6
    )
    for line in lines:
        console.print(line, soft_wrap=True)
    return stream.getvalue()


_MARKDOWN = (
    "path",
    "output",
    "status",
    "grade",
    "differing",
    "max_abs_baseline",
    "max_ulp_baseline",
    "max_abs_f64",
    "max_ulp_f64",
    "rms_rel_f64",
    "detail",
)


def _markdown(result: RunResult) -> str:
    """A section for each case with a table of its rows, as GitHub reads it."""
    from parity.compare.rows import as_dict
    from parity.report.table import equal_bits

    parts = [f"**{result.verdict}**: {len(result.cases)} of {result.wanted} cases\n"]
    for case in result.cases:
        rows = [as_dict(row) | {"grade": row.grade or row.outcome} for row in case.rows]
        cells = [[_cell(row[name]) for name in _MARKDOWN] for row in rows]
        parts.append(f"### `{case.case.id}`\n")
        parts.append(_line(_MARKDOWN) + _line(["---"] * len(_MARKDOWN)))
        parts[-1] += "".join(map(_line, cells))
        notes = (*equal_bits(case), *case.words)
        parts.append("".join(f"- {_cell(note)}\n" for note in notes))
    return "\n".join(part for part in parts if part)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _cell(value: Any) -> str:
    if isinstance(value, int | float):
        return metric(value)
    text = str(value or "")
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
