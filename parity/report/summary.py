"""A whole run for people: the cases, then what is wrong, the worst first, grouped by cause."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from parity.casefile.case import GRADES
from parity.report.numbers import metric, plural
from parity.report.table import (
    STYLES,
    case_lines,
    expectations,
    folded,
    is_fine,
    one_line,
    verdict_of,
)

if TYPE_CHECKING:
    from parity.compare.metrics import Metrics
    from parity.compare.rows import Row
    from parity.engine.run import CaseResult, RunResult

FEW_CASES = 12
"""A run of so few cases shows the table of each."""

_SEVERITY = ("crashed", "out-of-memory", "timeout", "error", *reversed(GRADES))
_VERDICT = {"ok": "ok", "findings": "finding", "interrupted": "stale"}


def run_lines(result: RunResult, width: int | None, *, verbose: bool = False) -> list[Text]:
    """A run, a line at a time.

    Args:
        result: the run.
        width: terminal cells to a line, None for no limit.
        verbose: a table for every case, however many there are.
    """
    every = verbose or len(result.cases) <= FEW_CASES
    lines: list[Text] = []
    file, after_table = None, False
    for case in result.cases:
        if case.case.file != file:
            file = case.case.file
            lines.extend(_about(case, width, first=not lines))
            after_table = True
        if every or not all(map(is_fine, case.rows)):
            lines.extend([Text(), *case_lines(case, width)])
            after_table = True
        else:
            lines.extend([Text()] if after_table else [])
            lines.append(one_line(case))
            after_table = False
    lines.append(Text())
    lines.extend(_summary(result, width))
    return lines


def _about(result: CaseResult, width: int | None, *, first: bool) -> Iterator[Text]:
    if not first:
        yield Text()
    yield Text(result.case.id.partition("::")[0], style="bold")
    if result.case.about:
        yield from folded(Text(result.case.about, style="italic"), width, hanging=0)


def _summary(result: RunResult, width: int | None) -> Iterator[Text]:
    findings = _groups([row for row in result.rows if row.is_finding])
    for rows in findings:
        yield from folded(finding(rows).append_text(_where(rows)), width, indent=0)
    if len(result.cases) > 1:
        for line in (*expectations(result.rows), *_unsupported(result.rows)):
            yield from folded(line, width, indent=0)
        yield from folded(_counts(result), width, indent=0)
    yield _last(result, findings[0][0] if findings else None)


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that fail alike, the worst group and in it the worst row first."""
    alike: dict[tuple[str, ...], list[Row]] = {}
    for row in sorted(rows, key=_badness):
        alike.setdefault((row.status, verdict_of(row), row.path, _cause(row)), []).append(row)
    return list(alike.values())


def _badness(row: Row) -> tuple[bool, int, float]:
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
    return "tolerance refused" if row.tolerance_refused else ""


def finding(rows: Sequence[Row]) -> Text:
    """A line on rows that fail alike, of which the first is the worst."""
    worst = rows[0]
    cases = len({row.case for row in rows})
    line = Text.assemble((f"{worst.status}: ", STYLES[worst.status]))
    line.append(f"{worst.path} {verdict_of(worst)}")
    line.append(f" in {plural(cases, 'case')}" if cases > 1 else "")
    if _cause(worst):
        line.append(f": {': '.join(filter(None, (worst.error_type, worst.detail)))}")
    else:
        line.append(_distance(worst, several=len(rows) > 1))
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


def _where(rows: Sequence[Row]) -> Text:
    first = rows[0]
    which = ("worst " if first.baseline else "first ") if len(rows) > 1 else ""
    return Text(f"; {which}{first.case}[{first.path}]")


def _unsupported(rows: Sequence[Row]) -> Iterator[Text]:
    alike = Counter((row.path, row.detail) for row in rows if row.outcome == "unsupported")
    for (path, reason), count in alike.items():
        yield Text(f"unsupported: {path} in {plural(count, 'case')}: {reason}")


def _counts(result: RunResult) -> Text:
    grades = Counter(verdict_of(row) for row in result.rows)
    counted = ", ".join(f"{count} {grade}" for grade, count in grades.most_common())
    cases = plural(len(result.cases), "case")
    if result.wanted > len(result.cases):
        cases = f"{len(result.cases)} of {plural(result.wanted, 'case')}"
    return Text(f"{cases}, {plural(len(result.rows), 'row')}: {counted}")


def _last(result: RunResult, worst: Row | None) -> Text:
    """Verdict, record, and the command to look further."""
    line = Text.assemble((result.verdict, STYLES[_VERDICT[result.verdict]]))
    failing = sum(row.is_finding for row in result.rows)
    if failing:
        cases = len({row.case for row in result.rows if row.is_finding})
        line.append(f": {plural(failing, 'row')} in {plural(cases, 'case')}")
    if result.interrupted:
        line.append(f" after {len(result.cases)} of {plural(result.wanted, 'case')}")
    line.append(f" | record: {result.record or 'none (--out DIR keeps one)'}")
    if result.cases:
        interesting = worst or next((row for row in result.rows if not is_fine(row)), None)
        case = interesting.case if interesting else result.cases[0].case.id
        line.append(f" | look further: parity run {shlex.quote(case)} --format json")
    return line
