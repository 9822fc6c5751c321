"""How an output stands under each arithmetic model: inside its interval, and how tight that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from parity.compare.elementwise import Mask
from parity.compare.standing import FEWEST, FLIPS, contains
from parity.compare.ulp import as_float64, dtype_of, part_of, parts, ulp
from parity.reference.models import MODELS, model_named
from parity.worker.protocol import Enclosure, Latitude, References

FACTOR = 3.0
"""As in the aggregate test of `strict`: times the farthest honest order of summation."""


@dataclass(frozen=True)
class ModelStanding:
    """One output under one arithmetic model, or a variant of it.

    Attributes:
        model: its name in `reference.models.MODELS`, a set of licences, or "strict".
        variant: which of its variants, "" where it has one only.
        outside: elements outside its interval.
        total: elements that it speaks of.
        apart: the rms distance from its point over the largest that honest evaluations of it show;
            None where no sum has an order to choose, or too few elements.
        openness: how many bits of each element the model leaves open, on average: log2 of 1 and
            the width of its interval, or of what honest evaluations show if that is less, in ulps.
            A point leaves 0.
        distance: the rms distance from its point; 0 where that cannot be measured.
        vacuous: whether it says nothing: half of the intervals do not even tell a sign, and all
            together were not asked; or what `strict` rules out may be anything.
    """

    model: str
    variant: str
    outside: int
    total: int
    apart: float | None
    openness: float
    vacuous: bool
    distance: float = 0.0

    @property
    def name(self) -> str:
        """The model with its variant: "double-rounding (float16)"."""
        return f"{self.model} ({self.variant})" if self.variant else self.model

    @property
    def holds(self) -> bool:
        """Whether every element is inside, and all of them together where that can be asked."""
        return not self.outside and not (self.apart is not None and self.apart > 1)

    @property
    def refutes(self) -> str:
        """What speaks against it, in words; "" if nothing does."""
        if self.outside:
            return f"{self.outside} of {self.total} elements outside"
        if not self.holds:
            return f"rms distance {self.apart:.3g} times what honest orders reach"
        return ""


def order(model: str) -> int:
    """The place of a model in the order of simplicity: licences first, then as in `MODELS`."""
    names = [entry.name for entry in MODELS]
    return names.index(model) if model in names else -1


def standings(got: np.ndarray, output: str, references: References) -> tuple[ModelStanding, ...]:
    """An output under `strict`, every set of licences and every model that was evaluated.

    Models that say of every element what `strict` says are left out: the program has nothing for
    them, or not with these operands. So are variants that say what another one of theirs does.

    Args:
        got: the output of a path, of the declared shape and dtype.
        output: its name.
        references: of its case, with models.
    """
    strict, usual = references.strict[output], _left_out(got, output, references, "")
    declared = references.latitudes.get("strict", {}).get(output)
    found = [_standing("strict", "", got, strict, usual, declared)]
    refuted = ~(contains(strict, got) | usual)
    seen: dict[str, list[Enclosure]] = {}
    for name, enclosure, latitude in _models(output, references):
        if _same(enclosure, strict) and name not in references.open:
            continue
        model, variant = split(name)
        others = seen.setdefault(model, [])
        if any(_same(enclosure, other) for other in others):
            continue
        others.append(enclosure)
        left_out = _left_out(got, output, references, name)
        one = _standing(model, variant, got, enclosure, left_out, latitude)
        if (_unbounded(enclosure) & refuted).any():
            one = replace(one, vacuous=True)
        found.append(one)
    return tuple(found)


def split(name: str) -> tuple[str, str]:
    """A policy's name as its model and variant."""
    try:
        model = model_named(name).name
    except KeyError:
        return name, ""
    return model, name.removeprefix(model).strip(" ()")


def _models(
    output: str, references: References
) -> Iterator[tuple[str, Enclosure, Latitude | None]]:
    for licences, outputs in references.licensed.items():
        name = "fma-contraction" if licences == "fma" else licences
        yield name, outputs[output], references.latitudes.get("strict", {}).get(output)
    for name, outputs in references.models.items():
        if name == "fma-contraction" and "fma" in references.licensed:
            continue
        yield name, outputs[output], references.latitudes.get(name, {}).get(output)


def enclosure_of(references: References, output: str, name: str) -> Enclosure:
    """A model's, that of the licences it stands for, or of `strict` where it says the same.

    Args:
        references: of a program.
        output: of which output.
        name: of the model with its variant.
    """
    if name in references.models:
        return references.models[name][output]
    licensed = "fma" if name == "fma-contraction" else name
    return references.licensed.get(licensed, references.strict)[output]


def includes(wider: Enclosure, narrower: Enclosure) -> bool:
    """Whether every value that one enclosure allows is inside another one."""
    ends = (narrower.point, narrower.lo, narrower.hi)
    return all(bool(contains(wider, end).all()) for end in ends)


def _left_out(got: np.ndarray, output: str, references: References, model: str) -> Mask:
    """Elements that an interval does not speak of: unspecified, or undecided under its model."""
    mask = np.zeros(got.shape, bool)
    marked = [references.unspecified.get(output)]
    if model in references.models:
        marked.append(references.open.get(model, {}).get(output))
    else:
        marked.append(references.undecided.get(output))
    for one in marked:
        if one is not None:
            mask |= one
    return mask[..., None] if dtype_of(got.dtype).kind == "complex" else mask


def _standing(
    model: str,
    variant: str,
    got: np.ndarray,
    enclosure: Enclosure,
    left_out: Mask,
    latitude: Latitude | None,
) -> ModelStanding:
    outside = ~(contains(enclosure, got) | left_out)
    apart = None if latitude is None else _apart(got, enclosure, left_out, latitude)
    limit = np.inf if latitude is None or apart is None else 2 * _limit(latitude)
    width, wide = _openness(enclosure, left_out, limit)
    return ModelStanding(
        model,
        variant,
        int(np.count_nonzero(outside)),
        int(outside.size - np.count_nonzero(np.broadcast_to(left_out, outside.shape))),
        apart,
        width,
        wide,
        _distance(got, enclosure, left_out),
    )


def _distance(got: np.ndarray, enclosure: Enclosure, left_out: Mask) -> float:
    if not dtype_of(got.dtype).is_inexact:
        return 0.0
    value, point = as_float64(parts(got)), as_float64(parts(enclosure.point))
    kept = np.isfinite(value) & np.isfinite(point) & ~np.broadcast_to(left_out, value.shape)
    if not kept.any():
        return 0.0
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.mean((value[kept] - point[kept]) ** 2)))


def _same(one: Enclosure, other: Enclosure) -> bool:
    pairs = ((one.point, other.point), (one.lo, other.lo), (one.hi, other.hi))
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


def _unbounded(enclosure: Enclosure) -> Mask:
    """Which elements may be anything."""
    if not dtype_of(enclosure.point.dtype).is_inexact:
        return np.zeros(enclosure.point.shape, bool)
    return np.isneginf(as_float64(parts(enclosure.lo))) & np.isposinf(
        as_float64(parts(enclosure.hi))
    )


def _limit(latitude: Latitude) -> float:
    return FACTOR * latitude.rms + latitude.reach


def _openness(enclosure: Enclosure, left_out: Mask, limit: float) -> tuple[float, bool]:
    """Mean bits left open, and whether half of the widths leave the sign open.

    Args:
        enclosure: of the model.
        left_out: elements of which it does not speak.
        limit: what the widths are in effect at most.
    """
    point = parts(enclosure.point)
    element = part_of(dtype_of(enclosure.point.dtype))
    left_out = np.broadcast_to(left_out, point.shape)
    if not point.size:
        return 0.0, False
    if not element.is_inexact:
        return float(np.mean(np.where(left_out, element.bits, 0))), bool(left_out.mean() > 0.5)
    assert element.format is not None
    low, high = (as_float64(parts(end)) for end in (enclosure.lo, enclosure.hi))
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(low), np.abs(high))
        width = np.where(low == high, 0.0, np.minimum(high - low, limit))
        left = np.log2(1 + width / ulp(np.where(np.isfinite(size), size, 1.0), element))
        wide = width > np.maximum(size, 64 * 2.0**element.format.emin)
    unknown = left_out | np.isnan(low) | np.isnan(high)
    left = np.where(unknown | ~(left < element.bits), element.bits, left)
    return float(np.mean(left)), bool(np.mean(wide | left_out) > 0.5)


def _apart(
    got: np.ndarray, enclosure: Enclosure, left_out: Mask, latitude: Latitude
) -> float | None:
    """The aggregate test: rms distance over the farthest honest evaluation and the interval's own.

    Where honest orders move few elements the largest distances are chance, as for `strict`.
    """
    if not dtype_of(got.dtype).is_inexact:
        return None
    value, point = as_float64(parts(got)), as_float64(parts(enclosure.point))
    kept = np.isfinite(value) & np.isfinite(point) & ~np.broadcast_to(left_out, value.shape)
    if len(np.unique(point[kept])) < FEWEST:
        return None
    distance = np.sort(np.abs(value[kept] - point[kept]))
    if latitude.moved * distance.size < FEWEST:
        distance = distance[: distance.size - FLIPS]
    with np.errstate(over="ignore"):  # infinitely far is far
        rms = float(np.sqrt(np.mean(distance**2)))
    limit = _limit(latitude)
    if limit == 0:
        return float("inf") if rms > 0 else 0.0
    return rms / limit
