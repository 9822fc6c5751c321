"""Fuzzing: random cases of an op, those on which paths disagree grouped, one of each group reduced.

Hypothesis makes the cases, and none of them fails a test: what is found is written down as soon as
it is found, so that a campaign that is killed loses at most the case that was running.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from parity import paths as registry
from parity.casefile.case import Case
from parity.casefile.load import load
from parity.casefile.writing import safe_name
from parity.engine.environment import Environment
from parity.engine.workers import Workers
from parity.errors import CaseFileError, UserError
from parity.explain.attribution import ASKED
from parity.explain.reduction import reduce
from parity.explain.signature import UNEXPLAINED, Signature, differ, signature
from parity.explain.simpler import Fields
from parity.fuzzing import ops
from parity.fuzzing.groups import Campaign, Group
from parity.report.html.resolved import text
from parity.worker.protocol import PathOutcome

FINDINGS = ("divergent", "inaccurate", "mismatched")
FAILURES = ("error", "crashed", "timeout", "out-of-memory")

UNSTEADY = "not the same in each run"
"""Why a path differs that does so in another way when the case is run again."""

_ROUND = 25
"""Cases that Hypothesis is asked for at a time: it repeats much of what it has made before."""

_REDUCTION = 20.0
_SHARE = 0.1
"""A reduction takes at most so many seconds and such a share of the budget."""

_REDUCTIONS = 0.5
"""Share of the budget that all of them may take."""


class _Over(BaseException):
    """The budget is spent; passes through Hypothesis."""


class _Failed(BaseException):
    """What was raised while a case ran: Hypothesis would run the case again to be sure."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def fuzz(
    workers: Workers,
    op: str,
    paths: Sequence[str],
    folder: Path,
    environment: Environment | None = None,
    *,
    seconds: float,
    seed: int = 0,
    examples: int | None = None,
    found: Callable[[Campaign], None] = lambda campaign: None,
) -> Campaign:
    """Look for cases on which paths disagree, and write one file for each kind of disagreement.

    Args:
        workers: which run them; they stay open.
        op: that has a strategy (`fuzzing.ops`).
        paths: at least two; the others are compared with the first one.
        folder: exists; takes the case files.
        environment: this interpreter's if None.
        seconds: after which no new case is run.
        seed: another one gives other cases.
        examples: cases to be made at most, None for as many as there is time for.
        found: told of each case that was run.

    Raises:
        WorkerStartError: the environment cannot execute anything.
        UserError: a case file cannot be written.
    """
    campaign = Campaign(op, tuple(paths), seed)
    it = Fuzzing(workers, folder, environment, seconds, campaign, found)
    made = 0
    try:
        for number in itertools.count():
            count = _ROUND if examples is None else min(_ROUND, examples - made)
            if count <= 0:
                break
            _generate(it.one, ops.cases(op), count, seed * 1_000_003 + number)
            made += count
    except _Over:
        pass
    except KeyboardInterrupt:
        campaign.interrupted = True
    except _Failed as failed:
        raise failed.error from None
    campaign.seconds = time.monotonic() - it.begin
    return campaign


def _generate(
    body: Callable[[Fields], None], cases: SearchStrategy[Fields], count: int, number: int
) -> None:
    """Call a function on random cases."""

    @seed(number)
    @settings(
        database=None,
        deadline=None,
        max_examples=count,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def generated(fields: Fields) -> None:
        try:
            body(fields)
        except Exception as error:
            raise _Failed(error) from error

    generated()


@dataclass
class Fuzzing:
    """The runs of one campaign.

    Attributes:
        workers: which run the cases.
        folder: takes the case files.
        environment: this interpreter's if None.
        seconds: after which no new case is run.
        campaign: takes what is found.
        found: told of each case that was run.
        begin: when it began.
    """

    workers: Workers
    folder: Path
    environment: Environment | None
    seconds: float
    campaign: Campaign
    found: Callable[[Campaign], None]
    begin: float = field(default_factory=time.monotonic)
    _reduced: float = 0.0
    _seen: set[str] = field(default_factory=set)
    _groups: dict[tuple[str, Signature], Group] = field(default_factory=dict)

    def one(self, fields: Fields) -> None:
        """Run one case, and look closer where its paths disagree."""
        if time.monotonic() - self.begin > self.seconds:
            raise _Over
        case = self._loaded(fields)
        if case is None:
            return
        campaign = self.campaign
        campaign.cases += 1
        execution = self.workers.execute(case, campaign.paths, self.environment, references=False)
        baseline, *others = execution.outcomes
        if baseline.failure is not None:
            campaign.refused += 1
        else:
            apart = [one for one in others if _differs(one, baseline)]
            if apart:
                self._look(case, baseline, apart)
        campaign.seconds = time.monotonic() - self.begin
        self.found(campaign)

    def _loaded(self, fields: Fields) -> Case | None:
        """The case that some fields say, None for none or one that was run before."""
        paths = list(self.campaign.paths)
        whole = {"name": "case", "about": "random", **fields, "paths": paths, "baseline": paths[0]}
        said = text(whole)
        if said in self._seen:
            return None
        self._seen.add(said)
        try:
            (case,) = load(
                self.folder / "case.yaml", text=said, known_paths=registry.options()
            ).cases
        except CaseFileError:
            self.campaign.invalid += 1
            return None
        return case

    def _look(self, case: Case, baseline: PathOutcome, apart: Sequence[PathOutcome]) -> None:
        """Put the case into the groups that it belongs to."""
        measured = any(one.failure is None for one in apart)
        references = self.workers.execute(
            case, [], self.environment, references=measured, models=ASKED
        ).references
        for outcome in apart:
            told = signature(case, baseline, outcome, references)
            if told.what not in FINDINGS and told.outcome not in FAILURES:
                continue
            if not self._counted(outcome.path, told):
                self._reduce(case, outcome.path, told)

    def _counted(self, path: str, told: Signature) -> bool:
        """Whether a case belongs to a group that is there already."""
        group = self._groups.get((path, told))
        if group is not None:
            group.count += 1
        return group is not None

    def _reduce(self, case: Case, path: str, told: Signature) -> None:
        """Make a new group, with its case reduced and written."""
        file = self._file(path, told)
        about = f"Found by parity fuzz --op {self.campaign.op} --seed {self.campaign.seed}: {path} "
        about += f"is {told.said}."
        left = _REDUCTIONS * self.seconds - self._reduced
        made = reduce(
            self.workers, case, path, self.environment, against=self.campaign.paths[0],
            seconds=min(_REDUCTION, _SHARE * self.seconds, left), wanted=told,
            name=file.stem, about=about,
        )  # fmt: skip
        self._reduced += made.seconds
        steady = made.signature == told
        if steady and made.text and told.why.startswith(UNEXPLAINED):
            steady = self._repeats(made.case, path, told)
        if not steady:
            made = replace(made, case=case, text="")
            told = replace(told, why=UNSTEADY)
            about += " Another run gives something else."
            if self._counted(path, told):
                return
        said = made.text or text(_whole(case, file.stem, about))
        try:
            with open(file, "x", encoding="utf-8") as opened:
                opened.write(said)
        except OSError as error:
            raise UserError(f"{file}: cannot be written ({error.strerror})") from None
        elements = sum(array.size for array in made.case.arrays())
        group = Group(path, told, file, elements, made.finished)
        self._groups[path, told] = group
        self.campaign.groups.append(group)

    def _repeats(self, case: Case, path: str, told: Signature) -> bool:
        """Whether a new process gives the same: memory that is read unset seems steady in one."""
        begin, against = time.monotonic(), self.campaign.paths[0]
        with Workers(self.workers.limits) as fresh:
            again = reduce(
                fresh, case, path, self.environment, against=against, seconds=0, wanted=told
            )
        self._reduced += time.monotonic() - begin
        return not again.missing

    def _file(self, path: str, told: Signature) -> Path:
        """A file of a group that is not there yet: `01-jit-divergent.yaml`."""
        what = told.what if told.outcome == "ok" else told.outcome
        return self.folder / f"{len(self._groups) + 1:02d}-{safe_name(path)}-{what}.yaml"


def _whole(case: Case, name: str, about: str) -> Fields:
    from parity.report.html.resolved import document

    return {**document(case), "name": name, "about": about}


def _differs(outcome: PathOutcome, baseline: PathOutcome) -> bool:
    """Whether a path failed, or has not the bits of the baseline."""
    if outcome.failure is not None:
        return outcome.failure.outcome in FAILURES
    return differ(outcome, baseline)
