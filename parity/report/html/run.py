"""The report of a run as a page: header, heatmap, table, and all that is known of each case."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parity.record.encoding import loads
from parity.record.reader import Recorded
from parity.report.across import Across, Comparison, table
from parity.report.html.cells import BASELINE, SIGNS, Cell, badness, cell
from parity.report.html.details import detail
from parity.report.html.index import Index
from parity.report.html.page import Detail, Page, write
from parity.report.numbers import plural
from parity.report.rerun import arguments
from parity.report.summary import Alike, Tally, finding
from parity.report.table import verdict_of

if TYPE_CHECKING:
    from parity.compare.result import CaseResult
    from parity.compare.rows import Row
    from parity.record.result import RunResult

SIDE_BY_SIDE = 400
"""Lines that the programs of all files side by side may have; a file for which there is no room
is left out.
"""

SCRIPTS = (
    "page.js",
    "numbers.js",
    "filter.js",
    "table.js",
    "heatmap.js",
    "charts.js",
    "elements.js",
    "case.js",
    "output.js",
    "frame.js",
    "run.js",
    "main.js",
)
_WHOLE = 5000
"""In a run of more rows those that are identical and fine stand without plots and elements."""

_FEW_FILES = 8
"""The command to rerun names so many case files, of more their folders."""


def write_run(result: RunResult, file: Path) -> None:
    """Write the report of a run.

    Raises:
        UserError: the file cannot be written.
    """
    write(run_page(result), file)


def run_page(result: RunResult) -> Page:
    """The report of a run."""
    view = _View(list(result.environments), whole=len(result.rows) <= _WHOLE)
    for _, group in groupby(result.cases, key=lambda one: one.case.id):
        view.add(list(group))
    counts = view.tally.verdicts
    environments = _divided(result.environments, view.devices)
    return Page(
        template="run.html.j2",
        title=f"parity: {result.verdict}, {plural(view.tally.cases, 'case')}",
        context={
            "verdict": result.verdict,
            "sentence": _sentence(result, view.tally),
            "counts": counts.most_common(),
            "rows": view.tally.rows,
            "cases": view.tally.cases,
            "statuses": view.statuses,
            "findings": list(map(_finding, view.tally.findings())),
            "expected": _expected(view.tally.expected.values()),
            "unsupported": [(*key, count) for key, count in view.tally.unsupported.items()],
            "facts": _facts(result),
            "command": _command(result, view.files),
            "across": list(view.side_by_side()),
            "across_left": view.left,
            "environments": environments,
            "environment_facts": _differing(environments),
            "columns": view.columns,
            "files": view.files,
            "others": view.others,
            "several": len(result.environments) > 1,
            "signs": SIGNS,
            "baseline_sign": BASELINE,
        },
        scripts=SCRIPTS,
        index={
            **view.index.data(),
            "heatmap": view.columns,
            "arguments": {
                name: shlex.join(arguments(_recorded(result), name)) for name in result.environments
            },
            "signs": {**SIGNS, "baseline": BASELINE},
        },
        details=view.details,
    )


@dataclass
class _File:
    """A case file in the heatmap.

    Attributes:
        cases: what each id adds to the file's, and cells by environment and path.
        counted: how many rows amount to what.
    """

    cases: list[tuple[str, dict[tuple[str, str], Cell]]] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)


class _View:
    """What the page shows, kept while cases pass by."""

    def __init__(self, environments: Sequence[str], *, whole: bool) -> None:
        self.devices: set[int] = set()
        self._whole = whole
        self.tally = Tally()
        self.index = Index(environments)
        self.details: list[Detail] = []
        self.files: dict[str, _File] = {}
        self._across: dict[str, Across] = {}
        self.left: list[str] = []
        self.others: list[tuple[str, list[tuple[Row, list[str]]]]] = []
        self.statuses: Counter[str] = Counter()
        self._paths: dict[str, dict[str, None]] = {name: {} for name in environments}

    def add(self, results: Sequence[CaseResult]) -> None:
        """Add a case, in each of its environments."""
        case = results[0].case
        self.tally.add(results)
        self.devices.add(case.program.devices)
        self.index.add(results)
        self.details.append(detail(results, whole=self._whole))
        rows = [row for result in results for row in result.rows]
        if others := _alike(rows):
            self.others.append((case.id, others))
        name, _, rest = case.id.partition("::")
        file = self.files.setdefault(name, _File())
        self._across.setdefault(name, Across()).add(results)
        by_column: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            self.statuses[row.status] += 1
            file.counted[verdict_of(row)] += 1
            self._paths.setdefault(row.environment, {})[row.path] = None
            by_column.setdefault((row.environment, row.path), []).append(row)
        cells = {
            column: cell(of, baseline=column[1] == case.baseline)
            for column, of in by_column.items()
        }
        file.cases.append((rest or name, cells))

    def side_by_side(self) -> Iterator[tuple[str, Comparison, list[dict[str, str]]]]:
        """Case file, comparison and its table; `left` gets the files that found no room."""
        room = SIDE_BY_SIDE
        for name, across in self._across.items():
            shown = [(name, one, table(one.ways)) for one in across.comparisons()]
            lines = sum(len(of) for _, _, of in shown)
            if lines > room:
                self.left.append(name)
                continue
            room -= lines
            yield from shown

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Environment and path of each column of the heatmap, in order of appearance."""
        return [(name, path) for name, paths in self._paths.items() for path in paths]


def _alike(rows: Iterable[Row]) -> list[tuple[Row, list[str]]]:
    """Rows that are not identical or not fine, the worst first; those of equal bits as one.

    Returns:
        Each with the paths that it stands for.
    """
    found: dict[tuple[Any, ...], tuple[Row, list[str]]] = {}
    for row in rows:
        if row.grade == "identical" and row.status == "ok":
            continue
        said = (row.environment, row.output, row.bits, row.status, row.grade, row.because)
        key = (*said, row.outcome, row.stage, row.detail)
        found.setdefault(key, (row, []))[1].append(row.path)
    return sorted(found.values(), key=lambda one: badness(one[0]))


def _sentence(result: RunResult, tally: Tally) -> str:
    """What the verdict means, in words."""
    rows, cases = plural(tally.failing_rows, "row"), plural(tally.failing_cases, "case")
    fails = "fails" if tally.failing_rows == 1 else "fail"
    said = f"{rows} in {cases} {fails} the run" if tally.failing_rows else "No row fails the run"
    if result.interrupted:
        done = f"{len(result.cases)} of {plural(result.wanted, 'result')}"
        return f"{said}, of those that there are: it was interrupted after {done}."
    return f"{said}."


def _finding(alike: Alike) -> dict[str, Any]:
    line = finding(alike.worst, rows=alike.rows, cases=alike.cases)
    return {"line": line.plain, "case": alike.worst.case, "row": alike.worst, "rows": alike.rows}


def _expected(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """What was expected, one entry for each reason."""
    reasons: dict[tuple[str, str | None], dict[str, dict[str, None]]] = {}
    for row in rows:
        verdicts = reasons.setdefault((row.because, row.link), {})
        verdicts.setdefault(verdict_of(row), {})[row.path] = None
    return [
        {
            "because": because,
            "link": link,
            "what": "; ".join(f"{', '.join(paths)} {what}" for what, paths in verdicts.items()),
        }
        for (because, link), verdicts in reasons.items()
    ]


def _facts(result: RunResult) -> dict[str, str]:
    """What is noted of the run itself, under the names that people read."""
    known = _recorded(result)
    options = loads(known.get("options", "{}"))
    named = {
        "started": known.get("started"),
        "finished": known.get("finished"),
        "parity": known.get("parity"),
        "commit of the project": known.get("commit"),
        "record": None if result.record is None else result.record.name,
        "fails on": options.get("fail_on") and f"{options['fail_on']} and worse",
        "repeats": options.get("repeats", 1) > 1 and str(options["repeats"]),
    }
    return {name: str(value) for name, value in named.items() if value}


def _recorded(result: RunResult) -> Mapping[str, str]:
    return result.cases.facts if isinstance(result.cases, Recorded) else {}


def _command(result: RunResult, files: Iterable[str]) -> str:
    """The command that runs the same case files again."""
    options = loads(_recorded(result).get("options", "{}"))
    names = list(files)
    if len(names) > _FEW_FILES:
        names = list(dict.fromkeys(name.rpartition("/")[0] or name for name in names))
    command = ["parity", "run", *names]
    if options.get("fail_on", "divergent") != "divergent":
        command += ["--fail-on", options["fail_on"]]
    if options.get("repeats", 1) > 1:
        command += ["--repeat", str(options["repeats"])]
    for name in result.environments:
        command += arguments(_recorded(result), name)
    return shlex.join(command)


def _divided(
    environments: Mapping[str, Mapping[str, str]], asked: set[int]
) -> dict[str, Mapping[str, str]]:
    """The facts of the environments, their devices with those that cases divide the host into."""
    more = ", ".join(str(count) for count in sorted(asked) if count > 1)
    said = f"; {more} where a case asks for them" if more else ""
    return {
        name: {**facts, **({"devices": facts["devices"] + said} if "devices" in facts else {})}
        for name, facts in environments.items()
    }


def _differing(environments: Mapping[str, Mapping[str, str]]) -> list[tuple[str, bool]]:
    """Every fact of the environments, and whether they differ in it."""
    keys = dict.fromkeys(key for facts in environments.values() for key in facts)
    return [(key, len({facts.get(key) for facts in environments.values()}) > 1) for key in keys]
