"""All that is known of a case, for the page to decode when the case is opened.

Rows refer to their metrics by number, since paths with equal bits share them. Fields that are empty
or have their default are left out; integers beyond 2^53, which JavaScript rounds, are strings.
Metrics stand in full: as doubles beside the JSON, where `true` stands for the next one
(and a metric's name for its value). So do bits and digests, as bytes. Of rows there is what is not
as in the row before. Cut are profiles and timings, to 3 significant digits, and the ulps of single
elements and the errors of devices, to 4.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from parity.compare.metrics import Element, Metrics
from parity.compare.rows import Row
from parity.compare.shards import ShardError
from parity.record.encoding import dumps
from parity.report.html.page import Detail
from parity.report.html.resolved import resolved_yaml

if TYPE_CHECKING:
    from parity.compare.result import CaseResult

TARGETS = ("f64", "strict", "baseline")
_SAFE = 2**53
_SHORT = 8
_NONE = object()
_ALIKE = {"min_rtol": "max_rel", "min_atol": "max_abs"}
_SHA256 = re.compile("[0-9a-f]{64}")
_READABLE = ("float16", "bfloat16", "float32", "float64")
_SPECIAL = ("histogram", "profile", "worst")
_ROW = {
    field.name: field.default if field.default_factory is MISSING else field.default_factory()
    for field in fields(Row)
    if field.name not in (*TARGETS, "case")
}
_METRICS = {field.name: field.default for field in fields(Metrics) if field.name not in _SPECIAL}


def detail(results: Sequence[CaseResult], *, whole: bool = True) -> Detail:
    """A case in each of its environments.

    The JSON's keys: id, about, links, baseline, line, point, yaml, digest (how many bytes each
    has), rows, references (rows of `f64` and `strict`), metrics, and for each environment words,
    notes and groups.

    Args:
        results: of one case, at least one.
        whole: whether rows that are identical and fine, and references, have their histograms,
            profiles and worst elements, which others always have, and digests all their bytes
            instead of 8.
    """
    case = results[0].case
    made = _Detail(whole)
    flat = {
        "id": case.id,
        "about": case.about,
        "links": case.links,
        "baseline": case.baseline,
        "line": case.line,
        "point": case.point,
        "yaml": resolved_yaml(case),
        "words": {of.environment: of.words for of in results if of.words},
        "notes": {of.environment: of.notes for of in results if of.notes},
        "groups": {of.environment: of.groups for of in results},
        "digest": made.digest,
        "rows": made.rows((of.environment, row) for of in results for row in of.rows),
        "references": made.rows((of.environment, row) for of in results for row in of.references),
        "metrics": made.metrics(),
    }
    return Detail(dumps(flat), made.doubles, bytes(made.data))


class _Detail:
    """Collects doubles and bytes in the order in which the JSON refers to them."""

    def __init__(self, whole: bool) -> None:
        self.doubles = array("d")
        self.data = bytearray()
        self.digest = 32 if whole else 8
        self._whole = whole
        self._known: dict[tuple[Metrics, str | None], int] = {}
        self._telling: set[int] = set()

    def rows(self, rows: Iterable[tuple[str, Row]]) -> list[dict[str, Any]]:
        """Of each row what is not as in the one before; null for what is no longer there.

        Args:
            rows: each with the name of its environment.
        """
        packed: list[dict[str, Any]] = []
        before: dict[str, Any] = {}
        for environment, row in rows:
            flat = self._row(row) | {"environment": environment}
            changed = {name: of for name, of in flat.items() if before.get(name, _NONE) != of}
            packed.append(self._apart(changed) | {n: None for n in before if n not in flat})
            before = flat
        return packed

    def _row(self, row: Row) -> dict[str, Any]:
        flat = {
            name: value
            for name, default in _ROW.items()
            if (value := getattr(row, name)) is not None and value != default
        }
        for target in TARGETS:
            metrics: Metrics | None = getattr(row, target)
            if metrics is not None:
                number = self._known.setdefault((metrics, row.dtype), len(self._known))
                flat[target] = number
                if self._whole or row.status != "ok" or row.grade not in ("identical", None):
                    self._telling.add(number)
        return flat

    def _apart(self, flat: Mapping[str, Any]) -> dict[str, Any]:
        """A row whose doubles, then digests, are put beside the JSON."""
        known = {name: _exact(value) for name, value in flat.items()}
        if "bound_share" in flat:
            known["bound_share"] = self._number(flat["bound_share"])
        if "shards" in flat:
            known["shards"] = [self._shard(one) for one in flat["shards"]]
        if "values" in flat:
            known["values"] = list(map(self._number, flat["values"]))
        if "sha256" in flat:
            known["sha256"] = self._digest(flat["sha256"])
        if "evidence" in flat:
            known["evidence"] = {name: self._digest(of) for name, of in flat["evidence"].items()}
        if "timings" in flat:
            known["timings"] = {stage: cut(of, 3) for stage, of in flat["timings"].items()}
        return known

    def _shard(self, one: ShardError) -> dict[str, Any]:
        """A device's errors, to 4 significant digits."""
        return {
            name: cut(value, 4) if isinstance(value, float) and math.isfinite(value) else value
            for name, value in vars(one).items()
        }

    def metrics(self) -> list[dict[str, Any]]:
        """The distinct metrics, in the order of their numbers."""
        return [
            self._metrics(metrics, dtype, telling=number in self._telling)
            for number, (metrics, dtype) in enumerate(self._known)
        ]

    def _metrics(self, metrics: Metrics, dtype: str | None, *, telling: bool) -> dict[str, Any]:
        flat = {
            name: _ALIKE[name] if _is_alike(metrics, name) else self._number(value)
            for name, default in _METRICS.items()
            if (value := getattr(metrics, name)) is not None and value != default
        }
        if not telling:
            return flat | {"thin": True}
        flat |= {"histogram": metrics.histogram} if metrics.histogram is not None else {}
        if metrics.profile is not None:
            flat["profile"] = [
                (low, count, cut(largest, 3), cut(mean, 2))
                for low, count, largest, mean in metrics.profile
            ]
        if metrics.worst:
            known = _formats(metrics.worst[0], dtype)
            flat["formats"] = known
            flat["worst"] = [self._element(element, known) for element in metrics.worst]
        return flat

    def _element(self, element: Element, known: tuple[str | None, str | None]) -> list[Any]:
        """Index, ulp, bits (their number of bytes), and the values that are not read off them."""
        flat: list[Any] = [element.index, None if element.ulp is None else cut(element.ulp, 4)]
        sides = ((element.got, element.got_bits), (element.want, element.want_bits))
        for (value, bits), read_off in zip(sides, known, strict=True):
            words = [bytes.fromhex(word.removeprefix("0x")) for word in bits.split()]
            flat.append([len(word) for word in words])
            self.data += b"".join(words)
            if read_off is None:
                flat.append(_exact(value))
        return flat

    def _number(self, value: Any) -> Any:
        """A number, or `true` for one that is in full among the doubles."""
        if isinstance(value, float) and math.isfinite(value) and len(repr(value)) > _SHORT:
            self.doubles.append(value)
            return True
        return _exact(value)

    def _digest(self, text: str) -> Any:
        """A text, or `true` for a SHA-256 that is among the bytes."""
        if not _SHA256.fullmatch(text):
            return text
        self.data += bytes.fromhex(text)[: self.digest]
        return True


def _is_alike(metrics: Metrics, name: str) -> bool:
    """Whether a metric is the number that another one is, and need not be said again."""
    return name in _ALIKE and getattr(metrics, name) == getattr(metrics, _ALIKE[name])


def _formats(element: Element, dtype: str | None) -> tuple[str | None, str | None]:
    """The formats off whose bits the page reads the values of got and want, where it can."""
    if dtype not in _READABLE:
        return None, None
    same = len(element.got_bits) == len(element.want_bits)
    return dtype, dtype if same else "float64"


def cut(value: float, digits: int) -> float:
    """A number to so many significant digits; an integer in full."""
    return value if isinstance(value, int) else float(f"{value:.{digits}g}")


def _exact(value: Any) -> Any:
    """A value in which no integer is beyond what JavaScript holds."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _SAFE else str(value)
    if isinstance(value, tuple):
        return [_exact(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value
