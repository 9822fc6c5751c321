"""What was compiled on both sides, as a short diff of canonical texts."""

from __future__ import annotations

from parity.explain.evidence import LINES, ProgramDiff, diff
from parity.report.diff.causes import COMPILER, LOWERING
from parity.report.diff.facts import Side
from parity.report.diff.model import Change


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
    return diff(kind, texts[0], texts[1], limit=limit)
