"""A run as workflow commands of GitHub Actions, which it shows beside the lines of case files.

Source: "Workflow commands for GitHub Actions" (docs.github.com); the escapes of `command.ts` in
actions/toolkit; the limits of actions/runner.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from parity.compare.expect import holds, stale_outputs
from parity.config import nearest_root
from parity.errors import CaseFileError, UserError
from parity.report.comment import run_markdown
from parity.report.html.characters import spelled
from parity.report.numbers import plural
from parity.report.summary import Alike, Tally, badness, counts, finding, last_line
from parity.report.table import expectations, verdict_of

if TYPE_CHECKING:
    from parity.casefile.case import Case
    from parity.compare.result import CaseResult
    from parity.record.result import RunResult

PER_STEP = 10
"""Annotations of a kind that GitHub shows of one step; the others it drops without a word."""

LONGEST = 4_000
"""Characters of a message; the runner cuts at 4,096."""

SUMMARY = 900 << 10
"""Bytes of a step's summary, of which GitHub takes 1 MiB: of a larger one it shows nothing."""

_LEAST = 8 << 10
_SECONDS = 5


def workflow_commands(result: RunResult) -> Iterator[str]:
    """One command for the findings of each cause in a file, the worst first, and lines for the log.

    What fails is an error at the line of the worst case or, where an expectation is stale, of that
    expectation. What is expected asks for nothing and makes one notice in all.
    """
    tally, places = Tally(), dict[tuple[str, str], int]()
    files: dict[str, Tally] = {}
    for _, group in groupby(enumerate(result.cases), key=lambda pair: pair[1].case.id):
        pairs = list(group)
        results = [one for _, one in pairs]
        tally.add(results)
        files.setdefault(results[0].case.id.partition("::")[0], Tally()).add(results)
        places |= {(one.case.id, one.environment): place for place, one in pairs}
    findings = _by_file(files.values())
    errors = [_interrupted(result)] if result.interrupted else []
    shown = findings[: PER_STEP - len(errors)]
    if len(shown) < len(findings):
        shown.pop()
    for alike in sorted(shown, key=lambda one: badness(one.worst)):
        place = places[alike.worst.case, alike.worst.environment]
        errors.append(_error(result, result.cases[place], alike))
    left = findings[len(shown) :]
    if left:
        rows = plural(sum(alike.rows for alike in left), "row")
        said = f"{len(left)} more findings, {rows}: not shown here, since GitHub shows "
        errors.append(command("error", f"{said}{PER_STEP} errors of a step", title=_title("more")))
    yield from errors
    yield from _expected(tally)
    yield _plain(counts(result, tally).plain)
    worst = tally.findings()
    yield _plain(last_line(result, tally, worst[0].worst.case if worst else None).plain)


def _by_file(tallies: Iterable[Tally]) -> list[Alike]:
    """What fails of each file by cause: the worst of each file first, then the others."""
    of_files = [tally.findings() for tally in tallies]
    ranked = [(rank, alike) for found in of_files for rank, alike in enumerate(found)]
    ranked.sort(key=lambda one: (one[0] > 0, badness(one[1].worst)))
    return [alike for _, alike in ranked]


def mistakes(errors: Iterable[UserError]) -> Iterator[str]:
    """A command for each error of a case file or of usage, at its line."""
    every = [
        one
        for error in errors
        for one in (error, *(error.others if isinstance(error, CaseFileError) else ()))
    ]
    shown = every if len(every) <= PER_STEP else every[: PER_STEP - 1]
    for error in shown:
        place = {}
        what = str(error)
        if isinstance(error, CaseFileError):
            place = {"file": repository_path(Path(error.file)), "line": str(error.line or 1)}
            place |= {"col": str(error.col)} if error.col else {}
            what = "\n".join(filter(None, (error.what, error.hint and f"hint: {error.hint}")))
        yield command("error", what, **place, title=_title("case file"))
    if len(shown) < len(every):
        said = f"{len(every) - len(shown)} more errors in case files"
        yield command("error", said, title=_title("more"))


def append_summary(result: RunResult, file: Path) -> None:
    """Append the run to the file that GitHub shows as the summary of a step.

    Raises:
        UserError: it cannot be written.
    """
    try:
        room = SUMMARY - (file.stat().st_size if file.exists() else 0)
        with file.open("a", encoding="utf-8", newline="\n") as stream:
            if room >= _LEAST:
                stream.writelines(run_markdown(result, limit=room, size=_bytes))
    except OSError as error:
        raise UserError(f"{file}: cannot be written ({error.strerror})") from None
    if room < _LEAST:
        raise UserError(f"{file}: is full", hint="run parity in a step of its own")


def command(name: str, message: str, **properties: str) -> str:
    """A workflow command as a line: `::error file=cases/conv.yaml,line=3::…`."""
    text = "\n".join(map(spelled, message.splitlines()))
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}… ({len(text) - LONGEST} more characters)"
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {given}::{_data(text)}\n"


def repository_path(file: Path, id_: str = "") -> str:
    """A file relative to the root of its repository, where GitHub looks for it.

    That root is git's or, where git does not tell, the workspace of GitHub Actions.

    Args:
        file: absolute, or relative to the current folder.
        id_: of a case in it, which says where the file is in the project, should the file be one of
            another machine.
    """
    here = file if file.exists() or not id_ else nearest_root(Path.cwd()) / id_.partition("::")[0]
    path = here.resolve()
    workspace = os.environ.get("GITHUB_WORKSPACE")
    roots = [_top_level(path.parent), Path(workspace).resolve() if workspace else None]
    for root in roots:
        if root is not None and path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return id_.partition("::")[0] or file.as_posix()


def _error(result: RunResult, case: CaseResult, alike: Alike) -> str:
    worst = alike.worst
    said = finding(worst, rows=alike.rows, cases=alike.cases).plain
    lines = [said.removeprefix(f"{worst.status}: ")]
    several = f" in {worst.environment}" if len(result.environments) > 1 else ""
    which = ("worst: " if worst.baseline else "first: ") if alike.rows > 1 else ""
    lines.append(f"{which}{worst.case}[{worst.path}]{several}")
    return command(
        "error",
        "\n".join(lines),
        file=repository_path(case.case.file, case.case.id),
        line=str(_line(result, case, alike)),
        title=_title(f"{worst.path} {verdict_of(worst)}", worst.status),
    )


def _line(result: RunResult, of: CaseResult, alike: Alike) -> int:
    """The line of the case or, of a stale row, of the expectation that does not come true."""
    case: Case = of.case
    worst = alike.worst
    if worst.status == "stale":
        environment = result.environments.get(of.environment, {})
        for entry in case.expect:
            stale = holds(entry, environment) and worst.path in entry.paths
            if stale and stale_outputs(entry, worst.path, of.rows):
                return entry.line
    return case.line


def _expected(tally: Tally) -> Iterator[str]:
    lines = [line.plain for line in expectations(list(tally.expected.values()))]
    if lines:
        rows = "\n".join(line.removeprefix("expected: ") for line in lines)
        yield command("notice", rows, title=_title("as expected"))


def _interrupted(result: RunResult) -> str:
    said = f"interrupted after {len(result.cases)} of {plural(result.wanted, 'result')}"
    return command("error", said, title=_title("interrupted"))


def _title(what: str, status: str = "") -> str:
    return f"parity: {'stale: ' if status == 'stale' else ''}{what}"


def _plain(text: str) -> str:
    """A line of the log that is no command, also not of the old form `##[name]`."""
    return f"{spelled(text).replace('##[', '## [')}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(spelled(text)).replace(":", "%3A").replace(",", "%2C")


def _bytes(text: str) -> int:
    return len(text.encode("utf-8"))


@cache
def _top_level(folder: Path) -> Path | None:
    """The root of the working tree that a folder lies in, None where there is none or no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "--show-toplevel"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return Path(done.stdout.strip()).resolve()
