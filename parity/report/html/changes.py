"""The changes of a comparison: columns that the page sorts and filters, and what it opens.

A change is named by `wording.row_id`, and they stand in the order of the findings, the worst first.
Where there are more than `WHOLE`, those that are worst in their finding alone have details
(metrics, histograms, profiles, elements, programs); of the others the page has the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from parity.compare.metrics import Metrics
from parity.explain.evidence import KINDS, LINES, ProgramDiff
from parity.record.encoding import dumps
from parity.report.diff import wording
from parity.report.diff.detail import ideal
from parity.report.diff.model import Aligned, Cell, Change, Diff
from parity.report.diff.programs import program_diff
from parity.report.html.details import cut
from parity.report.html.page import Detail
from parity.report.numbers import element

WHOLE = 1000
"""So many changes have details, of each finding the worst ones."""

_LONG = 200
"""Lines of a program's diff; `LINES` once all diffs together have `_CHARACTERS`."""

_CHARACTERS = 1_000_000
_SAFE = 2**53
_DEFAULTS = {field.name: field.default for field in fields(Metrics)}
MEASURES = (
    "ulp_f64_a",
    "ulp_f64_b",
    "rms_f64_a",
    "rms_f64_b",
    "share_a",
    "share_b",
    "ulp",
    "abs",
    "differing",
    "count",
)
_TEXTS = ("case", "output", "dtype", "grade_a", "kind_a", "grade_b", "kind_b")


class Changes:
    """The changes of a comparison as the page's script reads them.

    Args:
        diff: of two runs.
        whole: how many changes have details.
    """

    def __init__(self, diff: Diff, *, whole: int = WHOLE) -> None:
        self._diff = diff
        self._allotted = allotted([len(finding.changes) for finding in diff.findings], whole)
        self._programs: dict[ProgramDiff, int] = {}
        self._known: dict[Any, int | None] = {}
        self._characters = 0

    def index(self) -> dict[str, Any]:
        """Columns with one entry for each change; texts and measures are referred to by number."""
        texts: dict[str, int] = {}
        measures: dict[tuple[Any, ...], int] = {}
        columns: dict[str, list[int | None]] = {
            name: [] for name in ("finding", *_TEXTS, "measured", "at")
        }
        at = 0
        for number, finding in enumerate(self._diff.findings):
            for rank, change in enumerate(finding.changes):
                whole = rank < self._allotted[number]
                columns["finding"].append(number)
                for name, text in zip(_TEXTS, _texts(change), strict=True):
                    columns[name].append(texts.setdefault(text, len(texts)))
                columns["measured"].append(measures.setdefault(_measures(change), len(measures)))
                columns["at"].append(at if whole else None)
                at += whole
        return {
            "texts": list(texts),
            "measures": list(measures),
            "measureNames": MEASURES,
            "columns": columns,
            "programs": at,
        }

    def details(self) -> Iterator[Detail]:
        """Of each change that has details what is known of it, then the diffs of programs."""
        for number, finding in enumerate(self._diff.findings):
            for change in finding.changes[: self._allotted[number]]:
                yield Detail(dumps(self._detail(change)))
        for program in self._programs:
            lines = {"lines": program.lines, "more": program.more, "missing": program.missing}
            yield Detail(dumps({"name": program.name} | lines))

    def _detail(self, change: Change) -> dict[str, Any]:
        distance = change.distance
        dtype = _dtype(change)
        return {
            "remarks": wording.remarks(change),
            "why": change.why,
            "baseline": change.baseline,
            "form": wording.form(change),
            "sides": [side and _side(side) for side in (change.a, change.b)],
            "apart": distance and _metrics(distance.metrics),
            "worst": [_element(one, dtype) for one in (distance.worst if distance else ())],
            "evidence": list(_evidence(change)),
            "program": self._program(change),
        }

    def _program(self, change: Change) -> int | None:
        """The number of the diff of what was compiled; many changes may have the same one."""
        sides = [side.programs if side else {} for side in (change.a, change.b)]
        key = (change.cause, *(tuple(sorted(of.items())) for of in sides))
        if key not in self._known:
            limit = _LONG if self._characters < _CHARACTERS else LINES
            found = program_diff(change, self._diff.a, self._diff.b, limit=limit)
            self._known[key] = None
            if found is not None:
                self._characters += sum(map(len, found.lines))
                self._known[key] = self._programs.setdefault(found, len(self._programs))
        return self._known[key]


def allotted(sizes: Sequence[int], total: int) -> list[int]:
    """How many of each group are taken, so that they are `total` and no group is starved.

    Args:
        sizes: of the groups.
        total: how many to take; of every group one is taken even if that is more.
    """
    taken, left = [0] * len(sizes), total
    smallest_first = sorted(range(len(sizes)), key=sizes.__getitem__)
    for rank, group in enumerate(smallest_first):
        taken[group] = min(sizes[group], max(1, left // (len(sizes) - rank)))
        left -= taken[group]
    return taken


def kind_of(cell: Cell | None) -> str:
    """What a side amounts to: one of `index.KINDS`, "no row" without one."""
    if cell is None:
        return "no row"
    return (cell.grade or "no output") if cell.outcome == "ok" else cell.outcome


def _texts(change: Change) -> tuple[str, ...]:
    sides = (text for cell in (change.a, change.b) for text in (wording.grade(cell), kind_of(cell)))
    return (change.case, change.output, _dtype(change), *sides)


def _measures(change: Change) -> tuple[Any, ...]:
    a, b = change.a, change.b
    ideal_a, ideal_b = a and a.f64, b and b.f64
    apart = change.distance and change.distance.metrics
    values = (
        ideal_a and ideal_a.max_ulp,
        ideal_b and ideal_b.max_ulp,
        ideal_a and ideal_a.rms_rel,
        ideal_b and ideal_b.rms_rel,
        a and a.bound_share,
        b and b.bound_share,
        apart and apart.max_ulp,
        apart and apart.max_abs,
        apart and apart.differing,
        apart and apart.count,
    )
    return tuple(
        "NaN" if value is not None and value != value else _exact(value) for value in values
    )


def _dtype(change: Change) -> str:
    return next((side.dtype for side in (change.b, change.a) if side and side.dtype), "")


def _side(cell: Cell) -> dict[str, Any]:
    return {
        "grade": wording.grade(cell),
        "kind": kind_of(cell),
        "status": cell.status,
        "faithful": cell.faithful,
        "accurate": cell.accurate,
        "share": cell.bound_share,
        "differing": cell.differing,
        "because": cell.because,
        "link": cell.link,
        "nondeterministic": cell.nondeterministic,
        "f64": cell.f64 and _metrics(cell.f64),
    }


def _metrics(metrics: Metrics) -> dict[str, Any]:
    """Every metric that says something; profiles to 3 significant digits."""
    flat = {
        name: _exact(value)
        for name, default in _DEFAULTS.items()
        if name not in ("worst", "profile")
        and (value := getattr(metrics, name)) is not None
        and value != default
    }
    if metrics.profile is not None:
        flat["profile"] = [
            (band[0], band[1], *(cut(x, 3) for x in band[2:])) for band in metrics.profile
        ]
    return flat


def _exact(value: Any) -> Any:
    """An integer that JavaScript rounds as text."""
    return str(value) if isinstance(value, int) and abs(value) > _SAFE else value


def _element(one: Aligned, dtype: str) -> list[Any]:
    """Index, ulp, the values of A, B and f64 as people read them, the bits of A and B."""
    bits = (words.replace("0x", "").split() for words in (one.a_bits, one.b_bits))
    return [
        one.index,
        None if one.ulp is None else _exact(one.ulp),
        element(one.a, dtype),
        element(one.b, dtype),
        ideal(one),
        *bits,
    ]


def _evidence(change: Change) -> Iterable[tuple[str, str | None, str | None]]:
    """What was hashed, and the SHA-256 on each side."""
    sides = (change.a, change.b)
    for kind, name in KINDS.items():
        a, b = (side.programs.get(kind) if side else None for side in sides)
        if a or b:
            yield name, a, b
    a, b = (side.sha256 if side else None for side in sides)
    if a or b:
        yield "bits of the output", a, b
