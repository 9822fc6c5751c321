"""A run as a comment on a pull request: the worst first, within the length that GitHub takes."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from parity.report.across import Across, table
from parity.report.markdown import code, escaped, link, table_line
from parity.report.numbers import metric, plural
from parity.report.summary import Alike, Tally, badness, counts, finding, headline
from parity.report.table import equal_bits, is_fine, merged, verdict_of

if TYPE_CHECKING:
    from parity.compare.result import CaseResult
    from parity.compare.rows import Row
    from parity.record.result import RunResult

LIMIT = 60_000
"""Characters of a comment, of which GitHub takes 65,536."""

_COLUMNS = (
    "path",
    "output",
    "status",
    "grade",
    "differing",
    "max_abs_baseline",
    "max_ulp_baseline",
    "max_abs_f64",
    "max_ulp_f64",
    "rms_rel_f64",
    "detail",
)
_KINDS = (
    ("case that fails", "cases that fail"),
    ("case that differs and does not fail", "cases that differ and do not fail"),
    ("equivalent case", "equivalent cases"),
)
"""Of cases that have a table, one and several; those that do not fail are folded away."""

_OPEN = 3
_LINES = 20
_ROWS = 40
_NOTES = 12
_RESERVED = 2_500
_SMALLEST = 400


def run_markdown(
    result: RunResult, *, limit: int = LIMIT, size: Callable[[str], int] = len
) -> Iterator[str]:
    """A run as markdown; what is left out for its length is counted.

    Args:
        result: the run.
        limit: the most that the whole may measure, at least 5,000.
        size: how a text is measured; not more than the sum of what its parts measure.
    """
    view = _survey(result)
    room = _Room(limit - _RESERVED, size)
    said = "".join((_verdict(result, view.tally), _rest(result, view)))
    room.take(said)
    yield said
    yield from _overview(result, view, room)
    for kind in range(len(_KINDS)):
        yield from _section(result, view, kind, room)
        if kind == 0:
            yield from _side_by_side(view, room)
    yield from _left_out(result, view)


@dataclass
class _Room:
    """How much may still be written."""

    left: int
    size: Callable[[str], int]

    def take(self, text: str) -> bool:
        """Make room for a text, if there is any."""
        length = self.size(text)
        if length > self.left:
            return False
        self.left -= length
        return True


@dataclass
class _View:
    """Where in a run is what; no case is held.

    Attributes:
        tally: of all rows.
        places: by kind, the cases that have a table, as how bad each is and where it stands.
        fine: how many cases have none.
        across: the cases side by side, of a run of one file.
        left: by kind, how many found no room.
        lines: how many lines of the overview found none.
    """

    tally: Tally = field(default_factory=Tally)
    places: list[list[tuple[Any, int]]] = field(default_factory=lambda: [[] for _ in _KINDS])
    fine: int = 0
    across: Across | None = field(default_factory=Across)
    left: Counter[int] = field(default_factory=Counter)
    lines: int = 0


def _survey(result: RunResult) -> _View:
    view = _View()
    file, place = None, 0
    for _, group in groupby(result.cases, key=lambda one: one.case.id):
        results = list(group)
        view.tally.add(results)
        if file not in (None, results[0].case.file):
            view.across = None
        file = results[0].case.file
        if view.across is not None:
            view.across.add(results)
        for one in results:
            kind = _kind(one)
            if kind is None:
                view.fine += 1
            else:
                view.places[kind].append((min(map(badness, one.rows)), place))
            place += 1
    return view


def _kind(result: CaseResult) -> int | None:
    """Position in `_KINDS`, None for a case that needs no table."""
    if any(row.is_finding for row in result.rows):
        return 0
    if not all(map(is_fine, result.rows)):
        return 1
    return 2 if any(row.grade == "equivalent" for row in result.rows) else None


def _verdict(result: RunResult, tally: Tally) -> str:
    return f"**{result.verdict}**: {headline(result, tally)}\n"


def _noun(result: RunResult) -> str:
    """What a case in one environment is called."""
    return "case" if len(result.environments) <= 1 else "result"


def _rest(result: RunResult, view: _View) -> str:
    """The counts, and the cases of which there is no more to say."""
    said = escaped(counts(result, view.tally).plain)
    if view.fine:
        verb = "is" if view.fine == 1 else "are"
        said += (
            f". {plural(view.fine, _noun(result))} {verb} identical on every path that could run."
        )
    return f"\n{said}\n"


def _overview(result: RunResult, view: _View, room: _Room) -> Iterator[str]:
    """What fails, grouped by cause, what is expected, and what is unsupported; a line each."""
    tally, several = view.tally, len(result.environments) > 1
    lines = [
        *(_alike(one, several=several) for one in tally.findings()),
        *_expected(tally.expected.values()),
        *(
            f"- **unsupported**: {escaped(path)} in {plural(count, 'case')}: {escaped(reason)}\n"
            for (path, reason), count in tally.unsupported.items()
        ),
    ]
    shown = lines[:_LINES]
    text = "".join(shown)
    while shown and not room.take(f"\n{text}"):
        shown.pop()
        text = "".join(shown)
    view.lines = len(lines) - len(shown)
    yield f"\n{text}" if shown else ""


def _alike(alike: Alike, *, several: bool) -> str:
    worst = alike.worst
    said = finding(worst, rows=alike.rows, cases=alike.cases).plain
    which = ("worst " if worst.baseline else "first ") if alike.rows > 1 else ""
    where = f" in {escaped(worst.environment)}" if several else ""
    at = code(f"{worst.case}[{worst.path}]")
    rest = escaped(said.removeprefix(f"{worst.status}: "))
    return f"- **{worst.status}**: {rest}; {which}{at}{where}\n"


def _expected(rows: Iterable[Row]) -> Iterator[str]:
    """What was expected, a line for each reason."""
    reasons: dict[tuple[str, str | None], dict[str, dict[str, None]]] = {}
    for row in rows:
        if row.status == "expected":
            verdicts = reasons.setdefault((row.because, row.link), {})
            verdicts.setdefault(verdict_of(row), {})[row.path] = None
    for (because, address), verdicts in reasons.items():
        what = "; ".join(f"{', '.join(paths)} {verdict}" for verdict, paths in verdicts.items())
        yield f"- **expected**: {escaped(what)}, because {link(because, address)}\n"


def _kinds(result: RunResult, kind: int, count: int) -> str:
    """`cases that fail`; of several environments `results that fail`."""
    return _KINDS[kind][count > 1].replace("case", _noun(result))


def _side_by_side(view: _View, room: _Room) -> Iterator[str]:
    """The programs of a file that are given the same operands, where there is room."""
    for comparison in view.across.comparisons() if view.across else ():
        lines = table(comparison.ways)
        text = f"\n### Side by side {code(comparison.title)}\n\n"
        text += table_line(list(lines[0])) + table_line(["---"] * len(lines[0]))
        text += "".join(table_line([*map(escaped, line.values())]) for line in lines)
        text += "".join(f"\n- {escaped(note)}\n" for note in comparison.notes)
        if room.take(text):
            yield text


def _section(result: RunResult, view: _View, kind: int, room: _Room) -> Iterator[str]:
    """The cases of one kind; all but the first that fail are folded away."""
    places = [place for _, place in sorted(view.places[kind])]
    opened = places[: 0 if kind else _OPEN]
    yield from _cases(result, opened, view, kind, room)
    folded = places[len(opened) :]
    if not folded:
        return
    more = "more " if opened else ""
    noun = _kinds(result, kind, len(folded))
    begin = f"\n<details><summary>{len(folded)} {more}{noun}</summary>\n"
    end = "\n</details>\n"
    if not room.take(begin + end):
        view.left[kind] += len(folded)
        return
    yield begin
    yield from _cases(result, folded, view, kind, room)
    yield end


def _cases(
    result: RunResult, places: Sequence[int], view: _View, kind: int, room: _Room
) -> Iterator[str]:
    for place in places:
        if room.left < _SMALLEST:
            view.left[kind] += 1
            continue
        section = _case(result.cases[place], several=len(result.environments) > 1)
        if room.take(section):
            yield section
        else:
            view.left[kind] += 1


def _case(result: CaseResult, *, several: bool) -> str:
    """The table of a case and what is to be said of it."""
    where = f" in {escaped(result.environment)}" if several else ""
    shown, rest = _worst_rows(result.rows)
    text = f"\n### {code(result.case.id)}{where}\n"
    text += "\n" + table_line(_COLUMNS) + table_line(["---"] * len(_COLUMNS))
    text += "".join(table_line(_cells(row)) for row in shown)
    words = [escaped(word) for word in (*equal_bits(result), *merged(result.words))]
    if rest:
        counted = Counter(map(verdict_of, rest)).most_common()
        more = ", ".join(f"{count} {verdict}" for verdict, count in counted)
        words.insert(0, f"{plural(len(rest), 'more row')}: {escaped(more)}")
    notes = [*(f"- {word}\n" for word in words), *_expected(result.rows)]
    if len(notes) > _NOTES:
        notes[_NOTES - 1 :] = [f"- {len(notes) - _NOTES + 1} more lines of this kind\n"]
    return text + ("\n" + "".join(notes) if notes else "")


def _worst_rows(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that are shown, in order, and those for which there are too many."""
    if len(rows) <= _ROWS:
        return list(rows), []
    chosen = set(sorted(range(len(rows)), key=lambda place: badness(rows[place]))[:_ROWS])
    shown = [row for place, row in enumerate(rows) if place in chosen]
    return shown, [row for place, row in enumerate(rows) if place not in chosen]


def _cells(row: Row) -> list[str]:
    from parity.compare.rows import as_dict

    failed = row.error_type if row.outcome not in ("ok", "unsupported") else ""
    known = as_dict(row) | {
        "grade": verdict_of(row),
        "detail": ": ".join(filter(None, (failed, row.detail))),
    }
    values = (known[name] for name in _COLUMNS)
    return [metric(v) if isinstance(v, int | float) else escaped(v or "") for v in values]


def _left_out(result: RunResult, view: _View) -> Iterator[str]:
    """How much found no room, and where it is."""
    left = sorted(view.left.items())
    parts = [f"{count} {_kinds(result, kind, count)}" for kind, count in left]
    parts += [plural(view.lines, "line of the overview")] if view.lines == 1 else []
    parts += [f"{view.lines} lines of the overview"] if view.lines > 1 else []
    if not parts:
        return
    command = code(shlex.join(["parity", "show", str(result.record)])) if result.record else ""
    yield f"\nLeft out to keep this short: {', '.join(parts)}."
    yield f" {command} shows all.\n" if command else "\n"
