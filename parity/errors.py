"""The two families of errors: the user's mistake and our own fault.

A `UserError` is shown as one line and a hint, without a traceback, and exits with 2; a
`ParityFault` is a bug in parity, is shown with its traceback and exits with 3.
"""

from __future__ import annotations

from pathlib import Path


class UserError(Exception):
    """A mistake in usage, configuration or a case file; exit code 2.

    Args:
        message: what is wrong, what was got and what is allowed.
        hint: how to mend it.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class CaseFileError(UserError):
    """Something is wrong at a place in a case file: `file:line:col: what`, then `hint: …`.

    Args:
        message: what is wrong, "(got X; allowed …)" included.
        file: the file, shown as given here.
        line: 1-based line, 0 where the file as a whole is meant.
        col: 1-based column, 0 where the line as a whole is meant.
        hint: how to mend it.
        others: further errors of the same file, which `message` only counts.
    """

    def __init__(
        self,
        message: str,
        *,
        file: Path | str,
        line: int = 0,
        col: int = 0,
        hint: str | None = None,
        others: tuple[CaseFileError, ...] = (),
    ) -> None:
        where = str(file)
        if line:
            where += f":{line}:{max(col, 1)}"
        super().__init__(f"{where}: {message}", hint=hint)
        self.what = message
        self.file = file
        self.line = line
        self.col = col
        self.others = others


class WorkerStartError(UserError):
    """The environment under test cannot execute anything: no JAX, a flag that aborts it, …"""


class NothingSelected(UserError):
    """A selection matched no case; exit code 5."""


class Unsupported(Exception):
    """The environment cannot express a program or lacks a path; says why and, if known, since when.

    It becomes a row of that outcome, not an error of the run.
    """


class ParityFault(Exception):
    """A bug in parity itself; exit code 3."""
