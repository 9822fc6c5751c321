"""Localisation: where along a program a path leaves what was declared, and how its error grows.

The results of a program's equations are observed as further outputs, on the path, on the one it is
compared with and under the references. To observe a result can change it: a compiler rounds what it
has to give, and may no longer fuse what it would have fused. So the program's own outputs are
compared with those of the program that nothing was observed in; where bits of them change, fewer
equations are observed at a time, down to one. One that still changes them stands as *disturbed*:
its result was not rounded, or not computed so, until somebody looked.

A rounding that is dropped therefore shows not in the equation that declares it but in the first one
after it that has the digits to show it: of a convolution in bfloat16 that is cast to float32, in
the cast. Which roundings were dropped there is asked with barriers (`origin`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from parity.casefile.case import Case
from parity.dtypes import DTYPES
from parity.engine.environment import Environment
from parity.engine.equations import equations
from parity.engine.workers import Workers
from parity.explain.origin import Origin, origin
from parity.explain.places import place
from parity.explain.steps import Step, Total, apart, error
from parity.program.sites import OPAQUE, Site
from parity.worker.protocol import Failure, PathOutcome, References, digest


@dataclass(frozen=True)
class Localisation:
    """Where a path leaves what was declared.

    Attributes:
        path: which.
        against: the path that it is compared with.
        totals: of each output of the program.
        steps: of each observed result, in the order of the program.
        origin: the roundings that, kept, bring the first of `steps` that leaves what was declared
            back, or the first output if no step does; None if nothing leaves it on the path alone.
        left_out: addresses of equations that were not observed, for want of time, for their size,
            or because they cannot be.
        failures: by address, why a path that observes an equation gives nothing.
        runs: of the path.
        seconds: that all of it took.
        missing: why there are no steps, "" if there are.
    """

    path: str
    against: str
    totals: tuple[Total, ...] = ()
    steps: tuple[Step, ...] = ()
    origin: Origin | None = None
    left_out: tuple[str, ...] = ()
    failures: Mapping[str, str] | None = None
    runs: int = 0
    seconds: float = 0.0
    missing: str = ""

    @property
    def first(self) -> Step | None:
        """The first result that is outside what was declared on the path alone."""
        return next((step for step in self.steps if step.leaves), None)

    @property
    def disturbed(self) -> tuple[Step, ...]:
        """The results that cannot be observed without changing the program's outputs."""
        return tuple(step for step in self.steps if step.disturbed)


def localise(
    workers: Workers,
    case: Case,
    path: str,
    environment: Environment | None = None,
    *,
    against: str | None = None,
    seconds: float = 60.0,
    together: int = 16,
    elements: int = 1 << 22,
) -> Localisation:
    """Where a path leaves what was declared, and another one does not.

    Args:
        workers: which run it; they stay open.
        case: whose program is observed.
        path: which leaves it.
        environment: this interpreter's if None.
        against: the path that it is compared with; the baseline if None.
        seconds: after which no new run begins.
        together: equations that are observed at a time, as long as that changes no output.
        elements: of all results that are observed at a time.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        CaseFileError: an array file cannot be read.
    """
    begin = time.monotonic()
    against = against or case.baseline
    found = Localisation(path, against)
    base = workers.execute(case, [against, path], environment)
    for outcome in base.outcomes:
        if outcome.failure is not None:
            why = f"{outcome.path} has no output: {outcome.failure.message or outcome.outcome}"
            return replace(found, missing=why, seconds=time.monotonic() - begin)
    sites = equations(workers, case, environment)
    if path == against:
        found = replace(found, missing="a path agrees with itself")
    elif isinstance(sites, Failure):
        why = sites.message or sites.outcome
        found = replace(found, missing=f"the program cannot be traced: {why}")
    elif base.references.failure is not None:
        why = base.references.failure.message
        found = replace(found, missing=f"there is no reference: {why}")
    else:
        it = _Localisation(
            workers, case, path, against, environment, begin + seconds,
            dict(zip((against, path), base.outcomes, strict=True)),
        )  # fmt: skip
        found = it.found(found, sites, base.references, together, elements)
    return replace(found, seconds=time.monotonic() - begin)


def is_candidate(site: Site) -> bool:
    """Whether the results of an equation are worth observing: not those of equations in it."""
    opaque = site.primitive in OPAQUE
    known = all(name in DTYPES for name in site.dtypes)
    return site.observable and known and bool(site.dtypes) and (opaque or not site.runs)


@dataclass
class _Localisation:
    """The runs of one localisation."""

    workers: Workers
    case: Case
    path: str
    against: str
    environment: Environment | None
    until: float
    plain: Mapping[str, PathOutcome]
    runs: int = 0

    def found(
        self,
        found: Localisation,
        sites: Sequence[Site],
        references: References,
        together: int,
        elements: int,
    ) -> Localisation:
        """The steps of all batches."""
        totals = [self._total(name, references) for name in self.plain[self.path].outputs]
        wanted = [site for site in sites if is_candidate(site) and _size(site) <= elements]
        steps: dict[str, list[Step]] = {}
        failures: dict[str, str] = {}
        for batch in _batches(wanted, together, elements):
            if time.monotonic() > self.until:
                break
            self._batch(batch, steps, failures)
        inner = [site for site in sites if not site.runs or site.primitive in OPAQUE]
        left = [s.address for s in inner if s.address not in steps and s.address not in failures]
        found = replace(
            found,
            totals=tuple(totals),
            steps=tuple(step for site in wanted for step in steps.get(site.address, ())),
            left_out=tuple(left),
            failures=failures,
            runs=self.runs,
        )
        return self._with_origin(found, sites)

    def _with_origin(self, found: Localisation, sites: Sequence[Site]) -> Localisation:
        left = found.first or next((total for total in found.totals if total.leaves), None)
        if left is None:
            return found
        arises = origin(
            self.workers, self.case, self.path, self.environment, sites,
            output=left.output, seen=found.first.site if found.first else None, until=self.until,
        )  # fmt: skip
        return replace(found, origin=arises, runs=found.runs + arises.runs)

    def _batch(
        self, batch: Sequence[Site], steps: dict[str, list[Step]], failures: dict[str, str]
    ) -> None:
        """Observe some equations, in smaller parts as long as that changes the outputs."""
        case = self._observing(batch)
        other = self.workers.execute(case, [self.against], self.environment)
        baseline, references = other.outcomes[0], other.references
        pending = [list(batch)]
        while pending and time.monotonic() <= self.until:
            part = pending.pop(0)
            outcome = self._run(part)
            undisturbed = outcome.failure is None and self._same(outcome)
            if not undisturbed and len(part) > 1:
                half = len(part) // 2
                pending[:0] = [part[:half], part[half:]]
                continue
            if outcome.failure is not None:
                failures[part[0].address] = outcome.failure.message or outcome.outcome
                continue
            for site in part:
                steps[site.address] = [
                    self._step(site, name, outcome, baseline, references, not undisturbed)
                    for name in site.outputs
                    if name in outcome.outputs
                ]

    def _run(self, sites: Sequence[Site]) -> PathOutcome:
        self.runs += 1
        case = self._observing(sites)
        found = self.workers.execute(case, [self.path], self.environment, references=False)
        return found.outcomes[0]

    def _observing(self, sites: Sequence[Site]) -> Case:
        observed = tuple(site.address for site in sites)
        return replace(self.case, program=replace(self.case.program, observed=observed))

    def _same(self, outcome: PathOutcome) -> bool:
        """Whether the program's own outputs are those of the program that is not observed."""
        plain = self.plain[self.path].outputs
        return all(digest(outcome.outputs[name]) == digest(of) for name, of in plain.items())

    def _step(
        self,
        site: Site,
        name: str,
        outcome: PathOutcome,
        baseline: PathOutcome,
        references: References,
        disturbed: bool,
    ) -> Step:
        got, want = outcome.outputs[name], baseline.outputs.get(name)
        return Step(
            site,
            name,
            got.dtype.name,
            place(self.case, site),
            error(got, name, references),
            error(want, name, references),
            apart(got, want),
            disturbed,
        )

    def _total(self, name: str, references: References) -> Total:
        got = self.plain[self.path].outputs[name]
        want = self.plain[self.against].outputs.get(name)
        errors = error(got, name, references), error(want, name, references)
        return Total(name, *errors, apart(got, want))


def _size(site: Site) -> int:
    return sum(max(math.prod(shape), 0) for shape in site.shapes)


def _batches(sites: Sequence[Site], together: int, elements: int) -> Iterator[list[Site]]:
    """Consecutive equations, so many and of so many elements at a time."""
    batch: list[Site] = []
    held = 0
    for site in sites:
        if batch and (len(batch) == together or held + _size(site) > elements):
            yield batch
            batch, held = [], 0
        batch.append(site)
        held += _size(site)
    if batch:
        yield batch
