"""What became of one case in one environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
        programs: the canonical texts of what the paths compiled, zlib-compressed, by the SHA-256
            that rows have as evidence; of a recorded case, `Recorded.program` reads them.
    """

    case: Case
    environment: str
    rows: tuple[Row, ...]
    references: tuple[Row, ...]
    groups: Mapping[str, tuple[tuple[str, ...], ...]]
    words: tuple[str, ...]
    notes: tuple[str, ...] = ()
    programs: Mapping[str, bytes] = field(default_factory=dict)
