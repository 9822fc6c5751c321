"""One case as a table for people: its paths, references, groups of equal bits, and words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from parity.compare.result import CaseResult
from parity.report.columns import Column, layout
from parity.report.devices import device_lines
from parity.report.numbers import element, index, metric

if TYPE_CHECKING:
    from parity.compare.metrics import Metrics
    from parity.compare.rows import Row

STYLES = {"finding": "bold red", "stale": "bold magenta", "expected": "yellow", "ok": "green"}
FEW = 4
"""Outputs of up to so many elements are shown whole, larger ones by their worst element."""

_INDENT = 2
_FAITHFUL = {None: "", True: "yes", False: "no"}


def is_fine(row: Row) -> bool:
    """Whether a row needs no table: as the case wants it, and not to be looked at."""
    return row.status == "ok" and (
        row.outcome == "unsupported" or row.grade in ("identical", "equivalent", None)
    )


def verdict_of(row: Row) -> str:
    """The grade, or what happened instead: `divergent`, `error at trace`, `unsupported`."""
    if row.outcome == "ok":
        return row.grade or "no output"
    if row.stage and row.outcome != "unsupported":
        return f"{row.outcome} at {row.stage}"
    return row.outcome


def case_lines(result: CaseResult, width: int | None) -> list[Text]:
    """The whole case: title, table, groups, words.

    Args:
        result: the case.
        width: terminal cells to a line, None for no limit.
    """
    result = _placed(result)
    lines = [_title(result), *layout(_columns(result), width, indent=_INDENT)]
    lines += device_lines(result, width, indent=_INDENT)
    for note in _notes(result):
        lines.extend(folded(note, width))
    return lines


def _placed(result: CaseResult) -> CaseResult:
    """The result with the environment noted on its references, too."""
    references = (
        replace(row, environment=row.environment or result.environment) for row in result.references
    )
    return replace(result, references=tuple(references))


def side_by_side(results: Sequence[CaseResult]) -> CaseResult:
    """One case in several environments as one result, whose paths name their environment.

    Args:
        results: of one case, at least one; a single one is returned as it is.
    """
    if len(results) == 1:
        return results[0]
    by_bits: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for result in results:
        for row in result.rows:
            if row.bits is not None:
                alike = by_bits.setdefault(row.output, {})
                alike.setdefault(row.bits, []).append(f"{result.environment} {row.path}")
    return CaseResult(
        results[0].case,
        ", ".join(result.environment for result in results),
        tuple(row for result in results for row in result.rows),
        tuple(row for result in results for row in _placed(result).references),
        {name: tuple(map(tuple, alike.values())) for name, alike in by_bits.items()},
        tuple(f"{result.environment} {line}" for result in results for line in result.words),
        tuple(f"{result.environment}: {note}" for result in results for note in result.notes),
    )


def one_line(result: CaseResult, *, named: bool = False) -> Text:
    """A case in which everything is fine: id, how many paths of which grade, accuracy.

    Args:
        result: the case.
        named: whether its environment is named, since there are several.
    """
    line = Text.assemble(("ok  ", STYLES["ok"]), result.case.id)
    line.append(f"  {result.environment}" if named else "")
    grades = [verdict_of(row) for row in result.rows]
    counted = ", ".join(f"{grades.count(grade)} {grade}" for grade in dict.fromkeys(grades))
    line.append(f"  {counted}", style="dim")
    ulps = [row.f64.max_ulp for row in result.rows if row.f64 and row.f64.max_ulp is not None]
    if ulps:
        line.append(f", max {metric(max(ulps))} ulp vs f64", style="dim")
    for detail in dict.fromkeys(row.detail for row in result.rows if row.grade == "identical"):
        line.append(f"; {detail}" if detail else "", style="dim")
    return line


def _title(result: CaseResult) -> Text:
    title = Text.assemble((result.case.id, "bold"))
    kinds = dict.fromkeys(_kind(row) for row in result.rows if row.dtype)
    if len(kinds) == 1:
        title.append(f"  {next(iter(kinds))}", style="dim")
    return title


def _kind(row: Row) -> str:
    return f"{row.dtype}{index(row.shape or ())}"


def _columns(result: CaseResult) -> list[Column]:
    rows = _ordered(result)
    baseline = f"vs {result.case.baseline}"
    is_baseline = [row.path == result.case.baseline for row in rows]
    several = len({row.environment for row in rows}) > 1
    names = [_who(row, several=several) for row in rows]
    named = len({row.output for row in rows if row.output}) > 1
    if named:  # in every block, to tell rows apart
        names = [
            " ".join(filter(None, (who, r.output))) for who, r in zip(names, rows, strict=True)
        ]
    columns = [Column(("path", "and output") if named else ("", "path"), list(map(Text, names)))]
    kinds = dict.fromkeys(_kind(row) for row in result.rows if row.dtype)
    if len(kinds) > 1:
        columns.append(
            Column(("dtype", "and shape"), [Text(_kind(r) if r.dtype else "") for r in rows])
        )
    columns += [
        Column(("", "status"), [_status(row) for row in rows]),
        Column(("", "grade"), [_grade(row, result) for row in rows]),
    ]

    def numbers(head: str, of: str, value: Callable[[Metrics], str]) -> Column:
        cells = []
        for row, itself in zip(rows, is_baseline, strict=True):
            metrics: Metrics | None = getattr(row, of)
            hidden = metrics is None or (of == "baseline" and itself)
            cells.append(Text("" if hidden or metrics is None else value(metrics)))
        return Column((head, baseline if of == "baseline" else f"vs {of}"), cells, right=True)

    measured = [
        numbers("differ", "baseline", lambda m: f"{m.differing}/{m.count - m.excluded}"),
        numbers("max abs", "baseline", lambda m: metric(m.max_abs)),
        numbers("max ulp", "baseline", lambda m: metric(m.max_ulp)),
        numbers("max abs", "f64", lambda m: metric(m.max_abs)),
        numbers("max ulp", "f64", lambda m: metric(m.max_ulp)),
        numbers("rms rel", "f64", lambda m: metric(m.rms_rel)),
        Column(("share of", "bound"), [Text(metric(row.bound_share)) for row in rows], right=True),
        Column(("", "faithful"), [Text(_FAITHFUL[row.faithful]) for row in rows]),
        Column(
            ("", "undecided"), [Text(metric(row.undecided or None)) for row in rows], right=True
        ),
        Column(
            ("bound", "vacuous"), [Text(metric(row.vacuous or None)) for row in rows], right=True
        ),
    ]
    columns += measured
    if all(map(_is_few, rows)):
        columns.append(Column(("", "values"), [Text(_values(row)) for row in rows]))
    else:
        worst = [Text("" if b else _worst(row)) for row, b in zip(rows, is_baseline, strict=True)]
        columns.append(Column(("worst element", baseline), worst))
    return [column for column in columns if any(cell.plain for cell in column.cells)]


def _who(row: Row, *, several: bool) -> str:
    """The path, after its environment where there are several."""
    return f"{row.environment} {row.path}" if several else row.path


def _ordered(result: CaseResult) -> list[Row]:
    """Paths, then strict and f64; of several outputs one after the other, failed paths first.

    f64 has nothing to show for itself but its values, and stands only where those are shown.
    """
    few = all(map(_is_few, (*result.rows, *result.references)))
    references = [r for r in result.references if few or r.path == "strict" or r.outcome != "ok"]
    references.sort(key=lambda row: row.path != "strict")
    rows = [
        row
        for environment in dict.fromkeys(row.environment for row in result.rows)
        for row in (*result.rows, *references)
        if row.environment == environment
    ]
    outputs = list(dict.fromkeys(row.output for row in rows if row.output))
    if len(outputs) == 1:
        return rows
    return sorted(rows, key=lambda row: outputs.index(row.output) if row.output else -1)


def _is_few(row: Row) -> bool:
    return row.count is None or row.count <= FEW


def _status(row: Row) -> Text:
    if row.path in ("f64", "strict"):
        return Text("")
    return Text(row.status, style=STYLES[row.status])


def _grade(row: Row, result: CaseResult) -> Text:
    if row.path in ("f64", "strict"):
        return Text("reference" if row.outcome == "ok" else "no reference", style="dim")
    is_baseline = row.path == result.case.baseline and row.grade == "identical"
    grade = "baseline" if is_baseline else verdict_of(row)
    if reason := row.model or row.licences:
        grade += f" ({reason})"
    return Text(grade, style="" if row.status == "ok" else STYLES[row.status])


def _values(row: Row) -> str:
    if row.values is None or row.dtype is None:
        return ""
    return f"[{', '.join(element(value, row.dtype) for value in row.values)}]"


def _worst(row: Row) -> str:
    if row.baseline is None or not row.baseline.worst or row.dtype is None:
        return ""
    worst = row.baseline.worst[0]
    got, want = (element(value, row.dtype) for value in (worst.got, worst.want))
    return f"{index(worst.index)} {got} for {want}"


def equal_bits(result: CaseResult) -> Iterator[str]:
    """The paths grouped by equal bits, a line for each output; `strict` stands among its equals."""
    for output, groups in result.groups.items():
        declared = {
            row.bits for row in result.references if (row.path, row.output) == ("strict", output)
        }
        several = len({row.environment for row in result.rows}) > 1
        faithful = {
            _who(row, several=several)
            for row in result.rows
            if row.output == output and row.bits in declared
        }
        sets = [(*g, "strict") if faithful.intersection(g) else g for g in groups]
        shown = " ".join("{" + ", ".join(paths) + "}" for paths in sets)
        yield (
            f"equal bits of {output}: {shown}" if len(result.groups) > 1 else f"equal bits: {shown}"
        )


def _notes(result: CaseResult) -> Iterator[Text]:
    """The lines below the table."""
    for line in equal_bits(result):
        yield Text(line)
    for line in merged([*_doubts(result), *result.words]):
        yield Text(line)
    for row in result.rows:
        if row.status == "stale":
            yield Text(f"stale: {row.path}: {row.detail}", style=STYLES["stale"])
    yield from expectations(result.rows)
    missing = [row for row in result.references if row.outcome != "ok"]
    said = [": ".join(filter(None, (r.path, r.error_type, r.detail))) for r in missing]
    for line in merged(said):
        yield Text(f"no reference {line}", style=STYLES["expected"])
    for note in result.notes:
        yield Text(f"reference: {note}", style="dim")


def _doubts(result: CaseResult) -> Iterator[str]:
    """What is to be said of rows that are identical; of which outputs, where there are several."""
    alike: dict[tuple[str, str], list[str]] = {}
    for row in result.rows:
        if row.grade == "identical" and row.detail and row.status != "stale":
            alike.setdefault((row.path, row.detail), []).append(row.output)
    several = len({row.output for row in result.rows if row.output}) > 1
    for (path, detail), outputs in alike.items():
        which = f" ({', '.join(outputs)})" if several else ""
        yield f"{path}{which}: {detail}"


def merged(lines: Iterable[str]) -> Iterator[str]:
    """Lines `path: what`, those that say the same as one: `path, path: what`."""
    alike: dict[str, list[str]] = {}
    for line in lines:
        who, colon, what = line.partition(": ")
        subject, what = (who, colon + what) if colon and " " not in who else ("", line)
        alike.setdefault(what, []).append(subject)
    yield from (f"{', '.join(dict.fromkeys(who))}{what}" for what, who in alike.items())


def expectations(rows: Sequence[Row]) -> Iterator[Text]:
    """What was expected, one line for each reason."""
    reasons: dict[tuple[str, str | None], dict[str, list[str]]] = {}
    for row in rows:
        if row.status == "expected":
            verdicts = reasons.setdefault((row.because, row.link), {})
            verdicts.setdefault(verdict_of(row), []).append(row.path)
    for (because, link), verdicts in reasons.items():
        what = "; ".join(
            f"{', '.join(dict.fromkeys(paths))} {verdict}" for verdict, paths in verdicts.items()
        )
        reason = f", because {because}" + (f" ({link})" if link else "")
        yield Text.assemble(("expected: ", STYLES["expected"]), what + reason)


def folded(line: Text, width: int | None, *, indent: int = _INDENT, hanging: int = 2) -> list[Text]:
    """A line broken at spaces where it is too long; long words such as links stay whole."""
    lines = [Text(" " * indent)]
    empty = True
    for word in line.split(" "):
        if not empty:
            if width is not None and lines[-1].cell_len + 1 + word.cell_len > width:
                lines.append(Text(" " * (indent + hanging)))
            else:
                lines[-1].append(" ")
        lines[-1].append_text(word)
        empty = False
    return lines
