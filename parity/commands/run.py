"""`parity run`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from parity.casefile.case import GRADES
from parity.commands.codes import USAGE
from parity.commands.selection import exit_code, selected, selectors
from parity.commands.show import rendered
from parity.commands.stdout import write
from parity.commands.values import Bytes, Choice
from parity.config import KEEP, load_config
from parity.report.render import FORMATS

if TYPE_CHECKING:
    from parity.api import Selection
    from parity.engine.run import Options
    from parity.record.result import RunResult


@click.command()
@selectors
@click.option("--timeout", type=float, metavar="S", help="Seconds that a path may take [300].")
@click.option(
    "--fail-on",
    type=Choice(GRADES),
    help="The mildest grade that is a finding [divergent].",
)
@click.option("--out", metavar="DIR", help="Keep a record of the run in this folder.")
@click.option(
    "--keep",
    type=Choice(KEEP),
    help="Which outputs the record keeps, as raw bits [non-identical].",
)
@click.option("--resume", metavar="RECORD", help="Go on with the run of this record.")
@click.option(
    "--python", metavar="INTERPRETER", help="Python of the environment under test [this one]."
)
@click.option(
    "--env",
    multiple=True,
    metavar="NAME[=PYTHON]",
    help="Run in this environment, of [tool.parity.environments] or an interpreter under a name; "
    "may be repeated, then every case runs in each.",
)
@click.option("-j", "--jobs", type=int, metavar="N", help="Cases at a time [number of cores].")
@click.option(
    "--scheduler", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler (tcp://…)."
)
@click.option(
    "--memory",
    type=Bytes(),
    metavar="BYTES",
    help="Memory that a path may take beside its libraries', such as 8G.",
)
@click.option(
    "--repeat",
    type=int,
    metavar="N",
    help="Run each path N times, each in a fresh process; report bits that change.",
)
@click.option(
    "--save-artifacts",
    is_flag=True,
    help="Keep what paths export (SavedModel, jax.export, …) in the record; all is run anew.",
)
@click.option(
    "--artifacts-from",
    metavar="RECORD",
    help="Execute the artifacts of this record instead of exporting anew: what a server does "
    "after an upgrade.",
)
@click.option(
    "--artifacts-env", metavar="NAME", help="The environment of RECORD, where it has several."
)
@click.option(
    "--no-cache", is_flag=True, help="Run everything, also what an earlier run has the result of."
)
@click.option(
    "--format",
    "kind",
    type=Choice(FORMATS),
    default="table",
    help="How the result is written to stdout [table].",
)
@click.option(
    "--explain", is_flag=True, help="Say of each row that is not identical why, as parity explain."
)
@click.option(
    "--explain-budget",
    "explain_seconds",
    type=float,
    metavar="S",
    help="Seconds that this may take for a row [60].",
)
@click.option("--html", metavar="FILE", help="Write the report of the run, one HTML file, too.")
@click.option("-v", "--verbose", is_flag=True, help="A table for every case, also for a fine one.")
def run(
    targets: tuple[str, ...],
    expression: str | None,
    paths: str | None,
    kind: str,
    html: str | None,
    verbose: bool,
    no_cache: bool,
    **chosen: Any,
) -> int:
    """Run cases on their paths and compare what comes out.

    Cases are named by file, folder, id (cases/conv.yaml::conv:compute_dtype=bfloat16, with or
    without [path]) or glob over ids; by default those of `cases` in [tool.parity] of
    pyproject.toml, or of --artifacts-from. The former also gives the defaults of --timeout,
    --fail-on and --out.
    """
    from parity.api import options

    config = load_config(Path.cwd())
    how = options(config, say=_say, cache=not no_cache, **chosen)
    selection = selected(targets or how.targets, expression, paths, config=config)
    if kind == "github":
        from parity.report.github import mistakes

        write(mistakes(selection.errors))
    if not selection.cases:
        return USAGE
    if html is not None:
        from parity.report.html.page import check_writable

        check_writable(Path(html))
    result = _run(selection, how)
    write(rendered(result, kind, verbose=verbose))
    if html is not None:
        from parity.report.html.run import write_run

        write_run(result, Path(html))
    return exit_code(selection, result.exit_code)


def _run(selection: Selection, how: Options) -> RunResult:
    from parity.engine.run import run_cases
    from parity.report.progress import Progress

    with Progress(len(selection.cases), len(how.environments)) as progress:
        return run_cases(selection.cases, how, progress=progress)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
