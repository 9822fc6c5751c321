"""What a record is made of: the one place where its tables and columns are described.

A record is a SQLite file. `sqlite3`, DB Browser, DuckDB and pandas read it as it is:

```python
import sqlite3
import pandas as pd

with sqlite3.connect("reports/2026-01-31T12-00-00.sqlite") as db:
    rows = pd.read_sql("SELECT * FROM rows WHERE kind = 'path'", db)
```

In the view `rows` an infinity is a real one; a NaN is NULL, because SQLite has none. `nan_got_f64`
and its like tell it from a figure that does not exist.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Protocol

from parity.errors import UserError

SCHEMA_VERSION = 5
"""Stands in `PRAGMA user_version`; goes up with every change below."""

APPLICATION_ID = 0x50524954
"""Stands in `PRAGMA application_id`: "PRIT", which tells a record from other SQLite files."""

METRICS = (
    "max_abs",
    "mean_abs",
    "max_rel",
    "max_ulp",
    "mean_ulp",
    "p99_ulp",
    "bias_ulp",
    "rms_rel",
    "cosine",
    "sqnr_db",
    "min_rtol",
    "min_atol",
    "pattern",
    "nan_got",
    "nan_want",
)
"""The metrics that are columns of the view `rows`, each against each of `TARGETS`."""

_COUNTS = ("pattern", "nan_got", "nan_want")
TARGETS = ("f64", "strict", "baseline")
STAGES = ("build", "trace", "lower", "convert", "compile", "save", "load", "run", "compare")

_TABLES = """
CREATE TABLE run (         -- facts of the run, one to a row
    key TEXT PRIMARY KEY,  -- parity (its version), started, finished (ISO 8601, UTC), verdict,
                           -- interrupted (0, 1), wanted (cases times environments), options (JSON),
                           -- keep, keep_limit (bytes), commit (of the project, where it has one),
                           -- arguments (JSON: by environment, how parity run is asked for it)
    value TEXT NOT NULL    -- as text
);
CREATE TABLE environments (   -- what paths ran in
    name TEXT NOT NULL,       -- the environment, as rows name it
    key TEXT NOT NULL,        -- python, a package, cpu, platform, devices, a flag
    value TEXT NOT NULL,      -- its version or value
    PRIMARY KEY (name, key)
);
CREATE TABLE cases (          -- what was run
    id TEXT PRIMARY KEY,      -- as everywhere
    file TEXT NOT NULL,       -- the case file, absolute
    line INTEGER NOT NULL,    -- where it begins
    name TEXT NOT NULL,       -- the file's name for it
    about TEXT NOT NULL,      -- the sentence that says what it guards
    resolved TEXT NOT NULL    -- JSON of the rest: record.cases.case_as_dict
);
CREATE TABLE case_results (         -- one case in one environment
    number INTEGER PRIMARY KEY,     -- refers to it from results
    case_id TEXT NOT NULL REFERENCES cases,  -- which
    environment TEXT NOT NULL,      -- its name
    position INTEGER NOT NULL,      -- orders them as they were asked for
    groups TEXT NOT NULL,           -- JSON: by output, lists of the paths that gave equal bits
    words TEXT NOT NULL,            -- JSON: a line for each path that is not identical
    notes TEXT NOT NULL,            -- JSON: what a reader must know of the references
    UNIQUE (case_id, environment)
);
CREATE TABLE results (            -- one path, or reference, and output of a case
    case_result INTEGER NOT NULL  -- of which case, in which environment
        REFERENCES case_results ON DELETE CASCADE,
    position INTEGER NOT NULL,    -- within it
    kind TEXT NOT NULL,           -- path or reference
    path TEXT NOT NULL,           -- its name; f64 or strict
    output TEXT NOT NULL,         -- its name, empty where there is none
    outcome TEXT NOT NULL,        -- ok, unsupported, error, crashed, timeout, out-of-memory
    grade TEXT,                   -- identical, equivalent, divergent, inaccurate, mismatched
    status TEXT NOT NULL,         -- ok, expected, finding, stale
    cached INTEGER NOT NULL,      -- 1: taken from an earlier run
    timings TEXT NOT NULL,        -- JSON: seconds by stage
    row TEXT NOT NULL,            -- JSON of the other fields, unless empty; of f64, strict and
                                  -- baseline (metrics against them) the number in measurements
    sha256 TEXT,                  -- of the output's dtype, shape and bits
    left_out TEXT,                -- why outputs lacks it: keep, limit, or absent (not at hand)
    PRIMARY KEY (case_result, position)
);
CREATE TABLE measurements (       -- distinct metrics: paths with equal bits share them
    case_result INTEGER NOT NULL  -- of which case, in which environment
        REFERENCES case_results ON DELETE CASCADE,
    number INTEGER NOT NULL,      -- within it
    metrics TEXT NOT NULL,        -- JSON of compare.metrics.Metrics, unless empty
    PRIMARY KEY (case_result, number)
);
CREATE TABLE arrived (            -- paths of cases that are not finished; empty after a whole run
    case_id TEXT NOT NULL,        -- of which case
    environment TEXT NOT NULL,    -- where
    path TEXT NOT NULL,           -- its name
    case_sha256 TEXT NOT NULL,    -- over the case as it was
    outcome BLOB NOT NULL,        -- record.arrived.pack_outcome
    PRIMARY KEY (case_id, environment, path)
);
CREATE TABLE programs (           -- what was compiled, each once however often it came up
    sha256 TEXT PRIMARY KEY,      -- over the text; rows have it as evidence
    text BLOB NOT NULL            -- zlib of StableHLO, optimized HLO or TensorFlow operations
);
CREATE TABLE artifacts (          -- what paths exported, each once however often it came up
    sha256 TEXT PRIMARY KEY,      -- over data; rows have it as evidence artifact_sha256
    data BLOB NOT NULL            -- gzipped tar: record.artifacts, worker.artifact
);
CREATE TABLE outputs (            -- bits, each once however often they came out
    sha256 TEXT PRIMARY KEY,      -- over dtype, shape and bits
    dtype TEXT NOT NULL,          -- its name
    shape TEXT NOT NULL,          -- JSON
    compression TEXT,             -- zlib, or NULL
    data BLOB NOT NULL            -- C order, little endian
);
"""


def _view() -> str:
    """`rows`: results with the ids they belong to and the figures as columns of their own."""
    fields = ("detail", "dtype", "count", "differing", "faithful", "accurate", "bound_share")
    columns = [f"json_extract(row, '$.{name}') AS {name}" for name in fields]
    joins = ""
    for target in TARGETS:
        joins += (
            f" LEFT JOIN measurements AS {target} ON {target}.case_result = results.case_result "
            f"AND {target}.number = json_extract(row, '$.{target}')"
        )
        for metric in METRICS:
            value = f"json_extract({target}.metrics, '$.{metric}')"
            if metric in _COUNTS:
                value = f"iif({target}.number IS NULL, NULL, ifnull({value}, 0))"
            columns.append(
                f"CASE {value} WHEN 'NaN' THEN NULL WHEN 'Infinity' THEN 9e999 "
                f"WHEN '-Infinity' THEN -9e999 ELSE {value} END AS {metric}_{target}"
            )
    columns += [f"json_extract(timings, '$.{stage}') AS {stage}" for stage in STAGES]
    return (
        'CREATE VIEW rows AS SELECT case_id AS "case", environment, kind, path, output, outcome, '
        f"grade, status, cached, {', '.join(columns)}, sha256, row FROM results "
        f"JOIN case_results ON case_results.number = results.case_result{joins} "
        "ORDER BY case_results.position, case_results.number, results.position;"
    )


SCHEMA = (
    f"{_TABLES}\n{_view()}\n"
    f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION};"
)


class _Database(Protocol):
    def execute(self, sql: str, /) -> sqlite3.Cursor: ...


def damaged(error: sqlite3.DatabaseError) -> str:
    """What is said of a record that SQLite cannot make sense of."""
    return f"is damaged or incomplete ({error})"


def check(db: _Database, file: Path) -> None:
    """See that a database is a record that this version can read.

    Raises:
        UserError: it is something else, cannot be read, or has another schema.
    """
    try:
        identity = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.OperationalError as error:
        raise UserError(f"{file}: cannot be read ({error})") from None
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CORRUPT:
            raise UserError(f"{file}: {damaged(error)}", hint=DAMAGED_HINT) from None
        raise UserError(f"{file}: is not a record ({error})", hint=_HINT) from None
    if identity != APPLICATION_ID:
        what = "another kind of SQLite file"
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'").fetchone():
            what = "it looks like parity's cache, which lies beside the records"
        raise UserError(f"{file}: is not a record ({what})", hint=_HINT)
    if version != SCHEMA_VERSION:
        newer = version > SCHEMA_VERSION
        older = "the version that wrote it reads it: SELECT value FROM run WHERE key = 'parity'"
        who = "a newer" if newer else "an older"
        raise UserError(
            f"{file}: was written by {who} parity (got schema {version}; allowed {SCHEMA_VERSION})",
            hint="pip install --upgrade parity-harness" if newer else older,
        )


DAMAGED_HINT = "copy it again, with the -wal file beside it if there is one, or run again"
_HINT = "records are the .sqlite files that `parity run --out DIR` writes"
