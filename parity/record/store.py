"""The record of a run while it is written; `record.schema` says what is in it."""

from __future__ import annotations

import datetime
import sqlite3
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parity.casefile.case import Case
from parity.compare.result import CaseResult
from parity.compare.rows import Row
from parity.config import KEEP, nearest_root
from parity.errors import UserError
from parity.record import opening
from parity.record.arrived import case_digest, pack_outcome, unpack_outcome
from parity.record.artifacts import digest
from parity.record.bits import Bits, is_small_reference
from parity.record.cases import case_as_dict
from parity.record.encoding import dumps, loads
from parity.record.reader import Recorded
from parity.record.result import environments_of
from parity.record.rows import pack_rows
from parity.worker.protocol import PathOutcome

if TYPE_CHECKING:
    import numpy as np

Outputs = Mapping[tuple[str, str], "np.ndarray"]
"""Arrays by path (or reference: f64, strict) and output."""

LIMIT = 64 << 20
"""Bytes of outputs, as stored, that a record holds unless told otherwise."""

_LARGEST = 10**9 - 2**20
"""SQLite stores no value of a gigabyte."""

_FREE_PAGES = 256
"""Pages, of 4 KiB, that `arrived` may leave empty in a finished record."""

_COLUMNS = frozenset(("case", "path", "output", "cached", "timings"))
"""What stands beside the JSON of a row in columns of its own, and not in it."""


class Store:
    """A record open for writing. Each case is one transaction: killed, it keeps all before.

    That holds for the file alone, too, without the write-ahead log that a killed run leaves.

    Args:
        folder: made if missing; None for a record that vanishes when nobody holds it any more.
        version: of parity.
        options: how the run is done; a resumed run must be done in the same way.
        arguments: by environment, how the command line asks for it.
        keep: one of `config.KEEP`: whose bits are kept. `all`: of every output; `non-identical`: of
            those that not all paths give identically, then of all paths; `none`.
        limit: bytes of outputs, as stored, that the record may hold.
        wanted: how many results there are to be, cases times environments.

    Raises:
        UserError: the folder cannot be written, or `keep` is not known.
    """

    file: Path | None
    """Where it lies, None if it is to vanish."""

    def __init__(
        self,
        folder: Path | None,
        *,
        version: str,
        options: Mapping[str, Any] | None = None,
        arguments: Mapping[str, Sequence[str]] | None = None,
        keep: str = "non-identical",
        limit: int = LIMIT,
        wanted: int = 0,
    ) -> None:
        if keep not in KEEP:
            raise UserError(f"unknown value of keep (got {keep}; allowed {', '.join(KEEP)})")
        facts = {
            "parity": version,
            "started": _now(),
            "wanted": str(wanted),
            **{"options": dumps(options or {}), "arguments": dumps(arguments or {})},
            "keep": keep,
            "keep_limit": str(limit),
        }
        try:
            if folder is None:
                self.file, self._db = None, opening.temporary(facts)
            else:
                self.file = opening.create(folder, facts | _commit(nearest_root(Path.cwd())))
                self._db = opening.reopen(self.file)
        except (OSError, sqlite3.OperationalError) as error:
            raise UserError(
                f"{folder}: cannot write a record there: {error}",
                hint="--out takes a folder that can be written; so does `reports` in [tool.parity]",
            ) from error
        self._keep, self._limit, self._used = keep, limit, 0

    @classmethod
    def resume(
        cls,
        file: Path,
        *,
        version: str,
        options: Mapping[str, Any] | None = None,
        wanted: int = 0,
    ) -> Store:
        """Open a record, finished or not, to go on with its run.

        Raises:
            UserError: it is not a record, cannot be written, or was made by another version of
                parity or with other options.
        """
        store = cls.__new__(cls)
        store.file, store._used = file, 0
        try:
            store._db = opening.reopen(file)
            facts = dict(store._db.execute("SELECT key, value FROM run"))
            _check_same(file, facts, version, options or {})
            with store._writing():
                store._db.execute("DELETE FROM run WHERE key IN ('finished', 'verdict')")
                store._put({"wanted": str(max(wanted, int(facts["wanted"])))})
            store._checkpoint(durable=True)
        except (OSError, sqlite3.OperationalError) as error:
            raise UserError(f"{file}: cannot be resumed: {error}") from error
        store._keep, store._limit = facts["keep"], int(facts["keep_limit"])
        store._used = store._db.execute("SELECT total(length(data)) FROM outputs").fetchone()[0]
        return store

    def environment(self, name: str, found: Mapping[str, str]) -> None:
        """Note what the paths of an environment run in.

        Raises:
            UserError: in the run that is resumed it was something else, or the disk is full.
        """
        before = environments_of(self._db).get(name)
        if before is not None and before != dict(found):
            changed = [
                f"{key}: {before.get(key, 'none')} then, {found.get(key, 'none')} now"
                for key in sorted({*before, *found})
                if before.get(key) != found.get(key)
            ]
            raise UserError(
                f"{self.file}: environment {name} is no longer what it was ({'; '.join(changed)})",
                hint="start a new run",
            )
        with self._writing():
            rows = [(name, *fact) for fact in found.items()]
            self._db.executemany("INSERT OR REPLACE INTO environments VALUES (?, ?, ?)", rows)

    def add(
        self,
        result: CaseResult,
        outputs: Outputs | None = None,
        *,
        position: int | None = None,
        artifacts: Iterable[bytes] = (),
    ) -> None:
        """Keep a finished case; one of the same id and environment is replaced.

        Args:
            result: of the case in one environment.
            outputs: its bits, as far as they are at hand.
            position: orders it among the others; None for after all of them.
            artifacts: what its paths exported, as far as that is to be kept.

        Raises:
            UserError: the disk is full; the case may have found room all the same.
        """
        outputs = outputs or {}
        with self._writing():
            number = self._add_case(result, position)
            differing = {r.output for r in result.rows if r.grade not in (None, "identical")}
            rows = (*result.rows, *result.references)
            packed, metrics = pack_rows(rows)
            for place, (row, flat) in enumerate(zip(rows, packed, strict=True)):
                kind = "path" if place < len(result.rows) else "reference"
                array = outputs.get((row.path, row.output))
                left_out = self._keep_bits(row, array, differs=row.output in differing)
                rest = dumps({name: of for name, of in flat.items() if name not in _COLUMNS})
                self._db.execute(
                    f"INSERT INTO results VALUES ({', '.join('?' * 13)})",
                    (number, place, kind, *_columns(row), rest, row.sha256, left_out),
                )
            self._db.executemany(
                "INSERT INTO measurements VALUES (?, ?, ?)",
                ((number, place, text) for place, text in enumerate(metrics)),
            )
            if self._keep != "none":
                self._db.executemany(
                    "INSERT OR IGNORE INTO programs VALUES (?, ?)", result.programs.items()
                )
            self._db.executemany(
                "INSERT OR IGNORE INTO artifacts VALUES (?, ?)",
                ((digest(one), one) for one in artifacts if len(one) <= _LARGEST),
            )
        if self.file is not None:
            self._checkpoint(durable=not all(row.cached for row in result.rows))

    def arrived(self, case: Case, environment: str, outcome: PathOutcome) -> None:
        """Keep what a path made of a case until the case is finished and added.

        Raises:
            UserError: the disk is full.
        """
        packed = pack_outcome(outcome)
        if len(packed) > _LARGEST:
            return
        key = (case.id, environment, outcome.path)
        with self._writing():
            self._db.execute(
                "INSERT OR REPLACE INTO arrived VALUES (?, ?, ?, ?, ?)",
                (*key, case_digest(case), packed),
            )

    def arrivals(self, case: Case, environment: str) -> dict[str, PathOutcome]:
        """By path, what is kept of a case that was not finished, if it is still the same case."""
        found = self._db.execute(
            "SELECT path, outcome FROM arrived "
            "WHERE case_id = ? AND environment = ? AND case_sha256 = ?",
            (case.id, environment, case_digest(case)),
        )
        return {path: unpack_outcome(path, packed) for path, packed in found}

    def done(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """By case id and environment, the paths that are recorded."""
        found: dict[tuple[str, str], list[str]] = {}
        rows = self._db.execute(
            "SELECT case_id, environment, path FROM case_results "
            "JOIN results ON case_result = number WHERE kind = 'path' "
            "ORDER BY number, results.position"
        )
        for case, environment, path in rows:
            found.setdefault((case, environment), []).append(path)
        return {key: tuple(dict.fromkeys(paths)) for key, paths in found.items()}

    def knows(self, case: Case) -> bool:
        """Whether the case is recorded just as it is; not if its file was edited since then."""
        found = self._db.execute("SELECT resolved FROM cases WHERE id = ?", (case.id,)).fetchone()
        return found is not None and found[0] == _resolved(case)[-1]

    def results(self) -> Recorded:
        """The cases that are recorded now, each read when it is looked at."""
        return Recorded(self._db)

    def environments(self) -> dict[str, dict[str, str]]:
        """What is noted of each environment."""
        return environments_of(self._db)

    def finish(self, verdict: str, *, interrupted: bool = False) -> None:
        """Note how the run ended and leave one file behind, without a write-ahead log beside it.

        `results` can still be read. The log stays where another process reads the record just now.

        Raises:
            UserError: the disk is full.
        """
        with self._writing():
            self._put(
                {"finished": _now(), "verdict": verdict, "interrupted": str(int(interrupted))}
            )
            if not interrupted:
                self._db.execute("DELETE FROM arrived")
        if self.file is None:
            return
        (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
        with self._writing():
            try:
                if free > _FREE_PAGES:
                    self._db.execute("VACUUM")
                self._db.execute("PRAGMA journal_mode=DELETE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:  # else someone is reading it
                    raise

    def close(self) -> None:
        """Let go of the file, finished or not; `results` can no longer be read."""
        self._db.close()

    def _checkpoint(self, *, durable: bool) -> None:
        """Copy the log into the file.

        Args:
            durable: waits for the disk, so that a loss of power does no harm. What comes out of a
                cache comes too fast for that, and can be had again.
        """
        with self._writing():
            self._db.execute(f"PRAGMA synchronous={'NORMAL' if durable else 'OFF'}")
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _put(self, facts: Mapping[str, str]) -> None:
        with self._db:
            self._db.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", facts.items())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction; what keeps it from being written is the user's to mend."""
        used = self._used
        try:
            with self._db:
                yield
        except BaseException as error:
            self._used = used
            if not isinstance(error, OSError | sqlite3.OperationalError):
                raise
            resume = f", then: parity run --resume {self.file}" if self.file else ""
            raise UserError(
                f"{self.file or 'the temporary record'}: cannot be written: {error}; "
                "what was finished before is in it",
                hint=f"make room{resume}",
            ) from error

    def _add_case(self, result: CaseResult, position: int | None) -> int:
        """The number of a new entry for a case in an environment, in place of an old one."""
        case = result.case
        self._db.execute(
            "INSERT INTO cases VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
            "file = excluded.file, line = excluded.line, name = excluded.name, "
            "about = excluded.about, resolved = excluded.resolved",
            _resolved(case),
        )
        key = (case.id, result.environment)
        for table in ("case_results", "arrived"):
            self._db.execute(f"DELETE FROM {table} WHERE case_id = ? AND environment = ?", key)
        last = "SELECT coalesce(max(position) + 1, 0) FROM case_results"
        if position is None:
            position = self._db.execute(last).fetchone()[0]
        texts = map(dumps, (result.groups, result.words, result.notes))
        added = self._db.execute(
            "INSERT INTO case_results VALUES (NULL, ?, ?, ?, ?, ?, ?)", (*key, position, *texts)
        )
        assert added.lastrowid is not None
        return added.lastrowid

    def _keep_bits(self, row: Row, array: np.ndarray | None, *, differs: bool) -> str | None:
        """Store an output unless that is not wanted; why it is left out, None if it is not."""
        if row.sha256 is None:
            return None
        if self._db.execute("SELECT 1 FROM outputs WHERE sha256 = ?", (row.sha256,)).fetchone():
            return None
        small = array is not None and is_small_reference(row.path, array)
        if self._keep == "none" or (self._keep == "non-identical" and not (differs or small)):
            return "keep"
        if array is None:
            return "absent"
        bits = Bits.of(array)
        if self._used + len(bits.data) > self._limit or len(bits.data) > _LARGEST:
            return "limit"
        columns = (row.sha256, *bits.columns())
        self._db.execute("INSERT INTO outputs VALUES (?, ?, ?, ?, ?)", columns)
        self._used += len(bits.data)
        return None


def _columns(row: Row) -> tuple[Any, ...]:
    """The columns of a row from `path` to `timings`."""
    return (
        row.path,
        row.output,
        row.outcome,
        row.grade,
        row.status,
        int(row.cached),
        dumps(row.timings),
    )


def _resolved(case: Case) -> tuple[Any, ...]:
    """The columns of a case."""
    rest = case_as_dict(case)
    beside = [rest.pop(name) for name in ("id", "file", "line", "name", "about")]
    return (*beside, dumps(rest))


def _check_same(
    file: Path, facts: Mapping[str, str], version: str, options: Mapping[str, Any]
) -> None:
    """See that a record was made in the way in which it is to be continued."""
    if facts["parity"] != version:
        raise UserError(
            f"{file}: was written by another parity (got {facts['parity']}; allowed {version})",
            hint="start a new run",
        )
    then, now = loads(facts["options"]), loads(dumps(options))
    differing = [
        f"{name}: {dumps(then.get(name))} then, {dumps(now.get(name))} now"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]
    if differing:
        raise UserError(
            f"{file}: was run with other options ({'; '.join(differing)})",
            hint="give the same ones, or start a new run",
        )


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _commit(project: Path) -> dict[str, str]:
    """The commit of the project's working tree, nothing where there is none or no git."""
    command = ["git", "-C", str(project), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": done.stdout.strip()}
