"""Cases in, judged rows out: executes, compares, judges and records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from parity.casefile.case import Case
from parity.compare.result import CaseResult
from parity.engine.artifacts import Past
from parity.engine.environment import Environment
from parity.engine.pool import Pool
from parity.engine.task import Arrived, Done, Task, judged, work
from parity.engine.workers import Limits, Workers
from parity.record.cache import Cache
from parity.record.fingerprint import environment_digest
from parity.record.result import RunResult
from parity.record.store import Store

if TYPE_CHECKING:
    from parity.engine.cluster import Cluster

Selected = tuple[Case, tuple[str, ...]]
"""A case and the paths of it that are asked for."""

Work = Callable[[Workers, Task, Callable[[Arrived | Done], None]], Done]
"""Makes a result of a task; tells its third argument of what it has before."""

Progress = Callable[[CaseResult, float | None], None]
"""Told of each result, and of the seconds that it took; None for one from the cache."""


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
        artifacts: artifacts of an earlier run, which paths execute instead of exporting anew.
        cache: whether what has been run before is taken from the cache beside the records; on a
            cluster only if its machines do not differ.
        explain: seconds that the explanation of a row may take, None for no explanations.
        work: what makes a result of a task, explanations included.
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
    artifacts: Past | None = None
    cache: bool = True
    explain: float | None = None
    work: Work = work

    @property
    def targets(self) -> tuple[str, ...]:
        """The cases that are run where none is named: those whose artifacts are executed."""
        return () if self.artifacts is None else self.artifacts.ids


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
        return self.done(case, paths).result

    def done(self, case: Case, paths: Sequence[str]) -> Done:
        """Likewise; the judged result with its bits and what it ran in."""
        task = Task(case, tuple(paths), self._options.environments[0])
        done = self._options.work(self._workers, task, lambda arrived: None)
        return replace(done, result=judged(done.result, done.found, self._options.fail_on))


def run_cases(
    selected: Sequence[Selected],
    options: Options,
    *,
    progress: Progress = lambda result, seconds: None,
) -> RunResult:
    """Run cases in every environment, several at a time; each is recorded when it is done.

    Args:
        selected: cases with the paths to run of each.
        options: how.
        progress: told of each case, in each environment, when it is done, and of the seconds
            that it took; None if it was taken from the cache.

    Returns:
        The run, in the order in which the cases were asked for; on Ctrl-C what was done by then.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        UserError: the record cannot be written, an array file cannot be read, no artifact that is
            to be executed is of these cases and paths.
    """
    from parity import __version__

    if options.artifacts is not None:
        options.artifacts.check_any(selected)
    wanted = len(selected) * len(options.environments)
    store = _store(options, __version__, wanted)
    interrupted = False
    try:
        with ExitStack() as opened:
            cluster = _cluster(options, opened)
            _Run(store, _cache(options, opened), cluster, options, progress).go(selected)
    except KeyboardInterrupt:
        interrupted = True
    except BaseException as error:
        store.close()
        if store.file is not None:
            error.add_note(
                f"what was finished before is in {store.file}; to go on: "
                f"parity run --resume {store.file}"
            )
        raise
    result = RunResult(store.environments(), store.results(), wanted, interrupted, store.file)
    store.finish(result.verdict, interrupted=interrupted)
    return result


def _store(options: Options, version: str, wanted: int) -> Store:
    facts = {
        "fail_on": options.fail_on,
        "environments": [environment.name for environment in options.environments],
        "repeats": options.limits.repeats,
        "memory": options.limits.memory,
        "timeout": options.limits.timeout,
        "save_artifacts": options.limits.artifacts,
        "artifacts": options.artifacts and options.artifacts.source,
        "explain": options.explain,
    }
    if options.resume is not None:
        return Store.resume(options.resume, version=version, options=facts, wanted=wanted)
    return Store(
        options.out,
        version=version,
        options=facts,
        arguments={one.name: one.arguments for one in options.environments},
        keep=options.keep,
        limit=options.keep_limit,
        wanted=wanted,
    )


def _cache(options: Options, opened: ExitStack) -> Cache | None:
    """The cache, if a run with these options may use one."""
    if not options.cache or options.out is None or options.limits.repeats > 1:
        return None
    if options.limits.artifacts or options.artifacts is not None:
        return None  # it keeps none
    return opened.enter_context(Cache(options.out))


def _cluster(options: Options, opened: ExitStack) -> Cluster | None:
    """The cluster that a run with these options is to use."""
    if options.scheduler is None:
        return None
    from parity.engine.cluster import Cluster

    return opened.enter_context(
        Cluster(options.scheduler, options.limits, options.work, options.environments)
    )


class _Run:
    """The tasks of a run, from what is already known to what is still to be executed."""

    def __init__(
        self,
        store: Store,
        cache: Cache | None,
        cluster: Cluster | None,
        options: Options,
        progress: Progress,
    ) -> None:
        self._store = store
        self._cache = cache
        self._cluster = cluster
        self._options = options
        self._progress = progress
        self._noted: set[str] = set()

    def go(self, selected: Sequence[Selected]) -> None:
        """Do everything that is not recorded yet, each result recorded when it is there."""
        waiting = [task for task in self._tasks(selected) if not self._was_cached(task)]
        if not waiting:
            return
        jobs = min(self._options.jobs, len(waiting))
        pool = self._cluster or Pool(jobs, self._options.limits, self._options.work)
        for came in pool.run(waiting):
            if isinstance(came, Arrived):
                self._arrived(came)
            else:
                self._done(came)

    def _tasks(self, selected: Sequence[Selected]) -> Iterator[Task]:
        """What is not recorded yet, in order."""
        resumes = self._options.resume is not None
        recorded = self._store.done() if resumes else {}
        digests = self._digests()
        tasks = (
            Task(case, paths, environment)
            for case, paths in selected
            for environment in self._options.environments
        )
        for position, task in enumerate(tasks):
            case, name = task.case, task.environment.name
            if set(task.paths) <= {*recorded.get((case.id, name), ())} and self._store.knows(case):
                continue
            digest = digests.get(name)
            key = (
                self._cache.key(case, task.paths, digest, self._options.explain)
                if self._cache and digest
                else None
            )
            known = self._store.arrivals(case, name) if resumes else {}
            past = self._options.artifacts
            artifacts = None if past is None else past.of(case)
            yield replace(task, position=position, known=known, key=key, artifacts=artifacts)

    def _digests(self) -> Mapping[str, str | None]:
        if self._cache is None:
            return {}
        if self._cluster is not None:
            return self._cluster.digests()
        return {
            environment.name: environment_digest(environment.python, environment.variables)
            for environment in self._options.environments
        }

    def _was_cached(self, task: Task) -> bool:
        """Take a task's result from the cache, if it is there."""
        if self._cache is None or task.key is None:
            return False
        hit = self._cache.get(task.key, task.case, task.environment.name)
        if hit is None:
            return False
        self._add(Done(task, hit.result, hit.outputs, hit.found, repeatable=True), None)
        return True

    def _arrived(self, came: Arrived) -> None:
        if self._store.file is not None:
            if came.found:
                self._note(came.task.environment.name, came.found)
            self._store.arrived(came.task.case, came.task.environment.name, came.outcome)

    def _done(self, came: Done) -> None:
        task = came.task
        if self._cache is not None and task.key is not None and came.repeatable:
            self._cache.put(task.key, came.result, came.found, came.outputs)
        self._add(came, came.seconds)

    def _add(self, done: Done, seconds: float | None) -> None:
        self._note(done.task.environment.name, done.found)
        result = judged(done.result, done.found, self._options.fail_on)
        self._store.add(result, done.outputs, position=done.task.position, artifacts=done.artifacts)
        self._progress(result, seconds)

    def _note(self, environment: str, found: Mapping[str, str]) -> None:
        if environment not in self._noted:
            past = self._options.artifacts
            more = {} if past is None else {"artifacts": past.source}
            self._store.environment(environment, {**found, **more})
            self._noted.add(environment)
