"""Sweeps: axes over any field, and the points they span."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parity.casefile.messages import validated
from parity.casefile.problem import Location, Problem, did_you_mean, listed, show
from parity.casefile.schema import Header, ProductModel, SweepModel
from parity.program.spec import TRANSFORMS

TRANSFORM = "transform"

_SPELT = re.compile(r"[A-Za-z0-9_.+-]{1,40}")
_CALLABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*")
_FULL_FORM = set(SweepModel.model_fields)
_FIXED = set(Header.model_fields)
"""Fields that hold for the whole file and cannot be swept."""


@dataclass(frozen=True)
class Axis:
    """One axis of a sweep.

    Attributes:
        field: the location it sets: ("operands", "lhs", "dtype"); () for the axis `transform`.
        label: its name in ids: the shortest ending of the dotted field that is its own.
        values: as the file gives them.
        spelt: the same, as ids spell them.
        at: where the list of values stands in the file.
    """

    field: Location
    label: str
    values: tuple[Any, ...]
    spelt: tuple[str, ...]
    at: Location


@dataclass(frozen=True)
class Point:
    """One combination of axis values: the index of each axis's value."""

    axes: tuple[Axis, ...]
    indices: tuple[int, ...]

    @property
    def spelt(self) -> dict[str, str]:
        """Label: value, as in ids; `forward` is not spelt out."""
        spelt = {a.label: a.spelt[i] for a, i in zip(self.axes, self.indices, strict=True)}
        if spelt[TRANSFORM] == TRANSFORMS[0]:
            del spelt[TRANSFORM]
        return spelt

    @property
    def values(self) -> dict[str, Any]:
        """Label: value."""
        return {a.label: a.values[i] for a, i in zip(self.axes, self.indices, strict=True)}

    def __str__(self) -> str:
        return ",".join(f"{label}={value}" for label, value in self.spelt.items())

    def apply(self, data: dict[str, Any]) -> dict[str, Any]:
        """The file's data with this point's values in place; `data` itself stays as it is.

        Raises:
            Problem: an axis leads through something that is not a mapping.
        """
        for axis, index in self._fields():
            data = _with(data, axis.field, axis.values[index], axis)
        return data

    def locate(self, problem: Problem) -> Problem | None:
        """The problem, at the axis value that brought it about; None if none did."""
        for at in (problem.at, problem.instead or ()):
            for axis, index in self._fields():
                size = len(axis.field)
                if tuple(map(str, at[:size])) != axis.field:
                    continue
                whole = problem.key and len(at) == size
                inner = axis.at if whole else (*axis.at, index, *at[size:])
                return Problem(problem.what, inner, key=problem.key, hint=problem.hint)
        return None

    def _fields(self) -> Iterator[tuple[Axis, int]]:
        pairs = zip(self.axes, self.indices, strict=True)
        return ((axis, index) for axis, index in pairs if axis.field)


@dataclass(frozen=True)
class Sweep:
    """The axes of a case file and how they combine.

    Attributes:
        groups: axes that move together; the points are every combination of the groups.
        exclude: combinations to leave out, by axis label.
    """

    groups: tuple[tuple[Axis, ...], ...]
    exclude: tuple[Mapping[str, Any], ...] = ()

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, in the order of ids."""
        return tuple(axis for group in self.groups for axis in group)

    def size(self) -> int:
        """How many points there are before exclusions."""
        return math.prod(len(group[0].values) for group in self.groups)

    def points(self) -> list[Point]:
        """All points that are not excluded, the last axis varying fastest.

        Raises:
            Problem: an exclusion applies to no point, or to all of them.
        """
        used = [False] * len(self.exclude)
        kept = []
        for point in self._all():
            hits = [index for index, entry in enumerate(self.exclude) if _matches(entry, point)]
            for index in hits:
                used[index] = True
            if not hits:
                kept.append(point)
        if False in used:
            index = used.index(False)
            got = show(dict(self.exclude[index]))
            what = f"sweep.exclude[{index}] excludes nothing (got {got})"
            raise Problem(what, ("sweep", "exclude", index))
        if not kept:
            what = f"the sweep is empty: all {self.size()} points are excluded"
            raise Problem(what, ("sweep", "exclude"))
        return kept

    def _all(self) -> Iterator[Point]:
        axes = self.axes
        for choice in itertools.product(*(range(len(group[0].values)) for group in self.groups)):
            pairs = zip(self.groups, choice, strict=True)
            yield Point(axes, tuple(index for group, index in pairs for _ in group))


def parse(raw: Any, transforms: Sequence[str]) -> Sweep:
    """The sweep that a file's `sweep` and `transforms` ask for.

    Args:
        raw: the value of `sweep`: `{field: values}`, or `product`, `zip` and `exclude`; or None.
        transforms: the values of the axis `transform`, the last one.

    Raises:
        Problem: an axis or an exclusion makes no sense.
        ExceptionGroup: of Problems: the form is wrong.
    """
    listed_axes, zipped, exclude = _forms(raw)
    fields = [*listed_axes, *zipped]
    for field, (at, _) in {**listed_axes, **zipped}.items():
        if field.partition(".")[0] in _FIXED or field == TRANSFORM:
            hint = "list them under transforms" if field.startswith("transform") else None
            raise Problem(f"'{field}' holds for the whole file", at, key=True, hint=hint)
    both = [field for field in listed_axes if field in zipped]
    if both:
        what = f"'{both[0]}' stands under product and under zip"
        raise Problem(what, zipped[both[0]][0], key=True)
    labels = _labels(fields)
    product = [_axis(name, labels[name], *entry) for name, entry in listed_axes.items()]
    together = tuple(_axis(name, labels[name], *entry) for name, entry in zipped.items())
    for axis in together[1:]:
        if len(axis.values) != len(together[0].values):
            what = f"the axes of zip differ in length (got {len(together[0].values)} values of "
            what += f"{together[0].label} and {len(axis.values)} of {axis.label})"
            raise Problem(what, axis.at)
    names = tuple(transforms)
    transform = Axis((), TRANSFORM, names, names, ("transforms",))
    groups = [(axis,) for axis in product] + ([together] if together else []) + [(transform,)]
    for group in groups:
        _refuse_repeats(group)
    return Sweep(tuple(groups), tuple(_exclusion(e, i, labels) for i, e in enumerate(exclude)))


def meets(wanted: Any, got: Any) -> bool:
    """Whether a value is the wanted one, or one of a wanted list."""
    return _same(wanted, got) or (
        isinstance(wanted, list) and any(_same(one, got) for one in wanted)
    )


_Entries = dict[str, tuple[Location, list[Any]]]


def _forms(raw: Any) -> tuple[_Entries, _Entries, list[dict[str, Any]]]:
    """Product axes, zipped axes (where each stands, its values) and exclusions."""
    if raw is None:
        return {}, {}, []
    if not isinstance(raw, dict) or not raw:
        what = f"sweep is not a mapping of axes (got {show(raw)}; allowed field: [values])"
        raise Problem(what, ("sweep",))
    if not _FULL_FORM & set(raw):
        axes = validated(ProductModel, raw, ("sweep",)).root
        return {name: (("sweep", name), values) for name, values in axes.items()}, {}, []
    full = validated(SweepModel, raw, ("sweep",))
    product: _Entries = {n: (("sweep", "product", n), v) for n, v in full.product.items()}
    zipped: _Entries = {n: (("sweep", "zip", n), v) for n, v in full.zip.items()}
    return product, zipped, full.exclude


def _axis(field: str, label: str, at: Location, values: list[Any]) -> Axis:
    spelt = [_spell(value) for value in values]
    meanings: dict[str, set[str]] = {}
    for text, value in zip(spelt, values, strict=True):
        meanings.setdefault(text, set()).add(_hash(value))
    spelt = [  # [[1, 2]] and [1, 2] are both spelt 1x2
        _hash(value) if len(meanings[text]) > 1 else text
        for text, value in zip(spelt, values, strict=True)
    ]
    return Axis(tuple(field.split(".")), label, tuple(values), tuple(spelt), at)


def _refuse_repeats(group: Sequence[Axis]) -> None:
    """Raise a Problem if axes that move together take the same values twice."""
    seen = set()
    for index, row in enumerate(zip(*(axis.spelt for axis in group), strict=True)):
        if row in seen:
            got = " and ".join(show(axis.values[index]) for axis in group)
            names = " and ".join(axis.label for axis in group)
            what, which = ("has", "value") if len(group) == 1 else ("have", "values")
            what = f"duplicate case id: {names} {what} the same {which} twice (got {got})"
            raise Problem(what, (*group[0].at, index))
        seen.add(row)


def _exclusion(entry: dict[str, Any], index: int, labels: Mapping[str, str]) -> dict[str, Any]:
    by_label = {}
    allowed = [*labels.values(), TRANSFORM]
    for name, value in entry.items():
        label = labels.get(name, name)
        if label not in allowed:
            what = f"'{name}' is not an axis of this sweep (got {name}; allowed {listed(allowed)})"
            at = ("sweep", "exclude", index, name)
            raise Problem(what, at, key=True, hint=did_you_mean(name, allowed))
        by_label[label] = value
    return by_label


def _matches(entry: Mapping[str, Any], point: Point) -> bool:
    return all(meets(wanted, point.values[label]) for label, wanted in entry.items())


def _labels(fields: Sequence[str]) -> dict[str, str]:
    """Each dotted field's shortest ending that no other field has."""
    endings = {field: _endings(field) for field in fields}
    count = Counter(ending for each in endings.values() for ending in each)
    count[TRANSFORM] += 1
    return {
        field: next((ending for ending in each if count[ending] == 1), field)
        for field, each in endings.items()
    }


def _endings(field: str) -> list[str]:
    parts = field.split(".")
    return [".".join(parts[start:]) for start in range(len(parts) - 1, -1, -1)]


def _with(data: Any, field: Location, value: Any, axis: Axis) -> Any:
    """A copy of `data` along one path, with the value at its end."""
    if not field:
        return value
    first, rest = field[0], field[1:]
    if data is None:
        data = {}
    if isinstance(data, dict):
        return {**data, first: _with(data.get(first), rest, value, axis)}
    if isinstance(data, list) and str(first).isdigit() and int(first) < len(data):
        index = int(first)
        return [*data[:index], _with(data[index], rest, value, axis), *data[index + 1 :]]
    what = f"the axis leads to '{first}' in something that is not a mapping (got {show(data)})"
    raise Problem(what, axis.at, key=True)


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _spell(value: Any) -> str:
    text = _joined(value)
    return text if _SPELT.fullmatch(text) else _hash(value)


def _joined(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "x".join(_joined(item) for item in value)
    if isinstance(value, str) and _CALLABLE.fullmatch(value):
        return value.replace(":", ".")
    return "" if isinstance(value, dict) else str(value)


def _hash(value: Any) -> str:
    """The first 8 hexadecimal digits of a SHA-256 over the value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
