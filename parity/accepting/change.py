"""A case file that is about to change: proven first, shown as a diff, written whole or not."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

from parity.accepting.choice import Taken
from parity.accepting.edits import Edits
from parity.accepting.evidence import Evidence, Seen, text_of
from parity.casefile.load import load
from parity.casefile.problem import Problem
from parity.compare.rows import Row
from parity.errors import CaseFileError, ParityFault
from parity.report.table import verdict_of


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
        CaseFileError: the text cannot be edited so, or another environment would not bear it.
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
    for before, after in zip(evidence.seen, evidence.judged(cases), strict=True):
        for old, new in zip(before.rows, after.rows, strict=True):
            is_taken = (id(before), old.path, old.output) in wanted
            if new.is_finding and (is_taken or not old.is_finding):
                raise _not_borne(evidence, after, new)
    return Change(evidence, text)


def _not_borne(evidence: Evidence, seen: Seen, row: Row) -> Exception:
    where = f"{row.case}[{row.path}]"
    if len({one.environment for one in evidence.seen}) == 1:
        return ParityFault(f"{where} is {verdict_of(row)} and would be {row.status} after the edit")
    versions = [f"{n}=={seen.versions[n]}" for n in ("jax", "tensorflow") if n in seen.versions]
    what = (
        f"what is accepted does not hold in every environment of the record: {where} would be "
        f"{row.status}, {verdict_of(row)}, in {seen.environment} ({', '.join(versions)})"
    )
    hint = 'say with --when where it holds, such as --when jax=">=0.7"'
    return CaseFileError(what, file=evidence.document.file, hint=hint)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)
