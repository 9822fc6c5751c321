"""What a record says of the cases of a file, judged by the file as it is now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from parity.casefile.case import Case, Expectation
from parity.casefile.document import Document, parse, shown
from parity.casefile.load import load
from parity.casefile.select import id_matches
from parity.casefile.sweep import Point
from parity.casefile.sweep import parse as parse_sweep
from parity.compare.expect import holds, judge, stale_outputs
from parity.compare.rows import Row
from parity.config import nearest_root
from parity.errors import CaseFileError
from parity.record.cases import case_as_dict
from parity.record.encoding import dumps, loads
from parity.record.opening import read
from parity.record.result import open_record

_OF_NO_EFFECT = ("file", "line", "about", "links", "paths", "expect", "timeout")
"""Fields of a case that may change without another number coming out."""


@dataclass(frozen=True)
class Seen:
    """One case in one environment.

    Attributes:
        case: as the file has it now.
        number: its position among the file's cases.
        environment: its name.
        versions: of the environment, by name.
        rows: of the record, judged by what the file expects now.
    """

    case: Case
    number: int
    environment: str
    versions: Mapping[str, str]
    rows: tuple[Row, ...]

    def entries(self, path: str) -> Iterator[tuple[Expectation, tuple[str | None, ...]]]:
        """The entries that speak of a path here, and the outputs of which each is stale.

        None stands for the path as a whole; an entry of which the rows say nothing is left out.
        """
        for entry in self.case.expect:
            if path in entry.paths and holds(entry, self.versions):
                gone = stale_outputs(entry, path, self.rows)
                if gone == (None,) and entry.outputs is not None:  # the path failed
                    gone = entry.outputs
                if gone is not None:
                    yield entry, gone

    def stale_on(self, row: Row) -> list[tuple[Expectation, str | None]]:
        """The entries that a row shows to be stale, each with the output it is stale of."""
        return [
            (entry, output)
            for entry, gone in self.entries(row.path)
            for output in gone
            if output is None or row.outcome != "ok" or output == row.output
        ]


@dataclass(frozen=True)
class Evidence:
    """A case file and what a record says of it.

    Attributes:
        path: the file.
        text: what it holds, a byte order mark included.
        document: the same, parsed.
        cases: all of them.
        points: of the sweep, one for each case.
        seen: what the record has of these cases; those that have changed are left out.
        fail_on: the mildest grade that was a finding.
    """

    path: Path
    text: str
    document: Document
    cases: tuple[Case, ...]
    points: tuple[Point, ...]
    seen: tuple[Seen, ...]
    fail_on: str

    @cached_property
    def by_case(self) -> dict[int, list[Seen]]:
        """What was seen of each case, by its position."""
        found: dict[int, list[Seen]] = {}
        for seen in self.seen:
            found.setdefault(seen.number, []).append(seen)
        return found

    def place(self, index: int) -> str:
        """Where an entry stands: `cases/conv_bf16.yaml:23:5`."""
        line, col = self.document.place(("expect", index))
        return f"{self.document.file}:{line}:{col}"

    def judged(self, cases: Sequence[Case]) -> tuple[Seen, ...]:
        """What was seen, judged by cases that differ from the file's in `expect` only."""
        return tuple(
            _judged(
                cases[one.number],
                one.number,
                one.environment,
                one.versions,
                one.rows,
                self.fail_on,
            )
            for one in self.seen
        )


def gather(
    record: Path | str, *, case: str | None = None, paths: Sequence[str] | None = None
) -> list[Evidence]:
    """The case files of a record's cases, with all that the record says of each file.

    Args:
        record: of a run.
        case: only files of these cases: an id, a file, or a glob over them.
        paths: only files with rows of these paths.

    Raises:
        UserError: it is no record; a chosen case has changed since; its file cannot be read.
        NothingSelected: the record has no such case or path.
    """
    chosen: dict[str, Path] = {}
    for one in open_record(record, case=case, paths=paths).cases:
        chosen.setdefault(one.case.id.partition("::")[0], one.case.file)
    db = read(Path(record))
    options = loads(dict(db.execute("SELECT key, value FROM run"))["options"])
    return [
        _evidence(record, id_, _file(id_, recorded), case, str(options["fail_on"]))
        for id_, recorded in chosen.items()
    ]


def _file(id_: str, recorded: Path) -> Path:
    """A case file: here, or else where it lay when the record was written."""
    here = nearest_root(Path.cwd()) / id_
    return here if here.is_file() else recorded


def _evidence(
    record: Path | str, id_: str, path: Path, pattern: str | None, fail_on: str
) -> Evidence:
    text = text_of(path)
    document = parse(text, shown(path))
    cases = load(path, text=text).cases
    data = document.data
    points = parse_sweep(data.get("sweep"), data.get("transforms", ["forward"])).points()
    numbers = {case.id: number for number, case in enumerate(cases)}
    run = open_record(record, case=id_)
    seen = []
    for one in run.cases:
        number = numbers.get(one.case.id)
        change = "is gone" if number is None else _change(one.case, cases[number])
        if change and (pattern is None or id_matches(one.case.id, pattern)):
            what = f"{one.case.id} {change} since the record was written"
            raise CaseFileError(what, file=document.file, hint=f"parity run {document.file}")
        if number is not None and not change:
            versions = run.environments.get(one.environment, {})
            seen.append(
                _judged(cases[number], number, one.environment, versions, one.rows, fail_on)
            )
    return Evidence(path, text, document, cases, tuple(points), tuple(seen), fail_on)


def text_of(path: Path) -> str:
    """What a case file holds, byte order mark and line ends as they are.

    Raises:
        CaseFileError: it cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise CaseFileError(f"not UTF-8 ({error.reason})", file=shown(path)) from None
    except OSError as error:
        raise CaseFileError(f"cannot be read ({error.strerror})", file=shown(path)) from None


def _judged(
    case: Case,
    number: int,
    environment: str,
    versions: Mapping[str, str],
    rows: Sequence[Row],
    fail_on: str,
) -> Seen:
    judged = judge(case, rows, environment=versions, fail_on=fail_on)
    return Seen(case, number, environment, versions, judged)


def _change(recorded: Case, now: Case) -> str:
    """What has changed in a case so that other numbers may come out, "" if nothing has."""
    before, after = case_as_dict(recorded), case_as_dict(now)
    names = [n for n in before if n not in _OF_NO_EFFECT and dumps(before[n]) != dumps(after[n])]
    return f"has another {' and '.join(names)}" if names else ""
