"""Case files: read, checked, swept, and made into cases. Nothing in them is executed."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parity.casefile.build import Known, build, check_paths, tolerance, variants
from parity.casefile.case import Case
from parity.casefile.discover import discover
from parity.casefile.document import Document, parse, read, shown
from parity.casefile.expect import Expectations
from parity.casefile.filling import Fillings
from parity.casefile.messages import validated
from parity.casefile.problem import Location, Problem
from parity.casefile.schema import NAME_PATTERN, Body, CaseFileModel, Header
from parity.casefile.select import Item, items, match_ids, select
from parity.casefile.sharing import Shared
from parity.casefile.sources import Sources
from parity.casefile.sweep import TRANSFORM, Point, Sweep
from parity.casefile.sweep import parse as parse_sweep
from parity.config import nearest_root
from parity.errors import CaseFileError

__all__ = ["CaseFile", "Item", "check_unique", "discover", "items", "load", "match_ids", "select"]

MAX_CASES = 10_000


@dataclass(frozen=True)
class CaseFile:
    """A case file and all its cases, in the order of its sweep.

    Attributes:
        file: absolute.
        name: the file's `name`, by default its stem.
        cases: at least one.
        shown: the file as messages name it.
        place: line and column of its name.
    """

    file: Path
    name: str
    cases: tuple[Case, ...]
    shown: Path
    place: tuple[int, int]


def load(
    path: Path | str,
    *,
    root: Path | None = None,
    known_paths: Known | None = None,
    max_cases: int = MAX_CASES,
    today: datetime.date | None = None,
    text: str | None = None,
) -> CaseFile:
    """Read one case file.

    Args:
        path: the YAML file.
        root: the folder that ids are relative to; by default that of the nearest pyproject.toml.
        known_paths: the paths that exist; None accepts any.
        max_cases: the most cases a sweep may span, exclusions aside.
        today: the day on which an expectation's `until` is judged; by default today.
        text: what the file is to hold, where that is not yet written.

    Raises:
        CaseFileError: the file is not a case file; `others` holds what else is wrong with it.
    """
    path = Path(path)
    document = read(path) if text is None else parse(text, shown(path))
    loader = _Loader(path.absolute(), document, known_paths)
    try:
        cases = loader.cases(root, max_cases, today or datetime.date.today())
    except Problem as problem:
        raise document.error(problem) from None
    except ExceptionGroup as group:
        raise document.error(*(p for p in group.exceptions if isinstance(p, Problem))) from None
    place = document.place(("name",))
    return CaseFile(loader.file, cases[0].name, cases, document.file, place)


def check_unique(files: Iterable[CaseFile]) -> None:
    """Raise a CaseFileError where two case files have a case of the same id."""
    seen: dict[str, CaseFile] = {}
    for file in files:
        for case in file.cases:
            if case.id in seen:
                line, col = file.place
                what = f"duplicate case id '{case.id}' (first in {seen[case.id].shown})"
                hint = "give one of the files another name"
                raise CaseFileError(what, file=file.shown, line=line, col=col, hint=hint)
            seen[case.id] = file


class _Loader:
    """The steps from a document to its cases."""

    def __init__(self, file: Path, document: Document, known_paths: Known | None) -> None:
        self.file = file
        self._document = document
        self._known_paths = known_paths
        self._fillings = Fillings(file.parent)
        self._sources = Sources(file.parent)
        self._shared = Shared()
        self._line = document.place(())[0]

    def cases(self, root: Path | None, max_cases: int, today: datetime.date) -> tuple[Case, ...]:
        data = self._document.data
        head = {key: value for key, value in data.items() if key in Header.model_fields}
        rest = {key: value for key, value in data.items() if key not in Header.model_fields}
        header = self._header(head, rest)
        expectations = Expectations(
            header.expect,
            line=lambda index: self._document.place(("expect", index))[0],
            today=today,
        )
        sweep = parse_sweep(header.sweep, header.transforms)
        _check_size(sweep, max_cases)
        _check_overridden(rest, {axis.field for axis in sweep.axes if axis.field})
        stem = f"{_relative(self.file, root or nearest_root(self.file))}::{self._name(header)}"
        cases = tuple(
            self._case(header, rest, point, stem, expectations) for point in sweep.points()
        )
        expectations.finish()
        return cases

    def _header(self, head: dict[str, Any], rest: dict[str, Any]) -> Header:
        """The header; if it is wrong, what is wrong with the rest is said with it."""
        try:
            return validated(Header, head, ())
        except ExceptionGroup as group:
            found = list(group.exceptions)
        try:
            validated(Body, rest, (), known=CaseFileModel)
        except ExceptionGroup as group:
            # A sweep may yet give what is missing; a key that no field has stays wrong.
            alone = "sweep" not in head
            found += [p for p in group.exceptions if alone or getattr(p, "key", False)]
        raise ExceptionGroup("case file", found)

    def _name(self, header: Header) -> str:
        if header.name is not None:
            return header.name
        try:
            return validated(Header, {"name": self.file.stem, "about": "-"}, ()).name or ""
        except ExceptionGroup:
            what = f"the file's own name cannot name its cases (allowed {NAME_PATTERN})"
            raise Problem(what, hint="give a name: or rename the file") from None

    def _case(
        self, header: Header, rest: dict[str, Any], point: Point, stem: str, expect: Expectations
    ) -> Case:
        body = self._body(rest, point)
        try:
            check_paths(body, self._known_paths)
            built = build(body, point.values[TRANSFORM], self._fillings, self._sources)
            limits = tolerance(body)
            named = variants(body)
        except ExceptionGroup as group:
            raise _located(group, point) from None
        except Problem as problem:
            found = point.locate(problem) or problem
            found.what += f", at {point}" if str(point) else ""
            raise found from None
        return Case(
            id=f"{stem}:{point}" if str(point) else stem,
            file=self.file,
            line=self._line,
            name=stem.rpartition("::")[2],
            about=header.about,
            links=self._shared.tuple(tuple(header.links)),
            point=point.spelt,
            program=self._shared.program(built.program),
            operands=self._shared.operands(built.operands),
            paths=self._shared.tuple(tuple(variant.name for variant in named)),
            variants={v.name: v for v in named if v.options() or v.variables},
            baseline=body.baseline,
            tolerance=limits,
            expect=expect.of(point, body),
            licences=self._shared.tuple(tuple(body.licences)),
            timeout=body.timeout,
        )

    def _body(self, rest: dict[str, Any], point: Point) -> Body:
        try:
            return validated(Body, point.apply(rest), (), known=CaseFileModel)
        except ExceptionGroup as group:
            raise _located(group, point) from None


def _located(group: ExceptionGroup[Exception], point: Point) -> ExceptionGroup[Exception]:
    """The problems at the axis values that brought them about, which then name the point."""
    found: list[Exception] = []
    for problem in group.exceptions:
        moved = point.locate(problem) if isinstance(problem, Problem) else None
        if moved is not None and not moved.key:
            moved.what += f", at {point}"
        found.append(moved or problem)
    return ExceptionGroup(group.message, found)


def _check_overridden(rest: dict[str, Any], swept: set[Location]) -> None:
    """Raise for a wrong value that every point of the sweep would replace unseen.

    Raises:
        ExceptionGroup: of Problems.
    """
    try:
        validated(Body, rest, (), known=CaseFileModel)
    except ExceptionGroup as group:
        wrong = [
            problem
            for problem in group.exceptions
            if isinstance(problem, Problem) and problem.at in swept and _given(rest, problem.at)
        ]
        if wrong:
            raise ExceptionGroup("case file", wrong) from None


def _given(rest: Any, at: Location) -> bool:
    """Whether the document has a value at a location."""
    for key in at:
        if not isinstance(rest, dict) or key not in rest:
            return False
        rest = rest[key]
    return True


def _check_size(sweep: Sweep, max_cases: int) -> None:
    if sweep.size() > max_cases:
        what = f"the sweep spans {sweep.size():,} cases (allowed {max_cases:,})"
        hint = "sweep fewer values, or zip axes"
        raise Problem(what, ("sweep",), instead=("transforms",), hint=hint)


def _relative(file: Path, root: Path) -> str:
    root = root.absolute()
    return (file.relative_to(root) if file.is_relative_to(root) else file).as_posix()
