"""The equations of a case's program, asked of a worker of the environment that runs it."""

from __future__ import annotations

import dataclasses

from parity.casefile.case import Case
from parity.engine.case_run import setting
from parity.engine.environment import Environment
from parity.engine.gateway import START_LIMIT, WorkerLost
from parity.engine.workers import Workers
from parity.program.sites import Site
from parity.worker.protocol import Failure


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
    environment = environment or Environment()
    program = dataclasses.replace(case.program, barriers=(), observed=())
    asked = dataclasses.replace(case, program=program)
    bound = setting(asked, environment)
    gateway = workers.gateway(bound, environment)
    try:
        gateway.send(workers.packed(asked, case.arrays(), read=False))
        gateway.send({"kind": "equations"})
        answer = gateway.receive(case.timeout or START_LIMIT)
    except WorkerLost as lost:
        workers.lost(bound)
        return lost.failure
    if answer["failure"] is not None:
        return Failure(**answer["failure"])
    return tuple(map(Site.from_wire, answer["sites"]))
