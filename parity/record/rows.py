"""Rows as JSON. What is empty or has its default is left out; equal metrics stand once.

Paths that give the same bits have the same metrics, and most do: so a case's rows refer to its
metrics by number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from parity.compare.metrics import Element, Metrics
from parity.compare.rows import Row
from parity.compare.shards import ShardError
from parity.record.encoding import dumps, word

_TARGETS = ("f64", "strict", "baseline")
_ROW = {
    field.name: field.default if field.default_factory is MISSING else field.default_factory()
    for field in fields(Row)
    if field.name not in _TARGETS
}
_METRICS = {field.name: field.default for field in fields(Metrics) if field.name != "worst"}
_ELEMENT = tuple(field.name for field in fields(Element))


def pack_rows(rows: Iterable[Row]) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows, and the metrics that they refer to.

    Returns:
        For each row its fields as `dumps` takes them, with positions in the second list for `f64`,
        `strict` and `baseline`; for each of the distinct metrics its JSON.
    """
    numbers: dict[str, int] = {}
    known: dict[int, int] = {}  # by identity: the metrics of equal bits are most often one object
    packed = []
    for row in rows:
        flat = {
            name: _plain(value)
            for name, default in _ROW.items()
            if (value := getattr(row, name)) is not None and value != default
        }
        for target in _TARGETS:
            metrics: Metrics | None = getattr(row, target)
            if metrics is not None:
                if id(metrics) not in known:
                    text = dumps(_metrics_as_dict(metrics))
                    known[id(metrics)] = numbers.setdefault(text, len(numbers))
                flat[target] = known[id(metrics)]
        packed.append(flat)
    return packed, list(numbers)


def unpack_row(flat: Mapping[str, Any], metrics: Sequence[Metrics]) -> Row:
    """The row that `pack_rows` packed, bit for bit, after a way through JSON.

    Args:
        flat: its fields.
        metrics: what `unpack_metrics` makes of the second list.
    """
    known = dict(flat)
    for name in ("bound_share", "vacuous", "own_error", "delivered"):
        if name in known:
            known[name] = _number(known[name])
    for name in ("shape", "values"):
        if name in known:
            known[name] = tuple(map(_number, known[name]))
    if "shards" in known:
        known["shards"] = tuple(map(_shard, known["shards"]))
    for target in _TARGETS:
        if target in known:
            known[target] = metrics[known[target]]
    return Row(**known)


def _shard(flat: Mapping[str, Any]) -> ShardError:
    known: dict[str, Any] = {
        name: tuple(of) if type(of) is list else of if name == "sha256" else _number(of)
        for name, of in flat.items()
    }
    return ShardError(**known)


def unpack_metrics(flat: Mapping[str, Any]) -> Metrics:
    """The metrics that `pack_rows` packed, after a way through JSON."""
    known = {name: _number(value) for name, value in flat.items() if type(value) is not list}
    if "histogram" in flat:
        known["histogram"] = tuple(flat["histogram"])
    if "profile" in flat:
        known["profile"] = tuple(tuple(map(_number, band)) for band in flat["profile"])
    elements = (dict(zip(_ELEMENT, one, strict=True)) for one in flat.get("worst", ()))
    known["worst"] = tuple(
        Element(
            index=tuple(one["index"]),
            got=_number(one["got"]),
            want=_number(one["want"]),
            got_bits=one["got_bits"],
            want_bits=one["want_bits"],
            ulp=_number(one["ulp"]),
        )
        for one in elements
    )
    return Metrics(**known)


def _metrics_as_dict(metrics: Metrics) -> dict[str, Any]:
    flat = {
        name: _plain(value)
        for name, default in _METRICS.items()
        if (value := getattr(metrics, name)) is not None and value != default
    }
    if metrics.worst:
        flat["worst"] = [
            [_plain(getattr(element, name)) for name in _ELEMENT] for element in metrics.worst
        ]
    return flat


def _plain(value: Any) -> Any:
    """A float that JSON lacks as its word; so too inside of a sequence and of complex numbers."""
    kind = type(value)
    if kind is float:
        return value if math.isfinite(value) else word(value)
    if kind is tuple:
        return [_plain(item) for item in value]
    if kind is ShardError:
        return {name: _plain(of) for name, of in vars(value).items()}
    return [_plain(value.real), _plain(value.imag)] if kind is complex else value


def _number(value: Any) -> Any:
    """A bool, int or float as it is; of [real, imaginary] complex; of a word NaN or infinity."""
    kind = type(value)
    if kind is list:
        return complex(*map(_number, value))
    return float(value) if kind is str else value
