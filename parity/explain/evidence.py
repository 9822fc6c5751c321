"""What two runs compiled of the same program, as a short diff of canonical texts."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from parity.worker.protocol import PathOutcome

KINDS = {
    "stablehlo": "StableHLO",
    "graph": "TensorFlow operations",
    "hlo": "optimized HLO",
}
"""What there may be evidence of, as it is called."""

LINES = 40
"""A diff shows so many lines unless all are asked for."""

_LONGEST_LINE = 400
_LONGEST_TEXT = 20_000  # lines; difflib takes a time that grows faster than they do


@dataclass(frozen=True)
class ProgramDiff:
    """How two programs differ.

    Attributes:
        kind: one of `KINDS`.
        lines: a unified diff of the canonical texts, without the lines that name the files; none
            for texts that are the same.
        more: how many lines were left out.
        missing: why there are no lines, "" where there are or could be.
    """

    kind: str
    lines: tuple[str, ...] = ()
    more: int = 0
    missing: str = ""

    @property
    def name(self) -> str:
        """`StableHLO`, `optimized HLO` or `TensorFlow operations`."""
        return KINDS[self.kind]


def diff(kind: str, before: str, after: str, *, limit: int | None = LINES) -> ProgramDiff:
    """The diff of two canonical texts.

    Args:
        kind: one of `KINDS`.
        before: the one text.
        after: the other.
        limit: lines that are shown, long ones cut; None for everything.
    """
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > _LONGEST_TEXT:
        return ProgramDiff(kind, missing=f"{len(old)} and {len(new)} lines are too many")
    lines = list(difflib.unified_diff(old, new, lineterm=""))[2:]
    if limit is None:
        return ProgramDiff(kind, tuple(lines))
    return ProgramDiff(kind, tuple(map(_cut, lines[:limit])), max(len(lines) - limit, 0))


def compiled(outcome: PathOutcome, against: PathOutcome) -> tuple[ProgramDiff, ...]:
    """The diffs from what `against` compiled to what `outcome` did.

    A kind of which neither has a text is left out.
    """
    return tuple(_compiled(outcome, against))


def _compiled(outcome: PathOutcome, against: PathOutcome) -> Iterator[ProgramDiff]:
    for kind in KINDS:
        before, after = _text(against, kind), _text(outcome, kind)
        if before is not None and after is not None:
            yield diff(kind, before, after)
        elif before is not None or after is not None:
            lacking = outcome.path if after is None else against.path
            yield ProgramDiff(kind, missing=f"{lacking} has none")


def _text(outcome: PathOutcome, kind: str) -> str | None:
    return outcome.programs.get(outcome.evidence.get(f"{kind}_sha256", ""))


def _cut(line: str) -> str:
    more = len(line) - _LONGEST_LINE
    return line if more <= 0 else f"{line[:_LONGEST_LINE]}… {more} characters more"
