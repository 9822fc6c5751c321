"""Where an output stands: inside what was declared, within what the declared dtypes allow, or not.

`faithful` is the order interval of `strict` with the aggregate test, `accurate` the accuracy bound
of `f64`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parity.compare.elementwise import Mask
from parity.compare.quantity import metric
from parity.compare.ulp import as_float64, dtype_of, parts
from parity.worker.protocol import Enclosure, References, Spread

FEWEST = 16
"""Distinct values of an output below which an rms says nothing about an order of summation."""

_FACTOR = 3.0
FLIPS = 4
"""Elements that may move by chance although no honest order tried moved any."""

_AS_NEAR = 4.0


@dataclass(frozen=True)
class Standing:
    """What the references say of one output.

    Attributes:
        faithful: inside the order interval in every decided element, and the aggregate test.
        accurate: within the accuracy bound in every element whose bound is not vacuous.
        licences: the smallest set under which it is faithful or, if it is not, the most elements
            are inside; "" for none ("fma+reciprocal").
        model: the named model that holds the output where `strict` does not, or "".
        aggregate: what the aggregate test found, "" where it passed or does not apply.
        share: the largest share of the accuracy bound that is used (0 to 1 if accurate).
        vacuous: share of the elements whose accuracy bound exceeds the rms of the f64 output.
        undecided: elements that another correct evaluation may decide otherwise.
        inside: per element, whether it is inside the interval, those left out included.
    """

    faithful: bool
    accurate: bool
    licences: str
    model: str
    aggregate: str
    share: float | None
    vacuous: float
    undecided: int
    inside: Mask


def standing(got: np.ndarray, output: str, references: References) -> Standing | None:
    """Where an output stands; None where a reference is missing or has another shape or dtype.

    Args:
        got: the output of a path.
        output: its name.
        references: of its case.
    """
    strict, ideal = references.strict.get(output), references.f64.get(output)
    if strict is None or ideal is None:
        return None
    if got.shape != strict.point.shape or got.dtype != strict.point.dtype:
        return None
    left_out = _left_out(got, output, references)
    undecided = references.undecided.get(output)
    licences, inside, aggregate = _smallest(got, output, references, left_out)
    within, share, vacuous = _accuracy(got, ideal, strict, left_out)
    within |= inside & ~np.isfinite(_real(strict.point))
    faithful = bool(inside.all()) and not aggregate
    return Standing(
        faithful=faithful,
        accurate=bool(within.all()),
        licences=licences,
        model="" if faithful else _model(got, output, references, left_out),
        aggregate=aggregate,
        share=share,
        vacuous=vacuous,
        undecided=0 if undecided is None else int(np.count_nonzero(undecided)),
        inside=_by_element(inside, got),
    )


def _real(array: np.ndarray) -> np.ndarray:
    """Real parts as float64, complex elements as a last axis of two; integers and bool as is."""
    real = parts(array)
    return as_float64(real) if dtype_of(array.dtype).is_inexact else real


def _left_out(got: np.ndarray, output: str, references: References) -> Mask:
    """Elements no interval speaks of: unspecified or undecided ones."""
    mask = np.zeros(got.shape, bool)
    for marked in (references.unspecified.get(output), references.undecided.get(output)):
        if marked is not None:
            mask |= marked
    return mask[..., None] if dtype_of(got.dtype).kind == "complex" else mask


def _by_element(inside: Mask, got: np.ndarray) -> Mask:
    return np.asarray(inside.all(axis=-1)) if inside.ndim > got.ndim else inside


def contains(enclosure: Enclosure, got: np.ndarray) -> Mask:
    """Which elements (parts of complex ones) lie inside an interval of the output's own dtype.

    NaN lies inside where the point is NaN; a zero of the other sign only where the interval holds
    it by its ends: -0 is below +0. An end is NaN where a dtype without infinity overflows there:
    such an end excludes nothing.
    """
    if not dtype_of(got.dtype).is_inexact:
        return np.asarray(got == enclosure.point)
    value, point = _real(got), _real(enclosure.point)
    low, high = _real(enclosure.lo), _real(enclosure.hi)
    unbounded = np.isnan(low) | np.isnan(high)
    only_nan = np.isnan(point) & np.isnan(low) & np.isnan(high)
    inside = ~((value < low) | (value > high) | np.isnan(value) | only_nan)
    zero = value == 0
    if zero.any():
        sign = np.signbit(value)
        inside &= ~(zero & sign & (low == 0) & ~np.signbit(low))
        inside &= ~(zero & ~sign & (high == 0) & np.signbit(high))
    return np.asarray(inside | (np.isnan(value) & (unbounded | np.isnan(point))))


def _smallest(
    got: np.ndarray, output: str, references: References, left_out: Mask
) -> tuple[str, Mask, str]:
    """The fewest licences under which an output is faithful, what is inside, the aggregate test.

    Where there are none, those under which the most elements are inside.
    """
    strict = references.strict[output]
    sets = {"": strict} | {name: of[output] for name, of in references.licensed.items()}
    best: tuple[str, Mask, str] | None = None
    for licences, granted in sets.items():
        inside = contains(granted, got) | left_out
        found = ""
        if inside.all():
            found = _aggregate(got, references, output, granted, left_out)
            if not found:
                return licences, inside, ""
        if best is None or np.count_nonzero(inside) > np.count_nonzero(best[1]):
            best = licences, inside, found
    assert best is not None
    return best


def _spreads(output: str, references: References) -> list[Spread]:
    """How far honest evaluations are from `strict`; none where no sum has an order to choose."""
    orders = references.honest.get(output, {}).values()
    jolted = [references.jolted[output]] if output in references.jolted else []
    return [Spread(*one) for one in (*orders, *jolted)]


def _reach(strict: Enclosure, granted: Enclosure) -> np.ndarray:
    """How much farther each end is than without licences; 0 where that is not finite."""
    if granted is strict:
        return np.zeros(1)
    with np.errstate(all="ignore"):
        above = _real(granted.hi) - _real(strict.hi)
        below = _real(strict.lo) - _real(granted.lo)
    farther = np.maximum(above, below)
    return np.where(np.isfinite(farther), farther, 0.0)


def _model(got: np.ndarray, output: str, references: References, left_out: Mask) -> str:
    """The first model that holds an output and whose point is as near as that of any other.

    Through many layers the intervals of all models grow until they hold everything; their points
    still tell. One that is up to `_AS_NEAR` times as far as the nearest counts as near.
    """
    holding = {
        name: _distance(got, of[output], left_out)
        for name, of in references.models.items()
        if (contains(of[output], got) | left_out).all()
    }
    least = min(holding.values(), default=0.0)
    return next((name for name, far in holding.items() if far <= _AS_NEAR * least), "")


def _distance(got: np.ndarray, enclosure: Enclosure, left_out: Mask) -> float:
    """The rms distance from a point, over the elements that are finite and spoken of."""
    if not dtype_of(got.dtype).is_inexact:
        return 0.0
    value, point = _real(got), _real(enclosure.point)
    kept = np.isfinite(value) & np.isfinite(point) & ~np.broadcast_to(left_out, value.shape)
    return _rms(value[kept] - point[kept])


def _accuracy(
    got: np.ndarray, ideal: Enclosure, strict: Enclosure, left_out: Mask
) -> tuple[Mask, float | None, float]:
    """Which elements keep their bound (unknown ones count as kept), the share used, the vacuous."""
    if not dtype_of(got.dtype).is_inexact:
        # Wrapping is what an integer dtype declares.
        right = (got == strict.point) | _equal_integers(got, ideal.point)
        return np.asarray(right | left_out), None, 0.0
    value, want = _real(got), _real(ideal.point)
    low, high = _real(ideal.lo), _real(ideal.hi)
    finite = np.isfinite(want)
    inside = (low <= value) & (value <= high)
    with np.errstate(all="ignore"):
        above, below = high - want, want - low
        used = np.abs(value - want) / np.where(value >= want, above, below)
        typical = _rms(want[finite])
        vacuous = finite & (np.maximum(above, below) > typical) & (typical > 0)
    # An infinity that the bound allows uses no share of it: both are infinite.
    used = np.where((value == want) | (np.isinf(value) & inside), 0.0, used)
    used = used[finite & ~np.broadcast_to(left_out, want.shape)]
    share = float(np.max(used)) if used.size else None
    kept = inside | left_out | ~finite | vacuous
    return kept, share, float(np.mean(vacuous)) if vacuous.size else 0.0


def _rms(values: np.ndarray) -> float:
    """The root of the mean square, safe from overflow and underflow; 0 for no values."""
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * float(np.sqrt(np.mean((values / largest) ** 2)))


def _equal_integers(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    return np.asarray(got.astype(object) == want.astype(object), dtype=bool)


def _aggregate(
    got: np.ndarray, references: References, output: str, granted: Enclosure, left_out: Mask
) -> str:
    """Whether the output as a whole is farther from `strict` than any honest order of summation.

    Its rms distance may be 3 times the largest of theirs, and so may its mean signed distance. The
    mean of errors without a bias is not 0 either: 4 of its standard errors are allowed, from
    theirs or, where they are larger and their rms has just passed, from its own errors.

    Where most partial sums are exact, the few orders tried may all round nothing, or nothing in the
    largest elements, by luck. So they include a model that has one rounding error in each sum.

    Where they move few elements (sums that are mostly exact, or rounded so far that only a tie that
    falls the other way shows), which elements move and by how much is chance: each order is a
    handful of rare events, and some orders without any only say that fewer than one is to be
    expected. There the `FLIPS` largest distances are not held against the output; where the
    honest orders move more, every distance counts. Elements that are copies of each other, equal
    in `f64`, move together: they count as one.

    What the interval allows beside the order comes on top, since no honest order shows it: how far
    results lead that are all off by what their implementation may add (a bound, hence once, not
    three times), and what the licences granted widen the interval by. The rms of a sum of errors is
    at most the sum of theirs.
    """
    strict, spreads = references.strict[output], _spreads(output, references)
    value, point = _real(got), _real(strict.point)
    kept = np.isfinite(value) & np.isfinite(point) & ~np.broadcast_to(left_out, value.shape)
    if not spreads or len(np.unique(point[kept])) < FEWEST:
        return ""
    independent = _independent(_real(references.f64[output].point)[kept])
    if independent < FEWEST:
        return ""
    theirs, bias = max(one.rms for one in spreads), max(abs(one.mean) for one in spreads)
    distance = value[kept] - point[kept]
    reach, stated = _reach(strict, granted), _stated(output, references)
    limit = _FACTOR * theirs + _rms(reach)
    if theirs == 0 or max(one.moved for one in spreads) * independent < FEWEST:
        distance, stated = _but_for_chance(distance, stated, limit, independent)
    rms, mean = _rms(distance), abs(float(np.mean(distance)))
    if rms > limit + stated.rms:
        return _too_far("rms", rms, theirs, stated.rms)
    likely = 4 * max(theirs, rms) / np.sqrt(independent)
    if mean > max(_FACTOR * bias, likely) + stated.mean + float(np.mean(reach)):
        return _too_far("mean signed", mean, bias, stated.mean)
    return ""


def _stated(output: str, references: References) -> Spread:
    """The most that errors of implementations lead from `strict`, in size; 0 without any."""
    found = references.erring.get(output, {}).values()
    return Spread(
        max((one.rms for one in found), default=0.0),
        max((abs(one.mean) for one in found), default=0.0),
        max((one.moved for one in found), default=0.0),
    )


def _but_for_chance(
    distance: np.ndarray, stated: Spread, limit: float, independent: int
) -> tuple[np.ndarray, Spread]:
    """The distances but for the `FLIPS` largest, with what errors as stated may add to those.

    Where stated errors, too, only make ties fall the other way, the largest of these make up their
    rms: it is set against every distance or, where it does not explain these, against none.
    """
    flips = int(np.ceil(FLIPS * distance.size / independent))
    if stated.moved * distance.size < independent / 4:
        if stated.rms and _rms(distance) <= limit + stated.rms:
            return distance, stated
        stated = Spread(0.0, 0.0, 0.0)
    return _without_largest(distance, flips), stated


def _too_far(what: str, distance: float, orders: float, stated: float) -> str:
    functions = f", functions as stated {metric(stated)}" if stated else ""
    return (
        f"{what} distance from strict {metric(distance)}, "
        f"honest orders at most {metric(orders)}{functions}"
    )


def _independent(ideal: np.ndarray) -> int:
    """How many elements are no copies: a BLAS product gives copies other last bits."""
    fraction, exponent = np.frexp(ideal)
    return len(np.unique(np.ldexp(np.round(np.ldexp(fraction, 40)), exponent - 40)))


def _without_largest(distance: np.ndarray, count: int) -> np.ndarray:
    """The distances but for the `count` that are largest in size."""
    return distance[np.argsort(np.abs(distance), kind="stable")[: distance.size - count]]
