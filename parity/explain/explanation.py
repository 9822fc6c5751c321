"""Why a path differs: everything that can be asked about one row, within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from parity.casefile.case import Case
from parity.compare.rows import Row, compare_case
from parity.engine.environment import Environment
from parity.engine.workers import Workers
from parity.explain.attribution import ASKED, Attribution, attribute
from parity.explain.barriers import BarrierSearch, search
from parity.explain.controls import Controls, control_runs
from parity.explain.evidence import ProgramDiff, compiled
from parity.explain.laboratory import laboratory
from parity.explain.localisation import Localisation, localise
from parity.worker.protocol import PathOutcome, References

ATTRIBUTION, LOCALISATION, CONTROLS, BARRIERS = (
    "attribution",
    "localisation",
    "control runs",
    "barrier search",
)
PARTS = (ATTRIBUTION, LOCALISATION, CONTROLS, BARRIERS)
"""What takes time, in the order in which it is done."""

_SHARES = {ATTRIBUTION: 0.3, LOCALISATION: 0.3, CONTROLS: 0.5, BARRIERS: 1.0}
"""Of the time that is left, how much each may take."""


@dataclass(frozen=True)
class Explanation:
    """Why a path differs from another one.

    Attributes:
        case: the case's id.
        path: which differs.
        against: from which.
        environment: the name of the environment that both ran in.
        rows: of both, as a run has them.
        references: what the references say.
        attributions: which arithmetic each output was computed in.
        at_first: likewise of the first result that leaves what is declared, before what comes
            after it has blurred it; none where that is an output of the program.
        controls: which switches bring it back; None if that was not asked.
        barriers: which roundings do, likewise.
        localisation: where along the program it leaves what was declared, likewise.
        evidence: how what the two compiled differs.
        left_out: the parts for which there was no time.
        seconds: that all of it took.
    """

    case: Case
    path: str
    against: str
    environment: str
    rows: tuple[Row, ...] = ()
    references: References = field(default_factory=References)
    attributions: tuple[Attribution, ...] = ()
    at_first: tuple[Attribution, ...] = ()
    controls: Controls | None = None
    barriers: BarrierSearch | None = None
    localisation: Localisation | None = None
    evidence: tuple[ProgramDiff, ...] = ()
    left_out: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def own(self) -> tuple[Row, ...]:
        """The rows of the path."""
        return tuple(row for row in self.rows if row.path == self.path)

    @property
    def differs(self) -> bool:
        """Whether there is anything to explain: a failure, or other bits than `against` has."""
        others = {row.output: row.bits for row in self.rows if row.path == self.against}
        known = [row for row in self.own if row.outcome != "unsupported"]
        return any(row.outcome != "ok" or row.bits != others.get(row.output) for row in known)


def explain(
    workers: Workers,
    case: Case,
    path: str,
    environment: Environment | None = None,
    *,
    against: str | None = None,
    seconds: float = 120.0,
    parts: Sequence[str] = PARTS,
    say: Callable[[str], None] = lambda part: None,
) -> Explanation:
    """Why a path of a case differs from another one.

    Args:
        workers: which run it; they stay open.
        case: whose path it is.
        path: which differs.
        environment: this interpreter's if None.
        against: from which; the baseline if None.
        seconds: that everything together may take; what has begun is waited for.
        parts: those of `PARTS` that are wanted.
        say: told of each part when it begins.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        CaseFileError: an array file cannot be read.
    """
    begin = time.monotonic()
    environment = environment or Environment()
    against = against or case.baseline
    both = tuple(dict.fromkeys((against, path)))
    execution = workers.execute(case, both, environment, models=ASKED)
    judged = replace(case, baseline=against)
    rows = compare_case(judged, execution.outcomes, execution.references)
    outcomes = {outcome.path: outcome for outcome in execution.outcomes}
    found = Explanation(case, path, against, environment.name, rows, execution.references)
    if path != against:
        found = replace(found, evidence=compiled(outcomes[path], outcomes[against]))
    it = _Explaining(workers, found, environment, outcomes[path], begin + seconds, parts, say)
    found = replace(found, attributions=it.attributions())
    found = replace(found, localisation=it.localisation())
    found = replace(found, at_first=it.at_first(found.localisation))
    found = replace(found, controls=it.controls())
    found = replace(found, barriers=it.barriers())
    return replace(found, left_out=tuple(it.left_out), seconds=time.monotonic() - begin)


@dataclass
class _Explaining:
    """The parts of one explanation, each within its share of the time that is left."""

    workers: Workers
    of: Explanation
    environment: Environment
    outcome: PathOutcome
    until: float
    parts: Sequence[str]
    say: Callable[[str], None]
    left_out: list[str] = field(default_factory=list)

    def _begins(self, part: str, *, possible: bool = True) -> float | None:
        """How many seconds a part may take; None if it is not to be done."""
        if part not in self.parts or not possible:
            return None
        left = self.until - time.monotonic()
        if left <= 0:
            self.left_out.append(part)
            return None
        self.say(part)
        return left * _SHARES[part]

    def attributions(self) -> tuple[Attribution, ...]:
        """Which arithmetic each output was computed in."""
        seconds = self._begins(ATTRIBUTION)
        if seconds is None:
            return ()
        of, workers, environment = self.of, self.workers, self.environment
        asked = laboratory(workers, of.case, of.path, environment)
        return attribute(of.case, self.outcome, of.references, laboratory=asked, seconds=seconds)

    def at_first(self, localisation: Localisation | None) -> tuple[Attribution, ...]:
        """Which arithmetic the first result that leaves what is declared was computed in."""
        first = None if localisation is None else localisation.first
        seconds = self._begins(ATTRIBUTION, possible=first is not None)
        if seconds is None or first is None:
            return ()
        program = replace(self.of.case.program, observed=(first.site.address,))
        case = replace(self.of.case, program=program)
        path, environment = self.of.path, self.environment
        execution = self.workers.execute(case, [path], environment, models=ASKED)
        (outcome,) = execution.outcomes
        if first.output not in outcome.outputs:
            return ()
        outcome = replace(outcome, outputs={first.output: outcome.outputs[first.output]})
        asked = laboratory(self.workers, case, path, environment)
        return attribute(case, outcome, execution.references, laboratory=asked, seconds=seconds)

    def controls(self) -> Controls | None:
        """Which switches bring the path back."""
        seconds = self._begins(CONTROLS, possible=self.of.differs)
        if seconds is None:
            return None
        return control_runs(*self._subject(), against=self.of.against, seconds=seconds)

    def barriers(self) -> BarrierSearch | None:
        """Which roundings bring the path back."""
        seconds = self._begins(BARRIERS, possible=self._has_other_bits())
        if seconds is None:
            return None
        return search(*self._subject(), against=self.of.against, seconds=seconds)

    def localisation(self) -> Localisation | None:
        """Where along the program the path leaves what was declared."""
        seconds = self._begins(LOCALISATION, possible=self._has_other_bits())
        if seconds is None:
            return None
        return localise(*self._subject(), against=self.of.against, seconds=seconds)

    def _subject(self) -> tuple[Workers, Case, str, Environment]:
        return self.workers, self.of.case, self.of.path, self.environment

    def _has_other_bits(self) -> bool:
        return self.of.differs and self.outcome.failure is None and self.of.path != self.of.against
