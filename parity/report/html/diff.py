"""A comparison of two runs as a page: verdict, environments, findings, what cannot be compared."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from parity.report.diff import wording
from parity.report.diff.directions import DIRECTIONS, WORSE
from parity.report.diff.facts import Side
from parity.report.diff.model import Change, Diff, Finding, NotComparable
from parity.report.html import glossary
from parity.report.html.cells import SIGNS
from parity.report.html.changes import Changes, kind_of
from parity.report.html.index import KINDS, formats
from parity.report.html.page import STYLES, Page, write
from parity.report.rerun import arguments

SCRIPTS = (
    "page.js",
    "numbers.js",
    "filter.js",
    "table.js",
    "charts.js",
    "elements.js",
    "case.js",
    "output.js",
    "frame.js",
    "change.js",
    "diff.js",
)

_FEW = 5
"""The rows of a finding are unfolded if there are no more."""

_OPEN = 3
"""So many findings are open at first, if they got worse or there are no more."""


def write_diff(diff: Diff, file: Path) -> None:
    """Write a comparison of two runs.

    Raises:
        UserError: the file cannot be written.
    """
    write(diff_page(diff), file)


def diff_page(diff: Diff) -> Page:
    """A comparison of two runs."""
    changes = Changes(diff)
    word = wording.verdict(diff).partition(":")[0]
    findings = [_finding(number, finding, diff) for number, finding in enumerate(diff.findings)]
    return Page(
        template="diff.html.j2",
        title=f"parity diff: {word}, {diff.a.environment} to {diff.b.environment}",
        context={
            "diff": diff,
            "word": word,
            "sentence": wording.sentence(diff),
            "exit_code": _exit_code(diff),
            "tally": _tally(findings),
            "sides": [_side("A", diff.a), _side("B", diff.b)],
            "same": _same(diff),
            "findings": findings,
            "few": _FEW,
            "apart": _apart(diff.not_comparable),
            "signs": SIGNS,
            "glossary": _glossary(findings),
            "kind_of": kind_of,
            "row_id": wording.row_id,
            "grade": wording.grade,
        },
        scripts=SCRIPTS,
        styles=(*STYLES, "diff.css"),
        index=changes.index()
        | {
            "findings": [_short(one) for one in findings],
            "kinds": KINDS,
            "signs": SIGNS,
            "dtypes": formats(),
            "directions": DIRECTIONS,
            "arguments": [
                shlex.join(arguments(side.run, side.environment)) for side in (diff.a, diff.b)
            ],
            "command": _command(diff),
        },
        details=changes.details(),
    )


def _finding(number: int, finding: Finding, diff: Diff) -> dict[str, Any]:
    worst = finding.worst
    quantities = wording.quantities(worst)
    columns = {name for change in finding.changes for name in _columns(change)}
    return {
        "finding": finding,
        "tag": wording.tag(finding),
        "expected": _capital(wording.expected(finding)),
        "open": number < _OPEN and (finding.fails or finding.worse or len(diff.findings) <= _OPEN),
        "rows": len(finding.changes),
        "columns": columns | ({"change"} if any(how for *_, how in quantities) else set()),
        "ulp": worst.distance.metrics.max_ulp if worst.distance else None,
        "worst": worst,
        "quantities": quantities,
        "remarks": wording.remarks(worst),
        "form": wording.form(worst),
    }


def _columns(change: Change) -> Iterator[str]:
    """The columns in which a change has something to say."""
    sides = [side for side in (change.a, change.b) if side is not None]
    if change.output not in ("", "out"):
        yield "output"
    if any(side.f64 is not None and side.f64.max_ulp is not None for side in sides):
        yield "f64"
    if any(side.bound_share is not None for side in sides):
        yield "share"
    if change.distance is not None:
        yield "ulp"


def _short(one: Mapping[str, Any]) -> dict[str, Any]:
    """A finding as the script filters it."""
    finding: Finding = one["finding"]
    names = ("direction", "op", "path", "cause", "why", "because", "fails")
    return {name: getattr(finding, name) for name in names} | {"tag": one["tag"]}


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _exit_code(diff: Diff) -> str:
    """What makes the exit code, and which it is."""
    if diff.fail_on == WORSE:
        what = "what got worse and is not expected fails"
    elif diff.fail_on == frozenset(DIRECTIONS):
        what = "any change that is not expected fails"
    elif diff.fail_on:
        what = f"what is {wording.named(diff.fail_on)} and not expected fails"
    else:
        what = "nothing fails"
    return f"exit code {diff.exit_code}: {what}"


def _tally(findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """By tag how many rows of which directions there are, in how many cases."""
    counted: dict[str, Counter[str]] = {name: Counter() for name in glossary.TAGS}
    cases: dict[str, set[str]] = {name: set() for name in glossary.TAGS}
    for one in findings:
        finding: Finding = one["finding"]
        counted[one["tag"]][finding.direction] += one["rows"]
        cases[one["tag"]].update(finding.cases)
    return [
        {
            "tag": name,
            "rows": found.total(),
            "cases": len(cases[name]),
            "directions": [(d, found[d]) for d in DIRECTIONS if d in found],
        }
        for name, found in counted.items()
        if found
    ]


def _glossary(findings: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The words that stand in the findings, with what they mean."""
    found: list[Finding] = [one["finding"] for one in findings]
    used = (
        (glossary.TAGS, {one["tag"] for one in findings}),
        (glossary.DIRECTIONS, {finding.direction for finding in found}),
        (glossary.CAUSES, {finding.cause for finding in found}),
    )
    return [pair for known, words in used for pair in known.items() if pair[0] in words]


def _side(name: str, side: Side) -> dict[str, Any]:
    said = {
        "environment": side.environment,
        "record": side.record or "not kept",
        "started": side.run.get("started"),
    }
    return {
        "name": name,
        "said": {key: of for key, of in said.items() if of},
        "missing": side.missing,
    }


def _same(diff: Diff) -> list[tuple[str, str]]:
    """The facts in which the sides do not differ."""
    changed = {fact.name for fact in diff.facts}
    return [
        (name, value)
        for facts in (diff.a.facts, {"parity": diff.a.parity})
        for name, value in facts.items()
        if name not in changed and value
    ]


def _apart(found: Sequence[NotComparable]) -> list[dict[str, Any]]:
    """What cannot be compared, by the reason."""
    alike: dict[Hashable, list[NotComparable]] = {}
    for one in found:
        alike.setdefault((one.kind, one.output, one.path, one.reason), []).append(one)
    return [
        {
            "kind": several[0].kind,
            "reason": several[0].reason,
            "where": " ".join(filter(None, (several[0].path, several[0].output))),
            "rows": sum(one.rows for one in several),
            "cases": list(dict.fromkeys(one.case for one in several)),
        }
        for several in alike.values()
    ]


def _command(diff: Diff) -> str:
    """The command that compares the two sides again, "" without records."""
    if not diff.a.record or not diff.b.record:
        return ""
    records = dict.fromkeys((diff.a.record, diff.b.record))
    names = ["--a", diff.a.environment, "--b", diff.b.environment]
    return shlex.join(["parity", "diff", *records, *names])
