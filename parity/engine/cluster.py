"""Tasks over a Dask cluster: more than one machine, results still into one record.

Each Dask worker has workers of its own, local and isolated like those of any run: a path that
crashes costs its row and never the Dask worker. A Dask worker that dies takes its tasks along, and
the scheduler gives them to another one.
"""

from __future__ import annotations

import atexit
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from parity.engine.workers import Limits, Workers
from parity.errors import UserError

Task = TypeVar("Task")
Result = TypeVar("Result")

_CONNECT_SECONDS = 10
_AHEAD = 4
"""Tasks in flight for each thread of the cluster."""

_local = threading.local()


class Cluster(Generic[Task, Result]):
    """Runs tasks on a running Dask cluster, where parity must be installed too.

    Args:
        scheduler: its address, "tcp://host:8786".
        limits: what a path may take.
        work: makes a result of a task; pickled by reference.

    Raises:
        UserError: distributed is not installed, or no scheduler answers.
    """

    def __init__(
        self, scheduler: str, limits: Limits, work: Callable[[Workers, Task], Result]
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
        self._limits = limits
        self._work = work

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The result of each task, in the order in which they finish; each exactly once."""
        from distributed import as_completed

        rest = iter(tasks)
        try:
            ahead = max(1, sum(self._client.nthreads().values())) * _AHEAD
            first = [self._submit(task) for task in itertools.islice(rest, ahead)]
            running = as_completed(first, loop=self._client.loop)
            for future in running:
                for task in itertools.islice(rest, 1):
                    running.add(self._submit(task))
                yield future.result()
                future.release()
        finally:
            self._client.close()

    def _submit(self, task: Task) -> Any:
        return self._client.submit(_on_worker, self._work, self._limits, task, pure=False)


def _on_worker(work: Callable[[Workers, Task], Result], limits: Limits, task: Task) -> Result:
    """Run a task with the workers of this thread of this Dask worker."""
    if getattr(_local, "limits", None) != limits:
        _local.limits = limits
        _local.workers = Workers(limits)
        _local.workers.__enter__()
        atexit.register(_local.workers.__exit__)
    return work(_local.workers, task)
