"""Where a departure arises: the roundings that, kept, bring the first result that leaves back.

A compiler that drops a rounding gives the rounded result to whom observes it and goes on with the
digits before, so the equation that declares the rounding looks innocent and what reads its result
leaves. So barriers are put after narrow results up to there, and what left is observed again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from parity.casefile.case import Case
from parity.engine.environment import Environment
from parity.engine.workers import Workers
from parity.explain.barriers import Barrier, barrier, is_candidate
from parity.explain.ddmin import BudgetSpent, ddmin
from parity.explain.steps import error
from parity.program.sites import Site
from parity.worker.protocol import References

NOT_A_ROUNDING = "keeping every rounding before it does not bring it back"
NOTHING_NARROW = "no result before it is narrower than float32"
LATE = "no time was left to find its roundings"


@dataclass(frozen=True)
class Origin:
    """Where a departure arises.

    Attributes:
        roundings: a smallest set that brings the result back inside what is declared, in the order
            of the program.
        minimal: whether it was seen that none of them can be left out.
        runs: of the path.
        missing: why there are none, "" if there are.
    """

    roundings: tuple[Barrier, ...] = ()
    minimal: bool = False
    runs: int = 0
    missing: str = ""


def origin(
    workers: Workers,
    case: Case,
    path: str,
    environment: Environment | None,
    sites: Sequence[Site],
    *,
    output: str,
    seen: Site | None,
    until: float,
) -> Origin:
    """The roundings whose loss makes an output leave what is declared.

    Args:
        workers: which run it.
        case: whose program it is.
        path: on which it leaves.
        environment: this interpreter's if None.
        sites: every equation of the program.
        output: what leaves, a result of `seen` or an output of the program.
        seen: the equation that is observed meanwhile, None for an output of the program.
        until: when no new run begins, by `time.monotonic`.
    """
    candidates = {one.address: one for one in _before(sites, seen) if is_candidate(one)}
    if not candidates:
        return Origin(missing=NOTHING_NARROW)
    if time.monotonic() > until:
        return Origin(missing=LATE)
    observed = () if seen is None else (seen.address,)
    observing = replace(case, program=replace(case.program, observed=observed))
    references = workers.execute(observing, [], environment).references
    it = _Search(workers, observing, path, environment, output, references, until)
    found = it.found(list(candidates))
    roundings = tuple(barrier(case, candidates[one]) for one in it.smallest)
    return replace(found, roundings=roundings, runs=it.runs)


def _before(sites: Sequence[Site], seen: Site | None) -> Sequence[Site]:
    """The equations before one, and those that it runs; all if there is none."""
    if seen is None:
        return sites
    at = [site.address for site in sites].index(seen.address)
    return [*sites[:at], *(s for s in sites[at:] if s.address.startswith(f"{seen.address}."))]


@dataclass
class _Search:
    """The tests of one search; `smallest` is the smallest set known to bring the output back."""

    workers: Workers
    case: Case
    path: str
    environment: Environment | None
    output: str
    references: References
    until: float
    runs: int = 0
    failure: str = ""
    smallest: list[str] = field(default_factory=list)

    def found(self, candidates: Sequence[str]) -> Origin:
        """What is known of `smallest` when the search ends."""
        try:
            if not self._test(candidates):
                return Origin(missing=self.failure or NOT_A_ROUNDING)
            last = candidates[-1:]  # most often what was just computed is read
            if len(candidates) > 1 and not self._test(last):
                ddmin(candidates, self._test)
        except BudgetSpent:
            return Origin(missing="" if self.smallest else LATE)
        return Origin(minimal=True)

    def _test(self, some: Sequence[str]) -> bool:
        """Whether the output is what is declared with barriers after some equations."""
        if time.monotonic() > self.until:
            raise BudgetSpent
        self.runs += 1
        program = replace(self.case.program, barriers=tuple(some))
        changed = replace(self.case, program=program)
        found = self.workers.execute(changed, [self.path], self.environment, references=False)
        (outcome,) = found.outcomes
        if outcome.failure is not None:
            why = outcome.failure.message or outcome.outcome
            self.failure = f"with barriers it has no output: {why}"
        got = outcome.outputs.get(self.output)
        restores = error(got, self.output, self.references).faithful is True
        if restores and (not self.smallest or len(some) < len(self.smallest)):
            self.smallest = list(some)
        return restores
