"""Record files: new ones, past ones, and those that a run goes on with."""

from __future__ import annotations

import datetime
import itertools
import os
import sqlite3
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from parity.errors import UserError
from parity.record.schema import SCHEMA, check

_PATIENCE = 10.0
"""Seconds to wait for another process that has a record open."""


class Database:
    """A SQLite database that is closed when nobody holds it any more.

    sqlite3's own connections are part of a reference cycle, and are closed some time later.

    Args:
        file: a path, a `file:` URI, or "" for a database that SQLite removes when it is closed.
        how: keyword arguments of `sqlite3.connect`.
    """

    def __init__(self, file: Path | str, **how: Any) -> None:
        self._connection: sqlite3.Connection = sqlite3.connect(
            file, timeout=_PATIENCE, check_same_thread=False, **how
        )

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> sqlite3.Cursor:
        """Run a statement."""
        return self._connection.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run a statement for each row of values."""
        self._connection.executemany(sql, rows)

    def executescript(self, sql: str, /) -> None:
        """Run several statements."""
        self._connection.executescript(sql)

    def close(self) -> None:
        """Let go of the file, now."""
        self._connection.close()

    def __enter__(self) -> None:
        """Begin a transaction; leaving the context commits it, an exception rolls it back."""
        self._connection.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._connection.__exit__(*error)

    def __del__(self) -> None:
        if hasattr(self, "_connection"):  # else it could not be opened
            self.close()


def read(file: Path) -> Database:
    """A record, opened to be read.

    Raises:
        UserError: there is no such file, it is not a record or of another version.
    """
    see_that_it_is_there(file)
    try:
        alone = _lacks_its_log(file)
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None
    # For one that lacks its log SQLite would make another, and leave it there or, where it may not
    # write, fail. Nobody writes such a file now: who does has a log.
    how = "mode=ro&immutable=1" if alone else "mode=ro"
    db = Database(f"file:{quote(str(file))}?{how}", uri=True)
    check(db, file)
    return db


def create(folder: Path, facts: Mapping[str, str]) -> Path:
    """A new record in a folder, which is made if missing; it has a name only when it is whole.

    Args:
        folder: where.
        facts: rows of the table `run`.

    Returns:
        The file, named after the time; a number follows where two runs start in one second.

    Raises:
        UserError: the folder is a file.
        OSError: the folder cannot be made or written; likewise sqlite3.OperationalError.
    """
    if folder.is_file():
        raise UserError(f"{folder}: is a file", hint="--out takes a folder for records")
    folder.mkdir(parents=True, exist_ok=True)
    unnamed = folder / f".record-{uuid.uuid4().hex}"
    try:
        db = Database(unnamed)
        _fill(db, facts)
        db.close()
        stem = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
        for number in itertools.count(1):
            file = folder / (f"{stem}.sqlite" if number == 1 else f"{stem}-{number}.sqlite")
            with suppress(FileExistsError):
                os.link(unnamed, file)
                return file
        raise AssertionError("unreachable")
    finally:
        unnamed.unlink(missing_ok=True)


def temporary(facts: Mapping[str, str]) -> Database:
    """A new record that SQLite removes when it is closed, whatever becomes of this process."""
    db = Database("")
    _fill(db, facts)
    _prepare(db)
    return db


def reopen(file: Path) -> Database:
    """A record, opened to be written further.

    Raises:
        UserError: there is no such file, it is not a record or of another version.
        OSError: it cannot be written.
    """
    see_that_it_is_there(file)
    with file.open("r+b"):
        pass  # SQLite would open a file that cannot be written, and fail at the first case
    db = Database(file)
    check(db, file)
    _prepare(db)
    return db


def see_that_it_is_there(file: Path) -> None:
    """See that a record's file is one.

    Raises:
        UserError: there is none, or it is a folder.
    """
    if file.is_dir():
        records = sorted(file.glob("[0-9]*.sqlite"))
        hint = f"its newest record is {records[-1]}" if records else "it has no record"
        raise UserError(f"{file}: is a folder, not a record", hint=hint)
    if not file.is_file():
        raise UserError(f"{file}: no such record", hint="parity run --out DIR writes one")


def _lacks_its_log(file: Path) -> bool:
    """Whether it is all that there is of a run that was killed.

    Source: the SQLite file format, section 1.3: bytes 18 and 19 are 2 in WAL mode.
    """
    with file.open("rb") as opened:
        header = opened.read(20)
    return header[18:] == b"\2\2" and not Path(f"{file}-wal").exists()


def _fill(db: Database, facts: Mapping[str, str]) -> None:
    db.executescript(SCHEMA)
    with db:
        db.executemany("INSERT INTO run VALUES (?, ?)", facts.items())


def _prepare(db: Database) -> None:
    # In WAL mode a commit costs no fsync, and a killed process loses none.
    db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;")
