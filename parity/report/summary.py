"""A whole run for people: the cases, then what is wrong, the worst first, grouped by cause."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from parity.casefile.case import GRADES
from parity.record.reader import Recorded
from parity.report.across import Across, across_lines
from parity.report.numbers import metric, plural
from parity.report.rerun import arguments
from parity.report.table import (
    STYLES,
    case_lines,
    expectations,
    folded,
    is_fine,
    one_line,
    side_by_side,
    verdict_of,
)

if TYPE_CHECKING:
    from parity.compare.metrics import Metrics
    from parity.compare.result import CaseResult
    from parity.compare.rows import Row
    from parity.record.result import RunResult

FEW_CASES = 12
"""A run of so few cases shows the table of each."""

_SEVERITY = ("crashed", "out-of-memory", "timeout", "error", *reversed(GRADES))
_VERDICT = {"ok": "ok", "findings": "finding", "interrupted": "stale"}


def run_lines(result: RunResult, width: int | None, *, verbose: bool = False) -> Iterator[Text]:
    """A run, a line at a time; no more than a case's rows are held at once.

    The cases of a single file are also shown side by side.

    Args:
        result: the run.
        width: terminal cells to a line, None for no limit.
        verbose: a table for every case, however many there are.
    """
    tally = Tally()
    every = verbose or len(result.cases) <= FEW_CASES
    file, after_table = None, False
    across: Across | None = Across()
    for _, group in groupby(result.cases, key=lambda one: one.case.id):
        results = list(group)
        tally.add(results)
        if results[0].case.file != file:
            across = across if file is None else None
            yield from _about(results[0], width, first=file is None)
            file = results[0].case.file
            after_table = True
        if across is not None:
            across.add(results)
        if every or not all(is_fine(row) for one in results for row in one.rows):
            yield from [Text(), *case_lines(side_by_side(results), width)]
            after_table = True
        else:
            yield from [Text()] if after_table else []
            yield from (one_line(one, named=len(results) > 1) for one in results)
            after_table = False
    if across is not None:
        yield from across_lines(across, width)
    yield Text()
    yield from _summary(result, tally, width)


def _about(result: CaseResult, width: int | None, *, first: bool) -> Iterator[Text]:
    if not first:
        yield Text()
    yield Text(result.case.id.partition("::")[0], style="bold")
    if result.case.about:
        yield from folded(Text(result.case.about, style="italic"), width, hanging=0)


@dataclass
class Alike:
    """Rows that fail alike.

    Attributes:
        worst: the worst of them.
        position: of it among all rows.
        rows: how many there are.
        cases: in how many cases.
        last: the case of the last one.
    """

    worst: Row
    position: int
    rows: int = 0
    cases: int = 0
    last: str = ""


@dataclass
class Tally:
    """What a summary says of rows, kept while they pass by."""

    cases: int = 0
    rows: int = 0
    failing_rows: int = 0
    failing_cases: int = 0
    first: str | None = None
    noteworthy: Row | None = None
    alike: dict[tuple[str, ...], Alike] = field(default_factory=dict)
    expected: dict[tuple[object, ...], Row] = field(default_factory=dict)
    unsupported: Counter[tuple[str, str]] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)

    def add(self, results: Sequence[CaseResult]) -> None:
        """Count a case, in each of its environments."""
        case = results[0].case.id
        rows = [row for result in results for row in result.rows]
        self.cases += 1
        self.first = self.first or case
        self.failing_cases += any(row.is_finding for row in rows)
        unsupported = [(row.path, row.detail) for row in rows if row.outcome == "unsupported"]
        self.unsupported.update(dict.fromkeys(unsupported).keys())
        for row in rows:
            self._add(row)
            worst = self.noteworthy
            if not is_fine(row) and (worst is None or badness(row) < badness(worst)):
                self.noteworthy = row

    def _add(self, row: Row) -> None:
        self.rows += 1
        self.verdicts[verdict_of(row)] += 1
        if row.status == "expected":
            self.expected.setdefault((row.because, row.link, verdict_of(row), row.path), row)
        if not row.is_finding:
            return
        self.failing_rows += 1
        key = (row.status, verdict_of(row), row.path, _cause(row))
        alike = self.alike.setdefault(key, Alike(row, self.rows))
        if badness(row) < badness(alike.worst):
            alike.worst, alike.position = row, self.rows
        alike.rows += 1
        alike.cases += alike.last != row.case
        alike.last = row.case

    def findings(self) -> list[Alike]:
        """The worst first."""
        return sorted(self.alike.values(), key=lambda one: (badness(one.worst), one.position))


def _summary(result: RunResult, tally: Tally, width: int | None) -> Iterator[Text]:
    several = len(result.environments) > 1
    findings = tally.findings()
    for alike in findings:
        line = finding(alike.worst, rows=alike.rows, cases=alike.cases)
        yield from folded(line.append_text(_where(alike, several=several)), width, indent=0)
    if tally.cases > 1:
        for line in expectations(list(tally.expected.values())):
            yield from folded(line, width, indent=0)
    if len(result.cases) > 1:
        for (path, reason), count in tally.unsupported.items():
            line = Text(f"unsupported: {path} in {plural(count, 'case')}: {reason}")
            yield from folded(line, width, indent=0)
        yield from folded(counts(result, tally), width, indent=0)
    yield last_line(result, tally, findings[0].worst.case if findings else None)


def badness(row: Row) -> tuple[bool, int, float]:
    """Sorts the worst row first: by what happened, then by distance."""
    kind = (row.grade or "identical") if row.outcome == "ok" else row.outcome
    metrics, _ = _measured(row)
    ulp = metrics.max_ulp if metrics else None
    distance = float("inf") if ulp is None or ulp != ulp else ulp
    severity = _SEVERITY.index(kind) if kind in _SEVERITY else len(_SEVERITY)
    return row.status == "stale", severity, -distance


def _cause(row: Row) -> str:
    """What rows that fail for the same reason have in common."""
    if row.outcome != "ok" or row.status == "stale" or row.grade == "mismatched":
        return re.sub(r"\d+", "#", f"{row.error_type} {row.detail}")
    if row.replicas:
        return "replicas differ"
    return "tolerance refused" if row.tolerance_refused else ""


def finding(worst: Row, *, rows: int = 1, cases: int = 1) -> Text:
    """A line on rows that fail alike.

    Args:
        worst: the worst of them.
        rows: how many there are.
        cases: in how many cases.
    """
    line = Text.assemble((f"{worst.status}: ", STYLES[worst.status]))
    line.append(f"{worst.path} {verdict_of(worst)}")
    line.append(f" in {plural(cases, 'case')}" if cases > 1 else "")
    if _cause(worst):
        line.append(f": {': '.join(filter(None, (worst.error_type, worst.detail)))}")
    else:
        line.append(_distance(worst, several=rows > 1))
    return line


def _distance(row: Row, *, several: bool) -> str:
    """How far from what the grade is about: the baseline or, if inaccurate, float64."""
    metrics, what = _measured(row)
    if metrics is None or metrics.max_abs is None:
        return ""
    text = f", {'at worst ' if several else ''}{metric(metrics.max_abs)}"
    text += f" ({metric(metrics.max_ulp)} ulp) from {what}"
    share = row.bound_share if row.grade == "inaccurate" else None
    return text + (f", {metric(share)} times the bound" if share is not None else "")


def _measured(row: Row) -> tuple[Metrics | None, str]:
    if row.grade == "inaccurate":
        return row.f64, "float64"
    return row.baseline, "the baseline"


def _where(alike: Alike, *, several: bool) -> Text:
    first = alike.worst
    which = ("worst " if first.baseline else "first ") if alike.rows > 1 else ""
    environment = f" in {first.environment}" if several else ""
    return Text(f"; {which}{first.case}[{first.path}]{environment}")


def counts(result: RunResult, tally: Tally) -> Text:
    """How many cases and rows there are, and how many rows of each grade or outcome."""
    counted = ", ".join(f"{count} {grade}" for grade, count in tally.verdicts.most_common())
    return Text(f"{how_many(result, tally)}, {plural(tally.rows, 'row')}: {counted}")


def how_many(result: RunResult, tally: Tally) -> str:
    """`27 cases in 2 environments (54 results)`; a result is one case in one environment."""
    if result.wanted > len(result.cases):
        return _how_far(result)
    cases = plural(tally.cases, "case")
    if len(result.environments) > 1:
        cases += f" in {len(result.environments)} environments ({len(result.cases)} results)"
    return cases


def headline(result: RunResult, tally: Tally) -> str:
    """`3 of 54 rows fail, in 2 of 27 cases`."""
    rows, cases = plural(tally.rows, "row"), plural(tally.cases, "case")
    fail = "fails" if tally.failing_rows == 1 else "fail"
    said = f"{tally.failing_rows} of {rows} {fail}, in {tally.failing_cases} of {cases}"
    if not tally.failing_rows:
        said = f"none of {rows} fails, in {cases}"
    return f"{said}; interrupted after {_how_far(result)}" if result.interrupted else said


def _how_far(result: RunResult) -> str:
    noun = "case" if len(result.environments) <= 1 else "result"
    return f"{len(result.cases)} of {plural(result.wanted, noun)}"


def _where_again(result: RunResult) -> list[str]:
    """The arguments that choose the environments of a run again."""
    facts = result.cases.facts if isinstance(result.cases, Recorded) else {}
    return [word for name in result.environments for word in arguments(facts, name)]


def last_line(result: RunResult, tally: Tally, worst: str | None) -> Text:
    """Verdict, record, and the command to look further."""
    line = Text.assemble((result.verdict, STYLES[_VERDICT[result.verdict]]))
    if tally.failing_rows:
        rows, cases = plural(tally.failing_rows, "row"), plural(tally.failing_cases, "case")
        line.append(f": {rows} in {cases}")
    if result.interrupted:
        line.append(f" after {_how_far(result)}")
    line.append(f" | record: {result.record or 'none (--out DIR keeps one)'}")
    case = worst or (tally.noteworthy.case if tally.noteworthy else tally.first)
    if case is not None:
        command = ["parity", "run", case, *_where_again(result)]
        if result.record is not None:
            command = ["parity", "show", str(result.record), "--case", case]
        whole = result.record is None or tally.cases == 1
        line.append(f" | look further: {shlex.join(command)}{' --format json' if whole else ''}")
    return line
