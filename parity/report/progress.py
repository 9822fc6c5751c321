"""What a run tells on stderr while it goes: a bar on a terminal, a line for each case elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from parity.report.numbers import plural

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from parity.compare.result import CaseResult


class Progress:
    """A context manager to call with each finished case.

    Args:
        cases: how many there are to be.
        environments: in how many environments each is run.
    """

    def __init__(self, cases: int, environments: int = 1) -> None:
        self._total = cases * environments
        self._several = environments > 1
        self._done = 0
        self._findings = 0
        self._bar: Bar | None = None

    def __enter__(self) -> Progress:
        if sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._bar.add_task("starting", total=self._total)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, result: CaseResult, seconds: float | None) -> None:
        """Tell of a finished case, in one environment.

        Args:
            result: of it.
            seconds: that it took, None if it was taken from the cache.
        """
        self._done += 1
        findings = sum(row.is_finding for row in result.rows)
        self._findings += findings
        if self._bar is not None:
            found = f", {plural(self._findings, 'row')} failed" if self._findings else ""
            noun = "results" if self._several else "cases"
            self._bar.update(
                self._bar.task_ids[0],
                completed=self._done,
                description=f"{self._done}/{self._total} {noun}{found}",
            )
            return
        took = "cached" if seconds is None else f"{seconds:.1f} s"
        where = f"  {result.environment}" if self._several else ""
        verdict = "FAILED" if findings else "ok"
        count = f"[{self._done:>{len(str(self._total))}}/{self._total}]"
        print(f"{count} {verdict:<6} {result.case.id}{where}  {took}", file=sys.stderr)
