"""Whether a changed run agrees with a baseline that was left as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from parity.casefile.case import GRADES, Case
from parity.compare.rows import compare_case
from parity.worker.protocol import PathOutcome, References

RESTORED = ("identical", "equivalent")
"""Grades at which parity is there, the better one first."""


def grades(
    case: Case, outcome: PathOutcome, baseline: PathOutcome, references: References
) -> Mapping[str, str]:
    """The grade of each output against a baseline, without tolerance; none where there is none.

    Args:
        case: whose outputs they are.
        outcome: of any path; further outputs than the baseline's do not count.
        baseline: with outputs.
        references: of the case.
    """
    if outcome.failure is not None or baseline.failure is not None:
        return {}
    given = {name: of for name, of in outcome.outputs.items() if name in baseline.outputs}
    shards = {name: of for name, of in outcome.shards.items() if name in given}
    base = replace(baseline, path="baseline")
    own = replace(outcome, path="changed", outputs=given, shards=shards)
    judged = replace(case, baseline="baseline", tolerance=None, variants={}, expect=())
    rows = compare_case(judged, [base, own], references)
    return {row.output: row.grade or "mismatched" for row in rows if row.path == "changed"}


def as_good(grade: str, wanted: str) -> bool:
    """Whether a grade is as good as another one."""
    return GRADES.index(grade) <= GRADES.index(wanted)
