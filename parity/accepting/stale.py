"""Entries of `expect` that no longer come true: listed, and taken out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parity.accepting.edits import Edits, Spot, comes_true_in, narrow
from parity.accepting.evidence import Evidence
from parity.casefile import emit
from parity.casefile.select import id_matches
from parity.compare.rows import Row
from parity.report.numbers import plural
from parity.report.table import verdict_of


@dataclass(frozen=True)
class Stale:
    """An entry that does not come true of a path of a case, or of one output there.

    Attributes:
        index: of the entry.
        spot: the case and the path.
        output: None for the path as a whole.
        now: what the path gives instead, by environment.
        true_in: the environments in which it still comes true, which keep it.
    """

    index: int
    spot: Spot
    output: str | None
    now: Mapping[str, tuple[Row, ...]]
    true_in: tuple[str, ...]


def stale(
    evidence: Evidence, *, case: str | None = None, paths: Sequence[str] | None = None
) -> list[Stale]:
    """What is stale of a file, in the order of its entries and cases.

    Args:
        evidence: of the file.
        case: only of these cases: an id, a file, or a glob over them.
        paths: only of these paths.
    """
    found: dict[tuple[int, Spot, str | None], dict[str, tuple[Row, ...]]] = {}
    for seen in evidence.seen:
        if case is not None and not id_matches(seen.case.id, case):
            continue
        for path in seen.case.paths:
            if paths is not None and path not in paths:
                continue
            for entry, gone in seen.entries(path):
                for output in gone:
                    rows = tuple(r for r in seen.rows if r.path == path)
                    named = tuple(r for r in rows if r.output == output) or rows
                    key = entry.index, (seen.number, path), output
                    found.setdefault(key, {})[seen.environment] = named
    return [
        Stale(*key, now, tuple(comes_true_in(evidence, *key)))
        for key, now in sorted(found.items(), key=lambda one: one[0][0])
    ]


def remove(evidence: Evidence, found: Sequence[Stale]) -> Edits:
    """The edits after which no entry speaks of what it is stale of.

    What comes true in another environment stays: only a `when`, written by hand, can tell them
    apart.
    """
    edits = Edits()
    drops: dict[int, set[tuple[Spot, str | None]]] = {}
    for one in found:
        if not one.true_in:
            drops.setdefault(one.index, set()).add((one.spot, one.output))
    for index, drop in drops.items():
        narrow(evidence, index, drop, edits)
    return edits


def lines(evidence: Evidence, found: Sequence[Stale]) -> Iterator[str]:
    """Each stale entry with its place, and what came instead, cases alike on one line."""
    entries: list[dict[str, Any]] = evidence.document.data["expect"] if found else []
    several = len({seen.environment for seen in evidence.seen}) > 1
    for index in dict.fromkeys(one.index for one in found):
        yield f"{evidence.place(index)}: stale: {emit.flow(entries[index])}\n"
        alike: dict[str, list[str]] = {}
        for one in found:
            if one.index == index:
                for environment, rows in one.now.items():
                    what = _now(one, environment if several else "", rows)
                    alike.setdefault(what, []).append(rows[0].case)
        for what, cases in alike.items():
            where = cases[0] if len(cases) == 1 else f"{plural(len(cases), 'case')}: {cases[0]}, …"
            yield f"  {what} in {where}\n"


def _now(one: Stale, environment: str, rows: Sequence[Row]) -> str:
    """What a path gives now: `jit is identical`."""
    came = ", ".join(dict.fromkeys(map(verdict_of, rows)))
    if one.output is not None and not any(row.output in (one.output, "") for row in rows):
        came = f"without the output {one.output}"
    elif one.output is not None:
        came = f"{came} ({one.output})"
    text = " ".join(filter(None, (environment, one.spot[1], "is", came)))
    return f"{text}; true in {', '.join(one.true_in)}," if one.true_in else text
