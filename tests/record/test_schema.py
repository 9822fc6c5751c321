from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from parity.compare.metrics import Metrics
from parity.errors import UserError
from parity.paths import Probe
from parity.record.schema import (
    APPLICATION_ID,
    METRICS,
    SCHEMA,
    SCHEMA_VERSION,
    STAGES,
    check,
)


@pytest.fixture
def db() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    return connection


def documented() -> dict[str, dict[str, str]]:
    """Tables, their columns and what is said of each, read off the text."""
    tables: dict[str, dict[str, str]] = {}
    for name, about, body in re.findall(
        r"^CREATE TABLE (\w+) \( *-- (.+)\n((?:.*\n)*?)\);$", SCHEMA, re.MULTILINE
    ):
        assert about
        columns = re.findall(r"^    (\w+) (?:TEXT|INTEGER|BLOB).*?-- (.+)$", body, re.MULTILINE)
        tables[name] = dict(columns)
    return tables


def test_every_table_and_column_is_described_where_it_is_declared(db: sqlite3.Connection) -> None:
    tables = [n for (n,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    columns = {
        table: [column[1] for column in db.execute(f"PRAGMA table_info({table})")]
        for table in tables
    }
    assert {table: list(of) for table, of in documented().items()} == columns


def test_the_view_has_the_figures_that_rows_have(db: sqlite3.Connection) -> None:
    columns = [column[1] for column in db.execute("PRAGMA table_info(rows)")]
    assert {f"{m}_{t}" for m in METRICS for t in ("f64", "strict", "baseline")} <= set(columns)
    assert set(METRICS) <= set(Metrics.__dataclass_fields__)
    assert set(STAGES) <= set(columns)
    said = Probe.stage.__doc__
    assert said is not None
    stages = re.findall(r"\b(?:build|trace|lower|convert|compile|run)\b", said)
    assert [*stages, "compare"] == list(STAGES)


def test_a_record_says_what_it_is(db: sqlite3.Connection) -> None:
    check(db, Path("r.sqlite"))
    assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert APPLICATION_ID.to_bytes(4, "big") == b"PRIT"


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (
            SCHEMA_VERSION + 1,
            "r.sqlite: was written by a newer parity (got schema "
            f"{SCHEMA_VERSION + 1}; allowed {SCHEMA_VERSION})\n"
            "hint: pip install --upgrade parity-harness",
        ),
        (
            SCHEMA_VERSION - 1,
            "r.sqlite: was written by an older parity (got schema "
            f"{SCHEMA_VERSION - 1}; allowed {SCHEMA_VERSION})\n"
            "hint: the version that wrote it reads it: SELECT value FROM run WHERE key = 'parity'",
        ),
    ],
)
def test_another_schema_is_refused(db: sqlite3.Connection, version: int, message: str) -> None:
    db.execute(f"PRAGMA user_version={version}")
    with pytest.raises(UserError) as caught:
        check(db, Path("r.sqlite"))
    assert str(caught.value) == message


def test_another_kind_of_database_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        check(sqlite3.connect(":memory:"), Path("r.sqlite"))
    assert str(caught.value) == (
        "r.sqlite: is not a record (another kind of SQLite file)\n"
        "hint: records are the .sqlite files that `parity run --out DIR` writes"
    )


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    file.write_bytes(b"not a database, by any means " * 100)
    with pytest.raises(UserError, match=r"r\.sqlite: is not a record \(file is not a database\)"):
        check(sqlite3.connect(file), file)
