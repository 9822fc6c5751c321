"""Operands that tell models apart which a case's own operands do not.

Candidates are made from the case's operands, so that they stay in the domain of its program; the
references say of each in how many elements the models exclude each other, and the path runs on
those only that tell something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parity.compare.standing import contains
from parity.compare.ulp import as_float64, dtype_of
from parity.explain.laboratory import Arrays, Laboratory, Spent
from parity.explain.standings import ModelStanding, enclosure_of, standings
from parity.program.spec import ProgramSpec
from parity.reference.models import NAMES
from parity.worker.protocol import References

_ENOUGH = 0.5
"""Share of the elements in which models exclude each other from which on no other is tried."""


@dataclass(frozen=True)
class Distinction:
    """What a path did on operands made to tell models apart.

    Attributes:
        how: how the operands were made, in words.
        inputs: these.
        separated: by rival, elements in which what the answer says lies outside its interval.
        outside: by model, with its variant, the elements in which the path is outside.
        refuted: the models that the path refuted there.
        total: elements of the output.
        decided: whether at least one model was refuted, and one was not.
    """

    how: str
    inputs: tuple[np.ndarray, ...]
    separated: Mapping[str, int]
    outside: Mapping[str, int]
    refuted: tuple[str, ...]
    total: int
    decided: bool


def distinguish(
    laboratory: Laboratory,
    program: ProgramSpec,
    arrays: Arrays,
    output: str,
    holding: Sequence[ModelStanding],
    best: ModelStanding,
) -> tuple[Distinction, ...]:
    """Run a path on operands that tell a model from those which explain the output as well.

    Where none does, it runs on further draws, on which the model has to hold again.

    Args:
        laboratory: of the path.
        program: what it computes.
        arrays: the operands on which the models agree.
        output: its name.
        holding: the models that explain it.
        best: the one of them that is the answer so far.

    Returns:
        One distinction for each set of operands that told something.
    """
    left = {one.name for one in holding if one.name != best.name}
    models = [name for name in NAMES if any(name == one.model for one in holding)]
    found: list[Distinction] = []
    tried: list[tuple[int, str, tuple[np.ndarray, ...], References, dict[str, int]]] = []
    for how, inputs in candidates(arrays):
        try:
            references = laboratory.references(program, inputs, models)
        except Spent:
            break
        if references.failure is not None or output not in references.strict:
            continue
        separated = {n: _separated(references, output, best.name, n) for n in sorted(left)}
        score = sum(1 for count in separated.values() if count)
        tried.append((score, how, inputs, references, separated))
        size = references.strict[output].point.size
        if all(count >= _ENOUGH * size for count in separated.values()):
            break
    for score, how, inputs, references, separated in sorted(tried, key=lambda t: -t[0]):
        if found and not any(separated[name] for name in left):
            continue
        try:
            outcome = laboratory.run(inputs)
        except Spent:
            break
        if outcome.failure is not None or output not in outcome.outputs:
            continue
        got = outcome.outputs[output]
        if got.shape != references.strict[output].point.shape:
            continue
        one = _judged(how, inputs, separated, got, output, references, holding)
        if one.decided or not score:
            found.append(one)
            left -= set(one.refuted)
        if not left or not score or best.name in one.refuted:
            break
    return tuple(found)


def _judged(
    how: str,
    inputs: tuple[np.ndarray, ...],
    separated: Mapping[str, int],
    got: np.ndarray,
    output: str,
    references: References,
    holding: Sequence[ModelStanding],
) -> Distinction:
    names = {one.name for one in holding}
    stands = standings(got, output, references)
    strict = stands[0]
    by_name = {s.name: s for s in stands}
    seen = {name: by_name.get(name, strict) for name in names}  # else it says what strict says
    refuted = tuple(sorted(name for name, one in seen.items() if not one.holds))
    return Distinction(
        how,
        inputs,
        separated,
        {name: one.outside for name, one in seen.items()},
        refuted,
        got.size,
        decided=0 < len(refuted) < len(seen),
    )


def _separated(references: References, output: str, one: str, other: str) -> int:
    """Elements in which what a model says lies outside the interval of another one."""
    a, b = (enclosure_of(references, output, name) for name in (one, other))
    return int(np.count_nonzero(~contains(b, a.point)))


def candidates(arrays: Arrays) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Operands made from others, with how they were made; seeded."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        yield (
            f"further draws of the operands' own values (seed {seed})",
            tuple(_resampled(x, rng) for x in arrays),
        )
    for index, x in enumerate(arrays):
        if not _floating(x) or x.ndim < 2 or not x.size:
            continue
        for axis in (0, x.ndim - 1):
            rng = np.random.default_rng(index)
            drawn = [_resampled(other, rng) for other in arrays]
            drawn[index] = _alone(drawn[index], axis, rng)
            how = f"operand {index} zero but for one element of each slice of axis {axis}"
            yield how, tuple(drawn)
    for name, change in _CHANGES.items():
        rng = np.random.default_rng(7)
        yield name, tuple(change(_resampled(x, rng), rng) for x in arrays)


def _resampled(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Elements of an array drawn anew from it; small arrays get other mantissas as well."""
    if not x.size:
        return x
    drawn = rng.choice(x.ravel(), x.shape)
    element = dtype_of(x.dtype)
    if element.kind == "float" and len(np.unique(as_float64(x))) > 2:
        return _cast(as_float64(drawn) * rng.uniform(0.75, 1.25, x.shape), x)
    return drawn


def _cast(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Values in an array's dtype; its own elements where they overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.asarray(values.astype(like.dtype))
    if not dtype_of(like.dtype).is_inexact:
        return found
    return np.where(np.isfinite(as_float64(found)), found, like)


def _floating(x: np.ndarray) -> bool:
    """Whether an operand holds numbers that may be changed: floats that are not all whole."""
    if dtype_of(x.dtype).kind != "float":
        return False
    wide = as_float64(x)
    return bool((wide != np.trunc(wide)).any())


def _midpoints(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Values just beside the midpoints of two bfloat16 or float16 numbers."""
    if not _floating(x):
        return x
    wide = as_float64(x)
    exponent = np.floor(np.log2(np.maximum(np.abs(wide), 2.0**-100)))
    kept = rng.choice([8, 11], x.shape)
    spacing = np.ldexp(1.0, (exponent - kept + 1).astype(int))
    middle = (np.floor(wide / spacing) + 0.5) * spacing
    return _cast(middle * (1 + rng.choice([-1, 0, 1], x.shape) * 2.0**-23), x)


def _alone(x: np.ndarray, axis: int, rng: np.random.Generator) -> np.ndarray:
    """One element left of each slice, the others zero: sums over the slice have one term."""
    lines = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    kept = np.zeros_like(lines)
    number = np.arange(len(lines))
    at = rng.integers(lines.shape[1], size=len(lines))
    kept[number, at] = lines[number, at]
    moved = np.moveaxis(x, axis, 0).shape
    return np.moveaxis(kept.reshape(moved), 0, axis)


def _scaled(power: int) -> Callable[[np.ndarray, np.random.Generator], np.ndarray]:
    def scaled(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if not _floating(x):
            return x
        return _cast(as_float64(x) * 2.0**power, x)

    return scaled


def _few_bits(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Nine significant bits: products and short sums are exact in float32, not in bfloat16."""
    element = dtype_of(x.dtype)
    if not _floating(x) or element.bits < 32:
        return x
    fraction, exponent = np.frexp(as_float64(x))
    return _cast(np.ldexp(np.round(fraction * 2**9) / 2**9, exponent), x)


def _large(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Integers over the whole range of their dtype, floats near the largest of their format."""
    element = dtype_of(x.dtype)
    if element.is_integer and x.size:
        low, high = element.integer_range
        if int(np.max(np.abs(x.astype(np.float64)))) > 8:  # smaller ones may be indices
            values = rng.integers(max(low, -(2**62)), min(high, 2**62), x.shape, endpoint=True)
            return _cast(values, x)
    if element.kind == "float" and element.bits <= 16 and element.format is not None:
        return _cast(as_float64(x) * np.sqrt(element.format.max_finite), x)
    return x


_CHANGES: Mapping[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "values beside midpoints of bfloat16 and float16": _midpoints,
    "nine significant bits": _few_bits,
    "the operands times 2^12": _scaled(12),
    "the operands times 2^-12": _scaled(-12),
    "the operands times 2^-64": _scaled(-64),
    "values over the whole range of the dtype": _large,
}
