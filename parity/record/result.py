"""A whole run, as the engine returns it and as a record gives it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, overload

from parity.casefile.problem import did_you_mean
from parity.compare.result import CaseResult
from parity.compare.rows import Row, as_dict
from parity.errors import NothingSelected
from parity.record.encoding import loads
from parity.record.opening import Database, read
from parity.record.reader import Recorded

if TYPE_CHECKING:
    import pandas as pd


class Rows(Sequence[Row]):
    """Every row of some cases; read anew each time, so that no more than a case's are held.

    Args:
        cases: whose.
    """

    def __init__(self, cases: Sequence[CaseResult]) -> None:
        self._cases = cases

    def __iter__(self) -> Iterator[Row]:
        return (row for case in self._cases for row in case.rows)

    def __len__(self) -> int:
        if isinstance(self._cases, Recorded):
            return self._cases.row_count
        return sum(len(case.rows) for case in self._cases)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        if isinstance(at, slice):
            return tuple(self)[at]
        position = at + len(self) if at < 0 else at
        for row in islice(self, position, None) if position >= 0 else ():
            return row
        raise IndexError(at)


@dataclass(frozen=True)
class RunResult:
    """A whole run.

    Attributes:
        environments: by name, what the paths ran in.
        cases: each in each environment, in the order in which they were asked for; they may lie in
            a file and be read when they are looked at.
        wanted: how many were asked for; more than `cases` if the run was interrupted.
        interrupted: by Ctrl-C or worse.
        record: the file that keeps it, None if none does.
    """

    environments: Mapping[str, Mapping[str, str]]
    cases: Sequence[CaseResult]
    wanted: int
    interrupted: bool = False
    record: Path | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """What the paths ran in: of several environments the first, of none nothing."""
        return next(iter(self.environments.values()), {})

    @property
    def rows(self) -> Rows:
        """Every row of every case."""
        return Rows(self.cases)

    @cached_property
    def findings(self) -> int:
        """How many rows fail the run."""
        if isinstance(self.cases, Recorded):
            return self.cases.findings
        return sum(row.is_finding for row in self.rows)

    @property
    def verdict(self) -> str:
        """ "ok", "findings" or "interrupted"."""
        if self.interrupted:
            return "interrupted"
        return "findings" if self.findings else "ok"

    @property
    def exit_code(self) -> int:
        """0 fine, 1 a finding, 130 interrupted."""
        return {"ok": 0, "findings": 1, "interrupted": 130}[self.verdict]

    def table(self) -> pd.DataFrame:
        """One line per case, path and output, with every metric."""
        import pandas as pd

        return pd.DataFrame(map(as_dict, self.rows))


def open_record(
    file: Path | str, *, case: str | None = None, paths: Sequence[str] | None = None
) -> RunResult:
    """A past run; one that was killed, or still goes on, counts as interrupted.

    Args:
        file: its record.
        case: only these cases: an id, a file, or a glob over them.
        paths: only the rows of these paths.

    Raises:
        UserError: it is not a record, or not one that this version can read; NothingSelected if
            it has no such case or path.
    """
    db = read(Path(file))
    facts = dict(db.execute("SELECT key, value FROM run"))
    cases = Recorded(db)
    wanted = max(int(facts["wanted"]), len(cases))
    if case is not None or paths is not None:
        cases = cases.select(case, paths)
        wanted = len(cases)
        if not cases:
            of = f" of {' or '.join(paths)}" if paths is not None else ""
            where = f" in '{case}'" if case is not None else ""
            hint = _known(db, case, paths)
            raise NothingSelected(f"{file}: has no row{of}{where}", hint=hint)
    return RunResult(
        environments_of(db),
        cases,
        wanted,
        interrupted="finished" not in facts or facts["interrupted"] == "1",
        record=Path(file),
    )


def _known(db: Database, case: str | None, paths: Sequence[str] | None) -> str | None:
    """What a record has instead of what was asked for."""
    found = db.execute("SELECT DISTINCT path FROM results WHERE kind = 'path' ORDER BY rowid")
    known = [path for (path,) in found]
    if paths is not None and not set(paths) & set(known):
        near = did_you_mean(paths[0], known)
        return near or f"its paths are {', '.join(known)}"
    ids = [id_ for (id_,) in db.execute("SELECT id FROM cases ORDER BY id")]
    files = dict.fromkeys(id_.partition("::")[0] for id_ in ids)
    names = dict.fromkeys(id_.partition("::")[2].partition(":")[0] for id_ in ids)
    return None if case is None else did_you_mean(case, [*names, *files, *ids])


def environments_of(db: Database) -> dict[str, dict[str, str]]:
    """The environments of a record by name, in the order in which they were asked for."""
    found: dict[str, dict[str, str]] = {}
    for name, key, value in db.execute("SELECT name, key, value FROM environments ORDER BY rowid"):
        found.setdefault(name, {})[key] = value
    (options,) = db.execute("SELECT value FROM run WHERE key = 'options'").fetchone()
    asked: list[str] = loads(options).get("environments", [])
    return {name: found[name] for name in dict.fromkeys((*asked, *found)) if name in found}
