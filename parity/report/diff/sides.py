"""Which two environments of which records are compared, and their cases one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parity.casefile.problem import did_you_mean
from parity.casefile.select import id_matches
from parity.compare.result import CaseResult
from parity.errors import UserError
from parity.record.reader import Recorded
from parity.record.result import RunResult, open_record
from parity.report.diff.facts import Side, no_program

if TYPE_CHECKING:
    import numpy as np

Run = RunResult | Path | str
"""A run, or the file of its record."""


@dataclass(frozen=True)
class Source:
    """The cases of one side, each read when it is asked for.

    Attributes:
        side: what is said of it.
        cases: of the whole run.
        places: by case id, where among them it is.
    """

    side: Side
    cases: Sequence[CaseResult]
    places: Mapping[str, int]

    def read(self, case: str) -> CaseResult:
        """The result of a case."""
        return self.cases[self.places[case]]

    def outputs(self, case: str) -> Mapping[tuple[str, str], np.ndarray]:
        """The bits that are kept of a case, by path (or reference) and output."""
        if isinstance(self.cases, Recorded):
            return self.cases.outputs(case, self.side.environment)
        return {}


def choose(
    a: Run,
    b: Run | None,
    *,
    a_env: str | None = None,
    b_env: str | None = None,
    case: str | None = None,
) -> tuple[Source, Source]:
    """The two sides of a comparison.

    Args:
        a: the first run, or the only one.
        b: the second one, None where two environments of the first are compared.
        a_env: the environment of A, needed where there are several.
        b_env: the environment of B, likewise.
        case: only these cases: an id, a file, or a glob over them.

    Raises:
        UserError: a record cannot be read, it is not clear what is to be compared, or that is the
            same twice.
    """
    first = _opened(a)
    if b is None:
        names = _two(first, a_env, b_env)
        second = first
    else:
        second = _opened(b)
        names = _one(first, a_env, "a"), _one(second, b_env, "b")
        _refuse_itself(first, second, names)
    return _source(first, names[0], case), _source(second, names[1], case)


def _refuse_itself(a: RunResult, b: RunResult, names: tuple[str, str]) -> None:
    if a.record is None or b.record is None or names[0] != names[1]:
        return
    if a.record.samefile(b.record):
        known = _environments(a)
        hint = "parity diff A B compares two records"
        if len(known) > 1:
            hint = f"--a {known[0]} --b {known[1]} compares two of its environments"
        raise UserError(f"{_name(b)}: is both A and B (environment {names[0]})", hint=hint)


def _opened(run: Run) -> RunResult:
    return run if isinstance(run, RunResult) else open_record(run)


def _name(run: RunResult) -> str:
    return "the run" if run.record is None else str(run.record)


def _one(run: RunResult, wanted: str | None, option: str) -> str:
    """The environment that is chosen in one of two runs."""
    names = _environments(run)
    if wanted is not None:
        return _known(run, wanted, names)
    if len(names) == 1:
        return names[0]
    raise UserError(
        f"{_name(run)}: has {len(names)} environments ({', '.join(names)}); "
        "which one is to be compared?",
        hint=f"--{option} {names[0]} chooses it",
    )


def _two(run: RunResult, a: str | None, b: str | None) -> tuple[str, str]:
    """The two environments that are chosen in one run."""
    names = _environments(run)
    for wanted in (a, b):
        if wanted is not None:
            _known(run, wanted, names)
    if len(names) == 1:
        raise UserError(
            f"{_name(run)}: has one environment, {names[0]}, and there is no second record",
            hint="parity diff A B compares two records",
        )
    if len(names) == 2:
        a = a or next(name for name in names if name != b)
        b = b or next(name for name in names if name != a)
    if a is None or b is None:
        raise UserError(
            f"{_name(run)}: has {len(names)} environments ({', '.join(names)}); "
            "which two are to be compared?",
            hint=f"--a {names[0]} --b {names[1]} chooses two",
        )
    if a == b:
        raise UserError(
            f"{_name(run)}: A and B are the same environment, {a}",
            hint=f"it has {', '.join(names)}",
        )
    return a, b


def _known(run: RunResult, wanted: str, names: Sequence[str]) -> str:
    if wanted not in names:
        raise UserError(
            f"{_name(run)}: unknown environment (got {wanted}; allowed {', '.join(names)})",
            hint=did_you_mean(wanted, names),
        )
    return wanted


def _environments(run: RunResult) -> tuple[str, ...]:
    names = tuple(dict.fromkeys((*run.environments, *(name for _, name in _keys(run.cases)))))
    if not names:
        raise UserError(f"{_name(run)}: has no results", hint="parity run --resume goes on with it")
    return names


def _keys(cases: Sequence[CaseResult]) -> Sequence[tuple[str, str]]:
    if isinstance(cases, Recorded):
        return cases.keys
    return [(one.case.id, one.environment) for one in cases]


def _source(run: RunResult, environment: str, case: str | None) -> Source:
    cases = run.cases
    side = Side(
        record=None if run.record is None else str(run.record),
        environment=environment,
        facts=run.environments.get(environment, {}),
        run=cases.facts if isinstance(cases, Recorded) else {},
        missing=run.wanted - len(cases),
        program=cases.program if isinstance(cases, Recorded) else no_program,
    )
    places = {
        id_: place
        for place, (id_, name) in enumerate(_keys(cases))
        if name == environment and (case is None or id_matches(id_, case))
    }
    return Source(side, cases, places)
