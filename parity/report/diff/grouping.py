"""Changes that have one cause as one finding, the worst first."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable

from parity.report.diff.directions import DIRECTIONS, rank
from parity.report.diff.model import Change, Finding


def group(changes: Iterable[Change], fail_on: frozenset[str]) -> tuple[Finding, ...]:
    """The changes of one direction, op, path and cause, expected ones apart, as one finding each.

    First come the findings that fail, then what got worse, in the order of `DIRECTIONS`; of one
    direction the one with the largest change first.

    Args:
        changes: of all cases.
        fail_on: the directions that make the exit code 1.
    """
    alike: dict[Hashable, list[Change]] = {}
    for change in changes:
        alike.setdefault(_key(change), []).append(change)
    findings = (_finding(sorted(of, key=_badness), fail_on) for of in alike.values())
    return tuple(sorted(findings, key=_severity))


def _key(change: Change) -> Hashable:
    reason = (change.b.because, change.b.link) if change.b and change.expected else None
    why = re.sub(r"\d+", "#", change.why)
    return change.direction, change.op, change.path, change.cause, why, reason


def _finding(changes: list[Change], fail_on: frozenset[str]) -> Finding:
    worst = changes[0]
    expected = worst.b if worst.expected else None
    return Finding(
        direction=worst.direction,
        op=worst.op,
        path=worst.path,
        cause=worst.cause,
        why=worst.why,
        because=None if expected is None else expected.because,
        link=None if expected is None else expected.link,
        fails=worst.fails(fail_on),
        changes=tuple(changes),
    )


def _severity(finding: Finding) -> tuple[object, ...]:
    direction = DIRECTIONS.index(finding.direction)
    size = _badness(finding.worst)
    return not finding.fails, not finding.worse, direction, size, -len(finding.changes)


def _badness(change: Change) -> tuple[float, ...]:
    """Sorts the largest change first."""
    kind, size = rank(magnitude(change))
    return -kind, -size


def magnitude(change: Change) -> float | None:
    """How large a change is, in ulps: B from A or, without their bits, the change of the error.

    Of bool the number of elements that differ; None where one side has no output.
    """
    if change.distance is not None:
        metrics = change.distance.metrics
        return metrics.differing if metrics.max_ulp is None else metrics.max_ulp
    a, b = (side.f64.max_ulp if side and side.f64 else None for side in (change.a, change.b))
    return None if a is None or b is None else abs(b - a)
