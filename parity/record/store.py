"""The record of a run: one SQLite file that is complete up to the last finished case.

Tables (schema version 1, in `PRAGMA user_version`):

run          key TEXT, value TEXT: parity, started, finished (ISO 8601, UTC), verdict
environment  key TEXT, value TEXT: what the worker found, see `worker.serve.environment`
cases        id TEXT, file TEXT, point JSON, program JSON
results      case_id TEXT, kind TEXT (path or reference), path TEXT, output TEXT, row JSON
"""

from __future__ import annotations

import datetime
import itertools
import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from parity.casefile.case import Case
from parity.errors import UserError

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE environment (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE cases (id TEXT PRIMARY KEY, file TEXT NOT NULL, point TEXT NOT NULL,
                    program TEXT NOT NULL);
CREATE TABLE results (case_id TEXT NOT NULL REFERENCES cases, kind TEXT NOT NULL,
                      path TEXT NOT NULL, output TEXT NOT NULL, row TEXT NOT NULL,
                      PRIMARY KEY (case_id, kind, path, output));
"""


class Store:
    """A record open for writing. Each case is one transaction: killed, it keeps all before.

    Args:
        folder: made if missing.
        version: of parity.

    Raises:
        UserError: the folder cannot be written.
    """

    def __init__(self, folder: Path, *, version: str) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.file = _unused(folder)
            self._db = sqlite3.connect(self.file)
            # In WAL mode a commit costs no fsync, and a killed process loses none.
            self._db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
            self._db.executescript(_SCHEMA + f"PRAGMA user_version={SCHEMA_VERSION};")
        except (OSError, sqlite3.OperationalError) as error:
            raise UserError(
                f"{folder}: cannot write a record there: {error}",
                hint="--out takes a folder that can be written; so does `reports` in [tool.parity]",
            ) from error
        self._put("run", {"parity": version, "started": _now()})

    def environment(self, found: Mapping[str, str]) -> None:
        """Note what the paths run in."""
        self._put("environment", found)

    def add(
        self,
        case: Case,
        rows: list[Mapping[str, Any]],
        references: list[Mapping[str, Any]],
        encode: Callable[[Any], str],
    ) -> None:
        """Keep a finished case.

        Args:
            case: which one.
            rows: one flat mapping per path and output.
            references: the same for `f64` and `strict`.
            encode: to JSON text, non-finite values as strings.
        """
        with self._db:
            self._db.execute(
                "INSERT INTO cases VALUES (?, ?, ?, ?)",
                (
                    case.id,
                    str(case.file),
                    json.dumps(dict(case.point), default=str),
                    json.dumps(case.program.to_wire(), default=str),
                ),
            )
            self._db.executemany(
                "INSERT INTO results VALUES (?, ?, ?, ?, ?)",
                [
                    (case.id, kind, row["path"], row["output"] or "", encode(row))
                    for kind, some in (("path", rows), ("reference", references))
                    for row in some
                ],
            )

    def close(self, verdict: str) -> None:
        """Note the verdict and leave one file behind, without a write-ahead log beside it."""
        self._put("run", {"finished": _now(), "verdict": verdict})
        self._db.execute("PRAGMA journal_mode=DELETE")
        self._db.close()

    def _put(self, table: str, values: Mapping[str, str]) -> None:
        with self._db:
            self._db.executemany(f"INSERT INTO {table} VALUES (?, ?)", values.items())


def _unused(folder: Path) -> Path:
    """A file name after the time; a number follows where two runs start in one second."""
    stem = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    for number in itertools.count(1):
        file = folder / (f"{stem}.sqlite" if number == 1 else f"{stem}-{number}.sqlite")
        try:
            file.touch(exist_ok=False)
        except FileExistsError:
            continue
        return file
    raise AssertionError("unreachable")


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
