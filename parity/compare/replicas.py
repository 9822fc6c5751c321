"""What a row says of an output of which devices that should have the same have something else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parity.casefile.case import GRADES
from parity.compare.grade import Graded, Measured
from parity.compare.metrics import Metrics
from parity.compare.standing import Standing


@dataclass(frozen=True)
class Answer:
    """An output as one device has it.

    Attributes:
        got: the whole output.
        sha256: digest of its bits, dtype and shape.
        measured: its metrics.
        own: where it stands with the references, None without references.
        graded: its grade.
    """

    got: np.ndarray
    sha256: str
    measured: Measured
    own: Standing | None
    graded: Graded


def stands_worst(answers: Sequence[Answer]) -> Answer:
    """The one that is farthest from what it should be: not accurate, not faithful, then by error.

    Args:
        answers: at least one; of equals the first.
    """
    return max(answers, key=_standing)


def differs_most(answers: Sequence[Answer]) -> Metrics | None:
    """The metrics of the one that is farthest from what its device has of the baseline."""
    return max((one.measured.baseline for one in answers), key=_distance)


def worst_grade(answers: Sequence[Answer], disagreement: str) -> Graded:
    """The worst grade; at best `divergent` if replicas differ: no program declares two answers.

    Args:
        answers: at least one.
        disagreement: of the replicas, in words; "" for none.
    """
    worst = max((one.graded for one in answers), key=lambda one: GRADES.index(one.grade))
    refused = any(one.graded.refused for one in answers)
    if not disagreement:
        return Graded(worst.grade, worst.detail, refused)
    best = max(worst.grade, "divergent", key=GRADES.index)
    return Graded(best, "; ".join(filter(None, (disagreement, worst.detail))), refused)


def _standing(one: Answer) -> tuple[bool, bool, float, float]:
    own, f64 = one.own, one.measured.f64
    error = _size(f64.max_abs if f64 else None)
    if own is None:
        return False, False, 0.0, error
    return not own.accurate, not own.faithful, _size(own.share), error


def _distance(metrics: Metrics | None) -> tuple[bool, bool, float, int]:
    if metrics is None:
        return False, False, 0.0, 0
    return True, bool(metrics.pattern), _size(metrics.max_abs), metrics.differing


def _size(number: float | None) -> float:
    """A number to be ordered by: none is 0, NaN infinity."""
    if number is None:
        return 0.0
    return math.inf if math.isnan(number) else number
