"""What a worker says of a case's program without executing it: its equations, its source."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parity.casefile.case import Case
from parity.engine.case_run import setting
from parity.engine.environment import Environment
from parity.engine.gateway import START_LIMIT, WorkerLost
from parity.engine.workers import Workers
from parity.program.sites import Site
from parity.worker.protocol import Failure, pack, unpack_all


@dataclass(frozen=True)
class Source:
    """A program as somebody without parity has it.

    Attributes:
        text: the Python source of a function `program`, "" if there is none.
        module: one StableHLO module with inputs and expected outputs, "" if there is none.
        why: why there is none.
        outputs: the names of what the program gives, in order.
        drawn: the arrays that it takes after those of the case, by name.
    """

    text: str
    module: str
    why: str = ""
    outputs: tuple[str, ...] = ()
    drawn: Mapping[str, np.ndarray] = field(default_factory=dict)


def equations(
    workers: Workers, case: Case, environment: Environment | None = None
) -> tuple[Site, ...] | Failure:
    """Every equation of a program that nothing was put into, or why it cannot be traced.

    Args:
        workers: which; they stay open.
        case: whose program it is.
        environment: this interpreter's if None.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        CaseFileError: an array file cannot be read.
    """
    answer = _ask(workers, case, environment, {"kind": "equations"})
    if isinstance(answer, Failure):
        return answer
    return tuple(map(Site.from_wire, answer["sites"]))


def source(
    workers: Workers,
    case: Case,
    environment: Environment | None = None,
    *,
    expected: Sequence[np.ndarray] | None = None,
) -> Source | Failure:
    """A program as Python source, or as one module where it is said what to expect.

    Args:
        workers: which; they stay open.
        case: whose program it is.
        environment: this interpreter's if None.
        expected: what the program ought to give, in order; None for Python source.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        CaseFileError: an array file cannot be read.
    """
    wanted = None if expected is None else [pack(array) for array in expected]
    answer = _ask(workers, case, environment, {"kind": "source", "expected": wanted})
    if isinstance(answer, Failure):
        return answer
    return Source(
        answer["text"],
        answer["module"],
        answer["why"],
        tuple(answer.get("outputs", ())),
        unpack_all(answer.get("drawn", {})),
    )


def _ask(
    workers: Workers, case: Case, environment: Environment | None, request: Mapping[str, Any]
) -> Mapping[str, Any] | Failure:
    """The answer of a worker that has taken the case, with nothing put into its program."""
    environment = environment or Environment()
    program = dataclasses.replace(case.program, barriers=(), observed=())
    asked = dataclasses.replace(case, program=program)
    bound = setting(asked, environment)
    gateway = workers.gateway(bound, environment)
    try:
        gateway.send(workers.packed(asked, case.arrays(), read=False))
        gateway.send(dict(request))
        answer = gateway.receive(case.timeout or START_LIMIT)
    except WorkerLost as lost:
        workers.lost(bound)
        return lost.failure
    if answer["failure"] is not None:
        return Failure(**answer["failure"])
    return answer
