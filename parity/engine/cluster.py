"""Tasks over a Dask cluster: more than one machine, results still into one record.

Each Dask worker has workers of its own, local and isolated like those of any run: a path that
crashes costs its row and never the Dask worker. A Dask worker that dies takes its tasks along, and
the scheduler gives them to another one.

What a task tells before its result waits in the Dask worker, which logs an event with no more than
its address; the host then fetches it with `Client.run`, all that waits there at once. The event
itself could carry small outputs only: the scheduler keeps the last thousand of a topic (or more:
`distributed.admin.low-level-log-length`) in its memory for as long as it lives, and sends them on
the stream that task states take. A `distributed.Queue` would keep there what a killed host did not
take. What is fetched passes through the scheduler once, in frames of its own and of any size; what
is not fetched is dropped with its task, whose result has it all.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import logging
import queue
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from parity.engine.environment import Environment
from parity.engine.task import Arrived, Done, Task
from parity.engine.workers import Limits, Workers
from parity.errors import UserError
from parity.record.fingerprint import environment_digest, source_digest

Digests = Mapping[str, str | None]
"""By name of an environment, all on a machine that could change a result; None if not known."""

Work = Callable[[Workers, Task, Callable[[Arrived | Done], None]], Done]

_CONNECT_SECONDS = 10
_AHEAD = 4
"""Tasks in flight for each thread of the cluster."""

_TOPIC = "parity"
"""One for all runs: the scheduler forgets no topic."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Terms:
    """What a Dask worker knows of a run; the id alone tells two apart."""

    limits: Limits = field(compare=False)
    environments: tuple[Environment, ...] = field(compare=False)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class Cluster:
    """Runs tasks on a running Dask cluster, where parity must be installed too: a context manager.

    Args:
        scheduler: its address, "tcp://host:8786".
        limits: what a path may take.
        work: makes a result of a task with the workers of the thread it runs in; what it tells its
            third argument before is a result, too. Pickled by reference.
        environments: those of all tasks.

    Raises:
        UserError: distributed is not installed, or no scheduler answers.
    """

    def __init__(
        self, scheduler: str, limits: Limits, work: Work, environments: Sequence[Environment]
    ) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise UserError(
                "--scheduler needs the package distributed",
                hint="pip install 'parity-harness[cluster]'",
            ) from None
        try:
            self._client = Client(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UserError(
                f"no Dask scheduler answers at {scheduler}: {error}",
                hint="start one with: dask scheduler; and on each host: dask worker ADDRESS",
            ) from error
        self._terms = _Terms(limits, tuple(environments))
        self._work = work
        self._agreed: Digests = {}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exc: object) -> None:
        self._client.close()

    def digests(self) -> Digests:
        """The digest of each environment on the machines of the cluster, empty if they differ.

        Results that another machine makes later, one that joins or changes, are not `repeatable`.
        """
        answers = self._client.run(_say_digests, self._terms, on_error="ignore")
        self._agreed = _agreed(answers)
        return self._agreed

    def run(self, tasks: Iterable[Task]) -> Iterator[Arrived | Done]:
        """The results of the tasks, in the order in which they come.

        Of each task exactly one is its last, and none comes after it. A task that was given to
        another Dask worker tells everything again.
        """
        came: queue.SimpleQueue[int | str] = queue.SimpleQueue()
        running: dict[int, Any] = {}
        rest = enumerate(tasks)

        def submit(count: int) -> None:
            for number, task in itertools.islice(rest, count):
                running[number] = self._client.submit(
                    _on_worker, self._work, self._terms, self._agreed, number, task, pure=False
                )
                running[number].add_done_callback(lambda _, number=number: came.put(number))

        def hear(event: tuple[float, Mapping[str, str]]) -> None:
            if event[1]["run"] == self._terms.id:
                came.put(event[1]["worker"])

        self._client.subscribe_topic(_TOPIC, hear)
        submit(max(1, sum(self._client.nthreads().values())) * _AHEAD)
        while running:
            news = _all_of(came)
            for number, told in self._fetch({one for one in news if isinstance(one, str)}):
                if number in running:
                    yield told
            for finished in news:
                if isinstance(finished, int):
                    future = running.pop(finished)
                    submit(1)
                    yield future.result()

    def _fetch(self, workers: set[str]) -> Iterator[tuple[int, Arrived | Done]]:
        """What these Dask workers have to tell, with the numbers of the tasks."""
        # Calling one that is gone would take as long as connecting may take.
        there = workers and workers & self._client.nthreads().keys()
        if there:
            told = self._client.run(_take, self._terms, workers=[*there], on_error="ignore")
            yield from itertools.chain.from_iterable(told.values())


def _all_of(came: queue.SimpleQueue[int | str]) -> list[int | str]:
    """Everything that is in a queue, at least one."""
    found = [came.get()]
    while not came.empty():
        found.append(came.get())
    return found


def _agreed(answers: Mapping[str, Digests]) -> Digests:
    """What all Dask workers, by address, say alike; else nothing, and a warning."""
    if not answers:
        _log.warning("no Dask worker is there yet: the cache is not used")
        return {}
    (first, digests), *others = answers.items()
    for other, differing in others:
        if differing != digests:
            _log.warning(
                "Dask workers %s and %s differ in parity, packages, variables or processor: "
                "the cache is not used",
                first,
                other,
            )
            return {}
    return digests


# What follows runs in the Dask workers.

_local = threading.local()
_told: dict[tuple[str, int, int], Arrived | Done] = {}
"""What the host has not fetched yet: by run, number of the task, and a number of its own."""
_numbers = itertools.count()


def _on_worker(work: Work, terms: _Terms, agreed: Digests, number: int, task: Task) -> Done:
    """Run a task with the workers of this thread of this Dask worker."""
    from distributed import get_worker

    here = get_worker()
    mine = []

    def say(value: Arrived | Done) -> None:
        mine.append((terms.id, number, next(_numbers)))
        _told[mine[-1]] = value
        here.log_event(_TOPIC, {"run": terms.id, "worker": here.address})

    try:
        done = work(_workers(terms), task, say)
    finally:
        for key in mine:
            _told.pop(key, None)
    return done if _digests(terms) == agreed else replace(done, repeatable=False)


def _take(terms: _Terms) -> list[tuple[int, Arrived | Done]]:
    """What tasks of a run have told since the last time."""
    keys = [key for key in list(_told) if key[0] == terms.id]
    found = [(key[1], _told.pop(key, None)) for key in keys]
    return [(number, value) for number, value in found if value is not None]


def _workers(terms: _Terms) -> Workers:
    """Those of this thread: they stay from run to run while nothing has changed that they use."""
    standing = (terms.limits, _digests(terms))
    if getattr(_local, "standing", None) != standing:
        if hasattr(_local, "opened"):
            _local.opened.close()
        _local.opened = ExitStack()
        _local.workers = _local.opened.enter_context(Workers(terms.limits))
        _local.standing = standing
        atexit.register(_local.opened.close)
    workers: Workers = _local.workers
    return workers


async def _say_digests(terms: _Terms) -> Digests:
    return await asyncio.to_thread(_digests, terms)


@lru_cache(maxsize=16)
def _digests(terms: _Terms) -> Digests:
    """Once a run, as on one machine: a Dask worker may outlive what is installed."""
    found = {
        environment.name: environment_digest(environment.python, environment.variables)
        for environment in terms.environments
    }
    return {name: one and f"{one} {source_digest()}" for name, one in found.items()}
