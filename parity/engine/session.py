"""Executes cases in workers that are reused from case to case and replaced when they are lost."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parity.casefile.case import Case
from parity.engine.gateway import START_LIMIT, Gateway, Setting, WorkerLost
from parity.worker.protocol import (
    Failure,
    PathOutcome,
    References,
    pack,
    unpack_all,
    unpack_references,
)

_REFERENCES = ""
"""Stands among the paths that are still to be asked for the request for the references."""


@dataclass(frozen=True)
class Execution:
    """What the workers made of one case."""

    outcomes: tuple[PathOutcome, ...]
    references: References


class Session:
    """A context in which cases are executed; leaving it kills every worker.

    Args:
        python: interpreter of the environment under test, this one if None.
        timeout: seconds a path may take, interpreter start and imports apart.
    """

    def __init__(self, *, python: str | None = None, timeout: float = 300.0) -> None:
        self._python = python or sys.executable
        self._timeout = timeout
        self._gateways: dict[Setting, Gateway] = {}
        self._folder: Path | None = None
        self.environment: Mapping[str, str] = {}

    def __enter__(self) -> Session:
        self._folder = Path(tempfile.mkdtemp(prefix="parity-"))
        return self

    def __exit__(self, *exc: object) -> None:
        for gateway in self._gateways.values():
            gateway.kill()
        self._gateways.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, *, x64: bool = False) -> None:
        """Start the worker for a setting now, before the first case needs it."""
        self._gateway(Setting(self._python, x64))

    def execute(self, case: Case, paths: Sequence[str]) -> Execution:
        """Run one case on the named paths and under the references.

        Raises:
            WorkerStartError: the environment cannot execute anything.
            CaseFileError: an array file cannot be read.
        """
        inputs = case.arrays
        outcomes: list[PathOutcome] = []
        references = References()
        pending = [*paths, _REFERENCES]
        order = {path: i for i, path in enumerate(pending)}
        limit = case.timeout or self._timeout
        while pending:
            setting = Setting(self._python, case.program.x64)
            gateway = self._gateway(setting)
            try:
                self._load(gateway, pending, outcomes)
                pending.sort(key=order.__getitem__)
                gateway.send(self._case_request(case, inputs))
                for path in pending:
                    gateway.send(_request(path, case))
                while pending:
                    answer = gateway.receive(limit)
                    if pending[0] == _REFERENCES:
                        references = _references(answer)
                    else:
                        outcomes.append(_outcome(pending[0], answer))
                    pending.pop(0)
            except WorkerLost as lost:
                del self._gateways[setting]
                path = pending.pop(0)
                if path == _REFERENCES:
                    references = References(failure=lost.failure)
                else:
                    outcomes.append(PathOutcome(path, failure=lost.failure))
        outcomes.sort(key=lambda outcome: order[outcome.path])
        return Execution(tuple(outcomes), references)

    def _gateway(self, setting: Setting) -> Gateway:
        if setting not in self._gateways:
            assert self._folder is not None, "a session is a context manager"
            gateway = Gateway(setting, self._folder)
            self._gateways[setting] = gateway
            self.environment = self.environment or gateway.environment
        return self._gateways[setting]

    def _load(self, gateway: Gateway, pending: list[str], outcomes: list[PathOutcome]) -> None:
        """Let the worker import what the pending paths need; one that cannot be is done with."""
        for path in [p for p in pending if p != _REFERENCES and p not in gateway.loaded]:
            pending.remove(path)
            pending.insert(0, path)  # a crash now is this path's
            gateway.send({"kind": "load", "path": path})
            failure = gateway.receive(START_LIMIT)["failure"]
            if failure is not None:
                outcomes.append(PathOutcome(path, failure=Failure(**failure)))
                pending.remove(path)
            else:
                gateway.loaded.add(path)

    def _case_request(self, case: Case, inputs: Sequence[Any]) -> dict[str, Any]:
        packed = {str(i): pack(array, str(self._folder)) for i, array in enumerate(inputs)}
        return {"kind": "case", "spec": case.program.to_wire(), "inputs": packed}


def _request(path: str, case: Case) -> dict[str, Any]:
    if path == _REFERENCES:
        return {"kind": "references", "licences": list(case.licences)}
    return {"kind": "path", "path": path}


def _outcome(path: str, answer: Mapping[str, Any]) -> PathOutcome:
    failure = answer["failure"]
    return PathOutcome(
        path,
        outputs={} if failure else unpack_all(answer["outputs"]),
        evidence=answer["evidence"],
        timings=answer["timings"],
        failure=Failure(**failure) if failure else None,
    )


def _references(answer: Mapping[str, Any]) -> References:
    if answer["failure"]:
        return References(failure=Failure(**answer["failure"]))
    return unpack_references(answer)
