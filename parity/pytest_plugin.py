"""Case files as pytest items: `pytest cases/` runs one item for each case and path.

A YAML file is collected if it lies where `cases` in [tool.parity] of pyproject.toml says (without
such a table nothing does), or if it looks like a case file: `op:` or `program:` at the start of a
line and `operands:` or parity's schema comment. Other YAML files are left alone.

The paths of a case that were selected run together, when its first item runs. Under pytest-xdist
each worker does so for the items that it is given; `--dist loadfile` keeps a case on one worker.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from parity.casefile.case import GRADES
from parity.config import load_config
from parity.errors import CaseFileError, UserError

if TYPE_CHECKING:
    from parity.casefile.case import Case
    from parity.compare.result import CaseResult
    from parity.compare.rows import Row
    from parity.engine.run import Session

_KEY = pytest.StashKey["_Runner"]()
_SUFFIXES = (".yaml", ".yml")
_LOOKS = (rb"^(op|program)\s*:", rb"^(operands\s*:|#.*\$schema=.*parity)")
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


def pytest_configure(config: pytest.Config) -> None:
    """Read [tool.parity]; nothing is started before the first case runs."""
    config.stash[_KEY] = _Runner(config)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Kill the workers."""
    session.config.stash[_KEY].close()


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
    session.config.stash[_KEY].selected([i for i in session.items if isinstance(i, PathItem)])


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
        if not isinstance(excinfo.value, UserError | Finding):
            return super().repr_failure(excinfo)
        shown: Any = excinfo.getrepr(style="value")
        error = excinfo.value
        place = error if isinstance(error, CaseFileError) else None
        shown.reprcrash = dataclasses.replace(
            shown.reprcrash,
            path=str(place.file if place else self.path),
            lineno=(place.line if place else 0) or self.line,
            message=str(error).splitlines()[0],
        )
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
        result = self.config.stash[_KEY].result(self.case)
        rows = [row for row in result.rows if row.path == self.path_name]
        for row in rows:
            self.user_properties.extend(_properties(row, several=len(rows) > 1))
        if any(row.is_finding for row in rows):
            raise Finding(result, rows)
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
        lines += [line.plain for line in case_lines(result, None)]
        lines += [line for row in failing for line in row.stderr.splitlines()]
        super().__init__("\n".join(lines))


_PROPERTIES = ("outcome", "status", "grade", "because", "differing")
_METRICS = ("max_abs", "max_ulp", "rms_rel")


def _properties(row: Row, *, several: bool) -> Iterator[tuple[str, object]]:
    """The key numbers of a row, for JUnit."""
    suffix = f".{row.output}" if several else ""
    for name in _PROPERTIES:
        if getattr(row, name) not in (None, ""):
            yield name + suffix, getattr(row, name)
    for target in ("f64", "strict", "baseline"):
        metrics = getattr(row, target)
        for name in _METRICS:
            value = getattr(metrics, name, None)
            if value is not None:
                yield f"{name}_{target}{suffix}", value


class _Runner:
    """Runs each case once, in one engine session for the whole pytest session."""

    def __init__(self, config: pytest.Config) -> None:
        try:
            self._settings = load_config(config.rootpath)
        except UserError as error:
            raise pytest.UsageError(str(error)) from None
        self._config = config
        self._session: Session | None = None
        self._paths: dict[str, list[str]] = {}
        self._results: dict[str, CaseResult | UserError] = {}

    def owns(self, file: Path) -> bool:
        """Whether [tool.parity] says that case files lie there."""
        settings = self._settings
        folders = [settings.root / folder for folder in settings.cases]
        return settings.is_configured and any(file.is_relative_to(folder) for folder in folders)

    def selected(self, items: Sequence[PathItem]) -> None:
        """Take note of the items that will run."""
        for item in items:
            self._paths.setdefault(item.case.id, []).append(item.path_name)

    def result(self, case: Case) -> CaseResult:
        """What the selected paths of a case gave.

        Raises:
            UserError: the environment under test, an option or an array file is at fault.
        """
        if case.id not in self._results:
            try:
                self._results[case.id] = self._running().run(case, self._paths[case.id])
            except UserError as error:
                self._results[case.id] = error
        found = self._results[case.id]
        if isinstance(found, UserError):
            raise found
        return found

    def _running(self) -> Session:
        if self._session is None:
            from parity.api import options
            from parity.engine.run import Session

            chosen = options(
                self._settings,
                timeout=self._config.getoption("--parity-timeout"),
                fail_on=self._config.getoption("--parity-fail-on"),
                python=self._config.getoption("--parity-python"),
            )
            self._session = Session(chosen).__enter__()
        return self._session

    def close(self) -> None:
        """Kill the workers."""
        if self._session is not None:
            self._session.__exit__(None, None, None)
            self._session = None
