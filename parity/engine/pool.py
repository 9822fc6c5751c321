"""Tasks over several threads, each with workers of its own; results as they come."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from parity.engine.workers import Limits, Workers

Task = TypeVar("Task")
Result = TypeVar("Result")


_AHEAD = 64
"""Results that wait to be read; threads that are further ahead wait."""


@dataclass(frozen=True)
class _Said(Generic[Result]):
    """What a thread says: a result, that it failed, or that it has ended."""

    value: tuple[Result, ...] = ()
    error: BaseException | None = None
    ended: bool = False


class Pool(Generic[Task, Result]):
    """Runs tasks in `jobs` threads. A worker is started by its own thread and dies with it.

    Args:
        jobs: how many threads.
        limits: what a path may take.
        work: makes a result of a task with the workers of the thread it runs in; what it tells its
            third argument before is a result, too.
    """

    def __init__(
        self,
        jobs: int,
        limits: Limits,
        work: Callable[[Workers, Task, Callable[[Result], None]], Result],
    ) -> None:
        self._work = work
        self._workers = [Workers(limits) for _ in range(jobs)]
        self._said: queue.Queue[_Said[Result]] = queue.Queue(_AHEAD)

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The results of the tasks, in the order in which they come.

        The first exception of a task ends all; so does closing the iterator, or Ctrl-C.
        """
        # Neither survives being imported by two threads at once, as comparing would have it.
        import ml_dtypes  # noqa: F401
        import numpy.ma  # noqa: F401

        rest = iter(tasks)
        lock = threading.Lock()
        threads = [
            threading.Thread(target=self._serve, args=(workers, rest, lock))
            for workers in self._workers
        ]
        try:
            for thread in threads:
                thread.start()
            running = len(threads)
            while running:
                said = self._said.get()
                if said.error is not None:
                    raise said.error
                if said.ended:
                    running -= 1
                yield from said.value
        finally:
            for workers in self._workers:
                workers.stop()
            while any(thread.is_alive() for thread in threads):
                with suppress(queue.Empty):  # one that waits to say something cannot end
                    self._said.get(timeout=0.01)

    def _serve(self, workers: Workers, tasks: Iterator[Task], lock: threading.Lock) -> None:
        def say(value: Result) -> None:
            self._said.put(_Said((value,)))

        with workers:
            try:
                while not workers.stopped:
                    with lock:
                        task = list(itertools.islice(tasks, 1))
                    if not task:
                        break
                    say(self._work(workers, task[0], say))
            except BaseException as error:  # noqa: BLE001 - raised again where results are read
                if not workers.stopped:
                    self._said.put(_Said(error=error))
        self._said.put(_Said(ended=True))
