"""Cases in, judged rows out: executes, compares, judges and records."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from parity.casefile.case import Case
from parity.casefile.exactness import exact_until
from parity.compare.expect import judge
from parity.compare.result import CaseResult
from parity.compare.rows import Row, compare_case, groups, reference_rows
from parity.compare.words import words
from parity.engine.environment import Environment
from parity.engine.pool import Pool
from parity.engine.workers import Execution, Limits, Workers
from parity.record.result import RunResult
from parity.record.store import Store

Selected = tuple[Case, tuple[str, ...]]
"""A case and the paths of it that are asked for."""

Outputs = Mapping[tuple[str, str], np.ndarray]
"""By path and output name."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a run is done.

    Attributes:
        fail_on: the best grade that is a finding.
        environments: the environments that every case runs in.
        limits: what a path may take.
        jobs: cases at a time.
        scheduler: address of a Dask scheduler whose workers run the cases, None for this machine.
        out: folder for the record, None for no record.
        keep: which outputs the record keeps.
        keep_limit: bytes of outputs that the record keeps at most.
        resume: the record of an earlier run to go on with.
        cache: whether what has been run before is taken from there.
    """

    fail_on: str = "divergent"
    environments: tuple[Environment, ...] = (Environment(),)
    limits: Limits = field(default_factory=Limits)
    jobs: int = 1
    scheduler: str | None = None
    out: Path | None = None
    keep: str = "non-identical"
    keep_limit: int = 64 << 20
    resume: Path | None = None
    cache: bool = True


@dataclass(frozen=True)
class _Task:
    """One case in one environment."""

    case: Case
    paths: tuple[str, ...]
    environment: Environment


class Session:
    """Runs cases one after the other in workers that stay: a context manager.

    Args:
        options: how.
    """

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()
        self._workers = Workers(self._options.limits)

    def __enter__(self) -> Session:
        self._workers.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._workers.__exit__(*exc)

    def run(self, case: Case, paths: Sequence[str]) -> CaseResult:
        """Execute and compare one case in the first environment."""
        task = _Task(case, tuple(paths), self._options.environments[0])
        return _run_task(self._workers, task, self._options.fail_on)[0]


def _run_task(workers: Workers, task: _Task, fail_on: str) -> tuple[CaseResult, Outputs]:
    """Run the paths, and the baseline with them, since the others are compared with it."""
    wanted = tuple(dict.fromkeys((*task.paths, task.case.baseline)))
    execution = workers.execute(task.case, wanted, task.environment)
    begin = time.perf_counter()
    result = _compare(task, execution, workers.found.get(task.environment.name, {}), fail_on)
    seconds = time.perf_counter() - begin
    rows = tuple(_timed(row, seconds / max(len(result.rows), 1)) for row in result.rows)
    outputs = {
        (outcome.path, name): array
        for outcome in execution.outcomes
        if outcome.path in task.paths
        for name, array in outcome.outputs.items()
    }
    return dataclasses.replace(result, rows=rows), outputs


def _timed(row: Row, seconds: float) -> Row:
    return dataclasses.replace(row, timings={**row.timings, "compare": seconds})


def _compare(
    task: _Task, execution: Execution, found: Mapping[str, str], fail_on: str
) -> CaseResult:
    """Measure, grade and judge what was executed; rows for the wanted paths alone."""
    case, outcomes, references = task.case, execution.outcomes, execution.references
    rows = tuple(
        dataclasses.replace(
            row,
            environment=execution.environment,
            nondeterministic=row.path in execution.changed,
        )
        for row in compare_case(case, outcomes, references)
        if row.path in task.paths
    )
    judged = judge(case, rows, environment=found, fail_on=fail_on)
    outputs = dict.fromkeys(name for outcome in outcomes for name in outcome.outputs)
    return CaseResult(
        case,
        execution.environment,
        judged,
        reference_rows(case, references),
        {name: groups(outcomes, name) for name in outputs},
        words(case, judged, outcomes, references),
        (*references.notes, *filter(None, [exact_until(case)])),
    )


def run_cases(
    selected: Sequence[Selected],
    options: Options,
    *,
    progress: Callable[[CaseResult], None] = lambda result: None,
) -> RunResult:
    """Run cases in every environment, several at a time; each is recorded when it is done.

    Args:
        selected: cases with the paths to run of each.
        options: how.
        progress: told of each case when it is done.

    Returns:
        The run, in the order in which the cases were asked for; on Ctrl-C what was done by then.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        UserError: the record cannot be written, an array file cannot be read.
    """
    from parity import __version__

    tasks = [
        _Task(case, paths, environment)
        for case, paths in selected
        for environment in options.environments
    ]
    store = _store(options, __version__, len(tasks))
    run = _Run(store, options, progress)
    interrupted = False
    try:
        run.go(tasks)
    except KeyboardInterrupt:
        interrupted = True
    except BaseException:
        store.close()
        raise
    result = RunResult(
        store.environments(), store.results(), len(tasks), interrupted, store.file
    )
    store.finish(result.verdict, interrupted=interrupted)
    return result


def _store(options: Options, version: str, wanted: int) -> Store:
    facts = {
        "fail_on": options.fail_on,
        "environments": [environment.name for environment in options.environments],
        "repeats": options.limits.repeats,
        "memory": options.limits.memory,
        "timeout": options.limits.timeout,
    }
    if options.resume is not None:
        return Store.resume(options.resume, version=version, options=facts, wanted=wanted)
    return Store(
        options.out,
        version=version,
        options=facts,
        keep=options.keep,
        limit=options.keep_limit,
        wanted=wanted,
    )


class _Run:
    """The tasks of a run, from what is already known to what is still to be executed."""

    def __init__(
        self, store: Store, options: Options, progress: Callable[[CaseResult], None]
    ) -> None:
        self._store = store
        self._options = options
        self._progress = progress
        self._noted: set[str] = set()

    def go(self, tasks: Sequence[_Task]) -> None:
        """Do everything that is not recorded yet, each result recorded when it is there."""
        done = self._store.done() if self._options.resume is not None else {}
        waiting: list[tuple[int, _Task]] = []
        for position, task in enumerate(tasks):
            recorded = done.get((task.case.id, task.environment.name), ())
            if set(task.paths) <= set(recorded) and self._store.knows(task.case):
                continue
            waiting.append((position, task))
        if waiting:
            self._execute(waiting)

    def _execute(self, waiting: Sequence[tuple[int, _Task]]) -> None:
        limits, scheduler = self._options.limits, self._options.scheduler
        work = partial(_work, self._options.fail_on)
        if scheduler is not None:
            from parity.engine.cluster import Cluster

            results = Cluster(scheduler, limits, work).run(waiting)
        else:
            jobs = max(1, min(self._options.jobs, len(waiting)))
            results = Pool(jobs, limits, work).run(waiting)
        for done in results:
            if done.result.environment not in self._noted:
                self._noted.add(done.result.environment)
                self._store.environment(done.result.environment, done.found)
            self._store.add(done.result, done.outputs, position=done.position)
            self._progress(done.result)


@dataclass(frozen=True)
class _Done:
    """What a thread of the pool, or of the cluster, hands over."""

    position: int
    result: CaseResult
    outputs: Outputs
    found: Mapping[str, str]


def _work(fail_on: str, workers: Workers, item: tuple[int, _Task]) -> _Done:
    position, task = item
    result, outputs = _run_task(workers, task, fail_on)
    return _Done(position, result, outputs, workers.found.get(task.environment.name, {}))
