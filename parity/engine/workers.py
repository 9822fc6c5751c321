"""Executes cases in workers that are reused from case to case and replaced when they are lost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from parity.casefile.case import Case
from parity.engine.case_run import REFERENCES, Artifacts, CaseRun, pairs
from parity.engine.environment import Environment
from parity.engine.gateway import Gateway, Setting
from parity.engine.scratch import Scratch
from parity.errors import WorkerStartError
from parity.worker.protocol import PathOutcome, References, digest, pack


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a path may take.

    Attributes:
        timeout: seconds, interpreter start and imports apart; a case may say otherwise.
        memory: bytes beside what its worker has in use before, None for no limit.
        repeats: how many times each path runs, each time in a fresh process.
        artifacts: whether what a path exports is kept with its outcome.
    """

    timeout: float = 300.0
    memory: int | None = None
    repeats: int = 1
    artifacts: bool = False


@dataclass(frozen=True)
class Execution:
    """What the workers made of one case in one environment.

    Attributes:
        environment: its name.
        outcomes: in the order in which the paths were asked for.
        references: of the case.
        changed: paths of which a repetition gave other bits or another outcome.
    """

    environment: str
    outcomes: tuple[PathOutcome, ...]
    references: References
    changed: frozenset[str] = frozenset()


class Stopped(Exception):
    """The workers were stopped while something was still to do."""


class Workers:
    """The workers of one thread: a context manager that kills them when it is left.

    Args:
        limits: what a path may take.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._gateways: dict[Setting, Gateway] = {}
        self._scratch: Scratch | None = None
        self._stopped = False
        self.found: dict[str, Mapping[str, str]] = {}

    def __enter__(self) -> Workers:
        self._scratch = Scratch()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        if self._scratch is not None:
            self._scratch.remove()

    def stop(self) -> None:
        """Kill every worker, from any thread; what is running comes back as lost."""
        self._stopped = True
        for gateway in list(self._gateways.values()):
            gateway.kill()

    def execute(
        self,
        case: Case,
        paths: Sequence[str],
        environment: Environment | None = None,
        *,
        known: Mapping[str, PathOutcome] | None = None,
        artifacts: Artifacts | None = None,
        arrived: Callable[[PathOutcome], None] = lambda outcome: None,
        models: Sequence[str] = (),
        inputs: Sequence[np.ndarray] | None = None,
        references: bool = True,
        warm: float = 0.0,
    ) -> Execution:
        """Run one case on the named paths and under the references.

        Args:
            case: which.
            paths: where.
            environment: this interpreter's if None.
            known: outcomes from before, by path, which are not had again.
            artifacts: what paths exported before, which is executed instead of exporting anew.
            arrived: told of each other outcome as soon as it is there.
            models: names of the arithmetic models to interpret it under beside the usual ones.
            inputs: other operands than the case's own, of the same shapes and dtypes.
            references: whether to interpret it at all.
            warm: seconds for which what was compiled is called again: the timing `warm` of an
                outcome is then the median of a call.

        Raises:
            WorkerStartError: the environment cannot execute anything.
            CaseFileError: an array file cannot be read.
        """
        environment = environment or Environment()
        task = CaseRun(
            *(self, case, environment, arrived, dict(known or {}), artifacts),
            models=tuple(models),
            inputs=inputs,
            warm=warm,
        )
        asked = [path for path in paths if path not in task.outcomes]
        task.run([*asked, REFERENCES] if references else asked)
        changed = set()
        for _ in range(self._limits.repeats - 1):
            self._retire()
            again = CaseRun(self, case, environment, artifacts=artifacts, inputs=inputs)
            again.run(list(paths))
            changed |= {p for p in paths if not _same(task.outcomes[p], again.outcomes[p])}
        return Execution(
            environment.name,
            tuple(task.outcomes[path] for path in paths),
            task.references,
            frozenset(changed),
        )

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped

    def gateway(self, setting: Setting, environment: Environment) -> Gateway:
        """The worker for a setting, started if there is none."""
        plain = replace(setting, variables=pairs(environment.variables), devices=1)
        if setting.devices > 1 and environment.name not in self.found:
            self.gateway(plain, environment)
        if setting not in self._gateways:
            self._gateways[setting] = Gateway(setting, self._folder)
            self._start(setting)
        if self._stopped:
            raise Stopped
        gateway = self._gateways[setting]
        if setting == plain:  # else a variant's variables are among its own, or it is divided
            self.found.setdefault(environment.name, gateway.environment)
        return gateway

    def _start(self, setting: Setting) -> None:
        gateway = self._gateways[setting]
        if self._stopped:  # before it was known there
            gateway.kill()
            raise Stopped
        try:
            gateway.start()
        except WorkerStartError:
            self.lost(setting)
            raise

    def lost(self, setting: Setting) -> None:
        """Forget a worker that is gone."""
        if self._stopped:
            raise Stopped
        del self._gateways[setting]

    def packed(self, case: Case, inputs: Sequence[np.ndarray], *, read: bool) -> dict[str, Any]:
        """The request that tells a worker which case the next ones are about.

        Args:
            case: which.
            inputs: its operands.
            read: whether the worker executes artifacts.
        """
        arrays = {str(i): pack(array, str(self._folder)) for i, array in enumerate(inputs)}
        if read:
            return {"kind": "operands", "inputs": arrays}
        return {"kind": "case", "spec": case.program.to_wire(), "inputs": arrays}

    @property
    def limits(self) -> Limits:
        """What a path may take."""
        return self._limits

    def folder(self) -> Path:
        """A new, empty folder that workers can read, for as long as these workers are there."""
        return Path(tempfile.mkdtemp(prefix="artifact-", dir=self._folder))

    @property
    def _folder(self) -> Path:
        assert self._scratch is not None, "a context manager"
        return self._scratch.folder

    def _retire(self) -> None:
        """End the workers, so that what comes next runs in fresh ones."""
        for gateway in self._gateways.values():
            gateway.kill()
        self._gateways.clear()


def _same(first: PathOutcome, again: PathOutcome) -> bool:
    """Whether a repetition gave the same bits, or failed in the same way."""
    if first.failure is not None or again.failure is not None:
        return first.outcome == again.outcome
    return _digests(first) == _digests(again)


def _digests(outcome: PathOutcome) -> dict[str, list[str | None]]:
    """Of each output, and of what each device holds of it that is something else."""
    held = {name: [one.data for one in shards] for name, shards in outcome.shards.items()}
    return {
        name: [None if of is None else digest(of) for of in (out, *held.get(name, ()))]
        for name, out in outcome.outputs.items()
    }
