"""The sentences of a comparison that every text format has in common."""

from __future__ import annotations

from collections import Counter

from parity.report.diff.directions import DIRECTIONS, FIXED, WORSE
from parity.report.diff.facts import FactChange, Side
from parity.report.diff.model import Cell, Change, Diff, Finding
from parity.report.numbers import factor, index, metric, plural

_LONGEST = 120


def verdict(diff: Diff) -> str:
    """One line: what fails, and how much else there is.

    It begins with "worse" (all that fails got worse), "changed" (something else fails, which
    `fail_on` names) or "ok".
    """
    failing = list(diff.failing)
    accepted = _accepted(diff)
    left_out = [one for one in diff.changes if one.worse and one.direction not in diff.fail_on]
    said = {id(one) for one in (*failing, *accepted, *left_out)}
    better = [one for one in diff.changes if one.better and id(one) not in said]
    others = len(diff.changes) - len(said) - len(better)
    parts = [_failing(failing) if failing else f"ok: {passed(diff)}"]
    if accepted:
        how = f"{_happened(diff)} as expected".strip()
        parts.append(f"{len(accepted)} {how}: {counted(accepted)}")
    if left_out:
        parts.append(f"{len(left_out)} got worse, which --fail-on leaves out: {counted(left_out)}")
    if better:
        parts.append(f"{len(better)} got better: {counted(better)}")
    if others:
        parts.append(f"{others} changed{' otherwise' if others < len(diff.changes) else ''}")
    apart = sum(one.rows for one in diff.not_comparable)
    parts += [f"{apart} not comparable"] if apart else []
    return "; ".join((*parts, f"{diff.unchanged} unchanged"))


def sentence(diff: Diff) -> str:
    """What the verdict means, in a sentence or two."""
    failing, accepted = list(diff.failing), _accepted(diff)
    expected = f"{plural(len(accepted), 'row')} {_happened(diff)} as expected" if accepted else ""
    expected = " ".join(expected.split())
    if not failing:
        said = passed(diff)
        said = f"{said[0].upper()}{said[1:]}"
        return f"{said}; {expected}." if expected else f"{said}."
    where = f"{plural(len(failing), 'row')} in {plural(len({one.case for one in failing}), 'case')}"
    worse = all(change.worse for change in failing)
    how = "got worse" if worse else "changed in a way that this comparison fails on"
    return f"{where} {how}; {expected}." if expected else f"{where} {how}."


def passed(diff: Diff) -> str:
    """What can be said where nothing fails, in the directions that were asked for."""
    unexpected = " that is not expected" if _accepted(diff) else ""
    if diff.fail_on == WORSE:
        return f"nothing got worse{unexpected}"
    if diff.fail_on == frozenset(DIRECTIONS):
        return f"nothing changed{unexpected}"
    if not diff.fail_on:
        return "nothing is asked for (--fail-on none)"
    return f"no change{unexpected} is {named(diff.fail_on)}"


def named(directions: frozenset[str]) -> str:
    """`newly divergent or gone`."""
    return " or ".join(name for name in DIRECTIONS if name in directions)


def _failing(failing: list[Change]) -> str:
    head = "worse" if all(change.worse for change in failing) else "changed"
    cases = len({change.case for change in failing})
    return f"{head}: {plural(len(failing), 'row')} in {plural(cases, 'case')}: {counted(failing)}"


def _accepted(diff: Diff) -> list[Change]:
    """What would fail if it were not expected."""
    return [one for one in diff.changes if one.expected and one.direction in diff.fail_on]


def _happened(diff: Diff) -> str:
    """What happened to rows of the directions that were asked for; "" if that is no one thing."""
    if diff.fail_on <= WORSE:
        return "got worse"
    return "changed" if diff.fail_on == frozenset(DIRECTIONS) else ""


def counted(changes: list[Change]) -> str:
    """`2 newly divergent, 1 new error`, the worst first."""
    found = Counter(change.direction for change in changes)
    return ", ".join(f"{found[name]} {name}" for name in DIRECTIONS if name in found)


def tag(finding: Finding) -> str:
    """The word beside the colour: worse, expected, changed, or better."""
    if finding.worst.better:
        return "better"
    if finding.because is not None:
        return "expected"
    return "worse" if finding.worse else "changed"


def headline(finding: Finding) -> str:
    """`newly divergent: dot_general on jit in 400 cases: compiler changed`."""
    cases, rows = len(finding.cases), len(finding.changes)
    text = f"{finding.direction}: {finding.op} on {finding.path}"
    if rows > 1:
        text += f" in {plural(cases, 'case')}"
        text += f" ({rows} outputs)" if rows > cases else ""
    text += f": {finding.cause}"
    return f"{text} ({shortened(finding.why)})" if finding.why else text


def shortened(text: str) -> str:
    """A text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def because(finding: Finding) -> str:
    """Why B's side is expected, "" where it is not."""
    if finding.because is None:
        return ""
    link = f" ({finding.link})" if finding.link else ""
    return f"{expected(finding)}, because {finding.because}{link}"


def expected(finding: Finding) -> str:
    """What is expected: the change itself or, where it got better, what it falls short of."""
    b = finding.worst.b
    if finding.worst.better and b is not None:
        return f"{b.verdict} in B, as expected"
    return "expected in B"


def side(name: str, of: Side) -> str:
    """`A: environment old of reports/x.sqlite, parity 0.1.0, 2025-01-31T12:00:00+00:00`."""
    parts = [f"{name}: environment {of.environment} of {of.record or 'a run without a record'}"]
    parts += [f"parity {of.parity}"] if of.parity else []
    parts += [of.run["started"]] if "started" in of.run else []
    parts += [f"{plural(of.missing, 'result')} missing"] if of.missing else []
    return ", ".join(parts)


def fact(change: FactChange) -> tuple[str, str]:
    """What A and what B has; of a list only what the other one lacks."""
    if change.removed or change.added:
        return (
            " ".join(f"-{word}" for word in change.removed),
            " ".join(f"+{word}" for word in change.added),
        )
    return change.a or "none", change.b or "none"


def row_id(change: Change) -> str:
    """`cases/dot.yaml::dot:k=2[jit]`, with the output where it has a name of its own."""
    output = f" {change.output}" if change.output not in ("", "out") else ""
    return f"{change.case}[{change.path}]{output}"


def form(change: Change) -> str:
    """`float32[2,3]`, of the side that has an output."""
    for cell in (change.b, change.a):
        if cell is not None and cell.dtype is not None:
            return f"{cell.dtype}{index(cell.shape or ())}"
    return ""


def grade(cell: Cell | None) -> str:
    """`divergent (excess-precision)`, `error at trace`; "no row" without a cell."""
    if cell is None:
        return "no row"
    reason = cell.model or cell.licences
    return f"{cell.verdict} ({reason})" if reason else cell.verdict


def quantities(change: Change) -> list[tuple[str, str, str, str]]:
    """What stands in the table A | B | change: name, A, B, and how it changed."""
    a, b = change.a, change.b
    rows = [("grade", grade(a), grade(b), "")]

    def number(name: str, old: float | None, new: float | None) -> None:
        if old is not None or new is not None:
            rows.append((name, metric(old), metric(new), factor(old, new)))

    for name, what in (("max ulp vs f64", "max_ulp"), ("rms rel vs f64", "rms_rel")):
        number(name, *(getattr(c.f64, what) if c and c.f64 else None for c in (a, b)))
    number("share of bound", *(c.bound_share if c else None for c in (a, b)))
    faithful = ["" if c is None or c.faithful is None else _YES[c.faithful] for c in (a, b)]
    if any(faithful):
        rows.append(("faithful", faithful[0], faithful[1], ""))
    if change.path != change.baseline:
        differing = [metric(c.differing) if c else "" for c in (a, b)]
        if any(differing):
            rows.append((f"differ vs {change.baseline}", differing[0], differing[1], ""))
    return rows


_YES = {True: "yes", False: "no"}


def remarks(change: Change) -> list[str]:
    """What is said of a change below its table."""
    lines = [apart(change)] if change.distance or change.unread else []
    lines += [change.detail] if change.detail else []
    for name, cell in (("A", change.a), ("B", change.b)):
        if cell is not None and cell.outcome != "ok":
            lines.append(f"{name}: {': '.join(filter(None, (cell.verdict, cell.said)))}")
        elif cell is not None and cell.words:
            lines.append(f"{name}: {cell.words}")
        elif cell is not None and cell.detail and cell.grade is not None:
            lines.append(f"{name}: {cell.grade}: {cell.detail}")
    if change.direction == FIXED and change.b is not None and change.b.faithful:
        lines.append("B: what the program declares is honoured")
    return lines


def apart(change: Change) -> str:
    """`A to B: 2 of 2 elements differ, by at most 0.0024 (10240 ulp)`, or why that is not known."""
    if change.distance is None:
        return f"A to B: {change.unread}"
    metrics = change.distance.metrics
    text = f"A to B: {metrics.differing} of {metrics.count} elements differ"
    if metrics.max_abs is None:
        return text
    return f"{text}, by at most {metric(metrics.max_abs)} ({metric(metrics.max_ulp)} ulp)"
