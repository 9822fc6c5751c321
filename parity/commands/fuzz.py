"""`parity fuzz`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from parity.casefile.problem import did_you_mean
from parity.commands.codes import FINDING, INTERRUPTED, OK
from parity.commands.stdout import shape, split, write
from parity.commands.values import Choice, Duration
from parity.config import load_config
from parity.errors import UserError

if TYPE_CHECKING:
    from rich.text import Text

    from parity.fuzzing.groups import Campaign

FORMATS = ("table", "json")
_OFTEN = 30.0
"""Seconds after which there is word of a campaign that finds nothing new."""

PATHS = "eager,jit,jax2tf-native,jax2tf-nonnative"


@click.command()
@click.option("--op", required=True, metavar="OP", help="The op, such as conv_general_dilated.")
@click.option(
    "--paths", default=PATHS, metavar="P,P,…", help=f"The first is compared with [{PATHS}]."
)
@click.option(
    "--budget", type=Duration(), default="1m", metavar="TIME", help="How long, such as 10m [1m]."
)
@click.option("--seed", type=int, default=0, help="Another one gives other cases [0].")
@click.option("--examples", type=int, metavar="N", help="Make at most so many cases.")
@click.option(
    "-o",
    "--out",
    "output",
    metavar="DIR",
    help="A new folder for the case files [fuzz-OP-SEED].",
)
@click.option(
    "--python", metavar="INTERPRETER", help="Python of the environment under test [this one]."
)
@click.option("--env", metavar="NAME[=PYTHON]", help="The environment, as of `parity run`.")
@click.option(
    "--format", "kind", type=Choice(FORMATS), default="table", help="How it is written to stdout."
)
def fuzz(
    op: str,
    paths: str,
    budget: float,
    seed: int,
    examples: int | None,
    output: str | None,
    python: str | None,
    env: str | None,
    kind: str,
) -> int:
    """Look for cases on which paths disagree.

    Random cases of an op are run on all paths. Those that disagree are grouped by path, grade and
    cause; of each group one is reduced and written as a case file, at once.

    Exits with 1 if something was found. Ctrl-C ends it early and leaves what was found. Needs the
    extra fuzz.
    """
    if find_spec("hypothesis") is None:
        raise UserError("fuzzing needs Hypothesis", hint="pip install 'parity-harness[fuzz]'")
    from parity.api import options
    from parity.engine.workers import Workers
    from parity.fuzzing.campaign import fuzz as look

    names = _paths(paths)
    _check_op(op)
    config = load_config(Path.cwd())
    how = options(config, say=_say, python=python, env=(env,) if env else ())
    folder = _folder(output or f"fuzz-{op}-{seed}")
    progress = _Progress()
    with Workers(how.limits) as workers:
        found = look(
            workers, op, names, folder, how.environments[0],
            seconds=budget, seed=seed, examples=examples, found=progress,
        )  # fmt: skip
    write(_rendered(found, kind))
    if not found.groups:
        folder.rmdir()
    if found.interrupted:
        return INTERRUPTED
    return FINDING if found.groups else OK


def _paths(text: str) -> tuple[str, ...]:
    from parity import paths as registry

    names = tuple(dict.fromkeys(split(text) or ()))
    known = registry.names()
    for name in names:
        if name not in known:
            raise UserError(
                f"unknown path (got {name or 'nothing'}; allowed {', '.join(known)})",
                hint=did_you_mean(name, known),
            )
    if len(names) < 2:
        raise UserError(f"paths are compared with the first (got {text}; allowed two or more)")
    return names


def _check_op(op: str) -> None:
    from parity.fuzzing import ops

    if op not in ops.names():
        allowed = ", ".join(ops.names())
        raise UserError(
            f"no op that can be fuzzed (got {op}; allowed {allowed})",
            hint=did_you_mean(op, ops.names()),
        )


def _folder(name: str) -> Path:
    """The new folder of the case files."""
    folder = Path(name)
    if folder.exists():
        raise UserError(f"{folder}: exists already", hint="name a new folder with -o")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made ({error.strerror})") from None
    return folder


class _Progress:
    """Says of each new group that it was found, and every so often how far it is."""

    def __init__(self) -> None:
        self._groups = 0
        self._last = 0.0

    def __call__(self, campaign: Campaign) -> None:
        when = f"{campaign.seconds:.0f} s, {campaign.cases} cases"
        new = campaign.groups[self._groups :]
        for group in new:
            _say(f"{when}: {group.path}: {group.signature.said}: {group.file}")
        if not new and campaign.seconds - self._last >= _OFTEN:
            _say(when)
        if new or campaign.seconds - self._last >= _OFTEN:
            self._last = campaign.seconds
        self._groups = len(campaign.groups)


def _rendered(found: Campaign, kind: str) -> Iterator[str]:
    if kind == "json":
        from dataclasses import asdict

        from parity.record.encoding import dumps

        flat = {"format": "parity-fuzz/1", **asdict(found)}
        for group in flat["groups"]:
            group["file"] = str(group["file"])
        return iter([dumps(flat, indent=2), "\n"])
    from parity.report.render import printed

    width, color = shape()
    return printed(_table(found, width), color=color)


def _table(found: Campaign, width: int | None) -> Iterator[Text]:
    from rich.text import Text

    from parity.report.columns import Column, layout
    from parity.report.numbers import plural

    groups = found.groups
    if groups:
        columns = [
            Column(("path", ""), [Text(one.path) for one in groups]),
            Column(("what", ""), [Text(one.signature.said) for one in groups]),
            Column(("cases", ""), [Text(str(one.count)) for one in groups], right=True),
            Column(("elements", "left"), [Text(str(one.elements)) for one in groups], right=True),
            Column(("why", ""), [Text(one.signature.why) for one in groups]),
            Column(("case file", ""), [Text(str(one.file)) for one in groups]),
        ]
        yield from layout(columns, width)
        yield Text()
    ran = f"{plural(found.cases, 'case')} of {found.op} in {found.seconds:.0f} s"
    refused = f"{found.refused} refused by {found.paths[0]}, {found.invalid} not valid"
    verdict = f"findings: {plural(len(groups), 'group')}" if groups else "ok: nothing differs"
    if found.interrupted:
        verdict = f"interrupted: {plural(len(groups), 'group')}"
    yield Text(f"{verdict} | {ran} (seed {found.seed}; {refused})")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
