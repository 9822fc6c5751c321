"""One change for people: the table A | B | change, elements side by side, what was compiled."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from parity.explain.evidence import LINES
from parity.report.columns import Column, layout
from parity.report.diff import wording
from parity.report.diff.facts import Side
from parity.report.diff.model import Aligned, Change
from parity.report.diff.programs import program_diff
from parity.report.numbers import element, index, metric
from parity.report.table import folded

ELEMENTS = 4
"""So many elements are shown unless all are asked for."""

_INDENT = 4
_DIFF_STYLES = {"-": "red", "+": "green", "@": "cyan"}


def change_lines(
    change: Change, a: Side, b: Side, width: int | None, *, verbose: bool = False
) -> Iterator[Text]:
    """A change, a line at a time.

    Args:
        change: which.
        a: A's side, which has the texts of what was compiled.
        b: B's side.
        width: terminal cells to a line, None for no limit.
        verbose: every element that is kept, and the whole diff of what was compiled.
    """
    names, old, new, how = zip(*wording.quantities(change), strict=True)
    columns = [
        Column(("", ""), [Text(name) for name in names]),
        Column(("", "A"), [Text(text) for text in old], right=True),
        Column(("", "B"), [Text(text) for text in new], right=True),
        Column(("", "change"), [Text(text) for text in how]),
    ]
    shown = [c for c in columns if any(cell.plain for cell in c.cells)]
    yield from layout(shown, width, indent=_INDENT)
    for line in wording.remarks(change):
        yield from folded(Text(line), width, indent=_INDENT)
    yield from _elements(change, width, None if verbose else ELEMENTS)
    yield from _program(change, a, b, width, None if verbose else LINES)


def _elements(change: Change, width: int | None, limit: int | None) -> Iterator[Text]:
    if change.distance is None or not change.distance.worst:
        return
    worst = change.distance.worst[:limit]
    dtype = change.b.dtype if change.b is not None and change.b.dtype else ""

    def column(name: str, texts: list[str], head: str = "") -> Column:
        return Column((head, name), [Text(text) for text in texts], right=True)

    columns = [
        Column(("", "element"), [Text(index(one.index)) for one in worst]),
        column("value", [element(one.a, dtype) for one in worst], "A"),
        column("value", [element(one.b, dtype) for one in worst], "B"),
        column("bits", [one.a_bits for one in worst], "A"),
        column("bits", [one.b_bits for one in worst], "B"),
        column("ulp", [metric(one.ulp) for one in worst], "A to B"),
        column("f64", [ideal(one) for one in worst]),
    ]
    yield from layout(
        [c for c in columns if any(cell.plain for cell in c.cells)], width, indent=_INDENT
    )


def ideal(one: Aligned) -> str:
    """The f64 of an element, to 10 significant digits; "" if it is not kept."""
    if one.f64 is None or isinstance(one.f64, bool | int):
        return "" if one.f64 is None else str(one.f64)
    return element(one.f64, "complex128" if isinstance(one.f64, complex) else "float64")


def _program(
    change: Change, a: Side, b: Side, width: int | None, limit: int | None
) -> Iterator[Text]:
    found = program_diff(change, a, b, limit=limit)
    if found is None:
        return
    if found.missing:
        yield from folded(Text(f"{found.name}: {found.missing}"), width, indent=_INDENT)
        return
    yield Text(f"{' ' * _INDENT}{found.name}, - A, + B:")
    for line in found.lines:
        yield from _broken(line, width)
    if found.more:
        yield Text(f"{' ' * _INDENT}… {found.more} lines more; -v shows them")


def _broken(line: str, width: int | None) -> Iterator[Text]:
    """A line of code, continued below where it is too long."""
    style = _DIFF_STYLES.get(line[:1], "dim")
    text = Text(line, style=style)
    room = max(20, width - _INDENT) if width is not None else max(len(line), 1)
    for start in range(0, max(len(line), 1), room):
        yield Text(" " * _INDENT).append_text(text[start : start + room])
