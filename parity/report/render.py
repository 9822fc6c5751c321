"""A run in one of the output formats, as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from parity.report.numbers import metric

if TYPE_CHECKING:
    from rich.text import Text

    from parity.record.result import RunResult

FORMATS = ("table", "json", "csv", "markdown")


def render(
    result: RunResult,
    kind: str,
    *,
    width: int | None = None,
    color: bool = False,
    verbose: bool = False,
) -> Iterator[str]:
    """The run as pieces of text, the last of which ends in a newline; none is large.

    Args:
        result: the run.
        kind: one of `FORMATS`.
        width: terminal cells to a line of the table, None for no limit.
        color: whether the table has ANSI colours.
        verbose: a table for every case, however many there are.
    """
    if kind == "json":
        from parity.report.json import run_json

        return run_json(result)
    if kind == "csv":
        return _csv(result)
    if kind == "markdown":
        return _markdown(result)
    from parity.report.summary import run_lines

    return _text(run_lines(result, width, verbose=verbose), color=color)


def _csv(result: RunResult) -> Iterator[str]:
    """One line for each row; what has parts is JSON, NaN and Infinity are spelled out."""
    from parity.compare.rows import as_dict
    from parity.record.encoding import dumps

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for number, row in enumerate(map(as_dict, result.rows)):
        if number == 0:
            writer.writerow(row)
        writer.writerow(
            "" if v is None else v if isinstance(v, str) else dumps(v).strip('"')
            for v in row.values()
        )
        yield _taken(stream)


def _text(lines: Iterable[Text], *, color: bool) -> Iterator[str]:
    if not color:
        yield from (f"{line.plain}\n" for line in lines)
        return
    from rich.console import Console

    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=True, color_system="standard", highlight=False, width=10**6
    )
    for line in lines:
        console.print(line, soft_wrap=True)
        yield _taken(stream)


def _taken(stream: io.StringIO) -> str:
    """What was written to a stream, which is empty after that."""
    text = stream.getvalue()
    stream.seek(0)
    stream.truncate()
    return text


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


def _markdown(result: RunResult) -> Iterator[str]:
    """A section for each case with a table of its rows, as GitHub reads it."""
    from parity.compare.rows import as_dict
    from parity.report.table import equal_bits

    several = len(result.environments) > 1
    yield f"**{result.verdict}**: {len(result.cases)} of {result.wanted} cases\n"
    for case in result.cases:
        rows = [as_dict(row) | {"grade": row.grade or row.outcome} for row in case.rows]
        cells = [[_cell(row[name]) for name in _MARKDOWN] for row in rows]
        where = f" in {case.environment}" if several else ""
        yield f"\n### `{case.case.id}`{where}\n"
        yield "\n" + _line(_MARKDOWN) + _line(["---"] * len(_MARKDOWN)) + "".join(map(_line, cells))
        notes = (*equal_bits(case), *case.words)
        if notes:
            yield "\n" + "".join(f"- {_cell(note)}\n" for note in notes)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _cell(value: Any) -> str:
    if isinstance(value, int | float):
        return metric(value)
    text = str(value or "")
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
