"""A comparison of two runs in one of the output formats, as text."""

from __future__ import annotations

from collections.abc import Iterator

from parity.report.diff.json import diff_csv, diff_json
from parity.report.diff.markdown import diff_markdown
from parity.report.diff.model import Diff


def render(
    diff: Diff,
    kind: str,
    *,
    width: int | None = None,
    color: bool = False,
    verbose: bool = False,
) -> Iterator[str]:
    """The comparison as pieces of text, the last of which ends in a newline.

    Args:
        diff: what changed.
        kind: one of `commands.diff.FORMATS`.
        width: terminal cells to a line of the table, None for no limit.
        color: whether the table has ANSI colours.
        verbose: every change with its table.
    """
    if kind == "json":
        return diff_json(diff)
    if kind == "csv":
        return diff_csv(diff)
    if kind == "markdown":
        return iter([diff_markdown(diff)])
    from parity.report.diff.terminal import diff_lines
    from parity.report.render import printed

    return printed(diff_lines(diff, width, verbose=verbose), color=color)
