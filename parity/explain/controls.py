"""Control runs: the same path with one switch flipped, and which flips bring it back to parity."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from parity import paths as registry
from parity.casefile.case import Case, Variant
from parity.engine.environment import Environment
from parity.engine.workers import Workers
from parity.errors import WorkerStartError
from parity.explain.agreement import RESTORED, grades
from parity.explain.evidence import ProgramDiff
from parity.explain.evidence import compiled as differences
from parity.explain.switches import SWITCHES, Switch
from parity.paths import WARM
from parity.worker.protocol import PathOutcome, References, digest

WARM_SECONDS = 0.2
"""For so long a call is timed again and again."""

RESTORES, PARTLY, NO_EFFECT = "restores", "restores in part", "no effect"
OTHER, FAILED, UNKNOWN = "other bits, no parity", "failed", "no such switch"
VERDICTS = (RESTORES, PARTLY, OTHER, NO_EFFECT, FAILED, UNKNOWN)
"""What a flip may do: all outputs agree, some do that did not, bits change, nothing, there is no
output, or this release has no such switch."""

_UNKNOWN = re.compile("Unknown flag|No such compile option")
"""What XLA and JAX say of a flag that they do not have."""

_COMPILED = "hlo_sha256"


@dataclass(frozen=True)
class ControlRun:
    """What a path did with one switch flipped.

    Attributes:
        switch: which.
        how: what a user types for it.
        verdict: one of `VERDICTS`.
        grades: by output, with the switch flipped.
        compiled: whether the compiler made another program, None where that cannot be seen.
        message: why there is no output, "" if there is.
        cost: seconds of a warm call over those without the flip; None where that was not measured.
        seconds: of a warm call with the flip, likewise.
        programs: how what is compiled with the flip differs, if it restores parity.
    """

    switch: Switch
    how: str
    verdict: str
    grades: Mapping[str, str] = field(default_factory=dict)
    compiled: bool | None = None
    message: str = ""
    cost: float | None = None
    seconds: float | None = None
    programs: tuple[ProgramDiff, ...] = ()


@dataclass(frozen=True)
class Controls:
    """What the control runs of one path found.

    Attributes:
        path: which was to agree.
        against: with which it was to.
        runs: in the order of `switches.SWITCHES`.
        left_out: the switches for which there was no time, as a user types them.
        seconds: that all of it took.
        missing: why there are no runs, "" if there are.
    """

    path: str
    against: str
    runs: tuple[ControlRun, ...] = ()
    left_out: tuple[str, ...] = ()
    seconds: float = 0.0
    missing: str = ""

    @property
    def restoring(self) -> tuple[ControlRun, ...]:
        """Those that bring every output to parity."""
        return tuple(run for run in self.runs if run.verdict == RESTORES)


def control_runs(
    workers: Workers,
    case: Case,
    path: str,
    environment: Environment | None = None,
    *,
    against: str | None = None,
    seconds: float = 60.0,
    repetitions: int = 3,
    switches: Sequence[Switch] = SWITCHES,
) -> Controls:
    """Run a path with each of its switches flipped, and compare it with another path as it is.

    Args:
        workers: which run it; they stay open. A switch that needs a process has one of its own.
        case: whose program it is.
        path: whose switches are flipped.
        environment: this interpreter's if None.
        against: the path that it is to agree with, left as it is; the baseline if None.
        seconds: after which no further switch is tried.
        repetitions: how often the time of a flip that restores parity is measured, and in turns
            that of the path without it.
        switches: the ones to try, in order.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        CaseFileError: an array file cannot be read.
    """
    begin = time.monotonic()
    against = against or case.baseline
    found = Controls(path, against)
    base = workers.execute(case, [against, path], environment)
    before = dict(zip((against, path), base.outcomes, strict=True))
    missing = _impossible(before, path, against)
    variant = case.variants.get(path) or Variant(path, path)
    kind = registry.get(variant.path)
    known = [switch for switch in switches if switch.runtime in kind.runtimes]
    if not missing and not known:
        missing = f"no switch of {variant.path} is known"
    if not missing:
        it = _Controls(
            workers, case, variant, environment or Environment(), base.references,
            before[path], before[against], repetitions,
        )  # fmt: skip
        if set(it.before.values()) == {"identical"}:
            missing = "its bits are those of the baseline"
    if missing:
        return replace(found, missing=missing, seconds=time.monotonic() - begin)
    runs: list[ControlRun] = []
    left: list[str] = []
    for switch in known:
        if time.monotonic() - begin > seconds:
            left.append(switch.how)
        elif (run := it.run(switch, tuple(kind.options))) is not None:
            runs.append(run)
    spent = time.monotonic() - begin
    return replace(found, runs=tuple(runs), left_out=tuple(left), seconds=spent)


def _impossible(outcomes: Mapping[str, PathOutcome], path: str, against: str) -> str:
    """Why there is nothing to compare, "" if there is."""
    if path == against:
        return "a path agrees with itself"
    failure = outcomes[against].failure
    if failure is not None:
        return f"{against} has no output: {failure.message or failure.outcome}"
    failure = outcomes[path].failure
    if failure is not None and failure.outcome == "unsupported":
        return f"{path} is unsupported: {failure.message}"
    return ""


@dataclass
class _Controls:
    """The runs of one path, which may fail without any flip."""

    workers: Workers
    case: Case
    variant: Variant
    environment: Environment
    references: References
    outcome: PathOutcome
    baseline: PathOutcome
    repetitions: int

    def __post_init__(self) -> None:
        self.before = grades(self.case, self.outcome, self.baseline, self.references)

    def run(self, switch: Switch, options: Sequence[str]) -> ControlRun | None:
        """The path with one switch flipped; None if it has no such switch."""
        flipped = switch.flipped(self.variant, options, self.environment.variables)
        if flipped is None:
            return None
        with ExitStack() as opened:
            where = self.workers
            if switch.is_own_process(options):
                where = opened.enter_context(Workers(self.workers.limits))
            try:
                outcome = self._execute(where, flipped)
            except WorkerStartError as error:
                if not switch.is_own_process(options):
                    raise
                return _failed(switch, error.message)
            run = self._judged(switch, outcome)
            if run.verdict != RESTORES:
                return run
            if self.outcome.failure is None:
                run = replace(run, programs=differences(outcome, self.outcome))
            return self._timed(run, where, flipped)

    def _execute(self, where: Workers, variant: Variant, warm: float = 0.0) -> PathOutcome:
        variants = {**self.case.variants, variant.name: variant}
        case = replace(self.case, variants=variants)
        found = where.execute(case, [variant.name], self.environment, references=False, warm=warm)
        return found.outcomes[0]

    def _judged(self, switch: Switch, outcome: PathOutcome) -> ControlRun:
        if outcome.failure is not None:
            failure = outcome.failure
            said = (failure.type, failure.message or _last(failure.stderr))
            return _failed(switch, ": ".join([failure.outcome, *filter(None, said)]))
        after = grades(self.case, outcome, self.baseline, self.references)
        compiled = _compiled(outcome, self.outcome)
        verdict = self._verdict(outcome, after)
        return ControlRun(switch, switch.how, verdict, grades=after, compiled=compiled)

    def _verdict(self, outcome: PathOutcome, after: Mapping[str, str]) -> str:
        if all(grade in RESTORED for grade in after.values()):
            already = self.before and all(grade in RESTORED for grade in self.before.values())
            if not already or set(after.values()) == {"identical"}:
                return RESTORES
        if _same(outcome, self.outcome):
            return NO_EFFECT
        better = [n for n, grade in after.items() if grade in RESTORED]
        if any(self.before.get(name) not in RESTORED for name in better):
            return PARTLY
        return OTHER

    def _timed(self, run: ControlRun, where: Workers, flipped: Variant) -> ControlRun:
        """With the time of a warm call, and its ratio to one without the flip, in turns."""
        pairs = []
        for _ in range(self.repetitions):
            with_it = self._execute(where, flipped, WARM_SECONDS).timings.get(WARM)
            without = self._execute(self.workers, self.variant, WARM_SECONDS).timings.get(WARM)
            if with_it is None:
                return run
            pairs.append((with_it, without))
        took = statistics.median(one for one, _ in pairs)
        ratios = [one / other for one, other in pairs if other]
        cost = statistics.median(ratios) if len(ratios) == len(pairs) else None
        return replace(run, seconds=took, cost=cost)


def _failed(switch: Switch, message: str) -> ControlRun:
    verdict = UNKNOWN if _UNKNOWN.search(message) else FAILED
    return ControlRun(switch, switch.how, verdict, message=message)


def _compiled(outcome: PathOutcome, before: PathOutcome) -> bool | None:
    """Whether another program was compiled, where both have the text of what it became."""
    texts = [one.evidence.get(_COMPILED) for one in (outcome, before)]
    return None if None in texts else texts[0] != texts[1]


def _same(outcome: PathOutcome, before: PathOutcome) -> bool:
    """Whether two outcomes have the same bits."""
    return before.failure is None and list(_bits(outcome)) == list(_bits(before))


def _bits(outcome: PathOutcome) -> Iterator[tuple[str, str]]:
    return ((name, digest(array)) for name, array in sorted(outcome.outputs.items()))


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
