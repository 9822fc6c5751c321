"""Structural hypotheses: what relates an output to the right one where no rounding is to blame.

Each hypothesis changes the right result, or the program and its operands, and is kept if what
remains of the error is a tenth of it or less. The residual is reported with it, so that a reader
sees how exactly it fits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from parity.compare.elementwise import same_bits
from parity.compare.ulp import dtype_of
from parity.explain.laboratory import Arrays, Laboratory, Spent
from parity.explain.reshaped import blocks, moved, rows
from parity.explain.respecified import changes
from parity.program.spec import ProgramSpec
from parity.worker.protocol import References

BITS = "bits of"
"""How the names of hypotheses begin that speak of each element's bits."""

_REMAINS = 0.1
"""Share of the error that a hypothesis may leave."""

_EXACT = 2.0**53
"""Below it float64 holds every integer."""

_HELD = 2.0**-48
"""Relative error that float64 may have in a sum of integers."""

_TELLING = 2**16
"""How many times as wide as that error integers must be for it to tell them apart."""

_SMALL = 0.05
"""Relative rms error that it may leave at most."""


@dataclass(frozen=True)
class Hypothesis:
    """A relation that an output was found to have with the right one.

    Attributes:
        name: in a few words: "rhs flipped along axes 0, 1".
        meaning: one sentence.
        residual: relative rms error of the output after it is applied.
        covers: share of the elements that it speaks of: 1 but for shifts and rows.
    """

    name: str
    meaning: str
    residual: float
    covers: float = 1.0


@np.errstate(all="ignore")  # outputs may be anything; what is infinite or NaN fits nothing
def hypotheses(
    got: np.ndarray,
    output: str,
    program: ProgramSpec,
    arrays: Arrays,
    references: References,
    laboratory: Laboratory | None,
) -> tuple[Hypothesis, ...]:
    """What an output is instead of the right one, what leaves the least error first.

    Args:
        got: the output, of any shape.
        output: its name.
        program: what should have been computed.
        arrays: its operands.
        references: of the program.
        laboratory: where changed programs and operands are interpreted; None for the hypotheses
            about the output alone.
    """
    want = references.f64[output].point
    value, want = _wide(got), _wide(want)
    before = np.inf
    if value.shape == want.shape and (np.isfinite(value) == np.isfinite(want)).all():
        before = residual(value, want)
    found = [*_reinterpreted(got, want)]
    found += _fitting(value, before, rows(value, want, arrays, program))
    found += _fitting(value, before, blocks(value, want, program.devices))
    if laboratory is not None and not any(h.covers == 1 for h in found):
        changed = _respecified(laboratory, program, arrays, output)
        found += itertools.islice(_fitting(value, before, changed), 1)
    found += _fitting(value, before, moved(value, want, _sizes(program, want)))
    unique: dict[str, Hypothesis] = {}
    for one in found:
        unique.setdefault(one.name, one)
    return tuple(sorted(unique.values(), key=lambda h: (-h.covers, _coarse(h.residual))))


def _coarse(residual: float) -> int:
    """A residual by its power of ten: what is smaller than single precision shows is 0."""
    return int(np.ceil(np.log10(max(residual, 1e-6))))


def _reinterpreted(got: np.ndarray, want: np.ndarray) -> Iterator[Hypothesis]:
    """Whole numbers whose bits were taken for those of floats, or the other way round."""
    if got.shape != want.shape or want.dtype.kind != "f" or got.dtype.itemsize > 8:
        return
    width = 8 * got.dtype.itemsize
    if dtype_of(got.dtype).kind == "float" and (want == np.trunc(want)).all() and width > 8:
        if not np.isfinite(want).all() or not (want != 0).any():
            return
        wraps = (np.abs(want) >= 2.0 ** (width - 1)).any()
        name = f"{BITS} an int{width} read as {got.dtype.name}"
        right = "has wrapped" if wraps else "is right"
        meaning = f"The integer result {right}, its bits are taken for a float's."
        if (np.abs(want) >= _EXACT).any():
            if _congruent(got.view(f"int{width}"), want):
                yield Hypothesis(name, meaning, 0.0)
            return
        bits = want.astype(np.int64).astype(f"int{width}").view(got.dtype)
    elif dtype_of(got.dtype).is_integer and width in (16, 32, 64):
        with np.errstate(over="ignore"):
            bits = want.astype(f"float{width}").view(got.dtype)
        name = f"{BITS} a float{width} read as {got.dtype.name}"
        meaning = "The floating result is right, its bits are taken for an integer's."
    else:
        return
    if same_bits(got, bits) and not np.isnan(want).any():
        yield Hypothesis(name, meaning, 0.0)


def _congruent(got: np.ndarray, want: np.ndarray) -> bool:
    """Whether integers are others modulo their width, as far as float64 holds these."""
    span = 2 ** (8 * got.dtype.itemsize)
    slack = int(np.abs(want).max() * _HELD)
    if slack * _TELLING > span:
        return False
    pairs = zip(got.ravel().tolist(), want.ravel().tolist(), strict=True)
    return all((ours - int(right) + slack) % span <= 2 * slack for ours, right in pairs)


def residual(got: np.ndarray, want: np.ndarray) -> float:
    """Relative rms error, of the elements that are finite in the right result.

    Infinite where these are not finite in the output, or there are none; 0 for two zeros.
    """
    with np.errstate(all="ignore"):
        kept = np.isfinite(want)
        value, right = got[kept], want[kept]
        if not np.isfinite(value).all() or (want.size and not value.size):
            return float("inf")
        error = float(np.linalg.norm(value - right))
        size = float(np.linalg.norm(right))
    if size == 0:
        return 0.0 if error == 0 else float("inf")
    return error / size


def _wide(array: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _sizes(program: ProgramSpec, want: np.ndarray) -> dict[str, int]:
    """Numbers that a factor may be, by what they are."""
    found = {"the number of devices": program.devices, "the batch": program.batch}
    for operand in program.inputs():
        for axis, size in enumerate(operand.shape):
            found[f"the size of axis {axis} of {operand.name}"] = size
    for axis, size in enumerate(want.shape):
        found[f"the size of axis {axis} of the output"] = size
    return {name: size for name, size in found.items() if size > 1}


Candidate = tuple[str, str, np.ndarray, np.ndarray | None]
"""Name, meaning, what the output would be, and which elements are meant (None for all)."""


def _fitting(
    got: np.ndarray, before: float, candidates: Iterable[Candidate]
) -> Iterator[Hypothesis]:
    for name, meaning, want, where in candidates:
        if want.shape != got.shape:
            continue
        pair = (got, want) if where is None else (got[where], want[where])
        left = residual(*pair)
        if left <= min(_REMAINS * before, _SMALL):
            covers = 1.0 if where is None else float(np.mean(where))
            yield Hypothesis(name, meaning, left, covers)


def _respecified(
    laboratory: Laboratory, program: ProgramSpec, arrays: Arrays, output: str
) -> Iterator[Candidate]:
    """What other operands and attributes would have given."""
    for name, meaning, changed, operands in changes(program, arrays):
        try:
            found = laboratory.references(changed, operands, ())
        except Spent:
            return
        if found.failure is None and output in found.f64:
            yield name, meaning, _wide(found.f64[output].point), None
