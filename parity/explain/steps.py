"""The results of a program's equations on two paths, and how far they are from the references."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parity.compare.metrics import comparable, measure
from parity.compare.standing import standing
from parity.program.sites import Site
from parity.worker.protocol import References


@dataclass(frozen=True)
class Error:
    """How far an array is from what it ought to be.

    Attributes:
        outside: elements outside the interval of `strict`; None where there is none.
        faithful: whether it is what was declared, all elements together.
        rms_rel: relative rms distance from f64; None where it cannot be measured.
    """

    outside: int | None = None
    faithful: bool | None = None
    rms_rel: float | None = None


@dataclass(frozen=True)
class Step:
    """One result of one equation.

    Attributes:
        site: the equation.
        output: the result's name.
        dtype: of it.
        place: the line of code of the equation.
        path: its error on the path.
        against: its error on the path it is compared with.
        apart: relative rms distance of the two; None where it cannot be measured.
        disturbed: whether observing it alone changes the outputs of the program on the path.
    """

    site: Site
    output: str
    dtype: str
    place: str
    path: Error
    against: Error
    apart: float | None
    disturbed: bool = False

    @property
    def leaves(self) -> bool:
        """Whether the path alone is outside what was declared."""
        return self.path.faithful is False and self.against.faithful is True


@dataclass(frozen=True)
class Total:
    """One output of the program, nothing being observed.

    Attributes:
        output: its name.
        path: its error on the path.
        against: its error on the other one.
        apart: relative rms distance of the two; None where it cannot be measured.
    """

    output: str
    path: Error
    against: Error
    apart: float | None

    @property
    def leaves(self) -> bool:
        """Whether the path alone is outside what was declared."""
        return self.path.faithful is False and self.against.faithful is True


def error(got: np.ndarray | None, name: str, references: References) -> Error:
    """How far an output is from the references; nothing is known where one of them is missing."""
    ideal = references.f64.get(name)
    if got is None or ideal is None:
        return Error()
    own = standing(got, name, references)
    rms = None
    if comparable(got, ideal.point):
        rms = measure(got, ideal.point, exclude=references.unspecified.get(name)).rms_rel
    if own is None:
        return Error(rms_rel=rms)
    return Error(int(np.count_nonzero(~own.inside)), own.faithful, rms)


def apart(got: np.ndarray, want: np.ndarray | None) -> float | None:
    """The relative rms distance of an output from that of another path."""
    if want is None or not comparable(got, want):
        return None
    return measure(got, want).rms_rel
