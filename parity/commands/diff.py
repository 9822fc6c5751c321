"""`parity diff`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill

import click

from parity.commands.selection import narrowing
from parity.commands.stdout import shape, split, write
from parity.commands.values import Choice
from parity.report.diff.directions import DIRECTIONS, WORSE, as_option, parse

FORMATS = ("table", "json", "csv", "markdown")


def _spelled(what: str, directions: Iterable[str]) -> str:
    """A paragraph that click does not fold: a list of directions as options take them."""
    names = ", ".join(map(as_option, directions))
    return "\b\n" + fill(f"{what}: {names}.", 78, break_on_hyphens=False)


_EPILOG = "\n\n".join(
    [
        _spelled("Directions", DIRECTIONS),
        _spelled("Of these are worse", (name for name in DIRECTIONS if name in WORSE)),
    ]
)


@click.command(epilog=_EPILOG)
@click.argument("a", metavar="RECORD_A")
@click.argument("b", metavar="[RECORD_B]", required=False)
@click.option("--a", "a_env", metavar="ENV", help="The environment of A, where there are several.")
@click.option("--b", "b_env", metavar="ENV", help="The environment of B, where there are several.")
@narrowing
@click.option(
    "--fail-on",
    metavar="DIRECTION,…",
    default="worse",
    help="Exit with 1 on changes of these directions, or on any or none [worse].",
)
@click.option(
    "--format",
    "kind",
    type=Choice(FORMATS),
    default="table",
    help="How it is written to stdout [table].",
)
@click.option("--html", metavar="FILE", help="Write it as a page, too: one HTML file.")
@click.option("-v", "--verbose", is_flag=True, help="Every change, with its table.")
def diff(
    a: str,
    b: str | None,
    a_env: str | None,
    b_env: str | None,
    case: str | None,
    paths: str | None,
    fail_on: str,
    kind: str,
    html: str | None,
    verbose: bool,
) -> int:
    """Say what changed from A to B, why, and whether it got worse.

    A and B are the records of two runs or, with one record, two of its environments. Exits with 1
    if a change is of a direction of --fail-on. What an expectation of B's case file accepts is
    shown, and never fails, whatever --fail-on names.
    """
    directions = parse(fail_on)
    from parity.report.diff.compare import diff as compare
    from parity.report.diff.render import render

    found = compare(
        a, b, a_env=a_env, b_env=b_env, case=case, paths=split(paths), fail_on=directions
    )
    if html is not None:
        from parity.report.html.diff import write_diff

        write_diff(found, Path(html))
        print(f"wrote {html}", file=sys.stderr)
    width, color = shape()
    write(render(found, kind, width=width, color=color, verbose=verbose))
    return found.exit_code
