"""Case files as pytest items: `pytest cases/` runs one item for each case and path.

A YAML file is collected if it lies where `cases` in [tool.parity] of pyproject.toml says (without
such a table nothing does), or if it looks like a case file: `op:`, `program:`, `flax:` or `steps:`
at the start of a line and `operands:` or parity's schema comment. Other YAML files are left alone.

The paths of a case that were selected run together, when its first item runs. Under pytest-xdist
each worker does so for the items that it is given; `--dist loadfile` keeps a case on one worker.

An item fails on a finding or, with `--parity-baseline`, on what got worse since a stored run; what
cannot be compared with that is judged as without it.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from parity.casefile.case import GRADES
from parity.errors import CaseFileError, UserError
from parity.pytest_session import Runner, is_worker
from parity.record.encoding import word

if TYPE_CHECKING:
    from parity.casefile.case import Case
    from parity.compare.result import CaseResult
    from parity.compare.rows import Row
    from parity.pytest_baseline import Against

_KEY = pytest.StashKey[Runner]()
_SAID = pytest.StashKey[tuple[str, bool]]()
_SUFFIXES = (".yaml", ".yml")
_LOOKS = (rb"^(op|program|flax|steps)\s*:", rb"^(operands\s*:|#.*\$schema=.*parity)")
_BYTES = 2**20


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the group "parity"; unset ones come from [tool.parity]."""
    group = parser.getgroup("parity", "the same numbers on every path")
    group.addoption(
        "--parity-python", metavar="INTERPRETER", help="Python of the environment under test"
    )
    group.addoption(
        "--parity-timeout", type=float, metavar="S", help="seconds that a path may take"
    )
    group.addoption("--parity-fail-on", choices=GRADES, help="the mildest grade that fails an item")
    group.addoption("--parity-html", metavar="FILE", help="write a report of all items there")
    group.addoption(
        "--parity-baseline",
        metavar="RECORD",
        help="compare with this run, which `parity run --out` kept; fail on what got worse",
    )
    group.addoption(
        "--parity-baseline-env", metavar="NAME", help="which of its environments, if it has several"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read [tool.parity] and open what options name; nothing is started before a case runs."""
    config.stash[_KEY] = Runner(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where results are kept."""
    node.workerinput.update(node.config.stash[_KEY].told())


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Kill the workers and write the report; pytest-xdist's own have ended before."""
    config = session.config
    runner = config.stash[_KEY]
    runner.close()
    if runner.page is None or is_worker(config):
        return
    cut_short = exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    try:
        written = runner.write_page(
            interrupted=cut_short or bool(session.shouldstop or session.shouldfail)
        )
    except UserError as error:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
        config.stash[_SAID] = f"--parity-html: {error}", False
        return
    what = "" if written else "nothing was run, and nothing written to "
    config.stash[_SAID] = f"report: {what}{runner.page}", True


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what served the session."""
    if _KEY in config.stash:
        config.stash[_KEY].remove()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what came of the comparison with the baseline, and where the report is."""
    terminalreporter.ensure_newline()
    if config.stash[_KEY].compares:
        from parity.pytest_baseline import summary

        terminalreporter.section(f"parity: against {config.getoption('--parity-baseline')}")
        for line in summary(terminalreporter.stats):
            terminalreporter.write_line(line)
    if _SAID in config.stash:
        line, fine = config.stash[_SAID]
        terminalreporter.write_line(f"parity: {line}", red=not fine)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CaseFileCollector | None:
    """Collect a YAML file that is a case file."""
    if file_path.suffix not in _SUFFIXES:
        return None
    if not (parent.config.stash[_KEY].owns(file_path) or _looks_like_a_case_file(file_path)):
        return None
    collector: CaseFileCollector = CaseFileCollector.from_parent(parent, path=file_path)
    return collector


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which paths of each case were selected."""
    items = (item for item in session.items if isinstance(item, PathItem))
    session.config.stash[_KEY].selected((item.case, item.path_name) for item in items)


def _looks_like_a_case_file(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            text = stream.read(_BYTES)
    except OSError:
        return False
    return all(re.search(pattern, text, re.MULTILINE) for pattern in _LOOKS)


class CaseFileCollector(pytest.File):
    """A case file: an item for each case and path, or one failing item if it is invalid."""

    def collect(self) -> Iterator[pytest.Item]:
        """Load the file; nothing in it is executed."""
        from parity.api import load
        from parity.casefile.select import items

        try:
            chosen = items(load(self.path).cases)
        except UserError as error:
            yield InvalidItem.from_parent(
                self, name="invalid", nodeid=f"{self.nodeid}::invalid", error=error
            )
            return
        for item in chosen:
            name = item.id.partition("::")[2]
            yield PathItem.from_parent(
                self,
                name=name,
                nodeid=f"{self.nodeid}::{name}",
                case=item.case,
                path_name=item.path,
            )


class _Item(pytest.Item):
    """What the items of a case file have in common: a failure that begins with what is wrong."""

    line = 1

    def reportinfo(self) -> tuple[Path, int, str]:
        """File, 0-based line and title."""
        return self.path, self.line - 1, self.name

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> str | Any:
        """What is wrong, without a traceback; its first line is what summaries show."""
        if not isinstance(excinfo.value, UserError | Finding | Worse):
            return super().repr_failure(excinfo)
        shown: Any = excinfo.getrepr(style="value")
        error = excinfo.value
        place = error if isinstance(error, CaseFileError) else None
        crash = dataclasses.replace(
            shown.reprcrash,
            path=str(place.file if place else self.path),
            lineno=(place.line if place else 0) or self.line,
            message=str(error).splitlines()[0],
        )
        shown.reprcrash = crash
        *before, (traceback, _, description) = shown.chain
        shown.chain = [*before, (traceback, crash, description)]  # what pytest-xdist sends
        return shown


class InvalidItem(_Item):
    """Stands for a case file that cannot be loaded; fails with the reason."""

    def __init__(self, *, error: UserError, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._error = error
        self.line = getattr(error, "line", 0) or 1

    def runtest(self) -> None:
        """Raise what loading raised."""
        raise self._error


class PathItem(_Item):
    """One path of one case.

    Args:
        case: the case.
        path_name: the path.
    """

    def __init__(self, *, case: Case, path_name: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.case = case
        self.path_name = path_name
        self.line = case.line

    def runtest(self) -> None:
        """Run the case, unless an item of it did, and fail if this path's rows do."""
        runner = self.config.stash[_KEY]
        result, diff = runner.result(self.case)
        rows = [row for row in result.rows if row.path == self.path_name]
        for row in rows:
            self.user_properties.extend(_properties(row, several=len(rows) > 1))
        judged = rows
        if runner.compares:
            from parity.pytest_baseline import CAUSE, CHANGE, against

            found = against(diff, rows)
            self.user_properties.append((CHANGE, found.change))
            self.user_properties += [(CAUSE, found.cause)] if found.cause else []
            if found.worse:
                raise Worse(found, result)
            judged = list(found.alone)
        if any(row.is_finding for row in judged):
            raise Finding(result, judged)
        if all(row.outcome == "unsupported" for row in rows):
            pytest.skip(f"unsupported: {rows[0].detail}")


class Finding(Exception):
    """A path is not as its case wants it.

    Args:
        result: the case's result.
        rows: the rows of the path.
    """

    def __init__(self, result: CaseResult, rows: Sequence[Row]) -> None:
        from parity.report.summary import finding
        from parity.report.table import case_lines

        failing = [row for row in rows if row.is_finding]
        lines = [finding(row).plain.removeprefix("finding: ") for row in failing]
        said = {f"stale: {row.path}: {row.detail}" for row in failing}
        shown = (line.plain for line in case_lines(result, None))
        lines += [line for line in shown if line.strip() not in said]
        lines += [line for row in failing for line in row.stderr.splitlines()]
        super().__init__("\n".join(lines))


class Worse(Exception):
    """A path got worse since the baseline.

    Args:
        against: how.
        result: the case's result.
    """

    def __init__(self, against: Against, result: CaseResult) -> None:
        from parity.report.table import case_lines

        lines = [*against.lines(), *(line.plain for line in case_lines(result, None))]
        super().__init__("\n".join(lines))


_PROPERTIES = (
    "outcome",
    "status",
    "grade",
    "because",
    "model",
    "differing",
    "bound_share",
    "environment",
    "sha256",
)
_METRICS = ("max_abs", "max_ulp", "rms_rel")


def _properties(row: Row, *, several: bool) -> Iterator[tuple[str, object]]:
    """The key numbers of a row, for JUnit; those that are not finite are words."""
    suffix = f".{row.output}" if several else ""
    found = {name: getattr(row, name) for name in _PROPERTIES}
    for target in ("f64", "strict", "baseline"):
        metrics = getattr(row, target)
        found |= {f"{name}_{target}": getattr(metrics, name, None) for name in _METRICS}
    for name, value in found.items():
        if value is None or value == "":
            continue
        finite = not isinstance(value, float) or math.isfinite(value)
        yield name + suffix, value if finite else word(value)
