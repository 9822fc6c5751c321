"""The cases of a file side by side: several programs that are given the same operands.

A sweep over how something is computed (a dot algorithm, a preferred element type, one of several
functions) asks which way is the best. Here each way is a line or a few: how far from float64, of
which dtype, whether as declared, with what dots, and what precision a dot delivered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.text import Text

from parity.compare.delivered import SLACK, breaks_in_ladder, is_on_ladder
from parity.compare.message import first_line
from parity.compare.result import CaseResult
from parity.compare.rows import Row
from parity.report.columns import Column, layout
from parity.report.numbers import metric
from parity.report.table import folded, verdict_of

MOST = 400
"""Of a file with more lines than this nothing is shown side by side."""

_LONGEST = 90
_TELLING = 0.01
"""Share by which an error must be smaller than another for its way to be called closer."""

_REFUSED = "is not supported|[Uu]nsupported"
"""What JAX and jax2tf say of a precision that a backend lacks."""

_FAITHFUL = {None: "", True: "yes", False: "no"}


@dataclass(frozen=True)
class Way:
    """What one program made of an output, on the paths that gave the same.

    Attributes:
        case: its id.
        label: what of its sweep point sets it apart.
        paths: with these bits, or with this failure.
        output: the output's name, "" where there is none.
        verdict: the grades or what happened instead.
        dtype: of the output.
        rms_rel: relative error against float64, root mean square.
        faithful: "yes" or "no".
        delivered: effective mantissa bits of a dot that asks for an algorithm.
        named: the bits that the algorithm's name says.
        dots: how many dots of which dtypes the program has.
        remark: what is to be said of it.
        replicas: in how many elements the devices disagree that should have the same.
        closest: whether it is closer to float64 than another way by more than a hundredth, and no
            other is closer than it.
    """

    case: str
    label: str
    paths: tuple[str, ...]
    output: str
    verdict: str
    dtype: str = ""
    rms_rel: float | None = None
    faithful: str = ""
    delivered: float | None = None
    named: int | None = None
    dots: str = ""
    remark: str = ""
    replicas: str = ""
    closest: bool = False


@dataclass(frozen=True)
class Comparison:
    """Programs that are given the same operands, under one transform in one environment.

    Attributes:
        title: what they have in common.
        ways: in the order of the file.
        notes: what is to be said of them together.
    """

    title: str
    ways: tuple[Way, ...]
    notes: tuple[str, ...]


@dataclass
class _Group:
    points: list[dict[str, str]] = field(default_factory=list)
    ways: list[list[Way]] = field(default_factory=list)
    precisions: dict[str, list[tuple[str, int, float]]] = field(default_factory=dict)


class Across:
    """Gathers what the comparisons show while the cases of a file pass by."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], _Group] = {}
        self._lines = 0

    def add(self, results: Sequence[CaseResult]) -> None:
        """Add a case, in each of its environments."""
        for result in results:
            if self._lines > MOST:
                self._groups.clear()
                return
            case = result.case
            given = repr((case.operands[: len(case.program.operands)], case.program.batch))
            key = (result.environment, f"{case.program.transform} {given}")
            group = self._groups.setdefault(key, _Group())
            group.points.append(dict(case.point))
            group.ways.append(list(_ways(result)))
            self._lines += len(group.ways[-1])
            for row in result.rows:
                if row.named is not None and row.delivered is not None and is_on_ladder(case):
                    measured = (str(case.program.attributes["precision"]), row.named, row.delivered)
                    group.precisions.setdefault(row.path, []).append(measured)

    def comparisons(self) -> Iterator[Comparison]:
        """Those of two or more programs."""
        several = len({environment for environment, _ in self._groups}) > 1
        for (environment, _), group in self._groups.items():
            same = _common(group.points)
            if len(group.ways) < 2:
                continue
            title = [environment] if several else []
            title += [f"{name}={value}" for name, value in same.items()]
            labelled = [
                replace(way, label=_label(point, same))
                for point, ways in zip(group.points, group.ways, strict=True)
                for way in ways
            ]
            notes = _not_monotone(group.precisions)
            yield Comparison(", ".join(title), tuple(_closest(labelled)), tuple(notes))


def across_lines(across: Across, width: int | None) -> Iterator[Text]:
    """The comparisons as tables for people.

    Args:
        across: the cases of one file.
        width: terminal cells to a line, None for no limit.
    """
    for comparison in across.comparisons():
        yield Text()
        title = Text("side by side", style="bold")
        title.append(f"  {comparison.title}" if comparison.title else "", style="dim")
        yield title
        yield from _lines(comparison.ways, width)
        for line in _dots(comparison.ways):
            yield from folded(Text(line), width)
        yield from (Text(f"  {note}", style="yellow") for note in comparison.notes)


def table(ways: Sequence[Way]) -> list[dict[str, str]]:
    """What is shown of each way, by heading, without the headings under which nothing stands."""
    shown = list(map(_cells, ways))
    several = len({way.output for way in ways if way.output}) > 1
    heads = [
        head
        for head in shown[0]
        if any(line[head] for line in shown) and (several or head != "output")
    ]
    return [{head: line[head] for head in heads} for line in shown]


def _lines(ways: Sequence[Way], width: int | None) -> list[Text]:
    """The table but for the dots; where it is cut into blocks, with a number for each row."""
    columns = [column for column in _columns(ways) if column.head[1] != "dots"]
    whole = layout(columns, None, indent=2)
    if width is None or max(line.cell_len for line in whole) <= width:
        return whole
    numbers = Column(("", "row"), [Text(str(1 + at)) for at in range(len(ways))], right=True)
    naming = [column for column in columns if column.head[1] in ("program", "output")]
    return layout([numbers, *columns], width, indent=2, naming=1 + len(naming))


def _dots(ways: Sequence[Way]) -> Iterator[str]:
    """`dots of x, y: 2 float32·float32 -> float32`, a line for the programs that have the same."""
    alike: dict[str, dict[str, None]] = {}
    for way in ways:
        if way.dots:
            alike.setdefault(way.dots, {})[way.label] = None
    yield from (f"dots of {', '.join(labels)}: {dots}" for dots, labels in alike.items())


def _columns(ways: Sequence[Way]) -> list[Column]:
    shown = table(ways)
    return [
        Column(_head(head), [Text(line[head]) for line in shown], right=head.startswith("bits"))
        for head in shown[0]
    ]


def _cells(way: Way) -> dict[str, str]:
    return {
        "program": way.label,
        "output": way.output,
        "paths": ", ".join(way.paths),
        "grade": way.verdict,
        "dtype": way.dtype,
        "rms rel vs f64": metric(way.rms_rel) + (" closest" if way.closest else ""),
        "faithful": way.faithful,
        "bits delivered": "" if way.delivered is None else f"{way.delivered:.1f}",
        "bits named": metric(way.named),
        "dots": way.dots,
        "remark": way.remark,
    }


def _head(name: str) -> tuple[str, str]:
    first, _, rest = name.rpartition(" ")
    return {"rms rel vs f64": ("rms rel", "vs f64")}.get(name, (first, rest))


def _ways(result: CaseResult) -> Iterator[Way]:
    """A line for each output and bits, one for each failure."""
    alike: dict[tuple[Any, ...], list[Row]] = {}
    for row in result.rows:
        said = row.bits or (row.outcome, row.error_type, row.message or row.detail)
        alike.setdefault((row.output, said), []).append(row)
    for (output, _), rows in alike.items():
        one = rows[0]
        yield Way(
            case=result.case.id,
            label="",
            paths=tuple(row.path for row in rows),
            output=output,
            verdict=_verdict(rows),
            dtype=one.dtype or "",
            rms_rel=one.f64.rms_rel if one.f64 else None,
            faithful=_FAITHFUL[one.faithful],
            delivered=one.delivered,
            named=one.named,
            dots=one.evidence.get("dots", ""),
            remark=_remark(one),
            replicas=one.replicas,
        )


def _verdict(rows: Sequence[Row]) -> str:
    """What rows of the same bits, or of the same failure, amount to; each word once.

    Those that are identical to the baseline share its grade.
    """
    verdicts = dict.fromkeys(map(verdict_of, rows))
    if len(verdicts) > 1 and rows[0].outcome == "ok":
        verdicts.pop("identical", None)
    first, *others = verdicts
    verdict = ", ".join((first, *(one.removeprefix("error at ") for one in others)))
    return f"unsupported ({verdict})" if _is_unsupported(rows[0]) else verdict


def _is_unsupported(row: Row) -> bool:
    """Whether JAX itself refuses what is asked for.

    The outcome of such a row is an error, which a case has to expect: that it is gone is news.
    """
    said = f"{row.error_type}: {row.message}"
    return row.outcome == "error" and re.search(_REFUSED, said) is not None


def _remark(row: Row) -> str:
    if row.outcome != "ok":
        said = first_line(row.detail)
        return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
    if row.replicas:
        return row.replicas
    idle = row.evidence.get("no_effect", "")
    if row.named is None or row.delivered is None:
        return idle
    if idle:
        return f"accepted, no effect here: the bits of a plain {row.dtype} dot"
    return "delivers less than its name" if row.delivered < row.named - SLACK else ""


def _common(points: Sequence[dict[str, str]]) -> dict[str, str]:
    """The values of the axes that all points share."""
    first, *others = points
    return {n: v for n, v in first.items() if all(one.get(n) == v for one in others)}


def _label(point: dict[str, str], same: dict[str, str]) -> str:
    own = {name: value for name, value in point.items() if name not in same}
    return ",".join(own.values() if len(own) == 1 else (f"{n}={v}" for n, v in own.items()))


def _closest(ways: Sequence[Way]) -> Iterator[Way]:
    """The ways, those of each output that are closest to float64 marked."""
    errors: dict[str, list[float]] = {}
    for way in ways:
        if way.rms_rel is not None and way.rms_rel == way.rms_rel:
            errors.setdefault(way.output, []).append(way.rms_rel)
    for way in ways:
        known = errors.get(way.output, [])
        least = min(known, default=0.0)
        told = max(known, default=0.0) > least * (1 + _TELLING)
        is_least = way.rms_rel is not None and way.rms_rel <= least * (1 + _TELLING)
        is_one_answer = not way.replicas or way.faithful == "yes"
        yield replace(way, closest=told and is_least and is_one_answer)


def _not_monotone(precisions: dict[str, list[tuple[str, int, float]]]) -> Iterator[str]:
    """Pairs of algorithms of which the one that names more bits delivers fewer, by path."""
    found: dict[str, list[str]] = {}
    for path, measured in precisions.items():
        for lesser, greater in breaks_in_ladder(measured):
            said = f"not monotone: {greater} delivers fewer bits than {lesser}, which names fewer"
            found.setdefault(said, []).append(path)
    yield from (f"{', '.join(paths)}: {said}" for said, paths in found.items())
