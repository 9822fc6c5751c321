"""The heatmap: what a path made of a case as one cell; the words and signs of its legend."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parity.report.html.index import KINDS, kind_of

if TYPE_CHECKING:
    from parity.compare.rows import Row

SIGNS = {
    "identical": ("=", "i", "the baseline's bits"),
    "equivalent": ("≈", "e", "other bits, both as declared"),
    "divergent": ("≠", "d", "a rounding was added or dropped, still accurate"),
    "inaccurate": ("×", "n", "beyond the accuracy bound"),
    "mismatched": ("#", "m", "other shape, dtype, or pattern of NaN and infinity"),
    "error": ("E", "r", "an exception"),
    "crashed": ("C", "c", "the process died"),
    "timeout": ("T", "t", "took too long"),
    "out-of-memory": ("M", "o", "memory ran out"),
    "unsupported": ("–", "s", "the environment cannot do it"),
    "no output": ("∅", "z", "ran and gave nothing to compare"),
}
"""By kind the sign of a cell, the first letter of its class, and what it means."""

BASELINE = ("B", "the baseline itself, as accurate as its dtypes allow")

_STEPS = 10
_STATUS = {"ok": "", "expected": "E", "stale": "S", "finding": "F"}


@dataclass(frozen=True)
class Cell:
    """A path of a case; of several outputs the worst.

    Attributes:
        sign: its character.
        style: its class, short since there are many: the letter of its kind; the share of the bound
            used, in tenths rounded up (0 to 9, A), x for more than all of it, v where the bound is
            vacuous for some elements, u if it is unknown; E expected, S stale, F finding.
    """

    sign: str
    style: str


def cell(rows: Sequence[Row], *, baseline: bool) -> Cell:
    """The cell of the rows of one path.

    Args:
        rows: one for each output, at least one.
        baseline: whether it is the path that the others are compared with.
    """
    worst = min(rows, key=badness)
    kind = kind_of(worst)
    sign, letter, _ = SIGNS[kind]
    status = max((row.status for row in rows), key=tuple(_STATUS).index)
    if baseline and kind == "identical":
        sign = BASELINE[0]
    return Cell(sign, letter + _share(rows) + _STATUS[status])


def badness(row: Row) -> tuple[int, int]:
    """Sorts the worst row first: by what it amounts to, then by whether it fails the run."""
    return KINDS.index(kind_of(row)), -row.is_finding


def _share(rows: Iterable[Row]) -> str:
    """The largest share of the bound that is used, as `Cell.style` has it."""
    if any(row.vacuous for row in rows):
        return "v"
    shares = [row.bound_share for row in rows if row.bound_share is not None]
    if not shares or any(map(math.isnan, shares)):
        return "u"
    largest = max(shares)
    return "x" if largest > 1 else f"{math.ceil(largest * _STEPS):X}"
