"""Simpler case files than a given one: each leaves something out, or makes something smaller.

A case file is what its fields say, as nested plain data (`report.html.resolved.document`). Not all
that is made here is a valid case: the loader refuses what does not fit together.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from parity.casefile import values
from parity.dtypes import DType, dtype

Fields = dict[str, Any]

LISTED = 64
"""Operands of up to so many elements have their values listed, to be made simpler."""

_SINGLE = 16
_DROPPED = (
    ("transforms", "cotangent", "cotangents", "tangents", "batch", "batched", "gradients"),
    ("residual",),
    ("output_dtype",),
    ("compute_dtype",),
    ("cotangent",),
    ("cotangents",),
    ("gradients",),
    ("batched",),
    ("timeout",),
    ("devices",),
    ("x64",),
)
_LISTS = ("window_strides", "lhs_dilation", "rhs_dilation", "padding")


def simpler(fields: Fields) -> Iterator[tuple[str, Fields]]:
    """Simpler case files, those that leave out most first, each with what is simpler in it."""
    yield from _without_fields(fields)
    yield from _without_steps(fields)
    yield from _smaller(fields)
    yield from _without_dimensions(fields)
    yield from _simpler_attributes(fields)
    yield from _simpler_values(fields)


def _changed(fields: Fields, change: Callable[[Fields], None]) -> Fields:
    made = copy.deepcopy(fields)
    change(made)
    return made


def _without_fields(fields: Fields) -> Iterator[tuple[str, Fields]]:
    for names in _DROPPED:
        if any(name in fields for name in names[:1]) and fields.get(names[0]) != ["forward"]:
            rest = {name: of for name, of in fields.items() if name not in names}
            yield f"without {names[0]}", rest
    for name in ("cotangent",):
        if isinstance(fields.get(name), Mapping) and "shape" in fields[name]:
            left = {k: of for k, of in fields[name].items() if k not in ("shape", "dtype")}
            yield f"{name} of the output's own shape", {**fields, name: left}


def _without_steps(fields: Fields) -> Iterator[tuple[str, Fields]]:
    steps = fields.get("steps", ())
    for at in range(len(steps)) if len(steps) > 1 else ():
        left = [*steps[:at], *steps[at + 1 :]]
        yield f"without step {at}", _without_idle({**fields, "steps": left})


def _without_idle(fields: Fields) -> Fields:
    """Without the operands that no step names; the first one is where the first step starts."""
    named = {of for step in fields["steps"] for of in step.values() if isinstance(of, str)}
    operands = fields["operands"]
    kept = {n: of for at, (n, of) in enumerate(operands.items()) if at == 0 or n in named}
    return {**fields, "operands": kept}


def _smaller(fields: Fields) -> Iterator[tuple[str, Fields]]:
    """Dimensions made smaller: one size wherever it stands, one dimension, or two of one size."""
    operands = fields["operands"]
    places = [(name, axis) for name, of in operands.items() for axis in range(len(of["shape"]))]
    sizes = sorted({operands[name]["shape"][axis] for name, axis in places}, reverse=True)
    groups = [[p for p in places if _size(operands, p) == size] for size in sizes]
    groups += [[place] for place in places]
    groups += [
        list(pair)
        for pair in itertools.combinations(places, 2)
        if pair[0][0] != pair[1][0] and _size(operands, pair[0]) == _size(operands, pair[1])
    ]
    tried: set[tuple[Any, ...]] = set()
    for group in groups:
        size = _size(operands, group[0])
        for less in dict.fromkeys((1, size // 2, size - 1)):
            if 0 < less < size and (tuple(group), less) not in tried:
                tried.add((tuple(group), less))
                yield f"{_named(group)} {less}", _resized(fields, group, less)
    for name in ("feature_group_count", "batch_group_count"):
        if fields.get("attributes", {}).get(name, 1) > 1:
            yield from _fewer_groups(fields, name, places)
    if fields.get("batch", 0) > 1:
        yield "batch 1", {**fields, "batch": 1}


def _size(operands: Mapping[str, Any], place: tuple[str, int]) -> int:
    size: int = operands[place[0]]["shape"][place[1]]
    return size


def _named(group: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name} dimension {axis}" for name, axis in group)


def _fewer_groups(
    fields: Fields, name: str, places: Sequence[tuple[str, int]]
) -> Iterator[tuple[str, Fields]]:
    """One group, of what one of them had: both dimensions are divided by the number of groups."""
    count, operands = fields["attributes"][name], fields["operands"]
    divided = [p for p in places if _size(operands, p) % count == 0]
    for some in (*itertools.combinations(divided, 2), *((place,) for place in divided)):
        made = fields
        for place in some:
            made = _resized(made, [place], _size(operands, place) // count)
        rest = {k: of for k, of in fields["attributes"].items() if k != name}
        yield f"one group ({_named(some)})", {**made, "attributes": rest}


def _resized(fields: Fields, group: Sequence[tuple[str, int]], size: int) -> Fields:
    """With the first elements of some dimensions alone."""

    def change(made: Fields) -> None:
        for name, axis in group:
            operand = made["operands"][name]
            shape = list(operand["shape"])
            if "values" in operand:
                array = np.array(operand["values"], object).reshape(shape)
                operand["values"] = array.take(range(size), axis=axis).tolist()
            shape[axis] = size
            operand["shape"] = shape

    return _changed(fields, change)


def _without_dimensions(fields: Fields) -> Iterator[tuple[str, Fields]]:
    """A convolution without one of its spatial dimensions, of which the operands have size 1."""
    attributes = fields.get("attributes", {})
    numbers = attributes.get("dimension_numbers")
    if fields.get("op") != "conv_general_dilated" or not numbers:
        return
    spatial = [letter for letter in numbers[1] if letter not in "OI"]
    for at, letter in enumerate(spatial):
        axes = [spec.index(letter) for spec in numbers[:2]]
        shapes = [of["shape"] for of in fields["operands"].values()][:2]
        if any(shape[axis] != 1 for shape, axis in zip(shapes, axes, strict=True)):
            continue

        def change(made: Fields, at: int = at, letter: str = letter, axes: Any = axes) -> None:
            given = made["attributes"]
            given["dimension_numbers"] = [spec.replace(letter, "") for spec in numbers]
            for name in _LISTS:
                if isinstance(given.get(name), list | tuple):
                    given[name] = [of for n, of in enumerate(given[name]) if n != at]
            for operand, axis in zip(made["operands"].values(), axes, strict=False):
                if "values" in operand:
                    array = np.array(operand["values"], object).reshape(operand["shape"])
                    operand["values"] = array.take(0, axis=axis).tolist()
                operand["shape"] = [n for i, n in enumerate(operand["shape"]) if i != axis]

        yield f"without spatial dimension {letter}", _changed(fields, change)


def _simpler_attributes(fields: Fields) -> Iterator[tuple[str, Fields]]:
    given = fields.get("attributes", {})
    for name, value in given.items():
        rest = {key: of for key, of in given.items() if key != name}
        yield f"without {name}", {**fields, "attributes": rest}
        for plain in _plainer(name, value):
            if plain != value:
                yield f"{name} {plain}", {**fields, "attributes": {**given, name: plain}}


def _plainer(name: str, value: Any) -> Iterator[Any]:
    if name == "padding":
        yield "VALID"
        if not isinstance(value, str):
            yield [[0, 0] for _ in value]
            for at, pair in enumerate(value):
                if list(pair) != [0, 0]:
                    yield [[0, 0] if n == at else list(of) for n, of in enumerate(value)]
    elif name in _LISTS and value is not None:
        yield [1 for _ in value]
        for at in range(len(value)):
            yield [1 if n == at else of for n, of in enumerate(value)]


def _simpler_values(fields: Fields) -> Iterator[tuple[str, Fields]]:
    for name, operand in fields["operands"].items():
        kind = dtype(operand["dtype"])
        count = int(np.prod(operand["shape"], dtype=int))
        for plain in (1, 0):
            if operand.get("draw") or "file" in operand or not _all(operand, plain):
                yield f"{name} all {plain}", _filled(fields, name, plain, kind)
        if "values" in operand and count <= LISTED and kind.kind != "bool":
            yield from _rounded(fields, name, kind)
        if "values" in operand and count <= _SINGLE:
            yield from _one_by_one(fields, name, kind)


def _all(operand: Mapping[str, Any], plain: int) -> bool:
    flat = np.array(operand["values"], object).reshape(-1)
    return all(one == plain for one in flat)


def _filled(fields: Fields, name: str, plain: int, kind: DType) -> Fields:
    """An operand of one value."""
    shape = fields["operands"][name]["shape"]
    listed = np.full(shape, _as(plain, kind), object).tolist()
    return _valued(fields, name, listed)


def _as(plain: int, kind: DType) -> bool | int | float:
    """0 or 1 as case files write an element of a dtype."""
    if kind.kind == "bool":
        return bool(plain)
    return float(plain) if kind.is_inexact else plain


def _valued(fields: Fields, name: str, listed: Any) -> Fields:
    operand = fields["operands"][name]
    made = {"shape": operand["shape"], "dtype": operand["dtype"], "values": listed}
    return {**fields, "operands": {**fields["operands"], name: made}}


def _rounded(fields: Fields, name: str, kind: DType) -> Iterator[tuple[str, Fields]]:
    """All elements to integers, or to fewer digits."""
    operand = fields["operands"][name]
    if not kind.is_inexact or kind.kind == "complex":
        return
    array = np.array(operand["values"], object).reshape(operand["shape"])
    if not all(isinstance(one, int | float) and np.isfinite(one) for one in array.reshape(-1)):
        return
    for digits in (1, 2, 4):
        listed = np.vectorize(lambda x, d=digits: float(f"{x:.{d}g}"), otypes=[object])(array)
        if listed.tolist() != array.tolist():
            yield f"{name} to {digits} digits", _valued(fields, name, listed.tolist())


def _one_by_one(fields: Fields, name: str, kind: DType) -> Iterator[tuple[str, Fields]]:
    operand = fields["operands"][name]
    array = np.array(operand["values"], object).reshape(operand["shape"])
    for index in np.ndindex(array.shape):
        for plain in (0, 1):
            value = (
                bool(plain) if kind.kind == "bool" else float(plain) if kind.is_inexact else plain
            )
            if array[index] in (0, 1) and (array[index] == value or array[index] == 0):
                continue
            made = array.copy()
            made[index] = value
            yield f"{name}{list(index)} {plain}", _valued(fields, name, made.tolist())


def listed(fields: Fields, arrays: Mapping[str, np.ndarray]) -> Fields:
    """With the values of small operands written down, as they were drawn.

    Args:
        fields: of a case file.
        arrays: its operands.
    """
    made = fields
    for name, operand in fields["operands"].items():
        array = arrays[name]
        if (
            "values" not in operand
            and array.size <= LISTED
            and array.shape == tuple(operand["shape"])
        ):
            text = values.listing(array)
            again = values.array(text, array.shape, dtype(array.dtype.name))
            if again.tobytes() == array.tobytes():
                made = _valued(made, name, text)
    return made
