"""A stored run that cases are compared with as soon as they are done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parity import __version__
from parity.casefile.problem import did_you_mean
from parity.errors import NothingSelected, UserError
from parity.record.reader import Recorded
from parity.record.result import RunResult, open_record
from parity.record.store import Store
from parity.report.diff import wording
from parity.report.diff.compare import diff
from parity.report.diff.detail import change_lines
from parity.report.diff.directions import DIRECTIONS, NEW
from parity.report.diff.facts import FactChange
from parity.report.diff.model import Change, Diff
from parity.report.numbers import metric, plural

if TYPE_CHECKING:
    from parity.compare.rows import Row
    from parity.engine.task import Done

CHANGE, CAUSE = "change", "change_cause"
"""The properties of an item that say what became of it."""

UNCHANGED = "unchanged"
NOT_COMPARABLE = "not comparable"
NOT_THERE = "not in the baseline"

FEW = 5
"""So many ids of items that came out alike are named."""


@dataclass(frozen=True)
class Against:
    """What became of one path of a case against the baseline.

    Attributes:
        change: one of `diff.directions.DIRECTIONS`, of several outputs the worst, or `UNCHANGED`,
            `NOT_COMPARABLE`, `NOT_THERE`.
        cause: what a change came from, or why there is nothing to compare; "" for nothing to say.
        worse: the changes that fail.
        alone: the rows that have nothing to be compared with.
        diff: of the case, None if the baseline lacks it.
    """

    change: str
    cause: str
    worse: tuple[Change, ...]
    alone: tuple[Row, ...]
    diff: Diff | None

    def lines(self) -> Iterator[str]:
        """What got worse: direction, cause, A -> B; then all that is known of it."""
        assert self.diff is not None
        yield from map(_headline, self.worse)
        yield wording.side("A", self.diff.a)
        yield wording.side("B", self.diff.b)
        for fact in self.diff.facts:
            yield f"  {fact.name}: {_said(fact)}"
        for change in self.worse:
            yield f"{change.path} {change.output}".rstrip()
            yield from (line.plain for line in change_lines(change, self.diff.a, self.diff.b, None))


class Baseline:
    """A stored run.

    Args:
        file: its record.
        environment: which of its environments, needed where there are several.

    Raises:
        UserError: it is not a record, or it is not clear which environment is meant.
    """

    def __init__(self, file: Path, environment: str | None = None) -> None:
        self._run = open_record(file)
        assert isinstance(self._run.cases, Recorded)
        names = list(dict.fromkeys(name for _, name in self._run.cases.keys))
        if not names:
            raise UserError(f"{file}: has no results")
        if environment is None and len(names) > 1:
            raise UserError(
                f"{file}: has {len(names)} environments ({', '.join(names)}); "
                "which one is to be compared?",
                hint=f"--parity-baseline-env {names[0]} chooses it",
            )
        if environment is not None and environment not in names:
            raise UserError(
                f"{file}: unknown environment (got {environment}; allowed {', '.join(names)})",
                hint=did_you_mean(environment, names),
            )
        self._environment = environment or names[0]

    def diff(self, done: Done) -> Diff | None:
        """How a case differs from the baseline, None if that lacks it."""
        store = Store(None, version=__version__, keep="all", wanted=1)
        store.environment(done.result.environment, done.found)
        store.add(done.result, done.outputs)
        now = RunResult(store.environments(), store.results(), wanted=1)
        try:
            return diff(self._run, now, a_env=self._environment)
        except NothingSelected:
            return None


def against(found: Diff | None, rows: Sequence[Row]) -> Against:
    """What became of one path.

    Args:
        found: of its case.
        rows: of the path.
    """
    if found is None:
        return Against(NOT_THERE, "the case", (), tuple(rows), None)
    (path,) = {row.path for row in rows}
    changes = [change for change in found.changes if change.path == path]
    worse = tuple(change for change in changes if change.fails(found.fail_on))
    apart = [one for one in found.not_comparable if one.path in ("", path)]
    left_out = {one.output for one in apart}
    new = {change.output for change in changes if change.direction == NEW}
    alone = tuple(
        row for row in rows if "" in left_out or row.output in left_out or row.output in new
    )
    if worse or not alone:
        worst = min(changes, key=lambda one: DIRECTIONS.index(one.direction), default=None)
        if worst is None:
            return Against(UNCHANGED, "", (), alone, found)
        return Against(worst.direction, worst.cause, worse, alone, found)
    reasons = [f"{one.kind}: {one.reason}" for one in apart if one.output in _outputs(alone)]
    if reasons:
        return Against(NOT_COMPARABLE, reasons[0], (), alone, found)
    return Against(NOT_THERE, "the path", (), alone, found)


def summary(stats: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """What became of the items of a session, a line each.

    Args:
        stats: the reports of pytest's terminal reporter, which come from all of its processes.
    """
    reports = [one for of in stats.values() for one in of if getattr(one, "when", "") == "call"]
    found = [(one, dict(one.user_properties)) for one in reports]
    compared = [(one, known) for one, known in found if CHANGE in known]
    failed = [one for one, known in compared if one.failed and _is_change(known)]
    changes = Counter(known[CHANGE] for _, known in compared if _is_change(known))
    said = [f"{changes[name]} {name}" for name in DIRECTIONS if name in changes]
    same = sum(known[CHANGE] == UNCHANGED for _, known in compared)
    yield f"{plural(len(failed), 'item')} got worse"
    yield ", ".join([*said, f"{same} {UNCHANGED}"])
    stands = [one for one, known in compared if not one.failed and _has_finding(known)]
    if stands:
        yield f"{plural(len(stands), 'item')} with a finding that did not get worse"
        yield from _ids(stands)
    for kind in (NOT_COMPARABLE, NOT_THERE):
        alike: dict[str, list[Any]] = {}
        for one, known in compared:
            if known[CHANGE] == kind:
                alike.setdefault(known[CAUSE], []).append(one)
        for cause, of in alike.items():
            yield f"{kind}, so judged by itself: {plural(len(of), 'item')}: {cause}"
            yield from _ids(of)


def _is_change(known: Mapping[str, Any]) -> bool:
    return known[CHANGE] not in (UNCHANGED, NOT_COMPARABLE, NOT_THERE)


def _has_finding(known: Mapping[str, Any]) -> bool:
    """Whether any row of an item, which stand apart by output, fails a run without a baseline."""
    return any(
        name.partition(".")[0] == "status" and value in ("finding", "stale")
        for name, value in known.items()
    )


def _ids(reports: Sequence[Any]) -> Iterator[str]:
    yield from (f"  {one.nodeid}" for one in reports[:FEW])
    if len(reports) > FEW:
        yield f"  and {len(reports) - FEW} more"


def _outputs(rows: Sequence[Row]) -> set[str]:
    return {"", *(row.output for row in rows)}


def _said(fact: FactChange) -> str:
    """`0.7.1 -> 0.10.2`; of a list what only one side has."""
    if not fact.removed and not fact.added:
        return f"{fact.a or 'none'} -> {fact.b or 'none'}"
    sides = (("A", fact.removed), ("B", fact.added))
    return "; ".join(f"only {name}: {' '.join(words)}" for name, words in sides if words)


def _headline(change: Change) -> str:
    """`jit newly divergent, compiler changed: identical -> divergent, 1 (1048576 ulp) apart`."""
    output = f" {change.output}" if change.output not in ("", "out") else ""
    text = f"{change.path}{output} {change.direction}, {change.cause}"
    text += f" ({wording.shortened(change.why)})" if change.why else ""
    text += f": {wording.grade(change.a)} -> {wording.grade(change.b)}"
    if change.distance is not None and change.distance.metrics.max_abs is not None:
        metrics = change.distance.metrics
        text += f", {metric(metrics.max_abs)} ({metric(metrics.max_ulp)} ulp) apart"
    return text + "".join(
        f", {name} {a} -> {b}"
        for name, a, b, _ in wording.quantities(change)
        if name == "max ulp vs f64" and a != b and a and b
    )
