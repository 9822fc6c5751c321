"""A run as one JSON object, written a row at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from parity.compare.rows import as_dict
from parity.record.encoding import dumps

if TYPE_CHECKING:
    from parity.record.result import RunResult

FORMAT = "parity-run/1"


def run_json(result: RunResult) -> Iterator[str]:
    """A run as the pieces of one JSON object, of which `rows` has one to a line.

    Its keys: format, verdict, wanted, done, record, environment (of the first, where there are
    several), environments (by name), rows and references (flat, as `compare.rows.as_dict` gives
    them), groups (for each case, environment and output the lists of paths that gave equal bits),
    notes (for each case and environment what a reader must know of its references).
    """
    head = {
        "format": FORMAT,
        "verdict": result.verdict,
        "wanted": result.wanted,
        "done": len(result.cases),
        "record": None if result.record is None else str(result.record),
        "environment": result.environment,
        "environments": result.environments,
    }
    yield "{" + ",\n".join(f"{dumps(key)}: {dumps(value)}" for key, value in head.items())
    yield from _list("rows", map(as_dict, result.rows))
    yield from _list(
        "references", (as_dict(row) for case in result.cases for row in case.references)
    )
    yield from _list("groups", _groups(result))
    yield from _list("notes", _notes(result))
    yield "}\n"


def _groups(result: RunResult) -> Iterator[dict[str, Any]]:
    for case in result.cases:
        for output, paths in case.groups.items():
            yield {
                "case": case.case.id,
                "environment": case.environment,
                "output": output,
                "paths": paths,
            }


def _notes(result: RunResult) -> Iterator[dict[str, Any]]:
    for case in result.cases:
        if case.notes:
            yield {
                "case": case.case.id,
                "environment": case.environment,
                "notes": case.notes,
            }


def _list(key: str, items: Iterable[Any]) -> Iterator[str]:
    yield f",\n{dumps(key)}: ["
    separator = "\n"
    for item in items:
        yield separator + dumps(item)
        separator = ",\n"
    yield "\n]"
