"""Aligned columns of text that lose nothing: what does not fit continues in a block below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from rich.text import Text

GAP = 2


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        head: its heading, in two lines.
        cells: one for each row.
        right: whether the cells are aligned to the right, as numbers are.
    """

    head: tuple[str, str]
    cells: Sequence[Text]
    right: bool = False

    @cached_property
    def width(self) -> int:
        """Terminal cells that the widest entry takes."""
        return max(text.cell_len for text in (*map(Text, self.head), *self.cells))

    def lines(self) -> Iterator[Text]:
        """Headings and cells, each padded to the column's width."""
        for text in (*(Text(line, style="bold") for line in self.head), *self.cells):
            padded = text.copy()
            missing = self.width - text.cell_len
            if self.right:
                padded.pad_left(missing)
            else:
                padded.pad_right(missing)
            yield padded


def layout(
    columns: Sequence[Column], width: int | None, *, indent: int = 0, naming: int = 1
) -> list[Text]:
    """The lines of a table.

    Args:
        columns: the first ones name the rows and stand in every block.
        width: terminal cells to a line, None for no limit. A line is longer only where those and a
            single other one do not fit.
        indent: spaces before each line.
        naming: how many columns name the rows.
    """
    lines: list[Text] = []
    for block in _blocks(columns, None if width is None else width - indent, naming):
        if lines:
            lines.append(Text())
        for cells in zip(*(column.lines() for column in block), strict=True):
            line = Text(" " * indent).append_text(Text(" " * GAP).join(cells))
            line.rstrip()
            if line.plain or not cells:
                lines.append(line)
    return lines


def _blocks(columns: Sequence[Column], width: int | None, naming: int) -> list[list[Column]]:
    """Columns that fit beside the naming ones; neighbours with one second heading stay together."""
    first, others = list(columns[:naming]), columns[naming:]
    blocks: list[list[Column]] = [first.copy()]

    def fits(more: Sequence[Column]) -> bool:
        taken = sum(column.width for column in (*blocks[-1], *more))
        return width is None or taken + GAP * (len(blocks[-1]) + len(more) - 1) <= width

    for _, group in groupby(others, key=lambda column: column.head[1]):
        members = list(group)
        if not fits(members) and len(blocks[-1]) > naming:
            blocks.append(first.copy())
        for column in members:
            if not fits([column]) and len(blocks[-1]) > naming:
                blocks.append(first.copy())
            blocks[-1].append(column)
    return blocks
