"""What every part of an explanation consists of, whatever the format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Plot:
    """Numbers along a program.

    Attributes:
        what: the quantity.
        labels: what each point is of.
        series: the values of each line by its name, None where there is none.
    """

    what: str
    labels: tuple[str, ...]
    series: Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True)
class Section:
    """A part of an explanation.

    Attributes:
        title: in a few words.
        lines: sentences.
        head: headings of a table, none if there is none.
        cells: its rows.
        code: programs or diffs, each under its name.
        plot: a plot.
    """

    title: str
    lines: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()
    code: tuple[tuple[str, str], ...] = ()
    plot: Plot | None = None
