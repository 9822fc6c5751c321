"""The command line: thin over `parity.api`; stdout carries data, stderr everything else."""

from __future__ import annotations

import difflib
import re
import signal
import sqlite3
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from parity import __version__
from parity.commands.accept import accept
from parity.commands.codes import FAULT, INTERRUPTED, NOTHING, OK, USAGE, complain
from parity.commands.diff import diff
from parity.commands.explain import explain
from parity.commands.fuzz import fuzz
from parity.commands.report import report
from parity.commands.run import run
from parity.commands.selection import exit_code, selected, selectors
from parity.commands.show import show
from parity.commands.stdout import mute, write
from parity.commands.values import Choice
from parity.errors import NothingSelected, UserError
from parity.record.schema import DAMAGED_HINT, damaged
from parity.report.numbers import plural

if TYPE_CHECKING:
    from parity.record.cache import Cache

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


commands.add_command(run)
commands.add_command(show)
commands.add_command(diff)
commands.add_command(explain)
commands.add_command(fuzz)
commands.add_command(accept)
commands.add_command(report)


@commands.command("list")
@selectors
def list_(targets: tuple[str, ...], expression: str | None, paths: str | None) -> int:
    """Print the full id of every case and path, one to a line."""
    selection = selected(targets, expression, paths)
    write(f"{item.id}\n" for item in selection.items)
    return exit_code(selection)


@commands.command()
@click.argument("targets", nargs=-1, metavar="[FILES|DIRS]...")
def validate(targets: tuple[str, ...]) -> int:
    """Check case files without running anything."""
    selection = selected(targets)
    cases = sum(len(file.cases) for file in selection.files)
    files = len(selection.files)
    valid = f"{plural(cases, 'case')} in {plural(files, 'file')}"
    write([f"{valid} {'is' if cases == 1 else 'are'} valid\n"])
    return exit_code(selection)


@commands.command()
@click.argument("op")
@click.option("-o", "--output", metavar="FILE", help="Write it there instead of to stdout.")
def new(op: str, output: str | None) -> int:
    """Print a commented case file for an op, callable, flax or steps."""
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
@click.argument("source", type=Choice(["jax-harnesses"]))
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
        complain([_usage_error(error)])
        return USAGE
    except NothingSelected as error:
        complain([error])
        return NOTHING
    except UserError as error:
        complain([error])
        return USAGE
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            return _fault()
        complain([UserError(f"the record {damaged(error)}", hint=DAMAGED_HINT)])
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - whatever was not foreseen is our own fault
        return _fault()
    return code if isinstance(code, int) else OK


def _fault() -> int:
    """What is said of the exception that is being handled, none of which was foreseen."""
    traceback.print_exc()
    print(
        "\nerror: this is a fault of parity itself, not of your case; "
        "please report it with the lines above",
        file=sys.stderr,
    )
    return FAULT


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
