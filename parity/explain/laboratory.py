"""What attribution may ask for beside what a run has measured: other operands, other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from parity.casefile.case import Case
from parity.engine.environment import Environment
from parity.engine.workers import Workers
from parity.program.spec import ProgramSpec
from parity.worker.protocol import PathOutcome, References

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
