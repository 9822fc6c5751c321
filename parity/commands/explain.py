"""`parity explain`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from parity import paths as registry
from parity.casefile.problem import did_you_mean
from parity.commands.codes import FINDING, OK
from parity.commands.selection import selected
from parity.commands.stdout import shape, write
from parity.commands.values import Choice
from parity.config import load_config
from parity.errors import UserError

if TYPE_CHECKING:
    from parity.casefile.case import Case
    from parity.engine.environment import Environment
    from parity.engine.workers import Workers
    from parity.explain.explanation import Explanation
    from parity.explain.script import Reproduction

FORMATS = ("table", "json", "markdown")
SECONDS = 120.0


@click.command()
@click.argument("case", metavar="CASE")
@click.option("-k", "expression", metavar="EXPR", help="Which case, as pytest's -k says it.")
@click.option("--path", metavar="P", help="The path that differs; one that CASE names in brackets.")
@click.option("--against", metavar="B", help="The path it is compared with [the baseline].")
@click.option(
    "--budget",
    "seconds",
    type=float,
    default=SECONDS,
    metavar="S",
    help="Seconds that it may take [120].",
)
@click.option(
    "--python", metavar="INTERPRETER", help="Python of the environment under test [this one]."
)
@click.option("--env", metavar="NAME[=PYTHON]", help="The environment, as of `parity run`.")
@click.option("--script", metavar="FILE", help="Write a script that shows it without parity.")
@click.option(
    "--mlir", metavar="FILE", help="Write the program as StableHLO, with inputs and what to expect."
)
@click.option(
    "--reduce",
    "reduced",
    metavar="FILE",
    help="Write the smallest case that differs for the same reason.",
)
@click.option(
    "--format", "kind", type=Choice(FORMATS), default="table", help="How it is written to stdout."
)
def explain(
    case: str,
    expression: str | None,
    path: str | None,
    against: str | None,
    seconds: float,
    python: str | None,
    env: str | None,
    script: str | None,
    mlir: str | None,
    reduced: str | None,
    kind: str,
) -> int:
    """Say why a path of a case differs from another one.

    CASE is an id, with or without [path], or a file or glob that names one case. It tells in which
    arithmetic the path computes, which switch brings it back, after which lines a barrier does,
    and where along the program the difference arises.

    Exits with 1 if the path differs, with 0 if it does not.
    """
    from parity.api import options
    from parity.engine.workers import Workers
    from parity.explain.explanation import explain as why

    if not seconds > 0:
        raise UserError(f"wrong budget (got {seconds:g}; allowed a positive number of seconds)")
    config = load_config(Path.cwd())
    how = options(config, say=_say, python=python, env=(env,) if env else ())
    (environment,) = how.environments
    one, path = _one(case, expression, path, against)
    files = [Path(name) for name in (script, mlir, reduced) if name is not None]
    for file in files:
        _check_new(file)
    with Workers(how.limits) as workers:
        found = why(
            workers, one, path, environment, against=against, seconds=seconds,
            say=lambda part: _say(f"{part} …"),
        )  # fmt: skip
        if script is not None:
            _reproduce(workers, found, Path(script), environment)
        if mlir is not None:
            _module(workers, found, Path(mlir), environment)
        if reduced is not None:
            _reduce(workers, found, Path(reduced), environment, seconds)
    write(_rendered(found, kind))
    return FINDING if found.differs else OK


def _one(
    target: str, expression: str | None, path: str | None, against: str | None
) -> tuple[Case, str]:
    """The case that is named, and its path."""
    selection = selected((target,), expression)
    if selection.errors:
        raise UserError(f"{target} cannot be explained before its case file is mended")
    if len(selection.cases) != 1:
        listed = [case.id for case, _ in selection.cases]
        shown = "; ".join(listed[:3]) + ("; …" if len(listed) > 3 else "")
        raise UserError(
            f"explain takes one case (got {len(listed)}: {shown})",
            hint=f"parity explain '{listed[0]}' --path P, or -k EXPR",
        )
    ((case, paths),) = selection.cases
    if path is None:
        others = [name for name in paths if name not in (against or case.baseline, "")]
        if len(others) != 1 or len(paths) == len(case.paths) > 2:
            raise UserError(
                f"which path of {case.id}? (allowed {', '.join(_paths(case))})",
                hint=f"--path {others[0] if others else case.paths[0]}",
            )
        (path,) = others
    for name in filter(None, (path, against)):
        if name not in _paths(case):
            raise UserError(
                f"unknown path (got {name}; allowed {', '.join(_paths(case))})",
                hint=did_you_mean(name, _paths(case)),
            )
    return case, path


def _paths(case: Case) -> tuple[str, ...]:
    """Every path that may be asked of a case: its own, variants among them, and all others."""
    return tuple(dict.fromkeys((*case.paths, *registry.names())))


def _reproduce(workers: Workers, found: Explanation, file: Path, environment: Environment) -> None:
    from parity.explain.script import script

    made = script(
        workers, found.case, found.path, environment,
        against=found.against, rows=found.rows, name=file.name,
    )  # fmt: skip
    _save(made, file, f"python {file} shows it")


def _module(workers: Workers, found: Explanation, file: Path, environment: Environment) -> None:
    from parity.explain.script import module

    made = module(workers, found.case, environment, references=found.references, rows=found.rows)
    _save(made, file, "main gives what the program does, then what it declares")


def _reduce(
    workers: Workers, found: Explanation, file: Path, environment: Environment, seconds: float
) -> None:
    from parity.explain.reduction import reduce
    from parity.explain.script import Reproduction
    from parity.report.numbers import plural

    _say("reduction …")
    made = reduce(
        workers, found.case, found.path, environment, against=found.against, seconds=seconds
    )
    before, after = made.elements
    sizes = f"{plural(after, 'element')} instead of {before}, {plural(made.runs, 'run')}"
    rest = "" if made.finished else "; there was no time to make it smaller"
    _save(Reproduction(made.text, made.missing), file, f"parity run {file} runs it ({sizes}{rest})")


def _save(made: Reproduction, file: Path, what: str) -> None:
    """Write a file, or say why there is none."""
    if made.missing:
        _say(f"{file} was not written: {made.missing}")
        return
    try:
        with open(file, "x", encoding="utf-8") as opened:
            opened.write(made.text)
    except OSError as error:
        raise UserError(f"{file}: cannot be written ({error.strerror})") from None
    _say(f"wrote {file}; {what}")


def _check_new(file: Path) -> None:
    """See that a file can be written, before minutes are spent."""
    if file.exists():
        raise UserError(f"{file}: exists already", hint="name another file")
    if not file.absolute().parent.is_dir():
        raise UserError(f"{file}: there is no folder {file.parent}", hint="make it first")


def _rendered(found: Explanation, kind: str) -> Iterator[str]:
    if kind == "json":
        from parity.report.explain.json import explanation_json

        return iter([explanation_json(found)])
    from parity.report.explain.text import markdown_lines, terminal_lines

    if kind == "markdown":
        return markdown_lines(found)
    from parity.report.render import printed

    width, color = shape()
    return printed(terminal_lines(found, width), color=color)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
