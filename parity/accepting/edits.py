"""From rows that are accepted to the edits of a file's `expect`."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parity.accepting.choice import Taken
from parity.accepting.evidence import Evidence
from parity.casefile.case import GRADES
from parity.casefile.covering import Box, boxes, numbered, where
from parity.casefile.problem import Problem
from parity.casefile.splice import with_entry, with_fields, without_entries
from parity.compare.message import first_line
from parity.compare.rows import Row

Spot = tuple[int, str]
"""A case, by its position in the file, and a path of it."""

Outputs = tuple[str, ...] | None
"""Names of outputs; None for all of a path."""

Came = tuple[tuple[str, str | tuple[str, ...]], ...]
"""What an entry expects: its fields `grade`, or `outcome`, `stage` and `match`."""

_LONGEST_MATCH = 120


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a person says of the entries that are written.

    Attributes:
        because: why.
        link: where that is discussed.
        until: the last day on which they hold.
        when: versions and names of the environments in which they hold.
    """

    because: str = ""
    link: str | None = None
    until: datetime.date | None = None
    when: Mapping[str, str] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """Those that are given, as an entry has them, but `when`."""
        given = {"because": self.because, "link": self.link, "until": self.until}
        return {name: value for name, value in given.items() if value}


@dataclass
class Edits:
    """Edits of `expect`, entries by their index before any of them."""

    changed: dict[int, dict[str, Any]] = field(default_factory=dict)
    added: list[dict[str, Any]] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)

    def apply(self, text: str) -> str:
        """The edited text.

        Raises:
            Problem: it cannot be edited so.
        """
        for index, fields in self.changed.items():
            text = with_fields(text, index, fields)
        for entry in self.added:
            text = with_entry(text, entry)
        return without_entries(text, self.removed) if self.removed else text


def accept(evidence: Evidence, taken: Collection[Taken], terms: Terms) -> Edits:
    """The edits after which each row is as the file expects.

    Entries that a row shows to be stale no longer speak of it; what fails without an entry gets
    one. Where the new entry speaks of just what an old one did, the old one is changed.

    Raises:
        CaseFileError: an entry is stale in one environment and true in another.
    """
    edits = Edits()
    groups = _groups(evidence, taken)
    dropped: dict[int, set[tuple[Spot, str | None]]] = {}
    for one in taken:
        for entry, output in one.seen.stale_on(one.row):
            spot = (one.seen.number, one.row.path)
            if true_in := comes_true_in(evidence, entry.index, spot, output):
                raise _torn(evidence, entry.index, one, true_in)
            dropped.setdefault(entry.index, set()).add((spot, output))
    for index, drop in dropped.items():
        spots, outputs = covered(evidence, index)
        whole = set(spots)
        narrow(evidence, index, drop, edits)
        same = next((key for key in groups if key[1] == outputs and groups[key] == whole), None)
        if index not in edits.removed or same is None:
            continue
        if _may_become(evidence, index, same[0], whole, taken):
            edits.removed.remove(index)
            edits.changed[index] = _fields(same[0]) | terms.fields()
            if terms.when:
                edits.changed[index]["when"] = dict(terms.when)
            del groups[same]
    for (came, outputs), of in groups.items():
        for paths, condition in _cover(evidence, of):
            edits.added.append(_entry(paths, condition, outputs, came, terms))
    return edits


def covered(evidence: Evidence, index: int) -> tuple[list[Spot], Outputs]:
    """Where an entry applies, and to which outputs."""
    spots: list[Spot] = []
    outputs: Outputs = None
    for number, case in enumerate(evidence.cases):
        for entry in case.expect:
            if entry.index == index:
                spots += [(number, path) for path in case.paths if path in entry.paths]
                outputs = entry.outputs
    return spots, outputs


def comes_true_in(evidence: Evidence, index: int, spot: Spot, output: str | None) -> list[str]:
    """The environments of the record in which an entry comes true of a path of a case."""
    number, path = spot
    return [
        seen.environment
        for seen in evidence.by_case.get(number, ())
        for entry, gone in seen.entries(path)
        if entry.index == index and output not in gone
    ]


def narrow(
    evidence: Evidence,
    index: int,
    drop: Collection[tuple[Spot, str | None]],
    edits: Edits,
) -> None:
    """Let an entry speak no longer of some cases, paths and outputs; add that to the edits."""
    spots, outputs = covered(evidence, index)
    kept: dict[Outputs, list[Spot]] = {}
    for spot in spots:
        names = tuple(name for name in outputs or (None,) if (spot, name) not in drop)
        if names:
            left = None if outputs is None else tuple(name for name in names if name is not None)
            kept.setdefault(left, []).append(spot)
    if not kept:
        edits.removed.add(index)
        return
    parts = [part for left, of in kept.items() for part in _parts(evidence, spots, of, left)]
    edits.changed[index] = parts[0]
    raw = evidence.document.data["expect"][index]
    for part in parts[1:]:
        rest = {name: value for name, value in raw.items() if name not in (*part, "where")}
        edits.added.append(part | rest)


def _parts(
    evidence: Evidence, before: list[Spot], kept: list[Spot], outputs: Outputs
) -> list[dict[str, Any]]:
    """The fields `path`, `where` and `output` of entries that speak of what is kept."""
    output = {} if outputs is None else {"output": _one_or_list(outputs)}
    paths = list(dict.fromkeys(path for _, path in kept))
    if set(kept) == {spot for spot in before if spot[1] in paths}:
        return [{"path": _one_or_list(paths), **output}]
    return [
        {"path": _one_or_list(of), **({"where": condition} if condition else {}), **output}
        for of, condition in _cover(evidence, set(kept))
    ]


def _groups(evidence: Evidence, taken: Iterable[Taken]) -> dict[tuple[Came, Outputs], set[Spot]]:
    """Where the same is to be expected of the same outputs."""
    grades: dict[Spot, dict[str, set[str]]] = {}
    groups: dict[tuple[Came, Outputs], set[Spot]] = {}
    for one in taken:
        row, spot = one.row, (one.seen.number, one.row.path)
        if not one.says:
            continue
        if row.outcome == "ok":
            by_output = grades.setdefault(spot, {})
            by_output.setdefault(row.output, set()).add(row.grade or "")
        else:
            groups.setdefault((_failure(row), None), set()).add(spot)
    for spot, by_output in grades.items():
        every = _outputs(evidence, spot)
        alike: dict[tuple[str, ...], list[str]] = {}
        for output, found in by_output.items():
            alike.setdefault(tuple(g for g in GRADES if g in found), []).append(output)
        for among, names in alike.items():
            outputs = None if set(names) == every else tuple(names)
            groups.setdefault(((("grade", among),), outputs), set()).add(spot)
    return groups


def _outputs(evidence: Evidence, spot: Spot) -> set[str]:
    """The outputs that a path of a case has in any environment."""
    number, path = spot
    rows = [row for seen in evidence.by_case[number] for row in seen.rows]
    return {row.output for row in rows if row.path == path and row.outcome == "ok"}


def _failure(row: Row) -> Came:
    """An error as an entry expects it: what it says, but for numbers that stand alone."""
    fields = [("outcome", row.outcome)]
    if row.outcome == "error":
        fields.append(("stage", row.stage))
    line = first_line(row.message)
    if len(line) > _LONGEST_MATCH:
        line = line[:_LONGEST_MATCH].rpartition(" ")[0] or line[:_LONGEST_MATCH]
    if line:
        fields.append(("match", "".join(map(_pattern, _NUMBER.split(line)))))
    return tuple(fields)


_NUMBER = re.compile(r"(0x[0-9a-fA-F]+|(?<![\w.])\d+(?!\w|\.\d))")
"""A number that is no part of a name such as float8_e4m3fn."""


def _pattern(part: str) -> str:
    """A regular expression for a part of a message; any number will do for a number."""
    if _NUMBER.fullmatch(part):
        return "0x[0-9a-fA-F]+" if part.startswith("0x") else r"\d+"
    return re.sub(r"[\\.^$*+?{}\[\]|()]", r"\\\g<0>", part)


def _may_become(
    evidence: Evidence, index: int, came: Came, spots: set[Spot], taken: Collection[Taken]
) -> bool:
    """Whether what came can be said by changing an entry: one grade for another, where it holds."""
    raw = evidence.document.data["expect"][index]
    return (
        "grade" in raw
        and came[0][0] == "grade"
        and all(
            any(entry.index == index for entry, _ in one.seen.stale_on(one.row))
            for one in taken
            if (one.seen.number, one.row.path) in spots and one.says
        )
    )


def _cover(evidence: Evidence, spots: Collection[Spot]) -> list[tuple[list[str], dict[str, Any]]]:
    """Paths and `where` of few entries that speak of these cases and paths and of no other."""
    grid, axes = numbered(evidence.points), evidence.points[0].axes
    found: list[tuple[list[str], Box]] = []
    for path in dict.fromkeys(path for case in evidence.cases for path in case.paths):
        chosen = [number for number, of in spots if of == path]
        for box in boxes(grid, chosen) if chosen else ():
            same = next((paths for paths, other in found if other == box), None)
            if same is None:
                found.append(([path], box))
            else:
                same.append(path)
    return [(paths, where(box, axes)) for paths, box in found]


def _entry(
    paths: list[str], condition: dict[str, Any], outputs: Outputs, came: Came, terms: Terms
) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": _one_or_list(paths)}
    if condition:
        entry["where"] = condition
    if outputs is not None:
        entry["output"] = _one_or_list(outputs)
    if terms.when:
        entry["when"] = dict(terms.when)
    return entry | _fields(came) | terms.fields()


def _fields(came: Came) -> dict[str, Any]:
    return {name: _one_or_list(of) for name, of in came}


def _one_or_list(values: str | Sequence[str]) -> str | list[str]:
    """One value as itself, several as a list."""
    if isinstance(values, str):
        return values
    return values[0] if len(values) == 1 else list(values)


def _torn(evidence: Evidence, index: int, one: Taken, true_in: list[str]) -> Exception:
    what = (
        f"expect[{index}] comes true in environment {', '.join(true_in)} and not in "
        f"{one.seen.environment} ({one.row.case}[{one.row.path}])"
    )
    hint = "say by hand, under when, in which environments the entry holds"
    return evidence.document.error(Problem(what, ("expect", index), hint=hint))
