from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from parity import cli
from parity.compare.metrics import Metrics
from parity.errors import UserError
from parity.paths import Probe
from parity.record.cache import Cache
from parity.record.opening import read
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
    stages = re.findall(r"\b(?:build|trace|lower|convert|compile|save|load|run)\b", said)
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


def test_the_cache_is_named(tmp_path: Path, make_result: Any) -> None:
    file = tmp_path / "cache.sqlite"
    result, outputs = make_result()
    with Cache(tmp_path) as cache:
        cache.put("k", result, {}, outputs)
    with pytest.raises(UserError, match="it looks like parity's cache, which lies beside the rec"):
        read(file)


def test_a_folder_names_its_newest_record(tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / f"2026-01-0{day}T00-00-00.sqlite").touch()
    (tmp_path / "cache.sqlite").touch()
    with pytest.raises(UserError) as caught:
        read(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: is a folder, not a record\n"
        f"hint: its newest record is {tmp_path}/2026-01-02T00-00-00.sqlite"
    )


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9])
def test_a_part_of_a_record_is_damaged(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: float
) -> None:
    file = tmp_path / "r.sqlite"
    whole = example.read_bytes()
    file.write_bytes(whole[: int(kept * len(whole))])
    assert cli.invoke(["show", str(file)]) == 2
    err = capsys.readouterr().err
    assert "is damaged or incomplete (database disk image is malformed)\nhint: copy it" in err


def test_a_page_that_is_overwritten_is_damage(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.sqlite"
    whole = bytearray(example.read_bytes())
    whole[len(whole) // 4 :] = b"\xff" * (len(whole) - len(whole) // 4)
    file.write_bytes(whole)
    assert cli.invoke(["show", str(file)]) == 2
    assert "damaged or incomplete" in capsys.readouterr().err


@pytest.fixture
def example() -> Path:
    return Path(__file__).parents[2] / "reports" / "example" / "record.sqlite"


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    file.write_bytes(b"not a database, by any means " * 100)
    with pytest.raises(UserError, match=r"r\.sqlite: is not a record \(file is not a database\)"):
        check(sqlite3.connect(file), file)
