"""Exit codes, and the mistakes of the user that stand behind one."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from parity.errors import CaseFileError, UserError

OK, FINDING, USAGE, FAULT, NOTHING, INTERRUPTED = 0, 1, 2, 3, 5, 130
_PRECEDENCE = (INTERRUPTED, FAULT, USAGE, FINDING, NOTHING, OK)


def worst(codes: Iterable[int]) -> int:
    """The exit code that takes precedence."""
    return min(codes, key=_PRECEDENCE.index)


def complain(errors: Iterable[UserError]) -> None:
    """Mistakes of the user on stderr, each with its hint."""
    for error in errors:
        every = [error, *error.others] if isinstance(error, CaseFileError) else [error]
        for one in every:
            prefix = "" if isinstance(one, CaseFileError) else "error: "
            print(f"{prefix}{one}", file=sys.stderr)
