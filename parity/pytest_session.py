"""What a pytest session does with cases: runs each once, compares it, keeps it for the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from parity.config import load_config
from parity.errors import UserError

if TYPE_CHECKING:
    from parity.casefile.case import Case
    from parity.compare.result import CaseResult
    from parity.engine.run import Options, Session
    from parity.pytest_baseline import Baseline
    from parity.pytest_record import SharedRecord
    from parity.report.diff.model import Diff

_SENT = "parity_record"
"""What a worker of pytest-xdist is told the file of the shared record under."""


class Runner:
    """Runs each case once, in one engine session for the whole pytest session.

    Args:
        config: of pytest.

    Raises:
        pytest.UsageError: [tool.parity] or an option is wrong.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._session: Session | None = None
        self._paths: dict[str, list[str]] = {}
        self._results: dict[str, tuple[CaseResult, Diff | None] | UserError] = {}
        try:
            self._settings = load_config(config.rootpath)
            self.page = _page(config)
            self._baseline = _baseline(config)
            self._record = self._shared() if self.page is not None else None
        except UserError as error:
            raise pytest.UsageError(str(error)) from None

    @property
    def compares(self) -> bool:
        """Whether there is a stored run to compare with."""
        return self._baseline is not None

    def owns(self, file: Path) -> bool:
        """Whether [tool.parity] says that case files lie there."""
        folders = [self._settings.root / folder for folder in self._settings.cases]
        return self._settings.is_configured and any(map(file.is_relative_to, folders))

    def selected(self, items: Iterable[tuple[Case, str]]) -> None:
        """Take note of the cases and paths that will run."""
        for case, path in items:
            self._paths.setdefault(case.id, []).append(path)

    def result(self, case: Case) -> tuple[CaseResult, Diff | None]:
        """What the selected paths of a case gave, and how the baseline differs from that.

        Raises:
            UserError: the environment under test, an option or an array file is at fault.
        """
        if case.id not in self._results:
            try:
                self._results[case.id] = self._run(case)
            except UserError as error:
                self._results[case.id] = error
        found = self._results[case.id]
        if isinstance(found, UserError):
            raise found
        return found

    def _run(self, case: Case) -> tuple[CaseResult, Diff | None]:
        paths = self._paths[case.id]
        if self._baseline is not None and case.baseline not in paths:
            paths = [*paths, case.baseline]  # what the others are compared with may have changed
        done = self._running().done(case, paths)
        if self._record is not None:
            place = self._places[case.id]
            self._record.add(done, position=place, wanted=len(self._places))
        if self._baseline is None:
            return done.result, None
        return done.result, self._baseline.diff(done)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {case: place for place, case in enumerate(self._paths)}

    def _running(self) -> Session:
        if self._session is None:
            from parity.engine.run import Session

            self._session = Session(self._options()).__enter__()
        return self._session

    def _options(self) -> Options:
        from parity.api import options

        return options(
            self._settings,
            timeout=self._config.getoption("--parity-timeout"),
            fail_on=self._config.getoption("--parity-fail-on"),
            python=self._config.getoption("--parity-python"),
        )

    def _shared(self) -> SharedRecord:
        from parity.pytest_record import SharedRecord

        sent = getattr(self._config, "workerinput", {}).get(_SENT)
        facts = {"fail_on": self._options().fail_on}
        return SharedRecord(facts, None if sent is None else Path(sent))

    def told(self) -> dict[str, str]:
        """What a worker of pytest-xdist must be told: where the shared record is."""
        return {} if self._record is None else {_SENT: str(self._record.file)}

    def close(self) -> None:
        """Kill the workers."""
        if self._session is not None:
            self._session.__exit__(None, None, None)
            self._session = None
        if self._record is not None:
            self._record.close()

    def write_page(self, *, interrupted: bool) -> bool:
        """Write the HTML report that was asked for, unless nothing was run; whether it was.

        Raises:
            UserError: it cannot be written.
        """
        if self._record is None or self.page is None:
            return False
        return self._record.write_page(self.page, interrupted=interrupted)

    def remove(self) -> None:
        """Remove what is of no use after the session."""
        if self._record is not None:
            self._record.remove()


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs items for another one: a worker of pytest-xdist."""
    return hasattr(config, "workerinput")


def _page(config: pytest.Config) -> Path | None:
    """The file of the HTML report, if one is asked for."""
    name = config.getoption("--parity-html")
    if name is None:
        return None
    file: Path = config.invocation_params.dir / name
    if not is_worker(config):
        from parity.report.html.page import check_writable

        with _of("--parity-html"):
            check_writable(file)
    return file


def _baseline(config: pytest.Config) -> Baseline | None:
    """The run to compare with, if one is named."""
    name = config.getoption("--parity-baseline")
    environment = config.getoption("--parity-baseline-env")
    if name is None:
        if environment is not None:
            raise UserError("--parity-baseline-env stands beside --parity-baseline only")
        return None
    from parity.pytest_baseline import Baseline

    with _of("--parity-baseline"):
        return Baseline(config.invocation_params.dir / name, environment)


@contextmanager
def _of(option: str) -> Iterator[None]:
    """Say which option a mistake is in."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{option}: {error.message}", hint=error.hint) from None
