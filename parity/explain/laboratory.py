"""What attribution may ask for beside what a run has measured: other operands, other programs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from parity.casefile.case import Case
from parity.engine.environment import Environment
from parity.engine.workers import Workers
from parity.program.spec import ProgramSpec
from parity.worker.protocol import PathOutcome, References, digest

Arrays = Sequence[np.ndarray]
"""Operands in the order of `ProgramSpec.inputs`, in their declared dtypes."""


@dataclass(frozen=True)
class Laboratory:
    """Where a path and its references are asked again.

    Attributes:
        run: the path's outcome on other operands.
        references: what the references say of a program and its operands, under models by name.
    """

    run: Callable[[Arrays], PathOutcome]
    references: Callable[[ProgramSpec, Arrays, Sequence[str]], References]


class Spent(Exception):
    """The time for asking again is over."""


class Asking:
    """A laboratory within a time limit, in which nothing is asked twice.

    Args:
        laboratory: what is asked.
        seconds: that all questions together may take; one that has begun is waited for.
    """

    def __init__(self, laboratory: Laboratory, seconds: float) -> None:
        self._asked = laboratory
        self._until = time.monotonic() + seconds
        self._known: dict[tuple[object, ...], References] = {}
        self.laboratory = Laboratory(self._run, self._references)

    def _run(self, arrays: Arrays) -> PathOutcome:
        self._check()
        return self._asked.run(arrays)

    def _references(
        self, program: ProgramSpec, arrays: Arrays, models: Sequence[str]
    ) -> References:
        key = (repr(program), *map(digest, arrays), *models)
        if key not in self._known:
            self._check()
            self._known[key] = self._asked.references(program, arrays, models)
        return self._known[key]

    def _check(self) -> None:
        if time.monotonic() > self._until:
            raise Spent


def laboratory(
    workers: Workers, case: Case, path: str, environment: Environment | None = None
) -> Laboratory:
    """The laboratory of one path of a case, in the workers that also run it.

    Args:
        workers: which; they stay open.
        case: whose path it is.
        path: its name.
        environment: this interpreter's if None.
    """

    def run(arrays: Arrays) -> PathOutcome:
        found = workers.execute(case, [path], environment, inputs=arrays, references=False)
        return found.outcomes[0]

    def references(program: ProgramSpec, arrays: Arrays, models: Sequence[str]) -> References:
        changed = replace(case, program=program)
        return workers.execute(changed, [], environment, inputs=arrays, models=models).references

    return Laboratory(run, references)
