"""`parity report`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from parity.commands.selection import narrowing
from parity.commands.stdout import split


@click.command()
@click.argument("record")
@click.option("-o", "--output", metavar="FILE", required=True, help="The HTML file to write.")
@narrowing
def report(record: str, output: str, case: str | None, paths: str | None) -> int:
    """Write the report of a run, one HTML file, from its record.

    It is complete in itself and asks for nothing on any network. Exits with 0 whatever the run
    found, with 5 if --case or --path matches nothing.
    """
    from parity.record.result import open_record
    from parity.report.html.run import write_run

    write_run(open_record(record, case=case, paths=split(paths)), Path(output))
    print(f"wrote {output}", file=sys.stderr)
    return 0
