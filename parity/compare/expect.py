"""Whether each row is as its case expects: findings, known findings, stale expectations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from parity.casefile.case import GRADES, Case, Expectation
from parity.compare.rows import Row

FAILURES = ("error", "crashed", "timeout", "out-of-memory")
"""Outcomes that fail unless they are expected; `unsupported` does not."""


def judge(
    case: Case,
    rows: Sequence[Row],
    *,
    environment: Mapping[str, str],
    fail_on: str = "divergent",
) -> tuple[Row, ...]:
    """The rows of a case with their status.

    A row is `expected` if any entry of `expect` that applies to it comes true. An entry is stale
    for a path that ran if none of the path's rows it speaks of comes true, of each output by itself
    where it names outputs; a path that is `unsupported` or was not run makes none stale. A row
    that is bad and not expected is a `finding`, whatever else is stale on it; so is one whose bits
    changed when it was repeated.

    Args:
        case: whose rows they are.
        rows: of one or more of its paths, complete for each.
        environment: names and versions by "jax", "tensorflow", "platform", "cpu".
        fail_on: the best grade that is a finding.
    """
    applicable = [e for e in case.expect if holds(e, environment)]
    judged = [_judge_row(row, applicable, fail_on) for row in rows]
    for entry in applicable:
        for path in entry.paths:
            for place in _stale_places(entry, path, rows):
                judged[place] = _stale(judged[place], case, entry)
    return tuple(judged)


def holds(entry: Expectation, environment: Mapping[str, str]) -> bool:
    """Whether an entry's `when` holds in an environment.

    `jax` and `tensorflow` are version specifiers (PEP 440, pre-releases count); `platform` and
    `cpu` are names, in which `*` stands for anything and case does not matter. What the environment
    does not have matches nothing.
    """
    return is_in(entry.when, environment)


def is_in(when: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Whether an environment is one of those that a `when` describes; see `holds`."""
    return all(_matches(name, wanted, environment.get(name)) for name, wanted in when.items())


def _matches(name: str, wanted: str, found: str | None) -> bool:
    if not found:
        return False
    if name in ("platform", "cpu"):
        return fnmatchcase(found.lower(), wanted.lower())
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(wanted).contains(found, prereleases=True)


def _judge_row(row: Row, entries: Sequence[Expectation], fail_on: str) -> Row:
    if row.tolerance_refused:  # a mistake in the case, which no expectation excuses
        return replace(row, status="finding")
    if row.nondeterministic:  # no grade says anything of bits that change from run to run
        said = "nondeterministic: a fresh process gave other bits"
        return replace(row, status="finding", detail="; ".join(filter(None, (said, row.detail))))
    for entry in entries:
        if _speaks_of(entry, row) and _comes_true(entry, row):
            return replace(row, status="expected", because=entry.because, link=entry.link)
    bad = row.outcome in FAILURES or (
        row.grade is not None and GRADES.index(row.grade) >= GRADES.index(fail_on)
    )
    return replace(row, status="finding" if bad else "ok")


def _speaks_of(entry: Expectation, row: Row) -> bool:
    if row.path not in entry.paths:
        return False
    # A path that failed has no outputs to tell apart.
    return entry.outputs is None or row.outcome != "ok" or row.output in entry.outputs


def _comes_true(entry: Expectation, row: Row) -> bool:
    if entry.grades is not None:
        return row.outcome == "ok" and row.grade in entry.grades
    return (
        row.outcome == entry.outcome
        and (entry.stage is None or row.stage == entry.stage)
        and (entry.match is None or re.search(entry.match, row.message) is not None)
    )


def stale_outputs(
    entry: Expectation, path: str, rows: Sequence[Row]
) -> tuple[str | None, ...] | None:
    """The outputs of a path of which an entry does not come true; None stands for them all.

    Args:
        entry: applies to the case and holds in the environment.
        path: one of its paths.
        rows: of the case in that environment, complete for the path.

    Returns:
        None if the path was not run or is `unsupported`: then the rows say nothing of the entry.
    """
    of_path = [row for row in rows if row.path == path]
    if not of_path or any(row.outcome == "unsupported" for row in of_path):
        return None
    true = [row for row in of_path if _speaks_of(entry, row) and _comes_true(entry, row)]
    if entry.outputs is None or any(row.outcome != "ok" for row in of_path):
        return () if true else (None,)
    shown = {row.output for row in true}
    return tuple(output for output in entry.outputs if output not in shown)


def _stale_places(entry: Expectation, path: str, rows: Sequence[Row]) -> list[int]:
    """Positions of the rows on which an entry shows as stale for a path."""
    of_path = [i for i, row in enumerate(rows) if row.path == path]
    by_output = {rows[i].output: i for i in of_path}
    return [by_output.get(o or "", of_path[0]) for o in stale_outputs(entry, path, rows) or ()]


def _stale(row: Row, case: Case, entry: Expectation) -> Row:
    """The row with what an entry expected of it against what came."""
    file = case.id.partition("::")[0]
    came = row.grade if row.outcome == "ok" else _failure(row.outcome, row.stage)
    text = f"{file}:{entry.line} expects {_wanted(entry)}, came {came or 'no output'}"
    if entry.outputs is not None and row.outcome == "ok" and row.output not in entry.outputs:
        text = f"{file}:{entry.line} names outputs that are not there: {', '.join(entry.outputs)}"
    status = row.status if row.status == "finding" else "stale"
    return replace(row, status=status, detail="; ".join(filter(None, (row.detail, text))))


def _wanted(entry: Expectation) -> str:
    if entry.grades is not None:
        return " or ".join(entry.grades)
    wanted = _failure(entry.outcome or "", entry.stage)
    return wanted if entry.match is None else f"{wanted} matching {entry.match!r}"


def _failure(outcome: str, stage: str | None) -> str:
    return f"{outcome} at {stage}" if stage else outcome
