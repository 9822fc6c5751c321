"""What a run tells on stderr while it goes: a bar on a terminal, a line for each case elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from parity.compare.result import CaseResult


class Progress:
    """A context manager to call with each finished case.

    Args:
        total: how many cases there are to be.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._findings = 0
        self._start = time.monotonic()
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

    def __call__(self, result: CaseResult) -> None:
        """Tell of a finished case."""
        self._done += 1
        findings = sum(row.is_finding for row in result.rows)
        self._findings += findings
        if self._bar is not None:
            found = f", {self._findings} rows failed" if self._findings else ""
            self._bar.update(
                self._bar.task_ids[0],
                completed=self._done,
                description=f"{self._done}/{self._total} cases{found}",
            )
            return
        seconds = time.monotonic() - self._start
        verdict = "FAILED" if findings else "ok"
        count = f"[{self._done:>{len(str(self._total))}}/{self._total}]"
        print(f"{count} {verdict:<6} {result.case.id}  {seconds:.1f} s", file=sys.stderr)
