"""What became of one case in one environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from parity.casefile.case import Case
from parity.compare.rows import Row


@dataclass(frozen=True)
class CaseResult:
    """What became of one case.

    Attributes:
        case: which one.
        environment: the name of the environment it ran in.
        rows: judged, one per path and output.
        references: `f64` and `strict` in the same form.
        groups: by output, the paths that gave equal bits.
        words: one line for each path that is not identical.
        notes: what a reader must know of the references.
    """

    case: Case
    environment: str
    rows: tuple[Row, ...]
    references: tuple[Row, ...]
    groups: Mapping[str, tuple[tuple[str, ...], ...]]
    words: tuple[str, ...]
    notes: tuple[str, ...] = ()
