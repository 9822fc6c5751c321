"""Tasks over several threads, each with workers of its own; results as they come."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from parity.engine.workers import Limits, Workers

Task = TypeVar("Task")
Result = TypeVar("Result")


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
        self._results: queue.SimpleQueue[tuple[int, Result | BaseException]] = queue.SimpleQueue()

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[int, Result]]:
        """Position and result of each task, in the order in which they finish.

        The first exception of a task ends all; so does closing the iterator, or Ctrl-C.
        """
        numbered = iter(enumerate(tasks))
        lock = threading.Lock()
        threads = [
            threading.Thread(target=self._serve, args=(numbered, lock), name=f"workers-{i}")
            for i in range(self._jobs)
        ]
        for thread in threads:
            thread.start()
        running = len(threads)
        try:
            while running:
                position, result = self._results.get()
                if position < 0:
                    running -= 1
                elif isinstance(result, BaseException):
                    raise result
                else:
                    yield position, result
        finally:
            for workers in self._workers:
                workers.stop()
            for thread in threads:
                thread.join()

    def _serve(self, tasks: Iterator[tuple[int, Task]], lock: threading.Lock) -> None:
        with Workers(self._limits) as workers:
            with lock:
                self._workers.append(workers)
            while not workers.stopped:
                with lock:
                    position, task = next(tasks, (-1, None))
                if task is None:
                    break
                try:
                    self._results.put((position, self._work(workers, task)))
                except BaseException as error:  # noqa: BLE001 - raised again where results are read
                    if not workers.stopped:
                        self._results.put((position, error))
                    break
        self._results.put((-1, SystemExit()))
