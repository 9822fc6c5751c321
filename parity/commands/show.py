"""`parity show`, and how a run is shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from parity.commands.codes import complain
from parity.commands.selection import narrowing
from parity.commands.stdout import shape, split, write
from parity.commands.values import Choice
from parity.errors import UserError
from parity.report.render import FORMATS

if TYPE_CHECKING:
    from parity.record.result import RunResult


@click.command()
@click.argument("record")
@narrowing
@click.option(
    "--format",
    "kind",
    type=Choice(FORMATS),
    default="table",
    help="How it is written to stdout [table].",
)
@click.option("-v", "--verbose", is_flag=True, help="A table for every case, also for a fine one.")
@click.option(
    "--artifact",
    metavar="FOLDER",
    help="Write what --path of --case exported into this new folder, and show nothing.",
)
def show(
    record: str,
    case: str | None,
    paths: str | None,
    kind: str,
    verbose: bool,
    artifact: str | None,
) -> int:
    """Show a run from its record, past or still going on.

    Exits with 0 whatever the run found, with 5 if --case or --path matches nothing.
    """
    from parity.record.result import open_record

    result = open_record(record, case=case, paths=split(paths))
    if artifact is not None:
        _extract(result, Path(artifact))
        return 0
    write(rendered(result, kind, verbose=verbose))
    return 0


def _extract(result: RunResult, folder: Path) -> None:
    """Write the only artifact among the rows into a new folder."""
    from parity.record.artifacts import SHA256, fetch

    assert result.record is not None
    rows = [row for row in result.rows if SHA256 in row.evidence]
    found = {row.evidence[SHA256]: f"--case {row.case} --path {row.path}" for row in rows}
    if len(found) != 1:
        some = "; ".join(list(found.values())[:3])
        raise UserError(
            f"{result.record}: --artifact needs a row that has one (got {len(found)})",
            hint=f"such as {some}" if found else "parity run --save-artifacts keeps them",
        )
    if folder.exists():
        raise UserError(f"{folder}: exists already", hint="name a new folder")
    (sha256,) = found
    if not fetch(result.record, sha256, folder):
        raise UserError(f"{result.record}: the artifact was too large to be kept")


def rendered(result: RunResult, kind: str, *, verbose: bool) -> Iterator[str]:
    """A run as the lines of a format; for GitHub Actions with the summary of the step, too."""
    from parity.report.render import render

    if kind == "github":
        _summarize(result)
    width, color = shape()
    return render(result, kind, width=width, color=color, verbose=verbose)


def _summarize(result: RunResult) -> None:
    """Write the step summary that GitHub Actions asks for; that it cannot be had fails nothing."""
    from parity.report.github import append_summary

    if file := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            append_summary(result, Path(file))
        except UserError as error:
            complain([error])
