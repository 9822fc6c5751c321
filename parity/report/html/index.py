"""The rows of a run as columns: what heatmap, table and filter of the page work on.

What a case has beside that is in `details` and decoded when the case is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from parity.casefile.case import GRADES
from parity.dtypes import DTYPES
from parity.report.table import verdict_of

if TYPE_CHECKING:
    from parity.compare.result import CaseResult
    from parity.compare.rows import Row

KINDS = (
    "crashed",
    "out-of-memory",
    "timeout",
    "error",
    *reversed(GRADES),
    "no output",
    "unsupported",
)
"""What a row can amount to, the worst first."""

_FIELDS = ("outcome", "stage", "status", "dtype", "detail", "because", "licences", "model")
TEXTS = ("verdict", "kind", *_FIELDS)
NUMBERS = ("count", "differing", "undecided")
FLAGS = (
    "faithful",
    "unfaithful",
    "accurate",
    "inaccurate",
    "cached",
    "nondeterministic",
    "baseline",
)
MEASURES = (
    "max_abs",
    "max_ulp",
    "max_abs_f64",
    "max_ulp_f64",
    "rms_rel_f64",
    "bound_share",
    "vacuous",
)


def kind_of(row: Row) -> str:
    """One of `KINDS`."""
    return (row.grade or "no output") if row.outcome == "ok" else row.outcome


def formats() -> dict[str, dict[str, Any]]:
    """By dtype what its bits mean, for the page to take them apart."""
    return {
        name: {
            "kind": of.kind,
            "bits": of.bits,
            "precision": of.format.precision if of.format else None,
            "emin": of.format.emin if of.format else None,
            "signed": of.format.signed if of.format else None,
        }
        for name, of in DTYPES.items()
    }


class Index:
    """Fills while cases pass by.

    Args:
        environments: names, in order.
    """

    def __init__(self, environments: Sequence[str]) -> None:
        self._names = {name: _Numbers(environments) for name in ("environment",)}
        self._names |= {name: _Numbers() for name in ("path", "output", "op", "text")}
        self._measures: dict[tuple[Any, ...], int] = {}
        self._cases: list[tuple[str, int]] = []
        self._columns: dict[str, list[Any]] = {
            name: []
            for name in ("case", "environment", "path", "output", *TEXTS, *NUMBERS, "flags", "at")
        }

    def add(self, results: Sequence[CaseResult]) -> None:
        """Add a case, in each of its environments."""
        case = results[0].case
        self._cases.append((case.id, self._names["op"](case.program.op)))
        for result in results:
            for row in result.rows:
                self._add(row, baseline=row.path == case.baseline)

    def _add(self, row: Row, *, baseline: bool) -> None:
        add = {name: column.append for name, column in self._columns.items()}
        add["case"](len(self._cases) - 1)
        for name in ("environment", "path", "output"):
            add[name](self._names[name](getattr(row, name)))
        text = self._names["text"]
        add["verdict"](text(verdict_of(row)))
        add["kind"](text(kind_of(row)))
        for name in _FIELDS:
            add[name](text(getattr(row, name) or ""))
        for name in NUMBERS:
            add[name](getattr(row, name))
        add["flags"](_flags(row, baseline=baseline))
        add["at"](self._measures.setdefault(_measures(row), len(self._measures)))

    def data(self) -> Mapping[str, Any]:
        """What the page's script reads; `dumps` takes it."""
        return {
            **{f"{name}s": list(numbers) for name, numbers in self._names.items()},
            "kinds": KINDS,
            "flagNames": FLAGS,
            "measureNames": MEASURES,
            "cases": self._cases,
            "columns": self._columns,
            "measures": list(self._measures),
            "dtypes": formats(),
        }


class _Numbers:
    """Numbers texts in the order in which they come up."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._known = {text: number for number, text in enumerate(texts)}

    def __call__(self, text: str) -> int:
        return self._known.setdefault(text, len(self._known))

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)


def _flags(row: Row, *, baseline: bool) -> int:
    """A bit for each of `FLAGS`; faithful and accurate may be unknown, then neither bit is set."""
    holds = (
        row.faithful is True,
        row.faithful is False,
        row.accurate is True,
        row.accurate is False,
        row.cached,
        row.nondeterministic,
        baseline,
    )
    return sum(1 << place for place, value in enumerate(holds) if value)


def _measures(row: Row) -> tuple[Any, ...]:
    base, ideal = row.baseline, row.f64
    values = (
        base and base.max_abs,
        base and base.max_ulp,
        ideal and ideal.max_abs,
        ideal and ideal.max_ulp,
        ideal and ideal.rms_rel,
        row.bound_share,
        row.vacuous,
    )
    return tuple("NaN" if value is not None and value != value else value for value in values)
