"""Reads what a record holds, a case at a time, while it is written or long after."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from parity.casefile.case import Case
from parity.casefile.select import id_matches
from parity.compare.result import CaseResult
from parity.compare.rows import Row
from parity.record.bits import Bits
from parity.record.cases import case_from_dict
from parity.record.encoding import loads
from parity.record.opening import Database
from parity.record.rows import unpack_metrics, unpack_row

if TYPE_CHECKING:
    import numpy as np

_CASE = """
SELECT case_id, environment, groups, words, notes, file, line, name, about, resolved
FROM case_results JOIN cases ON id = case_id WHERE number = ?
"""
_RESULTS = """
SELECT kind, path, output, cached, timings, row FROM results WHERE case_result = ? ORDER BY position
"""
_MEASUREMENTS = "SELECT metrics FROM measurements WHERE case_result = ? ORDER BY number"
_COUNT = "SELECT count(*) FROM results WHERE case_result = ? AND kind = 'path'"


class Recorded(Sequence[CaseResult]):
    """The cases of a record in the order in which they were asked for, read when they are needed.

    Args:
        db: the record.
        numbers: of its `case_results`.
        paths: rows of these paths alone, None for all.
    """

    def __init__(
        self,
        db: Database,
        numbers: Sequence[int] | None = None,
        paths: tuple[str, ...] | None = None,
    ) -> None:
        self._db = db
        self._paths = paths
        if numbers is None:
            found = db.execute("SELECT number FROM case_results ORDER BY position, number")
            numbers = [number for (number,) in found]
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[CaseResult]:
        return map(self._read, self._numbers)

    @overload
    def __getitem__(self, at: int) -> CaseResult: ...
    @overload
    def __getitem__(self, at: slice) -> Recorded: ...
    def __getitem__(self, at: int | slice) -> CaseResult | Recorded:
        if isinstance(at, slice):
            return Recorded(self._db, self._numbers[at], self._paths)
        return self._read(self._numbers[at])

    @property
    def facts(self) -> dict[str, str]:
        """What is noted of the run itself: the table `run`."""
        return dict(self._db.execute("SELECT key, value FROM run"))

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Case id and environment of each, in order."""
        found = self._db.execute("SELECT number, case_id, environment FROM case_results")
        names = {number: (case, environment) for number, case, environment in found}
        return tuple(names[number] for number in self._numbers)

    @property
    def findings(self) -> int:
        """How many rows fail the run."""
        return self._count(" AND status IN ('finding', 'stale')")

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return self._count("")

    def _count(self, condition: str) -> int:
        paths = self._paths or ()
        if self._paths is not None:
            condition += f" AND path IN ({', '.join('?' * len(paths))})"
        counts = (self._db.execute(_COUNT + condition, (n, *paths)) for n in self._numbers)
        return sum(count.fetchone()[0] for count in counts)

    def select(self, case: str | None = None, paths: Sequence[str] | None = None) -> Recorded:
        """The cases whose id, name or file a glob matches, with the rows of some paths.

        Args:
            case: with the wildcards * and ?, None for all.
            paths: None for all.
        """
        numbers = self._numbers
        if case is not None:
            ids = dict(self._db.execute("SELECT number, case_id FROM case_results"))
            numbers = [number for number in numbers if id_matches(ids[number], case)]
        if paths is None:
            return Recorded(self._db, numbers, self._paths)
        having = {
            number
            for path in paths
            for (number,) in self._db.execute(
                "SELECT case_result FROM results WHERE kind = 'path' AND path = ?", (path,)
            )
        }
        return Recorded(self._db, [n for n in numbers if n in having], tuple(paths))

    def outputs(self, case: str, environment: str) -> dict[tuple[str, str], np.ndarray]:
        """The bits that were kept of a case, by path (or reference) and output."""
        found = self._db.execute(
            "SELECT path, output, dtype, shape, compression, data FROM case_results "
            "JOIN results ON case_result = number JOIN outputs USING (sha256) "
            "WHERE case_id = ? AND environment = ? ORDER BY results.position",
            (case, environment),
        )
        return {(path, output): Bits(*columns).array() for path, output, *columns in found}

    def program(self, sha256: str) -> str | None:
        """The canonical text of what was compiled, None if it was not kept."""
        found = self._db.execute("SELECT text FROM programs WHERE sha256 = ?", (sha256,)).fetchone()
        return None if found is None else zlib.decompress(found[0]).decode()

    def _read(self, number: int) -> CaseResult:
        found = self._db.execute(_CASE, (number,)).fetchone()
        id_, environment, groups, words, notes, *about = found
        case = _case(id_, *about)
        measured = self._db.execute(_MEASUREMENTS, (number,))
        metrics = [unpack_metrics(loads(text)) for (text,) in measured]
        rows: dict[str, list[Row]] = {"path": [], "reference": []}
        for kind, path, output, cached, timings, row in self._db.execute(_RESULTS, (number,)):
            flat = loads(row) | {
                "case": id_,
                "path": path,
                "output": output,
                "cached": bool(cached),
                "timings": loads(timings),
            }
            rows[kind].append(unpack_row(flat, metrics))
        result = CaseResult(
            case,
            environment,
            tuple(rows["path"]),
            tuple(rows["reference"]),
            {output: tuple(map(tuple, sets)) for output, sets in loads(groups).items()},
            tuple(loads(words)),
            tuple(loads(notes)),
        )
        return result if self._paths is None else _of_paths(result, self._paths)


def _case(id_: str, file: str, line: int, name: str, about: str, resolved: str) -> Case:
    known: dict[str, Any] = loads(resolved)
    return case_from_dict(
        known | {"id": id_, "file": file, "line": line, "name": name, "about": about}
    )


def _of_paths(result: CaseResult, paths: tuple[str, ...]) -> CaseResult:
    """Rows and words of some paths; `words` begin with the path that they are about."""
    return replace(
        result,
        rows=tuple(row for row in result.rows if row.path in paths),
        words=tuple(w for w in result.words if w.split(" ")[0].removesuffix(":") in paths),
    )
