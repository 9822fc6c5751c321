"""What was compiled on both sides, as a short diff of canonical texts."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from parity.report.diff.causes import COMPILER, KINDS, LOWERING
from parity.report.diff.facts import Side
from parity.report.diff.model import Change

LINES = 40
"""A diff shows so many lines unless all are asked for."""

_LONGEST_LINE = 400
_LONGEST_TEXT = 20_000  # lines; difflib takes a time that grows faster than they do


@dataclass(frozen=True)
class ProgramDiff:
    """How what was compiled changed.

    Attributes:
        kind: one of the keys of `causes.KINDS`.
        lines: a unified diff of the canonical texts, without the lines that name the files.
        more: how many lines were left out.
        missing: why there are no lines, "" where there are.
    """

    kind: str
    lines: tuple[str, ...] = ()
    more: int = 0
    missing: str = ""

    @property
    def name(self) -> str:
        """`StableHLO`, `optimized HLO` or `TensorFlow operations`."""
        return KINDS[self.kind]


def program_diff(
    change: Change, a: Side, b: Side, *, limit: int | None = LINES
) -> ProgramDiff | None:
    """The diff that shows the cause of a change; None if that is neither lowering nor compiler.

    Args:
        change: which.
        a: A's side, which has the texts.
        b: B's side.
        limit: lines that are shown, long ones cut; None for everything.
    """
    if change.a is None or change.b is None or change.cause not in (LOWERING, COMPILER):
        return None
    old, new = change.a.programs, change.b.programs
    kinds = ("hlo",) if change.cause == COMPILER else ("stablehlo", "graph")
    kind = next(kind for kind in kinds if kind in old and kind in new)
    texts = a.program(old[kind]), b.program(new[kind])
    if texts[0] is None or texts[1] is None:
        lacking = [name for name, text in zip("AB", texts, strict=True) if text is None]
        return ProgramDiff(kind, missing=f"not kept in {' and '.join(lacking)}")
    before, after = (text.splitlines() for text in texts if text is not None)
    if max(len(before), len(after)) > _LONGEST_TEXT:
        return ProgramDiff(kind, missing=f"{len(before)} and {len(after)} lines are too many")
    lines = list(difflib.unified_diff(before, after, lineterm=""))[2:]
    if limit is None:
        return ProgramDiff(kind, tuple(lines))
    return ProgramDiff(kind, tuple(map(_cut, lines[:limit])), max(len(lines) - limit, 0))


def _cut(line: str) -> str:
    more = len(line) - _LONGEST_LINE
    return line if more <= 0 else f"{line[:_LONGEST_LINE]}… {more} characters more"
