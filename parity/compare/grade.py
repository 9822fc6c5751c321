"""What a comparison amounts to: the grade of one output of one path, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from parity.casefile.case import Tolerance
from parity.compare.elementwise import Mask, different_bits
from parity.compare.metrics import Metrics, comparable, measure
from parity.compare.quantity import metric
from parity.compare.standing import Standing
from parity.compare.tolerance import limits, within
from parity.compare.ulp import as_float64, dtype_of, parts


@dataclass(frozen=True, kw_only=True)
class Targets:
    """What an output is compared with, None where that does not exist.

    Attributes:
        f64: the ideal.
        strict: as declared.
        baseline: the baseline path's output.
        exclude: True where no rule determines the element; left out and counted.
        missing: why there is no reference, "" where there is one.
    """

    f64: np.ndarray | None = None
    strict: np.ndarray | None = None
    baseline: np.ndarray | None = None
    exclude: Mask | None = None
    missing: str = ""

    def measure(self, got: np.ndarray) -> Measured:
        """The metrics against each target that `got` can be compared with."""

        def against(want: np.ndarray | None) -> Metrics | None:
            if want is None or not comparable(got, want):
                return None
            return measure(got, want, exclude=self.mask(got))

        return Measured(against(self.f64), against(self.strict), against(self.baseline))

    def mask(self, got: np.ndarray) -> Mask | None:
        """The elements of `got` to leave out; none of a shape that is wrong anyway."""
        return (
            self.exclude if self.exclude is not None and self.exclude.shape == got.shape else None
        )


@dataclass(frozen=True)
class Measured:
    """The metrics of an output against each target, None where they cannot be compared."""

    f64: Metrics | None = None
    strict: Metrics | None = None
    baseline: Metrics | None = None


@dataclass(frozen=True)
class Graded:
    """A grade and why.

    Attributes:
        grade: one of `casefile.case.GRADES`.
        detail: why, "" where the grade says it all.
        refused: whether the case's tolerance is one that `strict` itself fails; a finding.
    """

    grade: str
    detail: str = ""
    refused: bool = False


def grade(
    got: np.ndarray,
    targets: Targets,
    measured: Measured,
    *,
    own: Standing | None = None,
    other: Standing | None = None,
    tolerance: Tolerance | None = None,
    is_baseline: bool = False,
) -> Graded:
    """The grade of an output.

    Args:
        got: the output.
        targets: what it is compared with.
        measured: its metrics against them.
        own: where it stands with the references, None without references.
        other: where the baseline's output stands.
        tolerance: the case's explicit limits.
        is_baseline: whether it is the baseline's own output: that is graded against `f64`.
    """
    if is_baseline:
        return _grade_baseline(got, targets, measured, own)
    if targets.baseline is not None:
        return _grade_values(got, targets, measured, own, other, tolerance, "baseline")
    if targets.strict is None:
        return Graded("divergent", f"no baseline, {_no_reference(targets)}")
    graded = _grade_values(got, targets, measured, own, own, tolerance, "strict")
    best = "equivalent" if graded.grade == "identical" else graded.grade
    detail = "; ".join(filter(None, ("no baseline", graded.detail)))
    return Graded(best, detail, graded.refused)


def _grade_baseline(
    got: np.ndarray, targets: Targets, measured: Measured, own: Standing | None
) -> Graded:
    """`identical` if it is accurate and does not contradict the references in form or pattern.

    Where the ideal is finite beyond the range of the declared dtype, `strict` overflows as well.
    """
    strict, f64 = targets.strict, targets.f64
    if strict is not None and (form := _form(got, strict, "declared")):
        return Graded("inaccurate", form)
    if f64 is None or own is None:
        return Graded("identical", _no_reference(targets))
    if measured.f64 is not None and measured.f64.pattern:
        wrong = _classes(got) != _classes(f64)
        if strict is not None:
            wrong &= _classes(got) != _classes(strict)
        if detail := _pattern(got, f64, targets.mask(got), "f64", only=wrong):
            return Graded("inaccurate", detail)
    wrapped = _wrapped(strict, f64)
    detail = "; ".join(filter(None, (_unfaithful(own, "not faithful"), wrapped, *_doubts(own))))
    good = own.accurate or own.model == "flush-subnormals"
    return Graded("identical" if good else "inaccurate", detail)


def _grade_values(
    got: np.ndarray,
    targets: Targets,
    measured: Measured,
    own: Standing | None,
    other: Standing | None,
    tolerance: Tolerance | None,
    against: str,
) -> Graded:
    """The grade against the baseline or, in its place, `strict`."""
    want: np.ndarray | None = getattr(targets, against)
    metrics: Metrics | None = getattr(measured, against)
    assert want is not None
    name = "the baseline" if against == "baseline" else against
    if form := _form(got, want, against):
        return Graded("mismatched", form)
    assert metrics is not None
    if metrics.pattern:
        return Graded("mismatched", _pattern(got, want, targets.mask(got), name))
    if not metrics.differing:
        return Graded("identical")
    graded = _by_references(got, want, own, other, targets, _difference(metrics, name))
    if tolerance is None or graded.grade == "equivalent":
        return graded
    if tolerance.against == "f64":
        if targets.f64 is None or measured.f64 is None:
            return Graded(graded.grade, f"{graded.detail}; tolerance not applied: there is no f64")
        want, metrics = targets.f64, measured.f64
    return _tolerate(got, want, metrics, targets, tolerance, graded)


def _by_references(
    got: np.ndarray,
    want: np.ndarray,
    own: Standing | None,
    other: Standing | None,
    targets: Targets,
    difference: str,
) -> Graded:
    """`equivalent`, `divergent` or `inaccurate`, of an output that has other bits."""
    if own is None or other is None:
        return Graded("divergent", f"{_no_reference(targets)}; {difference}")
    differing, exclude = different_bits(got, want), targets.mask(got)
    if exclude is not None:
        differing &= ~exclude
    both_inside = bool((own.inside & other.inside)[differing].all())
    if both_inside and not (own.aggregate or other.aggregate):
        needed = "+".join(dict.fromkeys("+".join((own.licences, other.licences)).split("+")))
        needs = f"needs {needed.strip('+')}" if needed.strip("+") else ""
        return Graded("equivalent", "; ".join(filter(None, (needs, difference, *_doubts(own)))))
    whose = _unfaithful(own, "")
    if other is not own and not other.faithful:  # without a baseline there is only one
        whose = "; ".join(filter(None, (whose, _unfaithful(other, "baseline not faithful"))))
    detail = "; ".join(filter(None, (whose, difference, *_doubts(own))))
    kept = own.accurate or own.model == "flush-subnormals"
    return Graded("divergent" if kept else "inaccurate", detail)


def _no_reference(targets: Targets) -> str:
    return ": ".join(filter(None, ("no reference", targets.missing)))


def _unfaithful(standing: Standing, head: str) -> str:
    """In what way an output is not what was declared; "" if it is."""
    if standing.faithful:
        return ""
    outside = int(np.count_nonzero(~standing.inside))
    why = standing.model or standing.aggregate
    if not why:
        why = f"outside the order interval in {outside} of {standing.inside.size} elements"
    return f"{head}: {why}" if head else why


def _wrapped(strict: np.ndarray | None, f64: np.ndarray) -> str:
    """How many bits an integer result would need that its dtype wraps; "" if it wraps nothing."""
    if strict is None or not dtype_of(strict.dtype).is_integer or not f64.size:
        return ""
    whole = np.ones(f64.shape, bool)
    if f64.dtype.kind == "f":  # what is no integer has been converted, which is no wrapping
        whole = np.isfinite(f64) & (f64 == np.trunc(f64))
    exact = f64[whole]
    wrapped = np.count_nonzero(strict[whole].astype(object) != exact.astype(object))
    if not wrapped:
        return ""
    low, high = int(exact.min()), int(exact.max())
    bits = max(high.bit_length(), (~low).bit_length() if low < 0 else 0)
    signed = dtype_of(strict.dtype).kind == "int" or low < 0
    return f"{wrapped} of {f64.size} elements wrapped: the exact values need {bits + signed} bits"


def _doubts(standing: Standing) -> tuple[str, ...]:
    """What keeps the references from speaking of every element."""
    doubts = []
    if standing.undecided:
        doubts.append(f"{standing.undecided} undecided")
    if standing.vacuous:
        doubts.append(f"bound vacuous for {standing.vacuous:.1%} of the elements")
    return tuple(doubts)


def _tolerate(
    got: np.ndarray,
    want: np.ndarray,
    metrics: Metrics,
    targets: Targets,
    tolerance: Tolerance,
    graded: Graded,
) -> Graded:
    """`equivalent` if an explicit tolerance is met that `strict` itself meets."""
    exclude, strict = targets.mask(got), targets.strict
    if strict is not None and comparable(strict, want):
        own = measure(strict, want, exclude=exclude)
        if not within(strict, want, tolerance, own, exclude=exclude):
            far = f"is {metric(own.max_ulp)} ulp from {tolerance.against}"
            if own.max_ulp is None:
                far = _difference(own, tolerance.against)
            detail = f"tolerance refused: strict itself {far}"
            return Graded(graded.grade, detail, refused=True)
    if within(got, want, tolerance, metrics, exclude=exclude):
        return Graded("equivalent", f"{graded.detail}; within {limits(tolerance)}")
    return Graded(graded.grade, f"{graded.detail}; not within {limits(tolerance)}")


def _form(got: np.ndarray, want: np.ndarray, against: str) -> str:
    """What differs in shape or dtype; "" if nothing does."""
    if got.shape != want.shape:
        return f"shape {_shape(got)}, {against} {_shape(want)}"
    if got.dtype != want.dtype:
        return f"dtype {got.dtype.name}, {against} {want.dtype.name}"
    return ""


def _shape(array: np.ndarray) -> str:
    return f"({','.join(map(str, array.shape))})"


def _difference(metrics: Metrics, name: str) -> str:
    text = f"differs from {name} in {metrics.differing} of {metrics.count} elements"
    if metrics.max_ulp is not None:
        text += f", by at most {metric(metrics.max_ulp)} ulp"
    if metrics.excluded:
        text += f" ({metrics.excluded} unspecified left out)"
    return text


_CLASS_NAMES = ("numbers", "NaN", "inf", "-inf")


def _classes(array: np.ndarray) -> npt.NDArray[np.uint8]:
    """The position in `_CLASS_NAMES` of each element; of a complex one of each part."""
    real = parts(array)
    if not dtype_of(array.dtype).is_inexact:
        return np.zeros(real.shape, np.uint8)
    if real.dtype.itemsize < 4:
        real = as_float64(real)
    return np.asarray(
        np.isnan(real) + np.uint8(2) * (real == np.inf) + np.uint8(3) * (real == -np.inf), np.uint8
    )


def _pattern(
    got: np.ndarray,
    want: np.ndarray,
    exclude: Mask | None,
    name: str,
    only: Mask | None = None,
) -> str:
    """Which NaNs and infinities differ, and in how many elements; "" if none do."""
    code = _classes(got) * np.uint8(4) + _classes(want)
    differ = _classes(got) != _classes(want)
    if only is not None:
        differ &= only
    if exclude is not None:
        differ &= ~(exclude if differ.ndim == exclude.ndim else exclude[..., None])
    unit = "element" if differ.ndim == got.ndim else "part"
    found = []
    for value, count in zip(*np.unique(code[differ], return_counts=True), strict=True):
        a, b = divmod(int(value), 4)
        found.append(
            f"{_CLASS_NAMES[a]} where {name} has {_CLASS_NAMES[b]}:"
            f" {count} {unit}{'s' if count > 1 else ''}"
        )
    return "; ".join(found)
