"""The command line: thin over `parity.api`; stdout carries data, stderr everything else."""

from __future__ import annotations

import difflib
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from parity import __version__
from parity.casefile.case import GRADES
from parity.commands.accept import accept
from parity.commands.diff import diff
from parity.commands.report import report
from parity.commands.stdout import mute, shape, split, write
from parity.config import KEEP
from parity.errors import CaseFileError, NothingSelected, UserError
from parity.report.numbers import plural
from parity.report.render import FORMATS

if TYPE_CHECKING:
    from parity.api import Selection
    from parity.engine.run import Options
    from parity.record.cache import Cache
    from parity.record.result import RunResult

OK, FINDING, USAGE, FAULT, NOTHING, INTERRUPTED = 0, 1, 2, 3, 5, 130
_PRECEDENCE = (INTERRUPTED, FAULT, USAGE, FINDING, NOTHING, OK)
_EPILOG = """\b
[tool.parity] of pyproject.toml may give cases (files and folders), fail_on,
timeout, memory (bytes), reports (a folder for records), keep, max_cases (of one
sweep) and environments (by name: requirements or python, and variables).

\b
Exit codes: 0 fine, 1 a finding, 2 wrong usage, configuration or case file,
3 a fault of parity itself, 5 nothing was selected, 130 interrupted."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _Commands(click.Group):
    """Commands in the order in which they are defined, with a hint for a misspelt one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            allowed = ", ".join(self.commands)
            close = difflib.get_close_matches(name, self.commands, n=1)
            raise UserError(
                f"unknown command (got {name}; allowed {allowed})",
                hint=f"did you mean '{close[0]}'?" if close else None,
            )
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Commands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="parity")
def commands() -> None:
    """Does an op compute the same numbers on every path it is shipped through?"""


def _in_reports(command: _Command) -> _Command:
    """The option that says where records are."""
    return click.option(
        "--out", metavar="DIR", help="The folder of the records [`reports` of the configuration]."
    )(command)


def _selectors(command: _Command) -> _Command:
    """The arguments that choose cases and paths."""
    command = click.option(
        "--paths", metavar="P,P,…", help="Run these paths instead of those that the cases name."
    )(command)
    command = click.option(
        "-k",
        "expression",
        metavar="EXPR",
        help="Only ids that match, as in pytest: names joined by and, or, not.",
    )(command)
    return click.argument("targets", nargs=-1, metavar="[FILES|DIRS|IDS]...")(command)


@commands.command()
@_selectors
@click.option("--timeout", type=float, metavar="S", help="Seconds that a path may take [300].")
@click.option(
    "--fail-on",
    type=click.Choice(GRADES),
    help="The mildest grade that is a finding [divergent].",
)
@click.option("--out", metavar="DIR", help="Keep a record of the run in this folder.")
@click.option(
    "--keep",
    type=click.Choice(KEEP),
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
    "--memory", type=int, metavar="BYTES", help="Memory that a path may take beside its libraries'."
)
@click.option(
    "--repeat",
    type=int,
    metavar="N",
    help="Run each path N times, each in a fresh process; report bits that change.",
)
@click.option(
    "--no-cache", is_flag=True, help="Run everything, also what an earlier run has the result of."
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    default="table",
    help="How the result is written to stdout [table].",
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
    pyproject.toml, which also gives the defaults of --timeout, --fail-on and --out.
    """
    from parity.api import options, select
    from parity.config import load_config

    config = load_config(Path.cwd())
    how = options(config, say=_say, cache=not no_cache, **chosen)
    selection = select(targets, k=expression, paths=split(paths), config=config)
    _complain(selection.errors)
    if kind == "github":
        from parity.report.github import mistakes

        write(mistakes(selection.errors))
    if not selection.cases:
        return USAGE
    if html is not None:
        from parity.report.html.page import check_writable

        check_writable(Path(html))
    result = _run(selection, how)
    write(_render(result, kind, verbose=verbose))
    if html is not None:
        from parity.report.html.run import write_run

        write_run(result, Path(html))
    return _worst([result.exit_code, *_codes(selection)])


@commands.command()
@click.argument("record")
@click.option(
    "--case", metavar="GLOB", help="Only these cases: an id, a file, or a glob over them."
)
@click.option("--path", "paths", metavar="P,P,…", help="Only the rows of these paths.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    default="table",
    help="How it is written to stdout [table].",
)
@click.option("-v", "--verbose", is_flag=True, help="A table for every case, also for a fine one.")
def show(record: str, case: str | None, paths: str | None, kind: str, verbose: bool) -> int:
    """Show a run from its record, past or still going on.

    Exits with 0 whatever the run found, with 5 if --case or --path matches nothing.
    """
    from parity.record.result import open_record

    result = open_record(record, case=case, paths=split(paths))
    write(_render(result, kind, verbose=verbose))
    return OK


commands.add_command(diff)
commands.add_command(accept)
commands.add_command(report)


@commands.command("list")
@_selectors
def list_(targets: tuple[str, ...], expression: str | None, paths: str | None) -> int:
    """Print the full id of every case and path, one to a line."""
    from parity.api import select
    from parity.config import load_config

    selection = select(targets, k=expression, paths=split(paths), config=load_config(Path.cwd()))
    _complain(selection.errors)
    write(f"{item.id}\n" for item in selection.items)
    return _worst(_codes(selection))


@commands.command()
@click.argument("targets", nargs=-1, metavar="[FILES|DIRS]...")
def validate(targets: tuple[str, ...]) -> int:
    """Check case files without running anything."""
    from parity.api import select
    from parity.config import load_config

    selection = select(targets, config=load_config(Path.cwd()))
    _complain(selection.errors)
    cases = sum(len(file.cases) for file in selection.files)
    files = len(selection.files)
    valid = f"{plural(cases, 'case')} in {plural(files, 'file')}"
    write([f"{valid} {'is' if cases == 1 else 'are'} valid\n"])
    return _worst(_codes(selection))


@commands.command()
@click.argument("op")
@click.option("-o", "--output", metavar="FILE", help="Write it there instead of to stdout.")
def new(op: str, output: str | None) -> int:
    """Print a commented case file for an op."""
    from parity.casefile.new import template

    name = Path(output).stem if output else op
    text = template(op, re.sub(r"[^A-Za-z0-9_.-]+", "_", name))
    if output is None:
        write([text])
        return OK
    try:
        with open(output, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(f"{output}: exists already", hint="name another file") from None
    except OSError as error:
        raise UserError(f"{output}: cannot be written ({error.strerror})") from None
    print(f"wrote {output}; parity validate {output} checks it", file=sys.stderr)
    return OK


@commands.command("import")
@click.argument("source", type=click.Choice(["jax-harnesses"]))
@click.option(
    "--group", "groups", multiple=True, required=True, help="One or more of JAX's groups."
)
@click.option("-o", "--output", metavar="DIR", required=True, help="A new folder for the cases.")
@click.option(
    "--python", metavar="INTERPRETER", help="Python of the environment under test [this one]."
)
def import_(source: str, groups: tuple[str, ...], output: str, python: str | None) -> int:
    """Write case files of the test harnesses of the installed JAX.

    They are data; running them needs nothing of JAX's test code. A harness that no case file can
    say is named on stderr with the reason.
    """
    from parity.importing import import_jax_harnesses

    imported = import_jax_harnesses(groups, Path(output), python=python)
    for name, reason in imported.left_out.items():
        print(f"{name}: left out: {reason}", file=sys.stderr)
    if imported.files:
        print(f"parity run {output} runs them", file=sys.stderr)
    write([f"{imported.summary()}\n"])
    return OK if imported.files else NOTHING


@commands.command()
def schema() -> int:
    """Print the JSON Schema of case files, for editors."""
    from parity.casefile.json_schema import json_schema
    from parity.record.encoding import dumps

    write([dumps(json_schema(), indent=2), "\n"])
    return OK


@commands.command()
@click.option(
    "--python", metavar="INTERPRETER", help="Python of the environment under test [this one]."
)
def doctor(python: str | None) -> int:
    """Say what an environment has and which paths it can run.

    Exits with 2 if it can run none.
    """
    from parity.doctor import diagnose

    diagnosis = diagnose(python)
    write(f"{line}\n" for line in diagnosis.lines())
    return OK if diagnosis.usable else USAGE


@commands.group(cls=_Commands)
def cache() -> None:
    """Look after the results that need not be run again."""


@cache.command()
@_in_reports
def info(out: str | None) -> int:
    """Say how many results are kept, and where."""
    with _cache(out) as kept:
        found = kept.info()
        write(
            [f"{plural(found.entries, 'result')}, {found.size / 2**20:.1f} MiB in {found.file}\n"]
        )
    return OK


@cache.command()
@_in_reports
def clear(out: str | None) -> int:
    """Forget every result that is kept."""
    with _cache(out) as kept:
        write([f"{plural(kept.clear(), 'result')} removed from {kept.file}\n"])
    return OK


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point of the command `parity`."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = invoke(arguments)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        mute()
    sys.exit(code)


def invoke(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; SIGTERM ends it as Ctrl-C does."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = commands.main(
            None if arguments is None else list(arguments), "parity", standalone_mode=False
        )
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return USAGE
    except click.UsageError as error:
        _complain([_usage_error(error)])
        return USAGE
    except NothingSelected as error:
        _complain([error])
        return NOTHING
    except UserError as error:
        _complain([error])
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - whatever was not foreseen is our own fault
        traceback.print_exc()
        print(
            "\nerror: this is a fault of parity itself, not of your case; "
            "please report it with the lines above",
            file=sys.stderr,
        )
        return FAULT
    return code if isinstance(code, int) else OK


def _usage_error(error: click.UsageError) -> UserError:
    """click's complaint in the form of ours."""
    command = error.ctx.command_path if error.ctx else "parity"
    hint = f"see {command} --help"
    if isinstance(error, click.NoSuchOption):
        message = f"unknown option of {command} (got {error.option_name})"
        if error.possibilities:
            hint = f"did you mean '{sorted(error.possibilities)[0]}'?"
        return UserError(message, hint=hint)
    return UserError(error.format_message().rstrip("."), hint=hint)


def _run(selection: Selection, how: Options) -> RunResult:
    from parity.engine.run import run_cases
    from parity.report.progress import Progress

    with Progress(len(selection.cases)) as progress:
        return run_cases(selection.cases, how, progress=progress)


def _cache(out: str | None) -> Cache:
    """The cache beside the records."""
    from parity.config import load_config
    from parity.record.cache import Cache

    config = load_config(Path.cwd())
    if out is None and config.reports is None:
        raise UserError(
            "no folder for records is configured",
            hint="--out DIR names it, or reports in [tool.parity] of pyproject.toml",
        )
    return Cache(Path(out) if out is not None else config.root / str(config.reports))


def _render(result: RunResult, kind: str, *, verbose: bool) -> Iterator[str]:
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
            _complain([error])


def _codes(selection: Selection) -> list[int]:
    return [USAGE] if selection.errors else [OK]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _worst(codes: Iterable[int]) -> int:
    """The exit code that takes precedence."""
    return min(codes, key=_PRECEDENCE.index)


def _complain(errors: Iterable[UserError]) -> None:
    """Mistakes of the user on stderr, each with its hint."""
    for error in errors:
        every = [error, *error.others] if isinstance(error, CaseFileError) else [error]
        for one in every:
            prefix = "" if isinstance(one, CaseFileError) else "error: "
            print(f"{prefix}{one}", file=sys.stderr)
