"""Barrier search: the fewest roundings that, kept by the compiler, bring a path back to parity.

A barrier (`lax.reduce_precision` to the result's own dtype) changes nothing in a program whose
roundings all happen. If one after each narrow result restores parity, dropped roundings were the
cause, and delta debugging finds a set of which none can be left out. If even that does not, the
cause is another one.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from parity.casefile.case import Case
from parity.engine.environment import Environment
from parity.engine.equations import equations
from parity.engine.workers import Workers
from parity.explain.agreement import RESTORED, as_good, grades
from parity.explain.ddmin import BudgetSpent, ddmin
from parity.explain.places import place
from parity.program.sites import Site, barrier_bits
from parity.worker.protocol import Failure, PathOutcome, References

_NARROW = 24
"""Mantissa bits, the implicit one counted, from which on a dtype is not narrow."""

NOT_A_ROUNDING = "no set of barriers restores parity: it is no dropped rounding"


@dataclass(frozen=True)
class Barrier:
    """One rounding that has to be kept.

    Attributes:
        site: the equation after which it is to stand.
        place: the line of code of that equation.
        edit: the call that keeps it, of the result `x`.
    """

    site: Site
    place: str
    edit: str


@dataclass(frozen=True)
class BarrierSearch:
    """What a barrier search found.

    Attributes:
        path: which was to agree.
        against: with which it was to.
        barriers: in the order of the program; none if parity was there, or is not to be had.
        outputs: those that the barriers restore, with the grade that is reached.
        unrestored: those that differ even with a barrier after every candidate.
        minimal: whether parity was seen to be lost without any one of them.
        fewest: how far it is known that no smaller set does: "each is needed" where parity is lost
            without any one of them even if every other candidate has its barrier; "no two can be
            exchanged for one" where all such exchanges were tried; "" where neither is known.
        verified: whether a fresh worker gave the same with them; None where that was not asked.
        candidates: equations that were considered, those with a narrow floating result.
        runs: of the path.
        seconds: that all of it took.
        missing: why there are no barriers, "" if there are.
    """

    path: str
    against: str
    barriers: tuple[Barrier, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    unrestored: tuple[str, ...] = ()
    minimal: bool = False
    fewest: str = ""
    verified: bool | None = None
    candidates: int = 0
    runs: int = 0
    seconds: float = 0.0
    missing: str = ""


def search(
    workers: Workers,
    case: Case,
    path: str,
    environment: Environment | None = None,
    *,
    against: str | None = None,
    seconds: float = 60.0,
    runs: int = 400,
    verify: bool = True,
) -> BarrierSearch:
    """The fewest barriers with which a path agrees with another one.

    Args:
        workers: which run it; they stay open.
        case: whose program gets the barriers.
        path: on which.
        environment: this interpreter's if None.
        against: the path that it is to agree with, left without barriers; the baseline if None.
        seconds: after which no new run begins.
        runs: of the path that are made at most.
        verify: whether to run what was found once more in workers of its own.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        CaseFileError: an array file cannot be read.
    """
    begin = time.monotonic()
    against = against or case.baseline
    found = BarrierSearch(path, against)
    base = workers.execute(case, [against, path], environment)
    before = dict(zip((against, path), base.outcomes, strict=True))
    reason = _impossible(before, path, against)
    listed = None if reason else equations(workers, case, environment)
    if isinstance(listed, Failure):
        reason = f"the program cannot be traced: {listed.message or listed.outcome}"
    if listed is None or isinstance(listed, Failure):
        return replace(found, missing=reason, seconds=time.monotonic() - begin)
    it = _Search(
        case, path, before[against], base.references, listed,
        lambda changed, where: where.execute(changed, [path], environment, references=False)
        .outcomes[0],
        workers, begin + seconds, runs,
    )  # fmt: skip
    found = replace(found, candidates=len(it.candidates))
    found = it.found(found, grades(case, before[path], before[against], base.references))
    if verify and found.barriers:
        found = replace(found, verified=it.verified(found))
    return replace(found, runs=it.made, seconds=time.monotonic() - begin)


def _impossible(outcomes: Mapping[str, PathOutcome], path: str, against: str) -> str:
    """Why nothing can be searched for, "" if it can."""
    if path == against:
        return "a path agrees with itself"
    for name, outcome in outcomes.items():
        if outcome.failure is not None:
            return f"{name} has no output: {outcome.failure.message or outcome.outcome}"
    return ""


def is_candidate(site: Site) -> bool:
    """Whether a rounding may be dropped there: a result of fewer bits than float32 has."""
    if site.runs:
        return False  # its results are those of equations in it
    return any(_bits(name) < _NARROW for name in site.dtypes)


def barrier(case: Case, site: Site) -> Barrier:
    """The barrier that keeps the rounding of a narrow result of an equation."""
    bits = next(bits for name in site.dtypes if (bits := barrier_bits(name)) is not None)
    edit = f"lax.reduce_precision(x, exponent_bits={bits[0]}, mantissa_bits={bits[1]})"
    return Barrier(site, place(case, site), edit)


def _bits(name: str) -> int:
    bits = barrier_bits(name)
    return _NARROW if bits is None else bits[1] + 1


@dataclass
class _Search:
    """The tests of one search, each set of barriers tested once."""

    case: Case
    path: str
    baseline: PathOutcome
    references: References
    sites: Sequence[Site]
    execute: Callable[[Case, Workers], PathOutcome]
    workers: Workers
    until: float
    most: int
    made: int = 0
    wanted: Mapping[str, str] = field(default_factory=dict)
    _known: dict[frozenset[str], Mapping[str, str]] = field(default_factory=dict)
    _failure: str = ""

    @property
    def candidates(self) -> list[str]:
        """The addresses of what is considered, in order."""
        return [site.address for site in self.sites if is_candidate(site)]

    def found(self, found: BarrierSearch, before: Mapping[str, str]) -> BarrierSearch:
        """The search itself, with the grades that the path had before."""
        apart = [name for name, grade in before.items() if grade != "identical"]
        if not apart:
            return replace(found, outputs=before, missing="its bits are those of the baseline")
        if not self.candidates:
            return replace(found, missing="no result is narrower than float32")
        everywhere = self._grades(self.candidates)
        if not everywhere:
            return replace(found, missing=f"with barriers it has no output: {self._failure}")
        self.wanted = {n: g for n, g in everywhere.items() if n in apart and _better(g, before[n])}
        left = tuple(name for name in apart if name not in self.wanted)
        if not self.wanted:
            return replace(found, unrestored=left, missing=NOT_A_ROUNDING)
        kept, minimal, fewest = self._smallest()
        by_address = {site.address: site for site in self.sites}
        barriers = [barrier(self.case, by_address[one]) for one in self.candidates if one in kept]
        return replace(
            found,
            barriers=tuple(barriers),
            outputs=self.wanted,
            unrestored=left,
            minimal=minimal,
            fewest=fewest,
        )

    def _smallest(self) -> tuple[list[str], bool, str]:
        """The smallest set that was found, whether it is minimal, what is known of smaller ones."""
        smallest = self._start()

        def test(some: Sequence[str]) -> bool:
            nonlocal smallest
            restores = self._restores(some)
            if restores and len(some) < len(smallest):
                smallest = list(some)
            return restores

        try:
            kept = ddmin(smallest, test)
        except BudgetSpent:
            return smallest, False, ""
        try:
            while (fewer := self._exchanged(kept)) is not None:
                kept = ddmin(fewer, test)
        except BudgetSpent:
            return (smallest, False, "") if len(smallest) < len(kept) else (kept, True, "")
        every = all(self._is_needed(one) for one in kept)
        return kept, True, "each is needed" if every else "no two can be exchanged for one"

    def _start(self) -> list[str]:
        """The candidates of one primitive, if these do: most often the contractions."""
        by_kind: dict[str, list[str]] = {}
        for site in self.sites:
            if is_candidate(site):
                by_kind.setdefault(site.primitive, []).append(site.address)
        for some in by_kind.values():
            try:
                if 1 < len(some) < len(self.candidates) and self._restores(some):
                    return some
            except BudgetSpent:
                break
        return list(self.candidates)

    def _is_needed(self, one: str) -> bool:
        return not self._restores([other for other in self.candidates if other != one])

    def _exchanged(self, kept: Sequence[str]) -> list[str] | None:
        """A set that is smaller by one, None where none was found: two exchanged for another.

        What is needed even beside all others is in every set that restores parity.
        """
        free = [one for one in kept if not self._is_needed(one)]
        for pair in itertools.combinations(free, 2):
            rest = [one for one in kept if one not in pair]
            for other in self._others(kept):
                tried = [one for one in self.candidates if one in (*rest, other)]
                if self._restores(tried):
                    return tried
        return None

    def _others(self, kept: Sequence[str]) -> Iterator[str]:
        return (one for one in self.candidates if one not in kept)

    def _restores(self, some: Sequence[str]) -> bool:
        return self._agrees(self._grades(some))

    def _agrees(self, found: Mapping[str, str]) -> bool:
        return bool(found) and all(as_good(found[n], grade) for n, grade in self.wanted.items())

    def _grades(self, some: Sequence[str]) -> Mapping[str, str]:
        key = frozenset(some)
        if key not in self._known:
            if self.made >= self.most or time.monotonic() > self.until:
                raise BudgetSpent
            self.made += 1
            self._known[key] = self._run(some, self.workers)
        return self._known[key]

    def _run(self, some: Sequence[str], workers: Workers) -> Mapping[str, str]:
        program = replace(self.case.program, barriers=tuple(some))
        outcome = self.execute(replace(self.case, program=program), workers)
        if outcome.failure is not None:
            self._failure = outcome.failure.message or outcome.outcome
        return grades(self.case, outcome, self.baseline, self.references)

    def verified(self, found: BarrierSearch) -> bool:
        """Whether a worker that has run nothing else gives the same."""
        self.made += 1
        with Workers(self.workers.limits) as fresh:
            return self._agrees(self._run([one.site.address for one in found.barriers], fresh))


def _better(grade: str, before: str) -> bool:
    return grade in RESTORED and grade != before and as_good(grade, before)
