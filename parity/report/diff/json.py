"""A comparison of two runs as one JSON object, a change to a line; the changes also as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from parity.compare.metrics import Metrics
from parity.record.encoding import dumps
from parity.report.diff import wording
from parity.report.diff.directions import as_option
from parity.report.diff.facts import Side
from parity.report.diff.model import Aligned, Cell, Change, Diff, Finding

FORMAT = "parity-diff/1"

_OF_CELL = tuple(f.name for f in fields(Cell) if f.name not in ("f64", "programs"))
_OF_F64 = ("pattern", "max_abs", "max_ulp", "rms_rel", "nan_got")
_OF_DISTANCE = ("count", "differing", "pattern", "max_abs", "max_ulp", "rms_rel")
_OF_ALIGNED = tuple(f.name for f in fields(Aligned))


def diff_json(diff: Diff) -> Iterator[str]:
    """A comparison as the pieces of one JSON object, whose lists have an item to a line.

    Its keys:
        format: "parity-diff/1".
        verdict: a sentence that begins with "worse", "changed" or "ok".
        exit_code: of the command.
        fail_on: the directions that make it 1, as --fail-on takes them.
        a, b: record, environment (its name), facts (what paths ran in), run, missing.
        environment: what differs: name, a, b, and of lists removed and added.
        cases: how many both have.
        unchanged: rows.
        findings: direction, op, path, cause, why, worse, fails, expected, because, link, changes
            and cases (how many), worst (a case id); the worst first.
        changes: `change_dict` of each, in the order of A's cases.
        not_comparable: case, path, output, kind, reason, rows.
        only_a, only_b: case ids.

    Non-finite numbers are the strings "NaN", "Infinity", "-Infinity"; complex ones are pairs.
    """
    head = {
        "format": FORMAT,
        "verdict": wording.verdict(diff),
        "exit_code": diff.exit_code,
        "fail_on": sorted(map(as_option, diff.fail_on)),
        "a": _side(diff.a),
        "b": _side(diff.b),
        "cases": diff.cases,
        "unchanged": diff.unchanged,
    }
    yield "{" + ",\n".join(f"{dumps(key)}: {dumps(value)}" for key, value in head.items())
    yield from _list("environment", map(_fields, diff.facts))
    yield from _list("findings", map(_finding, diff.findings))
    yield from _list("changes", (change_dict(change, diff) for change in diff.changes))
    yield from _list("not_comparable", map(_fields, diff.not_comparable))
    yield from _list("only_a", diff.only_a)
    yield from _list("only_b", diff.only_b)
    yield "}\n"


def change_dict(change: Change, diff: Diff) -> dict[str, Any]:
    """A change as one flat mapping.

    Its keys: case, environment_a, environment_b, op, path, output, direction, worse, fails,
    expected, cause, why, detail; of each side, with the suffix _a or _b (None where a side has no
    row), the fields of `Cell`, `…_f64` (metrics against the ideal) and `…_sha256` (of what was
    compiled); of the distance from A to B `count`, `differing`, `max_abs`, … with the suffix _ab,
    `worst_ab` (elements side by side) and `unread`.
    """
    flat: dict[str, Any] = {
        "case": change.case,
        "environment_a": diff.a.environment,
        "environment_b": diff.b.environment,
        "op": change.op,
        "path": change.path,
        "output": change.output,
        "direction": as_option(change.direction),
        "worse": change.worse,
        "fails": change.fails(diff.fail_on),
        "expected": change.expected,
        "cause": change.cause,
        "why": change.why,
        "detail": change.detail,
    }
    for side, cell in (("a", change.a), ("b", change.b)):
        for name in _OF_CELL:
            flat[f"{name}_{side}"] = getattr(cell, name, None)
        metrics: Metrics | None = cell.f64 if cell else None
        for name in _OF_F64:
            flat[f"{name}_f64_{side}"] = getattr(metrics, name, None)
        for kind in ("stablehlo", "graph", "hlo"):
            flat[f"{kind}_sha256_{side}"] = cell.programs.get(kind) if cell else None
    apart = change.distance.metrics if change.distance else None
    for name in _OF_DISTANCE:
        flat[f"{name}_ab"] = getattr(apart, name, None)
    worst = change.distance.worst if change.distance else ()
    flat["worst_ab"] = [{name: getattr(one, name) for name in _OF_ALIGNED} for one in worst]
    return flat | {"unread": change.unread}


def diff_csv(diff: Diff) -> Iterator[str]:
    """One line for each change; what has parts is JSON, NaN and Infinity are spelled out."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for number, flat in enumerate(change_dict(change, diff) for change in diff.changes):
        if number == 0:
            writer.writerow(flat)
        writer.writerow(
            "" if value is None else value if isinstance(value, str) else dumps(value).strip('"')
            for value in flat.values()
        )
        yield stream.getvalue()
        stream.seek(0)
        stream.truncate()


def _side(side: Side) -> dict[str, Any]:
    return {
        "record": side.record,
        "environment": side.environment,
        "facts": side.facts,
        "run": side.run,
        "missing": side.missing,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "direction": as_option(finding.direction),
        "op": finding.op,
        "path": finding.path,
        "cause": finding.cause,
        "why": finding.why,
        "worse": finding.worse,
        "fails": finding.fails,
        "expected": finding.because is not None,
        "because": finding.because,
        "link": finding.link,
        "changes": len(finding.changes),
        "cases": len(finding.cases),
        "worst": finding.worst.case,
    }


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _list(key: str, items: Iterable[Any]) -> Iterator[str]:
    yield f",\n{dumps(key)}: ["
    separator = "\n"
    for item in items:
        yield separator + dumps(item)
        separator = ",\n"
    yield "\n]"
