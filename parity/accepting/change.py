"""A case file that is about to change: proven first, shown as a diff, written whole or not."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from packaging.version import Version

from parity.accepting.choice import Taken
from parity.accepting.edits import Edits
from parity.accepting.evidence import Evidence, Seen, text_of
from parity.casefile.load import load
from parity.casefile.problem import Problem
from parity.compare.rows import Row
from parity.errors import CaseFileError, ParityFault, UserError
from parity.report.table import verdict_of

_TELLING = ("jax", "tensorflow")
"""Packages whose versions tell environments apart."""


@dataclass(frozen=True)
class Change:
    """The new text of a case file.

    Attributes:
        evidence: the file as it is.
        text: what it is to hold.
    """

    evidence: Evidence
    text: str

    def diff(self) -> Iterator[str]:
        """A unified diff, as `patch -p0` takes it."""
        name = self.evidence.document.file.as_posix()
        before, after = _lines(self.evidence.text), _lines(self.text)
        for line in difflib.unified_diff(before, after, name, name):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"

    def write(self) -> None:
        """Put the new text in the file's place, all of it or nothing; links and mode stay.

        Raises:
            CaseFileError: it cannot be written, or holds something else by now.
        """
        target, file = self.evidence.path.resolve(), self.evidence.document.file
        if text_of(target) != self.evidence.text:
            raise CaseFileError("has changed in the meantime; nothing is written", file=file)
        beside = ""
        try:
            handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            with os.fdopen(handle, "wb") as stream:
                stream.write(self.text.encode())
                stream.flush()
                os.fsync(stream.fileno())
            shutil.copymode(target, beside)
            os.replace(beside, target)
        except OSError as error:
            with suppress(OSError):
                os.unlink(beside)
            raise CaseFileError(f"cannot be written ({error.strerror})", file=file) from None


def change(evidence: Evidence, edits: Edits, taken: Collection[Taken] = ()) -> Change | None:
    """The change that edits amount to; None if that is none.

    The new text is loaded, and all that the record says of the file judged by it: what was taken is
    as expected, and nothing fails that did not fail before.

    Args:
        evidence: of the file.
        edits: of its `expect`.
        taken: the rows that must be as expected after it.

    Raises:
        CaseFileError: the text cannot be edited so.
        UserError: another environment would not bear it.
        ParityFault: the edits do not do what they are for.
    """
    try:
        text = edits.apply(evidence.text)
    except Problem as problem:
        raise evidence.document.error(problem) from None
    if text == evidence.text:
        return None
    cases = load(evidence.path, text=text).cases
    if [case.id for case in cases] != [case.id for case in evidence.cases]:
        raise ParityFault(f"{evidence.document.file}: the edit changes which cases there are")
    wanted = {(id(one.seen), one.row.path, one.row.output) for one in taken}
    obstacles = [
        (after, new)
        for before, after in zip(evidence.seen, evidence.judged(cases), strict=True)
        for old, new in zip(before.rows, after.rows, strict=True)
        if new.is_finding and (not old.is_finding or (id(before), old.path, old.output) in wanted)
    ]
    if obstacles:
        raise _not_borne(evidence, obstacles, taken)
    return Change(evidence, text)


def _not_borne(
    evidence: Evidence, obstacles: Sequence[tuple[Seen, Row]], taken: Collection[Taken]
) -> Exception:
    """Why an edit is not made: all that would fail after it, and where what is accepted holds."""
    if len({one.environment for one in evidence.seen}) == 1:
        _, row = obstacles[0]
        where = f"{row.case}[{row.path}]"
        return ParityFault(f"{where} is {verdict_of(row)} and would be {row.status} after the edit")
    lines = [
        f"\n  {row.case}[{row.path}] would be {row.status}, {verdict_of(row)}, "
        f"in {seen.environment} ({', '.join(_versions(seen))})"
        for seen, row in obstacles
    ]
    against = {seen.environment: seen for seen, _ in obstacles}
    holds = {one.seen.environment: one.seen for one in taken}
    holds = {name: seen for name, seen in holds.items() if name not in against}
    what = "what is accepted does not hold in every environment of the record:"
    return UserError(
        f"{evidence.document.file}: {what}{''.join(lines)}",
        hint=_where_it_holds(list(holds.values()), list(against.values())),
    )


def _versions(seen: Seen) -> list[str]:
    return [f"{n}=={seen.versions[n]}" for n in _TELLING if n in seen.versions]


def _where_it_holds(holds: Sequence[Seen], fails: Sequence[Seen]) -> str:
    """The `--when` that tells the environments in which it holds from the others, if one does."""
    if not holds:
        return "accept what each environment gives apart, each with its own --when"
    names = ", ".join(seen.environment for seen in holds)
    for package in _TELLING:
        inside, outside = (
            [Version(seen.versions[package]) for seen in side if package in seen.versions]
            for side in (holds, fails)
        )
        if not inside or len(inside) < len(holds) or len(outside) < len(fails):
            continue
        if min(inside) > max(outside):
            return f'it holds in {names}: --when {package}=">={min(inside)}"'
        if max(inside) < min(outside):
            return f'it holds in {names}: --when {package}="<{min(outside)}"'
    return f"it holds in {names}: say with --when what tells that from the others"


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)
