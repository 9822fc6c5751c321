"""What an output may be of the right result itself: moved, scaled, partly zero or masked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from parity.explain.laboratory import Arrays
from parity.program.spec import ProgramSpec

_AXES = 5
_SHIFTED = 4
"""An output of more axes is not looked at along them."""

_SLICES = 256
"""Slices along an axis of which each is compared with each."""
_NEAR = 0.05
"""Relative distance within which two slices are the same one."""

Candidate = tuple[str, str, np.ndarray, np.ndarray | None]


def moved(got: np.ndarray, want: np.ndarray, sizes: Mapping[str, int]) -> Iterator[Candidate]:
    """Axes exchanged or reversed, a factor, a shift, a permutation, a constant.

    Args:
        got: the output, wide.
        want: the right result, wide.
        sizes: numbers that a factor may be, by what they are.
    """
    if not want.size:
        return
    axes = [axis for axis, size in enumerate(want.shape) if size > 1]
    if len(axes) <= _AXES:
        for order in itertools.permutations(range(want.ndim)):
            if order != tuple(range(want.ndim)):
                text = f"output axes in the order {list(order)}"
                yield text, "Its axes are exchanged.", want.transpose(order), None
        for count in range(1, len(axes) + 1):
            for flipped in itertools.combinations(axes, count):
                along = ", ".join(map(str, flipped))
                text = f"output flipped along {along}"
                yield text, "It comes in reverse order.", np.flip(want, flipped), None
    if got.size == want.size and got.shape != want.shape:
        text = f"shape {list(got.shape)} instead of {list(want.shape)}"
        yield text, "Its elements are right, its shape is not.", want.reshape(got.shape), None
    if got.shape != want.shape:
        return
    yield from _scaled(got, want, sizes)
    yield from _constant(got, want)
    yield from _shifted(want, axes)
    yield from _permuted(got, want, axes)
    if want.dtype.kind == "c":
        yield "complex conjugate", "Imaginary parts have the other sign.", want.conj(), None
        swapped = want.imag + 1j * want.real
        yield "parts exchanged", "Real and imaginary parts are exchanged.", swapped, None


def _scaled(got: np.ndarray, want: np.ndarray, sizes: Mapping[str, int]) -> Iterator[Candidate]:
    """A factor by least squares, taken for the nearest simple fraction."""
    kept = np.isfinite(got) & np.isfinite(want)
    right = want[kept]
    power = float(np.vdot(right, right).real)
    if not power:
        return
    ratio = float((np.vdot(right, got[kept]) / power).real)
    limit = max(64, *sizes.values()) if sizes else 64
    if not 2.0**-20 < abs(ratio) < 2.0**20:
        return
    whole = abs(ratio) >= 1
    nearest = Fraction(ratio if whole else 1 / ratio).limit_denominator(8)
    factor = nearest if whole else 1 / nearest if nearest else Fraction(0)
    number = abs(nearest)
    if not factor or factor == 1 or number > limit or abs(float(factor) / ratio - 1) > 0.02:
        return
    names = [name for name, size in sizes.items() if size == number]
    who = f": {', '.join(names)}" if names else ""
    meaning = f"It is the right result times {factor}{who}."
    yield f"factor {factor}", meaning, want * float(factor), None


def _constant(got: np.ndarray, want: np.ndarray) -> Iterator[Candidate]:
    flat = got.ravel()
    right = np.real(want[np.isfinite(want)])
    if got.size < 2 or not right.size or np.ptp(right) == 0:
        return
    same = flat == flat[0] if flat[0] == flat[0] else flat != flat
    if same.all() and np.isfinite(flat[0]):
        value = flat[0].item()
        text = "all zero" if value == 0 else f"constant {value:g}"
        yield text, "Every element is the same.", np.full_like(want, value), None


def _shifted(want: np.ndarray, axes: list[int]) -> Iterator[Candidate]:
    """By one along up to three axes; what comes in at the edge is left out."""
    if len(axes) > _SHIFTED:
        return
    for steps in itertools.product((-1, 0, 1), repeat=len(axes)):
        along = [(axis, step) for axis, step in zip(axes, steps, strict=True) if step]
        if not along or len(along) > 3 or any(want.shape[axis] < 3 for axis, _ in along):
            continue
        where = np.ones(want.shape, bool)
        for axis, step in along:
            edge = [slice(None)] * want.ndim
            edge[axis] = slice(0, 1) if step > 0 else slice(-1, None)
            where[tuple(edge)] = False
        shift = np.roll(want, [step for _, step in along], [axis for axis, _ in along])
        text = ", ".join(f"{step:+d} along axis {axis}" for axis, step in along)
        meaning = "Its window begins elsewhere, as with another padding."
        yield f"output shifted {text}", meaning, shift, where


def _permuted(got: np.ndarray, want: np.ndarray, axes: list[int]) -> Iterator[Candidate]:
    """Slices along an axis, or all elements, in another order."""
    for axis in axes:
        size = want.shape[axis]
        if size > _SLICES or not (np.isfinite(got).all() and np.isfinite(want).all()):
            continue
        ours = np.moveaxis(got, axis, 0).reshape(size, -1)
        theirs = np.moveaxis(want, axis, 0).reshape(size, -1)
        apart = np.array([np.linalg.norm(theirs - row, axis=1) for row in ours])
        nearest = apart.argmin(axis=1)
        if sorted(nearest) == list(range(size)) and (nearest != np.arange(size)).any():
            text = f"slices along axis {axis} in another order"
            if size <= 16:
                text += f": {nearest.tolist()}"
            yield text, "It is a permutation of the right result.", want.take(nearest, axis), None
        elif len(set(nearest.tolist())) < size:
            text = f"slices along axis {axis} repeated"
            if size <= 16:
                text += f": {nearest.tolist()}"
            meaning = "Some slices of the right result stand where others should."
            yield text, meaning, want.take(nearest, axis), None
    if want.dtype.kind == "f" and want.size > 1 and np.isfinite(got).all():
        arranged = np.empty(want.size)
        arranged[np.argsort(got, axis=None, kind="stable")] = np.sort(want, axis=None)
        if want.size > 16:
            text = "elements in another order"
            yield text, "It has the right elements elsewhere.", arranged.reshape(want.shape), None


def blocks(got: np.ndarray, want: np.ndarray, devices: int) -> Iterator[Candidate]:
    """Blocks along an axis, as shards and replicas are, that are zero, or sums of all.

    Args:
        got: the output, wide.
        want: the right result, wide.
        devices: how many the program runs on.
    """
    if got.shape != want.shape or not want.size:
        return
    for axis, size in enumerate(want.shape):
        others = tuple(i for i in range(want.ndim) if i != axis)
        empty = (got == 0).all(axis=others)
        full = (want != 0).any(axis=others)
        lost = empty & full
        if size > 1 and lost.any() and not empty.all():
            where = ~np.broadcast_to(np.expand_dims(empty, others), want.shape)
            text = f"{_blocks(lost, devices)} along axis {axis} zero"
            meaning = "They are exactly zero, the others are right."
            yield text, meaning, np.where(where, want, 0.0), None
        for count in sorted({devices, *_divisors(size)} - {1}):
            if size % count == 0:
                yield from _summed(got, want, axis, count)


def _divisors(size: int) -> list[int]:
    return [n for n in range(2, min(size, 64) + 1) if size % n == 0]


def _summed(got: np.ndarray, want: np.ndarray, axis: int, count: int) -> Iterator[Candidate]:
    """Each block the sum of all, or the right sum spread over the blocks."""

    def split(x: np.ndarray) -> np.ndarray:
        return np.stack(np.split(x, count, axis))

    total = np.concatenate([split(want).sum(axis=0)] * count, axis)
    text = f"each of {count} blocks along axis {axis} is the sum of all"
    yield text, "It is summed over the blocks once too often.", total, None
    rights = split(want)
    if not (np.isfinite(rights).all() and np.isfinite(got).all()):
        return
    if np.abs(rights - rights[0]).max() <= 1e-6 * np.abs(rights).max():
        sums = split(got).sum(axis=0)
        lacking = np.concatenate([sums] * count, axis)
        if np.linalg.norm(lacking - want) <= _NEAR * np.linalg.norm(want):
            text = f"{count} blocks along axis {axis} still to be summed"
            meaning = "Each block is one term of the right result."
            yield text, meaning, got - (lacking - want), None


def _blocks(lost: np.ndarray, devices: int) -> str:
    """Which slices are lost, in the largest blocks that are lost whole."""
    size = len(lost)
    counts = [n for n in (devices, *_divisors(size)) if n > 1 and size % n == 0]
    for count in counts:
        whole = lost.reshape(count, -1)
        if (whole.all(axis=1) | ~whole.any(axis=1)).all():
            numbers = np.flatnonzero(whole.all(axis=1))
            return f"blocks {_ranges(numbers)} of {count}"
    return f"slices {_ranges(np.flatnonzero(lost))} of {size}"


def _ranges(numbers: np.ndarray) -> str:
    """Whole numbers, consecutive ones as a range: "1-3, 6"."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def rows(
    got: np.ndarray, want: np.ndarray, arrays: Arrays, program: ProgramSpec
) -> Iterator[Candidate]:
    """Elements, or lines along the last axis, that alone are wrong; whether an operand masks them.

    Args:
        got: the output, wide.
        want: the right result, wide.
        arrays: the operands.
        program: whose they are.
    """
    if got.shape != want.shape or not want.size:
        return
    lost = np.isnan(got) & ~np.isnan(want)
    if lost.any():
        text = f"{int(lost.sum())} of {lost.size} elements NaN"
        yield text, "The others are right." if not lost.all() else "None is right.", want, ~lost
    if want.ndim < 2:
        return
    with np.errstate(all="ignore"):
        error = np.linalg.norm(np.where(np.isfinite(want), got - want, 0.0), axis=-1)
        size = np.linalg.norm(np.where(np.isfinite(want), want, 0.0), axis=-1)
        unlike = (np.isfinite(got) != np.isfinite(want)).any(axis=-1)
        wrong = unlike | ~(error <= _NEAR * np.maximum(size, size.max() * 1e-6))
    if not wrong.any() or wrong.all():
        return
    where = np.broadcast_to(~wrong[..., None], want.shape)
    bad = got[wrong]
    if np.isnan(bad).all():
        what = "NaN"
    elif (bad == 0).all():
        what = "zero"
    elif (bad == bad[..., :1]).all():
        what = "uniform"
    else:
        what = "wrong"
    text = f"{int(wrong.sum())} of {wrong.size} rows {what}"
    masking = [
        operand.name
        for operand, x in zip(program.inputs(), arrays, strict=True)
        if _masks(x, wrong)
    ]
    meaning = "Only these rows are wrong, the others are right."
    if masking:
        text += f", all masked by {masking[0]}"
        yield text, meaning, np.where(where, want, got), None
    elif what != "wrong" or wrong.mean() <= 0.5:
        yield text, meaning, want, where


def _masks(x: np.ndarray, wrong: np.ndarray) -> bool:
    """Whether an operand is false, or very negative, all along exactly the wrong rows."""
    if x.ndim < 1:
        return False
    if x.dtype.kind == "b":
        masked = ~x.any(axis=-1)
    elif x.dtype.kind in "iu":
        masked = (x == 0).all(axis=-1)
    elif x.dtype.kind == "c":
        return False
    else:
        with np.errstate(invalid="ignore"):
            masked = (x.astype(np.float64) <= -1e4).all(axis=-1)
    try:
        return bool((np.broadcast_to(masked, wrong.shape) == wrong).all())
    except ValueError:
        return False
