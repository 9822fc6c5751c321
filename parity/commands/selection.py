"""Cases and paths as commands take them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from parity.commands.codes import OK, USAGE, complain, worst
from parity.commands.stdout import split
from parity.config import Config, load_config

if TYPE_CHECKING:
    from parity.api import Selection

_Command = TypeVar("_Command", bound=Callable[..., Any])


def selectors(command: _Command) -> _Command:
    """The arguments that choose cases and paths."""
    command = click.option(
        "--paths",
        metavar="P,P,…",
        help="Run these paths instead of those that the cases name; all runs every one.",
    )(command)
    command = click.option(
        "-k",
        "expression",
        metavar="EXPR",
        help="Only ids that match, as in pytest: names joined by and, or, not.",
    )(command)
    return click.argument("targets", nargs=-1, metavar="[FILES|DIRS|IDS]...")(command)


def narrowing(command: _Command) -> _Command:
    """The options that choose rows of a record."""
    command = click.option(
        "--path", "paths", metavar="P,P,…", help="Only the rows of these paths."
    )(command)
    return click.option(
        "--case", metavar="GLOB", help="Only these cases: an id, a file, or a glob over them."
    )(command)


def selected(
    targets: tuple[str, ...],
    expression: str | None = None,
    paths: str | None = None,
    *,
    config: Config | None = None,
) -> Selection:
    """What the arguments choose; mistakes in case files are on stderr."""
    from parity.api import select

    found = select(
        targets, k=expression, paths=split(paths), config=config or load_config(Path.cwd())
    )
    complain(found.errors)
    return found


def exit_code(selection: Selection, code: int = OK) -> int:
    """A command's exit code after what it was asked for, some of which may be mistaken."""
    return worst([code, USAGE if selection.errors else OK])
