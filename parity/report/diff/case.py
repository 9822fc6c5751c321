"""One case of two runs: its rows side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from parity.compare.result import CaseResult
from parity.compare.rows import Row
from parity.report.diff import comparable
from parity.report.diff.bits import Outputs, array_of, distance, same_output
from parity.report.diff.causes import SAME_BITS, cause_of, programs
from parity.report.diff.causes import said as said_by
from parity.report.diff.comparable import Reason, Reference
from parity.report.diff.directions import direction_of
from parity.report.diff.model import Cell, Change, Distance, NotComparable
from parity.report.diff.sides import Source

if TYPE_CHECKING:
    import numpy as np


class CaseDiff:
    """One case of both sides.

    Args:
        a: the side that was.
        b: the side that is.
        case: which.
        paths: rows of these alone, None for all.
    """

    def __init__(self, a: Source, b: Source, case: str, paths: Sequence[str] | None) -> None:
        self._sources = a, b
        self._id = case
        self._a, self._b = a.read(case), b.read(case)
        self._paths = paths
        self._measured: dict[tuple[str, str, str], Distance] = {}

    def compare(self) -> Iterator[Change | NotComparable | None]:
        """Every change, everything that cannot be compared, None for each row that is as it was."""
        paths = self._selected()
        if reason := comparable.of_case(self._a.case, self._b.case):
            if paths:
                yield self._apart(reason, rows=sum(len(self._pairs(path)) for path in paths))
            return
        references = dict(self._reference_reasons())
        left_out = dict.fromkeys(references, 0)
        for path in paths:
            pairs = self._pairs(path)
            reason = comparable.of_path(self._a.case, self._b.case, path)
            if reason and all(a and b for a, b in pairs):
                yield self._apart(reason, path=path, rows=len(pairs))
                continue
            for a, b in pairs:
                if a and b and a.outcome == b.outcome == "ok" and b.output in references:
                    left_out[b.output] += 1
                else:
                    yield self._compared(path, a, b)
        for output, rows in left_out.items():
            if rows:
                yield self._apart(references[output], output=output, rows=rows)

    def _apart(
        self, reason: Reason, *, output: str = "", path: str = "", rows: int
    ) -> NotComparable:
        return NotComparable(self._id, output, path, reason.kind, reason.text, rows)

    def _selected(self) -> list[str]:
        rows = (*self._a.rows, *self._b.rows)
        wanted = self._paths
        return list(dict.fromkeys(r.path for r in rows if wanted is None or r.path in wanted))

    def _pairs(self, path: str) -> list[tuple[Row | None, Row | None]]:
        """A path's rows side by side; a failure, which has no outputs, stands beside each."""
        a, b = (
            {row.output: row for row in side.rows if row.path == path}
            for side in (self._a, self._b)
        )
        for own, other in ((a, b), (b, a)):
            alone = own.get("")
            if alone is not None and other and "" not in other:
                del own[""]
                if alone.outcome != "ok":
                    own |= dict.fromkeys(other, alone)
        return [(a.get(output), b.get(output)) for output in dict.fromkeys((*a, *b))]

    def _compared(self, path: str, a: Row | None, b: Row | None) -> Change | None:
        same = a is not None and b is not None and self._same(a, b)
        direction = direction_of(a, b, same=same)
        if direction is None:
            return None
        cause = cause_of(a, b, same=same)
        apart, unread = self._distance(a, b, same=same)
        names = [row.output for row in (a, b) if row is not None]
        return Change(
            case=self._id,
            op=self._b.case.program.op,
            path=path,
            output=next(filter(None, names), ""),
            baseline=self._b.case.baseline,
            direction=direction,
            cause=cause.cause,
            why=cause.why,
            detail="; ".join(self._details(a, b, same=cause.cause == SAME_BITS)),
            a=None if a is None else cell(a, _words(self._a, a)),
            b=None if b is None else cell(b, _words(self._b, b)),
            distance=apart,
            unread=unread,
        )

    def _same(self, a: Row, b: Row) -> bool:
        return same_output(a, b, *self._outputs) if a.bits != b.bits else True

    def _distance(self, a: Row | None, b: Row | None, *, same: bool) -> tuple[Distance | None, str]:
        """How far B is from A or, where both have an output, why that is not known."""
        if same or a is None or b is None or a.sha256 is None or b.sha256 is None:
            return None, ""
        old, new = (array_of(row, of) for row, of in zip((a, b), self._outputs, strict=True))
        if old is None or new is None:
            lacking = [name for name, array in (("A", old), ("B", new)) if array is None]
            said = (
                f"bits were not kept in {' and '.join(lacking)} (parity run --keep all keeps them)"
            )
            return None, said
        if (old.dtype, old.shape) != (new.dtype, new.shape):
            return None, f"was {_form(a)}, is {_form(b)}"
        key = a.sha256, b.sha256, b.output
        if key not in self._measured:
            reference = self._references[1].get(b.output)
            ideal = reference.array() if reference else None
            self._measured[key] = distance(old, new, ideal)
        return self._measured[key], ""

    def _details(self, a: Row | None, b: Row | None, *, same: bool) -> Iterator[str]:
        """What else changed that bears on a row that both sides have."""
        if a is None or b is None or "ok" not in (a.outcome, b.outcome):
            return
        if a.sha256 and b.sha256 and _form(a) != _form(b):
            yield f"was {_form(a)}, is {_form(b)}"
        if b.f64 is not None and b.f64.excluded and not same:
            count = b.f64.excluded
            yield f"{count} of its elements are unspecified: A to B counts them, no grade does"
        others = [
            what
            for what, changed in (
                (f"baseline {self._b.case.baseline} changed", self._baseline_changed(b)),
                ("what is declared changed (strict)", self._strict_changed(b.output)),
            )
            if changed
        ]
        yield from others
        if same and not others and a.grade != b.grade:
            yield "graded otherwise: neither its bits nor those of the baseline changed"

    def _baseline_changed(self, row: Row) -> bool:
        """Whether what a row is compared with has other bits, or is there on one side only."""
        baseline = self._b.case.baseline
        if row.path == baseline:
            return False
        pairs = self._pairs(baseline)
        found = [(a, b) for a, b in pairs if row.output in {r.output for r in (a, b) if r}]
        return any(
            a is None or b is None or a.outcome != b.outcome or not self._same(a, b)
            for a, b in found
        )

    def _strict_changed(self, output: str) -> bool:
        a, b = (
            next((r for r in side.references if (r.path, r.output) == ("strict", output)), None)
            for side in (self._a, self._b)
        )
        return a is not None and b is not None and not self._same(a, b)

    def _reference_reasons(self) -> Iterator[tuple[str, Reason]]:
        a, b = self._references
        said_of = [
            next((said_by(r) for r in side.references if r.path == "f64" and r.outcome != "ok"), "")
            for side in (self._a, self._b)
        ]
        return comparable.of_references(a, b, said_of)

    def _array(self, side: int, row: Row) -> np.ndarray | None:
        return array_of(row, self._outputs[side])

    @cached_property
    def _outputs(self) -> tuple[Outputs, Outputs]:
        a, b = (source.outputs(self._id) for source in self._sources)
        return a, b

    @cached_property
    def _references(self) -> tuple[dict[str, Reference], dict[str, Reference]]:
        """The f64 of each side by output; its bits are read where they are asked for."""

        def of(side: int, result: CaseResult) -> dict[str, Reference]:
            return {
                row.output: Reference(row, partial(self._array, side, row))
                for row in result.references
                if row.path == "f64" and row.sha256
            }

        return of(0, self._a), of(1, self._b)


def _form(row: Row) -> str:
    return f"{row.dtype}{list(row.shape or ())}"


def _words(result: CaseResult, row: Row) -> str:
    """The line that a result has on a row, "" if there is none."""
    several = sum(other.path == row.path for other in result.rows) > 1
    who = f"{row.path} ({row.output})" if several else row.path
    return next((line for line in result.words if line.startswith((f"{who} ", f"{who}: "))), "")


def cell(row: Row, words: str) -> Cell:
    """What a change keeps of a row."""
    return Cell(
        outcome=row.outcome,
        grade=row.grade,
        status=row.status,
        detail=row.detail if row.outcome == "ok" else "",
        words=words if row.outcome == "ok" else "",
        stage=row.stage,
        said=said_by(row),
        model=row.model,
        licences=row.licences,
        dtype=row.dtype,
        shape=row.shape,
        faithful=row.faithful,
        accurate=row.accurate,
        bound_share=row.bound_share,
        differing=row.differing,
        f64=None if row.f64 is None else replace(row.f64, worst=()),
        because=row.because,
        link=row.link,
        sha256=row.sha256,
        nondeterministic=row.nondeterministic,
        programs=programs(row),
    )
