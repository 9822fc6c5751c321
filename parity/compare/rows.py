"""One row for each path and output of a case: what was compared and what it amounts to.

Of an output that lies on several devices each device is judged, and the row says the worst: of the
grades, of the errors, and of the distances to what the same device has of the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from parity.casefile.case import Case
from parity.compare.delivered import delivered, magnitudes, named_bits
from parity.compare.grade import Graded, Measured, Targets, grade
from parity.compare.groups import groups, output_of
from parity.compare.message import first_line
from parity.compare.metrics import Element, Metrics, plain
from parity.compare.replicas import Answer, differs_most, stands_worst, worst_grade
from parity.compare.shards import (
    ShardError,
    answers,
    disagreement,
    shard_errors,
)
from parity.compare.standing import Standing, standing
from parity.compare.ulp import dtype_of
from parity.worker.protocol import Failure, PathOutcome, References, digest

SHOWN = 16
"""Outputs of up to so many elements are listed in the row."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one path made of one output of a case; `as_dict` flattens it.

    Attributes:
        case: the case's id.
        path: the path's name; "f64" or "strict" for a reference.
        output: the output's name, "" where there is none.
        outcome: one of `casefile.case.OUTCOMES`.
        grade: one of `casefile.case.GRADES`; None without an output and for a reference.
        detail: why.
        dtype: the output's dtype, None without an output.
        shape: the output's shape, None without an output.
        count: its elements, None without an output.
        differing: elements that differ from the baseline, None where they cannot be compared.
        faithful: whether it is what was declared (`compare.standing`), None without references.
        accurate: whether it is as accurate as the declared dtypes allow, likewise.
        licences: what its order interval needed to hold it, "" for nothing.
        model: the named arithmetic model that holds it where what was declared does not.
        bound_share: the largest share of the accuracy bound that is used.
        vacuous: share of the elements whose bound says nothing.
        undecided: elements that another correct evaluation may decide otherwise.
        f64: metrics against the ideal, None where they cannot be compared.
        strict: metrics against what was declared, likewise.
        baseline: metrics against the baseline path, likewise.
        stage: where it failed, "" if it did not.
        error_type: the exception's type or the signal's name.
        message: what it said, or why the path is unsupported.
        stderr: the last lines the worker wrote.
        evidence: proof that the path ran.
        timings: seconds by stage.
        sha256: over dtype, shape and bits of the output.
        group: position, in `groups`, of the paths with the same bits.
        values: the elements in C order where there are at most `SHOWN`.
        tolerance_refused: whether the case's tolerance is one that `strict` itself fails.
        status: "ok", "expected", "finding" or "stale"; `expect.judge` sets it.
        because: the reason that the matching expectation gives.
        link: its link.
        environment: the name of the environment it ran in.
        nondeterministic: whether a repeated run gave other bits.
        cached: whether it was taken from an earlier run.
        own_error: of the reference f64, a bound on its own absolute error (`reference_rows`).
        delivered: effective mantissa bits of a dot that asks for an algorithm by name.
        named: the bits that the name says.
        shards: of an output that lies on several devices, the error of each.
        replicas: in how many elements the devices disagree that should have the same, "" for none.
        explanation: why it is not identical, as JSON has it (`explain.during`); empty where that
            was not asked.
    """

    case: str
    path: str
    output: str
    outcome: str
    grade: str | None = None
    detail: str = ""
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    count: int | None = None
    differing: int | None = None
    faithful: bool | None = None
    accurate: bool | None = None
    licences: str = ""
    model: str = ""
    bound_share: float | None = None
    vacuous: float | None = None
    undecided: int | None = None
    f64: Metrics | None = None
    strict: Metrics | None = None
    baseline: Metrics | None = None
    stage: str = ""
    error_type: str = ""
    message: str = ""
    stderr: str = ""
    evidence: Mapping[str, str] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    sha256: str | None = None
    group: int | None = None
    values: tuple[Any, ...] | None = None
    tolerance_refused: bool = False
    status: str = "ok"
    because: str = ""
    link: str | None = None
    environment: str = ""
    nondeterministic: bool = False
    cached: bool = False
    own_error: float | None = None
    delivered: float | None = None
    named: int | None = None
    shards: tuple[ShardError, ...] = ()
    replicas: str = ""
    explanation: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_finding(self) -> bool:
        """Whether the row fails the run."""
        return self.status in ("finding", "stale")

    @property
    def bits(self) -> tuple[str, ...] | None:
        """What is equal for outputs of the same bits on each device; None without an output."""
        if self.sha256 is None:
            return None
        others = (f"{one.device} {one.sha256}" for one in self.shards if one.sha256)
        return self.sha256, *others


def compare_case(
    case: Case, outcomes: Sequence[PathOutcome], references: References
) -> tuple[Row, ...]:
    """One row per path and output, not yet judged; a path without outputs has one row.

    Args:
        case: which case.
        outcomes: what its paths made of it, the baseline's among them if it ran.
        references: what the references say.
    """
    produced = [o for o in outcomes if o.failure is None]
    baseline = next((o for o in produced if o.path == case.baseline), None)
    names = dict.fromkeys(name for o in produced for name in o.outputs)
    comparisons = {name: _Comparison(case, name, produced, references, baseline) for name in names}
    return tuple(
        row
        for outcome in outcomes
        for row in _rows_of(case, outcome, comparisons, set(baseline.outputs if baseline else ()))
    )


def _rows_of(
    case: Case,
    outcome: PathOutcome,
    comparisons: Mapping[str, _Comparison],
    required: set[str],
) -> Iterator[Row]:
    if outcome.failure is not None:
        yield failed(case, outcome.path, outcome.failure, outcome)
        return
    for name, comparison in comparisons.items():
        if name in outcome.outputs:
            yield comparison.row(outcome)
        elif name in required:
            yield Row(
                case=case.id,
                path=outcome.path,
                output=name,
                outcome="ok",
                grade="mismatched",
                detail="no such output; the baseline has it",
                evidence=outcome.evidence,
                timings=outcome.timings,
            )
    if not outcome.outputs and not required:
        yield Row(case=case.id, path=outcome.path, output="", outcome="ok", detail="no output")


class _Comparison:
    """One output of a case on every path; equal bits are measured once."""

    def __init__(
        self,
        case: Case,
        name: str,
        produced: Sequence[PathOutcome],
        references: References,
        baseline: PathOutcome | None,
    ) -> None:
        self._case, self._name = case, name
        self._references = references
        self._has_baseline = baseline is not None
        self._baseline = output_of(baseline, name) if baseline else None
        ideal, strict = references.f64.get(name), references.strict.get(name)
        self._targets = Targets(
            f64=None if ideal is None else ideal.point,
            strict=None if strict is None else strict.point,
            baseline=self._baseline.whole if self._baseline else None,
            exclude=references.unspecified.get(name),
            missing=_why(references.failure),
        )
        self._groups = groups(produced, name, exclude=self._targets.exclude)
        self._sizes = magnitudes(case)
        self._measured: dict[tuple[str, str], Measured] = {}
        self._standing: dict[str, Standing | None] = {}

    def _stands(self, got: np.ndarray, sha256: str) -> Standing | None:
        if sha256 not in self._standing:
            self._standing[sha256] = standing(got, self._name, self._references)
        return self._standing[sha256]

    def _judge(self, path: str, got: np.ndarray, baseline: np.ndarray | None) -> Answer:
        """An output as one device has it, beside the baseline's on the same device."""
        targets = replace(self._targets, baseline=baseline)
        sha256, against = digest(got), "" if baseline is None else digest(baseline)
        if (sha256, against) not in self._measured:
            self._measured[sha256, against] = targets.measure(got)
        measured, own = self._measured[sha256, against], self._stands(got, sha256)
        other = None if baseline is None else self._stands(baseline, against)
        graded = self._grade(path, got, targets, measured, own, other)
        return Answer(got, sha256, measured, own, graded)

    def row(self, outcome: PathOutcome) -> Row:
        """The row of a path that has the output."""
        output = output_of(outcome, self._name)
        assert output is not None
        got = output.whole
        shards = shard_errors(output, self._targets, self._baseline)
        each = [self._judge(outcome.path, *pair) for pair in answers(output, self._baseline)]
        worst, apart = stands_worst(each), differs_most(each)
        replicas = disagreement(shards)
        if replicas and all(one.own is not None and one.own.faithful for one in each):
            replicas += "; each is what another order of evaluation may give"
        graded = worst_grade(each, replicas)
        return Row(
            case=self._case.id,
            path=outcome.path,
            output=self._name,
            outcome="ok",
            grade=graded.grade,
            detail=graded.detail,
            tolerance_refused=graded.refused,
            differing=apart.differing if apart else None,
            f64=worst.measured.f64,
            strict=worst.measured.strict,
            baseline=apart,
            evidence=outcome.evidence,
            timings=outcome.timings,
            sha256=each[0].sha256,
            group=next(i for i, group in enumerate(self._groups) if outcome.path in group),
            shards=shards,
            replicas=replicas,
            **self._precision(worst.got),
            **contents(got),
            **({} if worst.own is None else _standing_fields(worst.own)),
        )

    def _precision(self, got: np.ndarray) -> dict[str, Any]:
        if self._sizes is None or self._targets.f64 is None:
            return {}
        bits = delivered(got, self._targets.f64, self._sizes, exclude=self._targets.exclude)
        return {"delivered": bits, "named": named_bits(self._case)}

    def _grade(
        self,
        path: str,
        got: np.ndarray,
        targets: Targets,
        measured: Measured,
        own: Standing | None,
        other: Standing | None,
    ) -> Graded:
        if self._has_baseline and targets.baseline is None:
            return Graded("mismatched", "the baseline has no such output")
        return grade(
            got,
            targets,
            measured,
            own=own,
            other=other,
            tolerance=self._case.tolerance,
            is_baseline=path == self._case.baseline,
        )


def _why(failure: Failure | None) -> str:
    if failure is None:
        return ""
    return ": ".join(filter(None, (failure.type, first_line(failure.message))))


def _standing_fields(own: Standing) -> dict[str, Any]:
    return {
        "faithful": own.faithful,
        "accurate": own.accurate,
        "licences": own.licences,
        "model": own.model,
        "bound_share": own.share,
        "vacuous": own.vacuous,
        "undecided": own.undecided,
    }


def contents(array: np.ndarray) -> dict[str, Any]:
    """The fields of a row that say what an output is."""
    shown = array.size <= SHOWN
    return {
        "dtype": dtype_of(array.dtype).name,
        "shape": array.shape,
        "count": array.size,
        "values": tuple(plain(array.reshape(-1))) if shown else None,
    }


def failed(case: Case, path: str, failure: Failure, outcome: PathOutcome | None = None) -> Row:
    """The row of a path, or reference, that gave nothing."""
    return Row(
        case=case.id,
        path=path,
        output="",
        outcome=failure.outcome,
        detail=first_line(failure.message) or failure.type,
        stage=failure.stage,
        error_type=failure.type,
        message=failure.message,
        stderr=failure.stderr,
        evidence=outcome.evidence if outcome else {},
        timings=outcome.timings if outcome else {},
    )


_TARGETS = ("f64", "strict", "baseline")
_FLAT = tuple(f.name for f in fields(Row) if f.name not in _TARGETS)
_PARTS = ("histogram", "profile", "worst")
_METRICS = tuple(f.name for f in fields(Metrics) if f.name not in _PARTS)
_ELEMENT = tuple(f.name for f in fields(Element))


def as_dict(row: Row) -> dict[str, Any]:
    """A row as one flat mapping of plain Python values, metrics as `max_abs_f64` and so on.

    Complex numbers are [real, imaginary]; NaN and infinity are left as floats; a metric that does
    not exist is None.
    """
    flat = {name: _builtin(getattr(row, name)) for name in _FLAT}
    for target in _TARGETS:
        metrics: Metrics | None = getattr(row, target)
        for name in _METRICS:
            flat[f"{name}_{target}"] = getattr(metrics, name, None)
        flat[f"histogram_{target}"] = _builtin(metrics.histogram) if metrics else None
        bands = metrics.profile if metrics else None
        flat[f"profile_{target}"] = None if bands is None else list(map(list, bands))
        flat[f"worst_{target}"] = [_element(e) for e in metrics.worst] if metrics else None
    return flat


def _element(element: Element) -> dict[str, Any]:
    return {name: _builtin(getattr(element, name)) for name in _ELEMENT}


def _builtin(value: Any) -> Any:
    kind = type(value)
    if kind is ShardError:
        return {name: _builtin(of) for name, of in vars(value).items()}
    if kind is tuple and ShardError in map(type, value):
        return [_builtin(v) for v in value]
    if kind is tuple:
        return [_builtin(v) for v in value] if complex in map(type, value) else list(value)
    if kind is complex:
        return [value.real, value.imag]
    return dict(value) if isinstance(value, Mapping) else value
