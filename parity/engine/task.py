"""One case in one environment, from what is asked for to rows that are not judged yet."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from parity import paths as registry
from parity.casefile.case import Case
from parity.casefile.exactness import exact_until
from parity.compare.expect import judge
from parity.compare.groups import groups
from parity.compare.reference_rows import reference_rows
from parity.compare.result import CaseResult
from parity.compare.rows import compare_case
from parity.compare.words import words
from parity.engine.case_run import Artifacts
from parity.engine.environment import Environment
from parity.engine.workers import Execution, Workers
from parity.record.cache import REPEATABLE
from parity.worker.protocol import PathOutcome

Outputs = Mapping[tuple[str, str], np.ndarray]
"""By path, or reference f64, and output name."""


@dataclass(frozen=True, slots=True)
class Task:
    """One case in one environment.

    Attributes:
        position: among all tasks.
        known: outcomes from before a run was killed.
        key: of the cache, None if it is not used.
        artifacts: what its paths exported before, to be executed instead of exporting anew.
    """

    case: Case
    paths: tuple[str, ...]
    environment: Environment
    position: int = 0
    known: Mapping[str, PathOutcome] = field(default_factory=dict)
    key: str | None = None
    artifacts: Artifacts | None = None


@dataclass(frozen=True)
class Arrived:
    """What one path made of a task that goes on."""

    task: Task
    outcome: PathOutcome
    found: Mapping[str, str]


@dataclass(frozen=True)
class Done:
    """What became of a task.

    Attributes:
        result: with rows that are not judged yet.
        outputs: of the wanted paths.
        found: what the environment is.
        repeatable: whether another run under the key of the task would give the same; what was
            known before may be another machine's.
        seconds: that it took.
        artifacts: what the wanted paths exported, as far as that is to be kept.
    """

    task: Task
    result: CaseResult
    outputs: Outputs
    found: Mapping[str, str]
    repeatable: bool
    seconds: float = 0.0
    artifacts: tuple[bytes, ...] = ()


def work(
    workers: Workers,
    task: Task,
    say: Callable[[Arrived | Done], None] = lambda arrived: None,
) -> Done:
    """Run the paths, and the baseline with them, since the others are compared with it."""
    begin = time.perf_counter()
    without_known = replace(task, known={}, artifacts=None)  # which need not travel back

    def arrived(outcome: PathOutcome) -> None:
        say(Arrived(without_known, outcome, workers.found.get(task.environment.name, {})))

    wanted = tuple(dict.fromkeys((*task.paths, task.case.baseline)))
    execution = workers.execute(
        *(task.case, wanted, task.environment),
        known=task.known,
        artifacts=task.artifacts,
        arrived=arrived,
    )
    return Done(
        without_known,
        _compare(task, execution),
        _outputs(task, execution),
        workers.found.get(task.environment.name, {}),
        not task.known and not execution.changed and all(map(_is_repeatable, execution.outcomes)),
        time.perf_counter() - begin,
        tuple(o.artifact for o in execution.outcomes if o.artifact and o.path in task.paths),
    )


def _outputs(task: Task, execution: Execution) -> Outputs:
    """What the wanted paths gave, and the ideal."""
    wanted = [outcome for outcome in execution.outcomes if outcome.path in task.paths]
    paths = {(o.path, name): array for o in wanted for name, array in o.outputs.items()}
    return paths | {("f64", name): of.point for name, of in execution.references.f64.items()}


def _is_repeatable(outcome: PathOutcome) -> bool:
    return outcome.outcome in REPEATABLE and "retried" not in outcome.evidence


def _compare(task: Task, execution: Execution) -> CaseResult:
    """Measure and grade what was executed; rows for the wanted paths alone."""
    begin = time.perf_counter()
    case, references = task.case, execution.references
    outcomes = sorted(execution.outcomes, key=lambda one: _is_reference(case, one.path))
    rows = tuple(
        replace(
            row,
            environment=execution.environment,
            nondeterministic=row.path in execution.changed,
        )
        for row in compare_case(case, outcomes, references)
        if row.path in task.paths
    )
    outputs = dict.fromkeys(name for outcome in outcomes for name in outcome.outputs)
    result = CaseResult(
        case,
        execution.environment,
        rows,
        reference_rows(case, references),
        {name: groups(outcomes, name) for name in outputs},
        words(case, rows, outcomes, references),
        (*references.notes, *filter(None, [exact_until(case)])),
        _programs(outcomes),
    )
    seconds = (time.perf_counter() - begin) / max(len(rows), 1)
    return replace(
        result,
        rows=tuple(replace(row, timings={**row.timings, "compare": seconds}) for row in rows),
    )


def _is_reference(case: Case, path: str) -> bool:
    """Whether a path is a reference, which stands last: beside those of our own."""
    variant = case.variants.get(path)
    return (variant.path if variant else path) in registry.references()


def _programs(outcomes: Iterable[PathOutcome]) -> dict[str, bytes]:
    texts = {sha256: text for o in outcomes for sha256, text in o.programs.items()}
    return {sha256: zlib.compress(text.encode()) for sha256, text in texts.items()}


def judged(result: CaseResult, found: Mapping[str, str], fail_on: str) -> CaseResult:
    """The result with the status of each row."""
    rows = judge(result.case, result.rows, environment=found, fail_on=fail_on)
    return replace(result, rows=rows)
