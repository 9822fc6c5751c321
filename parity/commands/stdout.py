"""Where data goes, and in which shape."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress


def shape() -> tuple[int | None, bool]:
    """The width of a line, None for no limit, and whether there are colours.

    Off a terminal there is no limit but that of COLUMNS, and no colour; NO_COLOR is honoured.
    """
    terminal = sys.stdout is not None and sys.stdout.isatty()
    sized = terminal or re.fullmatch(r"[1-9]\d*", os.environ.get("COLUMNS", ""))
    width = shutil.get_terminal_size().columns if sized else None
    color = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return width, color


def write(text: Iterable[str]) -> None:
    """Data on stdout; a reader that has had enough is no error."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.writelines(text)
        sys.stdout.flush()
    except BrokenPipeError:
        mute()


def mute() -> None:
    """Let the interpreter flush a closed stdout at its end without a complaint."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def split(names: str | None) -> list[str] | None:
    """The names of an option that takes several, separated by commas."""
    return None if names is None else [name.strip() for name in names.split(",")]
