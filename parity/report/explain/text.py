"""Explanations on a terminal and as markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from parity.explain.explanation import Explanation
from parity.explain.section import Plot, Section
from parity.explain.sections import headline, sections
from parity.report import markdown
from parity.report.columns import Column, layout
from parity.report.table import folded

_BARS = "▁▂▃▄▅▆▇█"


def terminal_lines(found: Explanation, width: int | None) -> Iterator[Text]:
    """An explanation as lines of a terminal.

    Args:
        found: it.
        width: terminal cells to a line, None for no limit.
    """
    yield Text.assemble((f"{found.case.id}[{found.path}]", "bold"), f" against {found.against}")
    yield from folded(Text(headline(found)), width)
    for section in sections(found):
        yield Text()
        yield Text(section.title, "bold")
        for line in section.lines:
            yield from folded(Text(line), width)
        if section.plot is not None:
            yield from _spark(section.plot, width)
        yield from _table(section, width)
        for name, text in section.code:
            yield Text(f"  {name}")
            for line in text.splitlines():
                yield Text(f"    {line}", _style(line))


def _style(line: str) -> str:
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def _table(section: Section, width: int | None) -> Iterator[Text]:
    if not section.head:
        return
    columns = [
        Column((head, ""), [Text(cell[at]) for cell in section.cells])
        for at, head in enumerate(section.head)
    ]
    yield from layout(columns, width, indent=2)


def _spark(plot: Plot, width: int | None) -> Iterator[Text]:
    """Each series as a line of bars, by the logarithm of its values."""
    known = [v for values in plot.series.values() for v in values if v]
    if not known:
        return
    low, high = math.log(min(known)), math.log(max(known))
    longest = max(map(len, plot.series))
    span = f"{min(known):.2g} (▁) to {max(known):.2g} (█)"
    yield from folded(Text(f"{plot.what}, {span}, along the program:"), width)
    for name, values in plot.series.items():
        bars = "".join(_bar(value, low, high) for value in values)
        room = None if width is None else max(width - longest - 4, 8)
        pieces = [bars] if room is None else _pieces(bars, room)
        for at, piece in enumerate(pieces):
            yield Text(f"  {name if at == 0 else '':{longest}}  {piece}")


def _pieces(text: str, length: int) -> Sequence[str]:
    return [text[at : at + length] for at in range(0, len(text), length)]


def _bar(value: float | None, low: float, high: float) -> str:
    if value is None or not math.isfinite(value):
        return "?"
    if value == 0:
        return " "
    share = (math.log(value) - low) / (high - low) if high > low else 1.0
    return _BARS[round(share * (len(_BARS) - 1))]


def markdown_lines(found: Explanation) -> Iterator[str]:
    """An explanation as markdown that GitHub shows."""
    what = markdown.code(f"{found.case.id}[{found.path}]")
    yield f"### {what} against {markdown.code(found.against)}\n\n"
    yield f"{markdown.escaped(headline(found))}\n"
    for section in sections(found):
        yield f"\n#### {section.title}\n\n"
        for line in section.lines:
            yield f"- {markdown.escaped(line)}\n"
        if section.head:
            yield "\n"
            yield markdown.table_line([markdown.escaped(head) for head in section.head])
            yield markdown.table_line(["---"] * len(section.head))
            for cells in section.cells:
                yield markdown.table_line([markdown.escaped(cell) for cell in cells])
        for name, text in section.code:
            fence = "```"
            while fence in text:
                fence += "`"
            yield f"\n{markdown.escaped(name)}\n\n{fence}diff\n{text}\n{fence}\n"
