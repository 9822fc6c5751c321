"""Executes cases in workers that are reused from case to case and replaced when they are lost."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from parity.casefile.case import Case, Variant
from parity.engine.environment import Environment
from parity.engine.gateway import START_LIMIT, Gateway, Setting, WorkerLost
from parity.engine.scratch import Scratch
from parity.errors import WorkerStartError
from parity.record.artifacts import SHA256, fetch
from parity.record.artifacts import digest as artifact_digest
from parity.record.artifacts import pack as pack_folder
from parity.worker.artifact import Manifest
from parity.worker.protocol import (
    Failure,
    PathOutcome,
    References,
    digest,
    pack,
    unpack_all,
    unpack_references,
    unpack_shards,
)

_REFERENCES = ""
"""Stands among the paths that are still to be asked for the request for the references."""


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


@dataclass(frozen=True)
class Artifacts:
    """What paths exported of a case, to be executed here.

    Attributes:
        source: who wrote them, in words: `written by jax 0.4.38, …`.
        record: the file that has them.
        evidence: by path, which one (`record.artifacts`) and what was compiled to make it.
    """

    source: str
    record: Path
    evidence: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


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

        Raises:
            WorkerStartError: the environment cannot execute anything.
            CaseFileError: an array file cannot be read.
        """
        environment = environment or Environment()
        task = _Task(self, case, environment, arrived, dict(known or {}), artifacts)
        task.models, task.inputs = tuple(models), inputs
        asked = [path for path in paths if path not in task.outcomes]
        task.run([*asked, _REFERENCES] if references else asked)
        changed = set()
        for _ in range(self._limits.repeats - 1):
            self._retire()
            again = _Task(self, case, environment, artifacts=artifacts, inputs=inputs)
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
        plain = replace(setting, variables=_pairs(environment.variables), devices=1)
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


@dataclass(frozen=True)
class _Written:
    """What a path has exported and is still to be executed.

    Attributes:
        folder: of the artifact.
        reader: names the worker that executes it.
        outcome: evidence, timings and programs of the export.
    """

    folder: str
    reader: str
    outcome: PathOutcome


@dataclass
class _Task:
    """One case in one environment, until every path has its outcome."""

    workers: Workers
    case: Case
    environment: Environment
    arrived: Callable[[PathOutcome], None] = lambda outcome: None
    outcomes: dict[str, PathOutcome] = field(default_factory=dict)
    artifacts: Artifacts | None = None
    references: References = field(default_factory=References)
    models: Sequence[str] = ()
    inputs: Sequence[np.ndarray] | None = None
    _written: dict[str, _Written] = field(default_factory=dict)
    _retried: set[str] = field(default_factory=set)

    def run(self, paths: list[str]) -> None:
        """Ask for every path, those that share a setting in one worker.

        What some of them export in the first round is executed in a second one.
        """
        inputs = self.case.arrays() if self.inputs is None else self.inputs
        for path in paths:
            if self.artifacts is not None and path in self.artifacts.evidence:
                self._take(path, self.artifacts)
        while paths:
            by_setting: dict[Setting, list[str]] = {}
            for path in paths:
                by_setting.setdefault(self._setting(path), []).append(path)
            for setting, pending in by_setting.items():
                while pending:
                    self._ask(setting, pending, inputs)
            paths = [*self._written]

    def _setting(self, path: str) -> Setting:
        variables = dict(self.environment.variables) | dict(self._variant(path).variables)
        program, written = self.case.program, self._written.get(path)
        return Setting(
            self.environment.python,
            program.x64,
            _pairs(variables),
            program.devices,
            written.reader if written else "",
        )

    def _take(self, path: str, artifacts: Artifacts) -> None:
        """Take an artifact of before, as if it had just been written."""
        folder, evidence = self.workers.folder(), artifacts.evidence[path]
        if fetch(artifacts.record, evidence[SHA256], folder):
            outcome = PathOutcome(path, evidence={**evidence, "artifact": artifacts.source})
            self._written[path] = _Written(str(folder), Manifest.of(folder).reader, outcome)

    def _variant(self, path: str) -> Variant:
        return self.case.variants.get(path) or Variant(path, path)

    def _ask(self, setting: Setting, pending: list[str], inputs: Sequence[np.ndarray]) -> None:
        """Ask for what is pending until all has been answered or the worker is lost."""
        gateway = self.workers.gateway(setting, self.environment)
        try:
            self._load(gateway, pending)
            gateway.send(self.workers.packed(self.case, inputs, read=bool(setting.reader)))
            for path in pending:
                gateway.send(self._request(path))
            while pending:
                answer = gateway.receive(self.case.timeout or self.workers.limits.timeout)
                try:
                    self._answered(pending[0], answer)
                except (KeyError, TypeError, ValueError, OSError) as error:
                    why = f"its answer cannot be read: {type(error).__name__}: {error}"
                    raise WorkerLost(gateway.broken(why)) from error
                pending.pop(0)
                gateway.used = True
        except WorkerLost as lost:
            self.workers.lost(setting)
            self._failed(pending, lost.failure, in_reused_worker=gateway.used)

    def _load(self, gateway: Gateway, pending: list[str]) -> None:
        """Let the worker import what the pending paths need; one that cannot be is done with."""
        order = {path: i for i, path in enumerate(pending)}
        for path in list(pending):
            base = self._variant(path).path
            if path == _REFERENCES or base in gateway.loaded:
                continue
            pending.remove(path)
            pending.insert(0, path)  # a crash now is this path's
            gateway.send({"kind": "load", "path": base})
            failure = gateway.receive(START_LIMIT)["failure"]
            if failure is not None:
                pending.remove(path)
                self._settle(PathOutcome(path, failure=Failure(**failure)))
            else:
                gateway.loaded.add(base)
        pending.sort(key=order.__getitem__)

    def _request(self, path: str) -> dict[str, Any]:
        if path == _REFERENCES:
            licences, models = list(self.case.licences), list(self.models)
            return {"kind": "references", "licences": licences, "models": models}
        variant = self._variant(path)
        request = {
            "kind": "path",
            "path": variant.path,
            "options": variant.options(),
            "memory": self.workers.limits.memory,
        }
        if path in self._written:
            request |= {"kind": "execute", "artifact": self._written[path].folder}
        return request

    def _answered(self, path: str, answer: Mapping[str, Any]) -> None:
        failure = Failure(**answer["failure"]) if answer["failure"] else None
        if path == _REFERENCES:
            self.references = References(failure=failure) if failure else unpack_references(answer)
            return
        evidence = dict(answer["evidence"])
        if path in self._retried:
            evidence["retried"] = "crashed in a worker that had run other paths, not alone"
        given = "outputs" in answer
        outcome = PathOutcome(
            path,
            outputs=unpack_all(answer["outputs"]) if given else {},
            evidence=evidence,
            timings=answer["timings"],
            failure=failure,
            programs=dict(answer["programs"]),
            shards=unpack_shards(answer["shards"]) if given else {},
        )
        if "artifact" in answer:
            folder = Path(answer["artifact"])
            self._written[path] = self._exported(folder, answer["reader"], outcome)
            if self.artifacts is not None:
                self._settle(PathOutcome(path, failure=_none_there(self.artifacts)))
        else:
            self._settle(outcome)

    def _exported(self, folder: Path, reader: str, outcome: PathOutcome) -> _Written:
        """What a path has exported, kept if that is asked for."""
        if self.workers.limits.artifacts:
            packed = pack_folder(folder)
            evidence = {**outcome.evidence, SHA256: artifact_digest(packed)}
            evidence["artifact"] = f"{len(packed)} bytes"
            outcome = replace(outcome, evidence=evidence, artifact=packed)
        return _Written(str(folder), reader, outcome)

    def _settle(self, outcome: PathOutcome) -> None:
        written = self._written.pop(outcome.path, None)
        if written is not None:
            outcome = _joined(written.outcome, outcome)
            shutil.rmtree(written.folder, ignore_errors=True)
        self.outcomes[outcome.path] = outcome
        self.arrived(outcome)

    def _failed(self, pending: list[str], failure: Failure, *, in_reused_worker: bool) -> None:
        """What a lost worker means for the path it was asked for.

        One that crashed where others had run before is tried once more alone: that tells a guilty
        path from an innocent one.
        """
        path = pending[0]
        if failure.outcome == "crashed" and in_reused_worker and path not in self._retried:
            self._retried.add(path)
            return
        pending.pop(0)
        if path == _REFERENCES:
            self.references = References(failure=failure)
        else:
            self._settle(PathOutcome(path, failure=failure))


def _joined(exported: PathOutcome, executed: PathOutcome) -> PathOutcome:
    """What became of an artifact, with what is known of how it was made."""
    seconds = Counter(exported.timings)
    seconds.update(executed.timings)
    return replace(
        executed,
        evidence={**exported.evidence, **executed.evidence},
        timings=dict(seconds),
        programs={**exported.programs, **executed.programs},
        artifact=exported.artifact,
    )


def _none_there(artifacts: Artifacts) -> Failure:
    """That a path would have to be exported anew, which is not what was asked for."""
    what = f"it has no artifact among those {artifacts.source}: --save-artifacts keeps it"
    return Failure("unsupported", "load", message=what)


def _pairs(variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(variables.items()))


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
