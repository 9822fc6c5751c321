"""Which rows are accepted: findings or improvements, never both, and some never.

All that comes after starts from `Taken`, whatever it was that chose the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from parity.accepting.evidence import Evidence, Seen
from parity.accepting.source import Place
from parity.casefile.case import STAGES, Expectation
from parity.casefile.select import id_matches
from parity.compare.expect import is_in
from parity.compare.rows import Row

_ORDER = (
    "identical",
    "equivalent",
    "unsupported",
    "divergent",
    "inaccurate",
    "mismatched",
    "error",
    "timeout",
    "out-of-memory",
    "crashed",
)
"""From best to worst, whatever an entry can expect."""


@dataclass(frozen=True)
class Taken:
    """A row that is accepted, and where it was seen.

    Attributes:
        seen: where.
        row: which.
        says: whether an entry must say what it is; otherwise it is enough that none says otherwise.
    """

    seen: Seen
    row: Row
    says: bool


@dataclass(frozen=True)
class LeftOut:
    """A row that was chosen and is not accepted, and why."""

    row: Row
    why: str


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is to be accepted.

    Attributes:
        case: an id, a file, or a glob over them.
        paths: names of paths.
        better: improvements rather than findings.
        grades: rows of these grades only; the only way to accept `mismatched`.
        when: only what was seen in the environments that this describes, as an entry's `when`.
        worse: of a comparison, the rows that changed, and whether they got worse: only these are
            accepted, and one that got worse also where the run itself does not fail on it; None
            for whatever the run found.
    """

    case: str
    paths: Sequence[str]
    better: bool = False
    grades: Collection[str] = ()
    when: Mapping[str, str] = field(default_factory=dict)
    worse: Mapping[Place, bool] | None = None

    def takes(self, seen: Seen, row: Row) -> bool:
        """Whether a row is among what is to be accepted."""
        if row.path not in self.paths:
            return False
        better = is_better(seen, row)
        if self.worse is not None:
            worse = self.worse.get((row.case, seen.environment, row.path, row.output))
            if worse is None:
                return False
            if worse and better is None and row.status != "expected":
                better = False
        return better is self.better


def choose(evidence: Evidence, wanted: Wanted) -> tuple[list[Taken], list[LeftOut]]:
    """The rows to accept, and those that are wanted and cannot be."""
    taken, left_out = [], []
    for seen in evidence.seen:
        if not (id_matches(seen.case.id, wanted.case) and is_in(wanted.when, seen.versions)):
            continue
        for row in seen.rows:
            if not wanted.takes(seen, row):
                continue
            why = _refusal(seen, row, wanted.grades)
            if why:
                left_out.append(LeftOut(row, why))
            else:
                taken.append(Taken(seen, row, row.status == "finding" or not wanted.better))
    return taken, left_out


def is_better(seen: Seen, row: Row) -> bool | None:
    """Whether a row is better than what was expected of it (True), or a finding that is not.

    None where there is nothing to accept: it is as expected, or its entry is stale for another
    reason.
    """
    stale = seen.stale_on(row)
    if stale and all(_rank(row) < _expected(entry) for entry, _ in stale):
        return True
    return False if row.status == "finding" else None


def _rank(row: Row) -> int:
    what = row.grade if row.outcome == "ok" else row.outcome
    return _ORDER.index(what or "identical")


def _expected(entry: Expectation) -> int:
    return min(_ORDER.index(what) for what in entry.grades or (entry.outcome or "",))


def _refusal(seen: Seen, row: Row, grades: Collection[str]) -> str:
    """Why a row is never accepted, "" if it may be."""
    if row.outcome in ("crashed", "timeout", "out-of-memory"):
        return f"{row.outcome} is never accepted"
    if row.nondeterministic:
        return "its bits change from run to run, which no grade says anything of"
    if row.tolerance_refused:
        return "the case's tolerance is refused, which no expectation excuses"
    if row.outcome == "error" and row.stage not in STAGES:
        return f"it failed at {row.stage or 'no stage'}, outside of the path itself"
    if row.path not in seen.case.paths:
        return "the case file does not name this path under paths"
    if grades and row.grade not in grades:
        return f"{row.grade or row.outcome} is not among the grades that --grade names"
    if row.grade == "mismatched" and "mismatched" not in grades:
        return "mismatched is accepted with --grade mismatched only"
    return ""
