"""Compares two runs, a case at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parity.casefile.problem import did_you_mean
from parity.errors import NothingSelected
from parity.report.diff.case import CaseDiff
from parity.report.diff.directions import parse
from parity.report.diff.facts import compare_facts
from parity.report.diff.grouping import group
from parity.report.diff.model import Change, Diff, NotComparable
from parity.report.diff.sides import Run, choose


def diff(
    a: Run,
    b: Run | None = None,
    *,
    a_env: str | None = None,
    b_env: str | None = None,
    case: str | None = None,
    paths: Sequence[str] | None = None,
    fail_on: str | Iterable[str] = "worse",
) -> Diff:
    """What changed from one run to another, or between two environments of one; `parity diff`.

    No more than the rows of one case are held of each side.

    Args:
        a: what was: the file of a record, or a run.
        b: what is; None where two environments of `a` are compared.
        a_env: the environment of A; needed where its record has several.
        b_env: the environment of B, likewise.
        case: only these cases: an id, a file, or a glob over them.
        paths: only the rows of these paths.
        fail_on: directions that make the exit code 1, see `directions.parse`.

    Raises:
        UserError: a record cannot be read, a direction is unknown, or it is not clear which
            environments are meant; NothingSelected if there is nothing to compare.
    """
    directions = parse(fail_on)
    old, new = choose(a, b, a_env=a_env, b_env=b_env, case=case)
    common = [id_ for id_ in old.places if id_ in new.places]
    if not common:
        what = f"no case in '{case}'" if case is not None else "no case"
        raise NothingSelected(f"A and B have {what} in common")
    changes: list[Change] = []
    apart: list[NotComparable] = []
    compared = unchanged = 0
    for id_ in common:
        one = CaseDiff(old, new, id_, paths)
        for found in one.compare():
            if isinstance(found, NotComparable):
                apart.append(found)
            elif found is not None:
                changes.append(found)
            unchanged += found is None
            compared += 1
    if not compared:
        asked = list(paths or ())
        known = list(dict.fromkeys(row.path for id_ in common for row in new.read(id_).rows))
        near = next(filter(None, (did_you_mean(path, known) for path in asked)), None)
        raise NothingSelected(
            f"A and B have no row of {' or '.join(asked)}",
            hint=near or f"B's paths are {', '.join(known)}",
        )
    return Diff(
        a=old.side,
        b=new.side,
        facts=compare_facts(old.side, new.side),
        changes=tuple(changes),
        findings=group(changes, directions),
        not_comparable=tuple(apart),
        only_a=tuple(id_ for id_ in old.places if id_ not in new.places),
        only_b=tuple(id_ for id_ in new.places if id_ not in old.places),
        cases=len(common),
        unchanged=unchanged,
        fail_on=directions,
    )
