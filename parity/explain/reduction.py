"""Reduction: a smaller case that differs in the same way, for the same reason."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parity import paths as registry
from parity.casefile.case import Case
from parity.casefile.load import load
from parity.engine.environment import Environment
from parity.engine.workers import Workers
from parity.errors import CaseFileError, WorkerStartError
from parity.explain.attribution import ASKED, STRICT
from parity.explain.signature import Signature, differ, signature
from parity.explain.simpler import Fields, listed, simpler
from parity.report.html.resolved import document, text


@dataclass(frozen=True)
class Reduction:
    """A smaller case.

    Attributes:
        path: which differs.
        against: from which.
        case: the reduced one.
        signature: what it has in common with the case that it was made of.
        text: its case file.
        elements: of all operands, before and after.
        steps: what was made simpler, in order.
        runs: how many cases were run.
        seconds: that all of it took.
        finished: whether nothing simpler was left to try.
        missing: why there is none, "" if there is.
    """

    path: str
    against: str
    case: Case
    signature: Signature
    text: str = ""
    elements: tuple[int, int] = (0, 0)
    steps: tuple[str, ...] = ()
    runs: int = 0
    seconds: float = 0.0
    finished: bool = False
    missing: str = ""


def reduce(
    workers: Workers,
    case: Case,
    path: str,
    environment: Environment | None = None,
    *,
    against: str | None = None,
    seconds: float = 120.0,
    wanted: Signature | None = None,
    name: str | None = None,
    about: str | None = None,
) -> Reduction:
    """A case of smaller shapes, fewer attributes, simpler values and fewer steps.

    What is tried is a case file, so that what cannot be said in one is never the result. A code
    that a case names stays as it is.

    Args:
        workers: which run it; they stay open.
        case: to be reduced.
        path: which differs.
        environment: this interpreter's if None.
        against: from which; the baseline if None.
        seconds: after which no new run begins.
        wanted: in what way the path differed before; there is no reduction if it does not again.
        name: of the reduced case; that of the case and `_reduced` if None.
        about: the sentence that says what it guards.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        CaseFileError: an array file cannot be read.
    """
    begin = time.monotonic()
    against = against or case.baseline
    it = _Reducing(workers, path, against, environment)
    now = it.signature(case)
    found = Reduction(path, against, case, signature=now)
    if wanted is not None and now != wanted:
        return replace(found, missing=f"{path} was {wanted.said} before, {now.said} now")
    if now.outcome == "ok" and now.what == "identical":
        return replace(found, missing=f"{path} gives the bits of {against}")
    first = it.loaded(case, _start(case, path, against))
    if first is None or it.signature(first[0]) != now:
        return replace(found, missing="its case file alone does not say it")
    smaller, fields, steps, finished = it.reduced(*first, now, begin + seconds)
    fields |= _expectation(path, against, now)
    fields["name"] = name or f"{case.name}_reduced"
    fields["about"] = about or f"Reduced from {case.id}: {path} is {now.said}."
    again = it.loaded(case, fields)
    return replace(
        found,
        case=again[0] if again else smaller,
        text=text(fields),
        elements=(_elements(case), _elements(smaller)),
        steps=tuple(steps),
        runs=it.runs,
        seconds=time.monotonic() - begin,
        finished=finished,
    )


def _start(case: Case, path: str, against: str) -> Fields:
    """The fields of a case, without what says nothing of its numbers."""
    fields = document(case)
    for name in ("expect", "tolerance", "licences", "links"):
        fields.pop(name, None)
    if fields["transforms"] == ["forward"]:
        del fields["transforms"]
    if fields["devices"] == 1:
        del fields["devices"]
    names = (against, path)
    given = {_name(one): one for one in fields["paths"]}
    fields["paths"] = [given.get(name, name) for name in names]
    fields["baseline"] = against
    return fields


def _name(path: Any) -> str:
    name: str = path if isinstance(path, str) else path["name"]
    return name


def _expectation(path: str, against: str, wanted: Signature) -> Fields:
    """The field that expects what was found."""
    because = wanted.why or wanted.said
    if wanted.why == STRICT:
        because = f"it is what is declared, which {against} is not"
    grade = {"grade": wanted.what} if wanted.outcome == "ok" else {"outcome": wanted.outcome}
    if wanted.outcome == "error":
        grade["stage"] = wanted.what.split()[0]
    return {"expect": [{"path": path, **grade, "because": because}]}


def _elements(case: Case) -> int:
    return sum(int(np.prod(operand.shape, dtype=int)) for operand in case.operands)


@dataclass
class _Reducing:
    """The runs of one reduction."""

    workers: Workers
    path: str
    against: str
    environment: Environment | None
    runs: int = 0

    def loaded(self, case: Case, fields: Fields) -> tuple[Case, Fields] | None:
        """The case that some fields say, beside the file of the original; None for none."""
        known = registry.options()
        try:
            cases = load(case.file, text=text(fields), known_paths=known).cases
        except CaseFileError:
            return None
        return (cases[0], fields) if len(cases) == 1 else None

    def signature(self, case: Case) -> Signature:
        """In what way the path differs."""
        self.runs += 1
        names = [self.against, self.path]
        execution = self.workers.execute(case, names, self.environment, references=False)
        baseline, outcome = execution.outcomes
        references = execution.references
        if differ(outcome, baseline):
            references = self.workers.execute(case, [], self.environment, models=ASKED).references
        return signature(case, baseline, outcome, references)

    def reduced(
        self, case: Case, fields: Fields, wanted: Signature, until: float
    ) -> tuple[Case, Fields, list[str], bool]:
        """The smallest case that was found, what led to it, and whether all was tried."""
        steps: list[str] = []
        tried: set[str] = set()
        moved = True
        while moved:
            moved = False
            fields = listed(fields, _arrays(case))
            for what, candidate in simpler(fields):
                said = text(candidate)
                if said in tried:
                    continue
                tried.add(said)
                if time.monotonic() > until:
                    return case, fields, steps, False
                made = self.loaded(case, candidate)
                if made is not None and self._keeps(made[0], wanted):
                    case, fields = made
                    steps.append(what)
                    moved = True
                    break
        return case, fields, steps, True

    def _keeps(self, case: Case, wanted: Signature) -> bool:
        try:
            return self.signature(case) == wanted
        except (CaseFileError, WorkerStartError):
            return False


def _arrays(case: Case) -> dict[str, np.ndarray]:
    return {one.name: array for one, array in zip(case.operands, case.arrays(), strict=True)}
