"""What a comparison of two runs amounts to; every format is written from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from parity.compare.metrics import Metrics
from parity.report.diff.directions import GOOD, WORSE
from parity.report.diff.facts import FactChange, Side

EvidenceKind = str
"""What was compiled: "stablehlo", "hlo" or "graph" (TensorFlow operations)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one side made of one path and output: the part of a `Row` that a change needs.

    Attributes:
        outcome: one of `casefile.case.OUTCOMES`.
        grade: one of `casefile.case.GRADES`, None without an output.
        status: "ok", "expected", "finding" or "stale".
        detail: why it has that grade.
        words: the line that the run's report has on it, "" if there is none.
        stage: where it failed, "" if it did not.
        said: exception type and first line of the message, or why it is unsupported.
        model: the named arithmetic model that holds it where what was declared does not.
        licences: what its order interval needed to hold it.
        dtype: None without an output.
        shape: likewise.
        faithful: whether it is what was declared, None without references.
        accurate: whether it is as accurate as the declared dtypes allow, likewise.
        bound_share: the largest share of the accuracy bound that is used.
        differing: elements that differ from the baseline.
        f64: metrics against the ideal, without the worst elements.
        because: the reason that the matching expectation gives.
        link: its link.
        sha256: over dtype, shape and bits.
        nondeterministic: whether a repeated run gave other bits.
        programs: by kind, SHA-256 of what was compiled, as far as there is evidence.
    """

    outcome: str
    grade: str | None
    status: str
    detail: str
    words: str
    stage: str
    said: str
    model: str
    licences: str
    dtype: str | None
    shape: tuple[int, ...] | None
    faithful: bool | None
    accurate: bool | None
    bound_share: float | None
    differing: int | None
    f64: Metrics | None
    because: str
    link: str | None
    sha256: str | None
    nondeterministic: bool
    programs: Mapping[EvidenceKind, str]

    @property
    def verdict(self) -> str:
        """The grade, or what happened instead: `divergent`, `error at trace`, `unsupported`."""
        if self.outcome == "ok":
            return self.grade or "no output"
        if self.stage and self.outcome != "unsupported":
            return f"{self.outcome} at {self.stage}"
        return self.outcome


@dataclass(frozen=True, slots=True)
class Aligned:
    """One element on both sides.

    Attributes:
        index: where.
        a: its value in A, a Python number, exactly.
        b: its value in B.
        a_bits: hexadecimal; of a complex element those of the real, then of the imaginary part.
        b_bits: likewise.
        ulp: steps between the two on the grid of the dtype; infinite where either is not finite,
            None for bool.
        f64: the ideal, None where it is not kept.
    """

    index: tuple[int, ...]
    a: Any
    b: Any
    a_bits: str
    b_bits: str
    ulp: float | None
    f64: Any = None


@dataclass(frozen=True, slots=True)
class Distance:
    """How far B's bits are from A's.

    Attributes:
        metrics: of B's output against A's, without the worst elements.
        worst: at most 8 elements that differ, the worst first.
    """

    metrics: Metrics
    worst: tuple[Aligned, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What changed in one path and output of a case.

    Attributes:
        case: its id.
        op: of its program.
        path: which.
        output: its name, "" where neither side has one.
        baseline: the path that its case compares with.
        direction: one of `directions.DIRECTIONS`.
        cause: one of `causes.CAUSES`.
        why: what the cause was read from: missing evidence, what a failure said; may be "".
        detail: what else changed that bears on it: the baseline, what is declared; may be "".
        a: A's side, None if it has none.
        b: B's side, likewise.
        distance: how far B is from A, None where bits of both are not at hand or of other form.
        unread: why `distance` is None though both sides have an output, "" otherwise.
    """

    case: str
    op: str
    path: str
    output: str
    baseline: str
    direction: str
    cause: str
    why: str
    detail: str
    a: Cell | None
    b: Cell | None
    distance: Distance | None = None
    unread: str = ""

    @property
    def expected(self) -> bool:
        """Whether an expectation of B's case file says that B's side is as it is.

        Such a change fails no comparison, whatever that fails on.
        """
        return self.b is not None and self.b.status == "expected"

    @property
    def better(self) -> bool:
        """Whether it got better, be what it became expected or not."""
        return self.direction in GOOD

    @property
    def worse(self) -> bool:
        """Whether it got worse and no expectation accepts what it became."""
        return self.direction in WORSE and not self.expected

    def fails(self, fail_on: frozenset[str]) -> bool:
        """Whether it fails a comparison that fails on these directions: what is expected never."""
        return self.direction in fail_on and not self.expected


@dataclass(frozen=True, slots=True)
class NotComparable:
    """What cannot be told apart from a change of the question.

    Attributes:
        case: its id.
        output: "" where it is the whole case, or the whole path.
        path: "" where it is every path.
        kind: one of `comparable.KINDS`.
        reason: what changed.
        rows: how many rows of B (of A where B has none) are left out for that.
    """

    case: str
    output: str
    path: str
    kind: str
    reason: str
    rows: int


@dataclass(frozen=True)
class Finding:
    """Changes of one direction, op, path and cause.

    Attributes:
        direction: one of `directions.DIRECTIONS`.
        op: of the cases' programs.
        path: which.
        cause: one of `causes.CAUSES`.
        why: see `Change.why`.
        because: the reason that B's expectations give, None where it is not expected.
        link: their link.
        fails: whether it makes the exit code 1.
        changes: the worst first.
    """

    direction: str
    op: str
    path: str
    cause: str
    why: str
    because: str | None
    link: str | None
    fails: bool
    changes: tuple[Change, ...]

    @property
    def worst(self) -> Change:
        """The change to look at first."""
        return self.changes[0]

    @property
    def worse(self) -> bool:
        """Whether it got worse and no expectation accepts it."""
        return self.worst.worse

    @property
    def cases(self) -> tuple[str, ...]:
        """The ids of its cases, each once, the worst first."""
        return tuple(dict.fromkeys(change.case for change in self.changes))


@dataclass(frozen=True, kw_only=True)
class Diff:
    """Two runs compared.

    Attributes:
        a: the first side, what was.
        b: the second side, what is.
        facts: how the environments differ, and the versions of parity and the project.
        changes: in the order of A's cases.
        findings: the changes grouped by direction, op, path and cause, the worst first.
        not_comparable: in the same order.
        only_a: ids of the cases that B lacks.
        only_b: ids of the cases that A lacks.
        cases: how many both have.
        unchanged: rows that are the same: bits and grade, or the failure.
        fail_on: the directions that make the exit code 1.
    """

    a: Side
    b: Side
    facts: tuple[FactChange, ...]
    changes: tuple[Change, ...]
    findings: tuple[Finding, ...]
    not_comparable: tuple[NotComparable, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    cases: int
    unchanged: int
    fail_on: frozenset[str] = WORSE

    @property
    def failing(self) -> Iterator[Change]:
        """The changes that make the exit code 1."""
        return (change for change in self.changes if change.fails(self.fail_on))

    @property
    def exit_code(self) -> int:
        """1 if something got worse (or changed as `fail_on` says), else 0."""
        return int(next(self.failing, None) is not None)

    @property
    def directions(self) -> Counter[str]:
        """How many changes there are of each direction."""
        return Counter(change.direction for change in self.changes)
