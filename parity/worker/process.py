"""What every worker does alike: takes up its post, limits memory, says how something failed."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from parity import paths
from parity.dtypes import UnsupportedDType
from parity.errors import Unsupported
from parity.worker.protocol import Failure, unpack_all

_MEMORY_WORDS = ("RESOURCE_EXHAUSTED", "Out of memory", "ResourceExhaustedError", "out of memory")

Answers = Mapping[str, Callable[[Mapping[str, Any]], Any]]
"""By kind of request, what answers it; an answer of None is not sent."""


class Post:
    """Where a worker writes what its host reads: its state file and its stderr.

    Args:
        begin: the first message of the host.

    Attributes:
        folder: where arrays too large for a message, and artifacts, are written.
    """

    def __init__(self, begin: Mapping[str, Any]) -> None:
        os.environ.update(begin["variables"])
        stderr = os.open(begin["stderr"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(stderr, 2)
        self.folder: str = begin["folder"]
        self._state = os.open(begin["state"], os.O_RDWR | os.O_CREAT, 0o600)
        self.announce("start")

    def announce(self, stage: str) -> None:
        """Note the current stage where the host finds it should this process die."""
        os.pwrite(self._state, stage.ljust(16).encode(), 0)


def answer_all(channel: Any, answers: Answers) -> None:
    """Answer requests in order until the channel closes."""
    for request in channel:
        answer = answers[request["kind"]](request)
        if answer is not None:
            channel.send(answer)


def path_named(name: str) -> paths.Path:
    """The path of that name.

    Raises:
        Unsupported: this environment has none.
    """
    try:
        return paths.get(name)
    except KeyError:
        raise Unsupported(f"this environment has no path {name}") from None


@cache
def unsupported(name: str) -> str | None:
    """`Path.unsupported`, asked once: what is installed does not change under a worker."""
    return path_named(name).unsupported()


def operands(request: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
    """The operands that a request brings, in order."""
    arrays = unpack_all(request["inputs"])
    return tuple(arrays[str(at)] for at in range(len(arrays)))


def seen(probe: paths.Probe) -> dict[str, Any]:
    """What a path left in its probe."""
    return {
        "timings": probe.timings,
        "evidence": probe.evidence,
        "programs": probe.programs,
    }


def failure(error: Exception, stage: str, place: str = "") -> Failure:
    """What becomes of an exception.

    Args:
        error: what was raised.
        stage: the stage it was raised in.
        place: where in the user's code, if it is known.
    """
    message = _located(str(error).strip() or repr(error), place)
    if isinstance(error, Unsupported | UnsupportedDType):
        return Failure("unsupported", stage, type(error).__name__, message)
    exhausted = isinstance(error, MemoryError) or any(word in message for word in _MEMORY_WORDS)
    outcome = "out-of-memory" if exhausted else "error"
    trace = "".join(traceback.format_exception(error))
    return Failure(outcome, stage, type(error).__name__, message[:4000], traceback=trace[-8000:])


def _located(message: str, place: str) -> str:
    """A message whose first line tells, if it is known, the place in the user's code."""
    first, newline, rest = message.partition("\n")
    return f"{first} ({place}){newline}{rest}" if place else message


@contextmanager
def memory_limit(extra: int | None) -> Iterator[None]:
    """On Linux, let allocations fail beyond the memory in use now plus `extra` bytes.

    The soft limit on the data segment makes an allocation fail where the process survives it; set
    before the libraries are loaded, it would end them at start.
    """
    if extra is None or not os.path.exists("/proc/self/status"):
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with open("/proc/self/status") as status:
        used = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + extra, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
