"""Results of earlier runs, found again by everything that could change them.

One file serves all runs and several processes at once. It can be deleted at any time, and is not
worth an error: where it cannot be used, a warning says so and everything is run.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from parity.casefile.case import Case
from parity.compare.result import CaseResult
from parity.compare.rows import Row
from parity.errors import ParityFault
from parity.program.spec import CODE
from parity.record.bits import Bits, is_small_reference
from parity.record.cases import case_as_dict
from parity.record.encoding import dumps, loads
from parity.record.fingerprint import source_digest
from parity.record.opening import Database
from parity.record.rows import pack_rows, unpack_metrics, unpack_row

if TYPE_CHECKING:
    import numpy as np

NAME = "cache.sqlite"
LIMIT = 256 << 20
"""Bytes of results that are kept; those that were not used for longest go first."""

NOT_IN_KEY = frozenset(
    ("id", "file", "line", "name", "about", "links", "point", "paths", "expect", "timeout")
)
"""The fields of a case that change neither bits nor grades. Every other one is part of the key; of
`paths` those count that are run."""

REPEATABLE = ("ok", "unsupported", "error")
"""Outcomes that another run would give again; an error only where no code that the case names is
run, since that may have read what is no part of the key."""

_NOT_KEPT = ("case", "environment", "cached", "status", "because", "link")
_LOOK_EVERY = 64
_VERSION = 2
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS environments (id INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY,
    environment INTEGER NOT NULL,
    used REAL NOT NULL,
    size INTEGER NOT NULL,
    result BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS programs (
    key TEXT NOT NULL REFERENCES entries ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (key, sha256)
);
CREATE INDEX IF NOT EXISTS by_use ON entries (used, size);
CREATE TABLE IF NOT EXISTS outputs (
    key TEXT NOT NULL REFERENCES entries ON DELETE CASCADE,
    path TEXT NOT NULL,
    output TEXT NOT NULL,
    dtype TEXT NOT NULL,
    shape TEXT NOT NULL,
    compression TEXT,
    data BLOB NOT NULL,
    PRIMARY KEY (key, path, output)
);
PRAGMA user_version={_VERSION};
"""
_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class Hit:
    """A result that was found again.

    Attributes:
        result: with unjudged rows that are marked as cached.
        found: what the environment was.
        outputs: bits by path (or reference) and output, of outputs that not all paths give
            identically; the ideal of others only where it is small.
    """

    result: CaseResult
    found: Mapping[str, str]
    outputs: Mapping[tuple[str, str], np.ndarray]


@dataclass(frozen=True)
class Info:
    """What a cache holds: its file, how many results, and their bytes."""

    file: Path
    entries: int
    size: int


class Cache:
    """The results that are kept in a folder, for one thread; leaving the context closes it.

    Args:
        folder: of the records; made if missing.
        limit: bytes of results that are kept.
    """

    def __init__(self, folder: Path, *, limit: int = LIMIT) -> None:
        self.file = folder / NAME
        self._limit = limit
        self._db: Database | None = None
        self._usable = True
        self._was_damaged = False
        self._seen: dict[int, Mapping[str, str]] = {}
        self._contents: dict[Path, str] = {}
        self._touched: list[str] = []
        self._put_since_look = 0

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def key(
        self,
        case: Case,
        paths: Sequence[str],
        environment_digest: str,
        explained: float | None = None,
    ) -> str:
        """SHA-256 over everything that could change the bits of a case or their grades.

        Args:
            case: which.
            paths: those that are run, in order.
            environment_digest: `fingerprint.environment_digest` of where.
            explained: seconds that its explanations may take, None without any.
        """
        flat = {name: of for name, of in case_as_dict(case).items() if name not in NOT_IN_KEY}
        flat["variants"] = {name: flat["variants"].get(name) for name in paths}
        names = [operand.file for operand in case.operands if operand.file is not None]
        files = [self._content(case.file.parent / name) for name in names]
        text = dumps([flat, files, list(paths), environment_digest, source_digest(), explained])
        return hashlib.sha256(text.encode()).hexdigest()

    def get(self, key: str, case: Case, environment: str) -> Hit | None:
        """What was put under a key, as a result of this case in this environment.

        Args:
            key: as `key` gives it.
            case: the rows get its id, which may be another one than when they were put.
            environment: its name, likewise.
        """
        query = (
            "SELECT entries.result, environment, environments.facts FROM entries "
            "JOIN environments ON environment = id WHERE key = ?"
        )
        found = self._guarded(lambda db: db.execute(query, (key,)).fetchone())
        if found is None:
            return None
        packed, number, facts = found
        try:
            result = replace(_unpacked(packed, case, environment), programs=self._programs(key))
            outputs = self._outputs(key)
        except (zlib.error, ValueError, KeyError, TypeError):
            self._guarded(lambda db: db.execute("DELETE FROM entries WHERE key = ?", (key,)))
            return None
        self._touched.append(key)
        if number not in self._seen:
            self._seen[number] = loads(facts)
        return Hit(result, self._seen[number], outputs)

    def put(
        self,
        key: str,
        result: CaseResult,
        found: Mapping[str, str],
        outputs: Mapping[tuple[str, str], np.ndarray] | None = None,
    ) -> None:
        """Keep a result, unless it is one that might come out otherwise the next time.

        Args:
            key: as `key` gives it.
            result: with rows that are not judged yet: expectations are no part of the key.
            found: what the environment is.
            outputs: bits by path and output.

        Raises:
            ParityFault: the rows are judged.
        """
        if any(row.status != "ok" or row.because for row in result.rows):
            raise ParityFault(f"judged rows of {result.case.id} must not be cached")
        rows = (*result.rows, *result.references)
        if not all(map(_is_repeatable, rows)):
            return
        if result.case.program.op in CODE and any(row.outcome == "error" for row in rows):
            return
        packed = _packed(result)
        differing = _differing(result)
        kept = {
            name: Bits.of(array)
            for name, array in (outputs or {}).items()
            if name[1] in differing or is_small_reference(name[0], array)
        }
        size = len(packed) + sum(len(bits.data) for bits in kept.values())
        size += sum(map(len, result.programs.values()))

        def write(db: Database) -> None:
            facts = dumps(dict(found))
            db.execute("INSERT OR IGNORE INTO environments (facts) VALUES (?)", (facts,))
            db.execute(
                "INSERT OR REPLACE INTO entries VALUES "
                "(?, (SELECT id FROM environments WHERE facts = ?), ?, ?, ?)",
                (key, facts, time.time(), size, packed),
            )
            rows = ((key, *name, *bits.columns()) for name, bits in kept.items())
            db.executemany("INSERT INTO outputs VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            texts = ((key, *one) for one in result.programs.items())
            db.executemany("INSERT INTO programs VALUES (?, ?, ?)", texts)

        self._guarded(write)
        self._put_since_look += 1
        if self._put_since_look >= _LOOK_EVERY:
            self._tidy()

    def info(self) -> Info:
        """How much there is; looking makes no file."""
        if not self.file.exists():
            return Info(self.file, 0, 0)
        query = "SELECT count(*), coalesce(sum(size), 0) FROM entries"
        entries, size = self._guarded(lambda db: db.execute(query).fetchone()) or (0, 0)
        return Info(self.file, entries, size)

    def clear(self) -> int:
        """Forget everything; how many results there were."""
        entries = self.info().entries
        if not self.file.exists():
            return 0
        self._guarded(lambda db: db.execute("DELETE FROM entries"))
        self._guarded(lambda db: db.execute("DELETE FROM environments"))
        self._guarded(lambda db: db.execute("VACUUM"))
        return entries

    def close(self) -> None:
        """Note what was used and let go of the file."""
        if self._db is not None:
            self._tidy()
            self._db.close()
            self._db = None

    def _outputs(self, key: str) -> dict[tuple[str, str], np.ndarray]:
        query = "SELECT path, output, dtype, shape, compression, data FROM outputs WHERE key = ?"
        found = self._guarded(lambda db: db.execute(query, (key,)).fetchall()) or ()
        return {(path, output): Bits(*columns).array() for path, output, *columns in found}

    def _programs(self, key: str) -> dict[str, bytes]:
        query = "SELECT sha256, text FROM programs WHERE key = ?"
        return dict(self._guarded(lambda db: db.execute(query, (key,)).fetchall()) or ())

    def _content(self, file: Path) -> str:
        """SHA-256 of an array file, "" if there is none: the run will say so."""
        if file not in self._contents:
            try:
                self._contents[file] = hashlib.sha256(file.read_bytes()).hexdigest()
            except OSError:
                return ""
        return self._contents[file]

    def _tidy(self) -> None:
        """Note when entries were used, and drop what was not for longest if there are too many."""
        now, touched, self._touched = time.time(), self._touched, []
        self._put_since_look = 0

        def write(db: Database) -> None:
            rows = ((now, key) for key in touched)
            db.executemany("UPDATE entries SET used = ? WHERE key = ?", rows)
            (size,) = db.execute("SELECT coalesce(sum(size), 0) FROM entries").fetchone()
            if size > self._limit:
                db.execute(
                    "DELETE FROM entries WHERE key IN (SELECT key FROM (SELECT key, "
                    "sum(size) OVER (ORDER BY used DESC, key) AS total FROM entries) "
                    "WHERE total > ?)",
                    (self._limit * 9 // 10,),
                )

        self._guarded(write)

    def _guarded(self, work: Callable[[Database], T]) -> T | None:
        """Do something in a transaction; None, and one warning, where that cannot be done."""
        while self._usable:
            try:
                if self._db is None:
                    self._db = _open(self.file)
                with self._db:
                    return work(self._db)
            except (OSError, sqlite3.OperationalError) as error:
                _log.warning("%s: cannot be used (%s)", self.file, error)
                self._usable = False
            except sqlite3.DatabaseError as error:
                if type(error) is not sqlite3.DatabaseError:
                    raise  # a mistake of ours
                self._set_aside(error)
        return None

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        """Rename a damaged file, to begin a new one."""
        aside = self.file.with_suffix(".damaged")
        _log.warning("%s: is damaged (%s); renamed to %s", self.file, error, aside.name)
        if self._db is not None:
            self._db.close()
            self._db = None
        self._usable, self._was_damaged = not self._was_damaged, True
        try:
            self.file.replace(aside)
            for suffix in ("-wal", "-shm"):
                self.file.with_name(NAME + suffix).unlink(missing_ok=True)
        except OSError:
            self._usable = False


def _open(file: Path) -> Database:
    file.parent.mkdir(parents=True, exist_ok=True)
    db = Database(file, isolation_level="IMMEDIATE")
    if db.execute("PRAGMA user_version").fetchone()[0] not in (0, _VERSION):
        raise sqlite3.DatabaseError("of another version of parity")
    with suppress(sqlite3.OperationalError):  # another process is just doing so
        db.execute("PRAGMA journal_mode=WAL")
    db.executescript("PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;" + _SCHEMA)
    return db


def _is_repeatable(row: Row) -> bool:
    """Whether running it again would give it again."""
    innocent = "retried" not in row.evidence
    return row.outcome in REPEATABLE and innocent and not row.nondeterministic


def _differing(result: CaseResult) -> set[str]:
    """The outputs that not all paths give identically."""
    return {row.output for row in result.rows if row.grade not in (None, "identical")}


def _packed(result: CaseResult) -> bytes:
    rows, metrics = pack_rows((*result.rows, *result.references))
    flat = {
        "rows": [{k: v for k, v in row.items() if k not in _NOT_KEPT} for row in rows],
        "paths": len(result.rows),
        "metrics": metrics,
        "groups": result.groups,
        "words": result.words,
        "notes": result.notes,
    }
    return zlib.compress(dumps(flat).encode(), 1)


def _unpacked(packed: bytes, case: Case, environment: str) -> CaseResult:
    flat = loads(zlib.decompress(packed))
    metrics = [unpack_metrics(loads(text)) for text in flat["metrics"]]
    own = {"case": case.id, "environment": environment, "cached": True}
    rows = tuple(unpack_row({"output": "", **row, **own}, metrics) for row in flat["rows"])
    return CaseResult(
        case,
        environment,
        rows[: flat["paths"]],
        rows[flat["paths"] :],
        {output: tuple(map(tuple, sets)) for output, sets in flat["groups"].items()},
        tuple(flat["words"]),
        tuple(flat["notes"]),
    )
