"""`parity accept`."""

from __future__ import annotations

import datetime
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from parity.casefile.case import GRADES
from parity.casefile.problem import did_you_mean
from parity.commands.stdout import shape, split, write
from parity.errors import NothingSelected, UserError
from parity.report.numbers import plural

if TYPE_CHECKING:
    from parity.accepting.change import Change
    from parity.accepting.choice import LeftOut
    from parity.accepting.evidence import Evidence

_COLORS = {"+": "green", "-": "red", "@": "cyan"}
_SETTLED = ("", "0", "false")
"""Values of the environment variable CI that say there is none."""


@click.command()
@click.argument("record", metavar="RECORD|DIFF")
@click.option("--case", metavar="GLOB", help="These cases: an id, a file, or a glob over them.")
@click.option("--path", "paths", metavar="P,P,…", help="The rows of these paths.")
@click.option("--reason", metavar="TEXT", help="Why it is accepted: `because` of the entry.")
@click.option("--link", metavar="URL", help="Where that is discussed.")
@click.option("--until", metavar="YYYY-MM-DD", help="The last day on which it is accepted.")
@click.option(
    "--when",
    multiple=True,
    metavar="NAME=SPEC",
    help='Only in these environments, such as jax=">=0.7"; may be repeated.',
)
@click.option(
    "--grade",
    "grades",
    metavar="G,G,…",
    help="Only rows of these grades; mismatched must be named to be accepted.",
)
@click.option("--worse", is_flag=True, help="Accept findings; so it is without --better.")
@click.option("--better", is_flag=True, help="Accept rows that are better than is expected.")
@click.option("--stale", is_flag=True, help="List the entries that no longer come true.")
@click.option("--remove", is_flag=True, help="With --stale: take them out.")
@click.option("--dry-run", is_flag=True, help="Show the edit and write nothing.")
@click.option("--yes", is_flag=True, help="Write without asking.")
def accept(
    record: str,
    case: str | None,
    paths: str | None,
    reason: str | None,
    link: str | None,
    until: str | None,
    when: tuple[str, ...],
    grades: str | None,
    worse: bool,
    better: bool,
    stale: bool,
    remove: bool,
    dry_run: bool,
    yes: bool,
) -> int:
    """Write what a run found into its case files as expected.

    RECORD is that of a run. DIFF is what `parity diff --format json` wrote: then what got worse
    (with --better: better) from A to B is accepted, as it is in B.

    The edit is shown as a diff, then asked for. Crashes, timeouts, exhausted memory and bits that
    change from run to run are never accepted. Does not run in CI.
    """
    _refuse_ci()
    if remove and not stale:
        raise UserError("--remove stands beside --stale only")
    if worse and better:
        raise UserError(
            "--worse and --better exclude each other", hint="accept one, then the other"
        )
    if stale:
        return _stale(record, case, split(paths), remove=remove, dry_run=dry_run, yes=yes)
    from parity.accepting.change import change
    from parity.accepting.choice import Wanted, choose
    from parity.accepting.edits import Terms
    from parity.accepting.edits import accept as edits
    from parity.accepting.evidence import gather
    from parity.accepting.source import opened

    names = split(paths)
    missing = [name for name, of in (("--case", case), ("--path", names)) if of is None]
    if case is None or names is None:
        raise UserError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: "
            "both say what is accepted",
            hint="--case '*' --path jit takes every case on one path",
        )
    source = opened(record)
    wanted = Wanted(
        case=case,
        paths=names,
        better=better,
        grades=_grades(grades),
        when=_when(when),
        worse=source.worse,
    )
    terms = Terms(because=_line(reason), link=_address(link), until=_day(until), when=wanted.when)
    changes, left_out, rows = [], [], 0
    files = gather(source.record, case=case, paths=names)
    for evidence in files:
        taken, left = choose(evidence, wanted)
        left_out += left
        rows += len(taken)
        if not terms.because and any(one.says for one in taken):
            raise UserError("an entry needs a reason", hint="--reason 'why it is accepted'")
        changes.append(change(evidence, edits(evidence, taken, terms), taken))
    _say_left_out(left_out)
    done = [one for one in changes if one is not None]
    if not done:
        raise _nothing(record, files, wanted.better, left_out)
    return _finish(done, f"accepts {plural(rows, 'row')}", dry_run=dry_run, yes=yes)


def _stale(
    record: str,
    case: str | None,
    paths: Sequence[str] | None,
    *,
    remove: bool,
    dry_run: bool,
    yes: bool,
) -> int:
    from parity.accepting import stale
    from parity.accepting.change import change
    from parity.accepting.evidence import gather

    changes, entries, kept = [], 0, 0
    for evidence in gather(record, case=case, paths=paths):
        found = stale.stale(evidence, case=case, paths=paths)
        entries += len({one.index for one in found})
        kept += len({one.index for one in found if one.true_in})
        if not remove:
            write(stale.lines(evidence, found))
        else:
            changes.append(change(evidence, stale.remove(evidence, found)))
    if not remove or not entries:
        print(f"{_entries(entries)} stale", file=sys.stderr)
        return 0
    if kept:
        print(
            f"{_entries(kept)} true in one environment and stale in another; "
            "say by hand, under when, where",
            file=sys.stderr,
        )
    done = [one for one in changes if one is not None]
    return _finish(done, "takes out what is stale", dry_run=dry_run, yes=yes) if done else 1


def _entries(count: int) -> str:
    if count == 0:
        return "no entry of expect is"
    return "1 entry of expect is" if count == 1 else f"{count} entries of expect are"


def _finish(changes: Sequence[Change], what: str, *, dry_run: bool, yes: bool) -> int:
    """Show the edit, ask, write."""
    _, color = shape()
    for one in changes:
        write(click.style(line, fg=_COLORS.get(line[0])) if color else line for line in one.diff())
    print(f"{what} in {plural(len(changes), 'file')}", file=sys.stderr)
    if dry_run:
        return 0
    if not yes:
        if sys.stdin is None or not sys.stdin.isatty():
            raise UserError(
                "nothing is written, because there is no terminal to ask on",
                hint="--yes writes it, --dry-run shows it only",
            )
        if not click.confirm("Write it?", err=True):
            print("nothing is written", file=sys.stderr)
            return 0
    for one in changes:
        one.write()
        print(f"wrote {one.evidence.document.file}", file=sys.stderr)
    return 0


def _nothing(
    record: str, files: Sequence[Evidence], better: bool, left_out: Sequence[LeftOut]
) -> UserError:
    """Why nothing is accepted."""
    from parity.accepting.choice import is_better

    if left_out:
        return UserError("nothing is left to accept")
    what = "row that is better than expected" if better else "finding"
    other = sum(
        is_better(seen, row) is not better and is_better(seen, row) is not None
        for evidence in files
        for seen in evidence.seen
        for row in seen.rows
    )
    hint = f"--{'worse' if better else 'better'} accepts the others ({other})" if other else None
    return NothingSelected(f"{record}: no {what} among what --case and --path name", hint=hint)


def _say_left_out(left_out: Sequence[LeftOut]) -> None:
    for one in left_out:
        output = f" {one.row.output}" if one.row.output else ""
        print(f"left out: {one.row.case}[{one.row.path}]{output}: {one.why}", file=sys.stderr)


def _refuse_ci() -> None:
    variable = os.environ.get("CI", "")
    if variable.lower() not in _SETTLED:
        raise UserError(
            f"parity accept never runs in CI (got the environment variable CI={variable})",
            hint="run it where a person reads the diff, and commit that",
        )


def _line(reason: str | None) -> str:
    """A reason on one line."""
    line = " ".join((reason or "").split())
    if reason is not None and not line:
        raise UserError("--reason is empty")
    return line


def _address(link: str | None) -> str | None:
    if link is not None and not re.fullmatch(r"https?://[^\s/]+\S*", link):
        raise UserError(f"wrong --link (got {link}; allowed an address, https://…)")
    return link


def _day(until: str | None) -> datetime.date | None:
    if until is None:
        return None
    try:
        day = datetime.date.fromisoformat(until)
    except ValueError:
        raise UserError(f"wrong --until (got {until}; allowed YYYY-MM-DD)") from None
    today = datetime.date.today()
    if day < today:
        raise UserError(f"--until is past (got {day}; today is {today})")
    return day


def _grades(given: str | None) -> tuple[str, ...]:
    names = tuple(split(given) or ())
    for name in names:
        if name not in GRADES:
            raise UserError(
                f"unknown grade (got {name}; allowed {', '.join(GRADES)})",
                hint=did_you_mean(name, GRADES),
            )
    return names


def _when(given: Sequence[str]) -> dict[str, str]:
    from parity.casefile.messages import validated
    from parity.casefile.problem import Problem
    from parity.casefile.schema import WhenModel

    parted = [one.partition("=") for one in given]
    pairs = {name: spec for name, _, spec in parted if spec}
    if len(pairs) < len(parted):
        raise UserError(f"wrong --when (got {' '.join(given)}; allowed NAME=SPEC, each name once)")
    try:
        validated(WhenModel, pairs, ("when",))
    except ExceptionGroup as group:
        problem = group.exceptions[0]
        assert isinstance(problem, Problem)
        raise UserError(f"--when: {problem.what}", hint=problem.hint) from None
    return pairs
