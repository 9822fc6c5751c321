"""The entries of `expect`: which apply to a case, and which make no sense."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from parity.casefile.build import variants
from parity.casefile.case import Expectation
from parity.casefile.problem import Location, Problem, did_you_mean, listed, show
from parity.casefile.schema import Body, ExpectModel
from parity.casefile.sweep import Point, meets

_MISSING = object()


class Expectations:
    """The entries of one case file, and how often each applied.

    Args:
        entries: as the file gives them.
        line: the 1-based line of an entry by its index.
        today: the day on which `until` is judged.

    Raises:
        Problem: an entry contradicts itself or has expired.
    """

    def __init__(
        self, entries: Sequence[ExpectModel], *, line: Callable[[int], int], today: datetime.date
    ) -> None:
        self._entries = entries
        self._ready = []
        for index, entry in enumerate(entries):
            _check(entry, ("expect", index), today)
            self._ready.append(_expectation(entry, line(index), index))
        self._applied = [False] * len(entries)
        self._run: list[set[str]] = [set() for _ in entries]

    def of(self, point: Point, body: Body) -> tuple[Expectation, ...]:
        """The entries whose `where` holds at a point.

        Raises:
            Problem: a `where` names neither an axis nor a field.
        """
        found = []
        names = {variant.name for variant in variants(body)}
        for index, (entry, ready) in enumerate(zip(self._entries, self._ready, strict=True)):
            if all(
                meets(wanted, _field(name, point, body, ("expect", index, "where", name)))
                for name, wanted in entry.where.items()
            ):
                self._applied[index] = True
                self._run[index].update(names)
                if set(ready.paths) & names:
                    found.append(ready)
        return tuple(found)

    def finish(self) -> None:
        """Raise a Problem for an entry that applied nowhere or speaks of a path that is not run."""
        for index, entry in enumerate(self._entries):
            if not self._applied[index]:
                what = f"expect[{index}].where matches no case (got {show(entry.where)})"
                raise Problem(what, ("expect", index, "where"))
            for position, path in enumerate(entry.path):
                if path not in self._run[index]:
                    allowed = sorted(self._run[index])
                    what = f"expect[{index}].path is not run (got {show(path)}; "
                    what += f"allowed {listed(allowed)})"
                    at = ("expect", index, "path", position)
                    raise Problem(what, at, hint=did_you_mean(path, allowed))


def _check(entry: ExpectModel, at: Location, today: datetime.date) -> None:
    where = f"expect[{at[-1]}]"
    if (entry.grade is None) == (entry.outcome is None):
        got = "neither" if entry.grade is None else "both"
        what = f"{where} needs either a grade or an outcome (got {got})"
        raise Problem(what, at, hint="grade: divergent, or outcome: unsupported")
    if entry.stage is not None and entry.outcome != "error":
        what = f"{where}.stage stands beside outcome: error only"
        raise Problem(what, (*at, "stage"), key=True)
    if entry.match is not None and entry.outcome is None:
        raise Problem(f"{where}.match stands beside outcome only", (*at, "match"), key=True)
    if entry.until is not None and entry.until < today:
        what = f"{where} expired on {entry.until} (today is {today})"
        hint = "look whether it still comes true; then remove the entry or move the day"
        raise Problem(what, (*at, "until"), hint=hint)


def _expectation(entry: ExpectModel, line: int, index: int) -> Expectation:
    when = entry.when.model_dump(exclude_none=True)
    return Expectation(
        paths=tuple(entry.path),
        outputs=None if entry.output is None else tuple(entry.output),
        grades=None if entry.grade is None else tuple(entry.grade),
        outcome=entry.outcome,
        stage=entry.stage,
        match=entry.match,
        because=entry.because,
        link=entry.link,
        until=entry.until,
        when=when,
        line=line,
        index=index,
    )


def _field(name: str, point: Point, body: Body, at: Location) -> Any:
    """The value of an axis (by label or dotted field) or of a field of the case."""
    if name in point.values:
        return point.values[name]
    value: Any = body
    for part in name.split("."):
        value = _item(value, part)
        if value is _MISSING:
            allowed = [*point.values, *type(body).model_fields]
            what = f"'{name}' is neither a sweep axis nor a field (got {name}; "
            what += f"allowed {listed(allowed)})"
            raise Problem(what, at, key=True, hint=did_you_mean(name, allowed))
    return value


def _item(value: Any, part: str) -> Any:
    """What a mapping, list or model holds under one part of a dotted name."""
    if isinstance(value, dict):
        return value.get(part, _MISSING)
    if isinstance(value, list):
        return value[int(part)] if part.isdigit() and int(part) < len(value) else _MISSING
    fields = getattr(type(value), "model_fields", {})
    return getattr(value, part) if part in fields else _MISSING
