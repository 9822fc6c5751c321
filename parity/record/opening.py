"""Record files: new ones, past ones, and those that a run goes on with."""

from __future__ import annotations

import datetime
import itertools
import sqlite3
from pathlib import Path
from urllib.parse import quote

from parity.errors import UserError
from parity.record.schema import SCHEMA, check

_PATIENCE = 10.0
"""Seconds to wait for another process that has a record open."""


class Connection(sqlite3.Connection):
    """A connection that is closed when nobody holds it any more."""

    def __del__(self) -> None:
        self.close()


def read(file: Path) -> Connection:
    """A record, opened to be read.

    Raises:
        UserError: there is no such file, it is not a record or of another version.
    """
    _see_that_it_is_there(file)
    db = sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, factory=Connection)
    check(db, file)
    return db


def create(file: Path | None) -> Connection:
    """A new record, in an empty file; without one it lies where SQLite removes it at the end."""
    db = sqlite3.connect("" if file is None else file, timeout=_PATIENCE, factory=Connection)
    _prepare(db)
    db.executescript(SCHEMA)
    return db


def reopen(file: Path) -> Connection:
    """A record, opened to be written further.

    Raises:
        UserError: there is no such file, it is not a record or of another version.
        OSError: it cannot be written.
    """
    _see_that_it_is_there(file)
    with file.open("r+b"):
        pass  # SQLite would open a file that cannot be written, and fail at the first case
    db = sqlite3.connect(file, timeout=_PATIENCE, factory=Connection)
    check(db, file)
    _prepare(db)
    return db


def unused(folder: Path) -> Path:
    """A new file, named after the time; a number follows where two runs start in one second.

    Raises:
        OSError: the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    for number in itertools.count(1):
        file = folder / (f"{stem}.sqlite" if number == 1 else f"{stem}-{number}.sqlite")
        try:
            file.touch(exist_ok=False)
        except FileExistsError:
            continue
        return file
    raise AssertionError("unreachable")


def _see_that_it_is_there(file: Path) -> None:
    if not file.is_file():
        raise UserError(f"{file}: no such record", hint="parity run --out DIR writes one")


def _prepare(db: sqlite3.Connection) -> None:
    # In WAL mode a commit costs no fsync, and a killed process loses none.
    db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;")
