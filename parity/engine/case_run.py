"""Asks the workers for every path of one case in one environment, and for its references."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parity.casefile.case import Case, Variant
from parity.engine.environment import Environment
from parity.engine.gateway import START_LIMIT, Gateway, Setting, WorkerLost
from parity.record import artifacts as packing
from parity.worker.artifact import Manifest
from parity.worker.protocol import (
    Failure,
    PathOutcome,
    References,
    unpack_all,
    unpack_references,
    unpack_shards,
)

if TYPE_CHECKING:
    from parity.engine.workers import Workers

REFERENCES = ""
"""Stands among the paths that are still to be asked for the request for the references."""


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


def setting(
    case: Case,
    environment: Environment,
    *,
    variables: Mapping[str, str] | None = None,
    reader: str = "",
) -> Setting:
    """What the worker is bound to that runs a case in an environment.

    Args:
        case: which.
        environment: where.
        variables: of a variant, beside the environment's.
        reader: which artifacts it executes, "" for one that runs programs.
    """
    program = case.program
    both = {**environment.variables, **(variables or {})}
    return Setting(environment.python, program.x64, pairs(both), program.devices, reader)


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
class CaseRun:
    """One case in one environment, until every path has its outcome.

    Attributes:
        workers: which are asked.
        case: which one.
        environment: where.
        arrived: told of each outcome as soon as it is there.
        outcomes: by path; those that are there already are not had again.
        artifacts: what paths exported before, which is executed instead of exporting anew.
        models: names of the arithmetic models to interpret the case under beside the usual ones.
        inputs: other operands than the case's own.
        warm: seconds for which what was compiled is called again, to time it (`Probe.again`).
        references: what the references say.
    """

    workers: Workers
    case: Case
    environment: Environment
    arrived: Callable[[PathOutcome], None] = lambda outcome: None
    outcomes: dict[str, PathOutcome] = field(default_factory=dict)
    artifacts: Artifacts | None = None
    models: Sequence[str] = ()
    inputs: Sequence[np.ndarray] | None = None
    warm: float = 0.0
    references: References = field(default_factory=References)
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
        written = self._written.get(path)
        return setting(
            self.case,
            self.environment,
            variables=self._variant(path).variables,
            reader=written.reader if written else "",
        )

    def _take(self, path: str, artifacts: Artifacts) -> None:
        """Take an artifact of before, as if it had just been written."""
        folder, evidence = self.workers.folder(), artifacts.evidence[path]
        if packing.fetch(artifacts.record, evidence[packing.SHA256], folder):
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
            if path == REFERENCES or base in gateway.loaded:
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
        if path == REFERENCES:
            licences, models = list(self.case.licences), list(self.models)
            return {"kind": "references", "licences": licences, "models": models}
        variant = self._variant(path)
        request = {
            "kind": "path",
            "path": variant.path,
            "options": variant.options(),
            "memory": self.workers.limits.memory,
            "warm": self.warm,
        }
        if path in self._written:
            request |= {"kind": "execute", "artifact": self._written[path].folder}
        return request

    def _answered(self, path: str, answer: Mapping[str, Any]) -> None:
        failure = Failure(**answer["failure"]) if answer["failure"] else None
        if path == REFERENCES:
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
            packed = packing.pack(folder)
            evidence = {**outcome.evidence, packing.SHA256: packing.digest(packed)}
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
        if path == REFERENCES:
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


def pairs(variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Environment variables as a `Setting` has them."""
    return tuple(sorted(variables.items()))
