"""A run in one of the output formats, as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from parity.record.result import RunResult

FORMATS = ("table", "json", "csv", "markdown", "github")


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
        from parity.report.comment import run_markdown

        return run_markdown(result)
    if kind == "github":
        from parity.report.github import workflow_commands

        return workflow_commands(result)
    from parity.report.summary import run_lines

    return printed(run_lines(result, width, verbose=verbose), color=color)


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


def printed(lines: Iterable[Text], *, color: bool) -> Iterator[str]:
    """Lines as pieces of text, with ANSI colours or without."""
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
