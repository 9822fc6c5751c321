"""Tasks over several threads, each with workers of its own; results as they come."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from parity.engine.workers import Limits, Workers

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class _Result(Generic[Result]):
    """What a thread says: a result, that it failed, or that it has ended."""

    value: tuple[Result, ...] = ()
    error: BaseException | None = None
    ended: bool = False


class Pool(Generic[Task, Result]):
    """Runs tasks in `jobs` threads. A worker is started by its own thread and dies with it.

    Args:
        jobs: how many threads.
        limits: what a path may take.
        work: makes a result of a task with the workers of the thread it runs in.
    """

    def __init__(self, jobs: int, limits: Limits, work: Callable[[Workers, Task], Result]) -> None:
        self._jobs = jobs
        self._limits = limits
        self._work = work
        self._workers: list[Workers] = []
        self._results: queue.SimpleQueue[_Result[Result]] = queue.SimpleQueue()

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The result of each task, in the order in which they finish.

        The first exception of a task ends all; so does closing the iterator, or Ctrl-C.
        """
        rest = iter(tasks)
        lock = threading.Lock()
        threads = [
            threading.Thread(target=self._serve, args=(rest, lock), name=f"workers-{i}")
            for i in range(self._jobs)
        ]
        for thread in threads:
            thread.start()
        running = len(threads)
        try:
            while running:
                done = self._results.get()
                if done.error is not None:
                    raise done.error
                if done.ended:
                    running -= 1
                for value in done.value:
                    yield value
        finally:
            for workers in self._workers:
                workers.stop()
            for thread in threads:
                thread.join()

    def _serve(self, tasks: Iterator[Task], lock: threading.Lock) -> None:
        with Workers(self._limits) as workers:
            with lock:
                self._workers.append(workers)
            try:
                while not workers.stopped:
                    with lock:
                        task = list(itertools.islice(tasks, 1))
                    if not task:
                        break
                    self._results.put(_Result((self._work(workers, task[0]),)))
            except BaseException as error:  # noqa: BLE001 - raised again where results are read
                if not workers.stopped:
                    self._results.put(_Result(error=error))
        self._results.put(_Result(ended=True))
