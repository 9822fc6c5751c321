"""What a block of elements adds to the metrics; blocks combine in any grouping.

Everything but the sums is exact, and so the same however an output is cut into blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from parity.compare.elementwise import Errors, Floats, Mask
from parity.dtypes import DType

WORST = 8
"""So many worst elements are kept."""

CLASSES = ("nan", "posinf", "neginf", "negzero", "subnormal")
"""The kinds of special values that are counted on both sides."""

LOWEST_BUCKET, HIGHEST_BUCKET = -8, 24
BUCKETS = HIGHEST_BUCKET - LOWEST_BUCKET + 3
"""Length of the log2-ulp histogram. Bucket 0: no error; 1: below 2^-8 ulp; then one for each
[2^e, 2^(e+1)), -8 <= e < 24; the last: 2^24 and more, infinity and NaN."""

SAFE_EXPONENT = 400
"""Squares of magnitudes within 2^±400 neither overflow nor lose an error of one ulp."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over the elements that are finite in `want`; squares are in units of 2^(2·exponent)."""

    absolute: float
    ulp: float
    signed_ulp: float
    error_squared: float
    want_squared: float
    got_squared: float
    product: float
    exponent: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts, maxima and sums of a block.

    Attributes:
        numeric: elements that are finite in `want`: those that the maxima and sums are over.
        differing: elements that differ.
        pattern: elements of which only one side is NaN, +inf or -inf.
        unmatched: those of them where it is `want` that is not finite: no tolerance passes them.
        got: counts of `CLASSES` in `got`.
        want: counts of `CLASSES` in `want`.
        max_abs: largest absolute error; an exact int for integers.
        max_rel: largest relative error.
        min_rtol: smallest rtol with which every |error| <= rtol * |want|, to within one ulp.
        max_ulp: largest ulp error.
        sums: see `Sums`.
        histogram: see `BUCKETS`.
        worst: (-ulp error, flat index) of the worst elements that differ; -inf where either side
            is not finite.
    """

    numeric: int
    differing: int
    pattern: int
    unmatched: int
    got: tuple[int, ...]
    want: tuple[int, ...]
    max_abs: float
    max_rel: float
    min_rtol: float
    max_ulp: float
    sums: Sums
    histogram: tuple[int, ...]
    worst: tuple[tuple[float, int], ...]


def tally(errors: Errors, element: DType, *, offset: int = 0) -> Tally:
    """Counts, maxima and sums of a block.

    Args:
        errors: of the block, not empty.
        element: the dtype of the output: what is subnormal in it counts as subnormal in a wider
            reference as well.
        offset: flat index of the block's first element.
    """
    got = _special(errors.got, element, errors.finite is None)
    want = _special(errors.want, element, errors.finite is None)
    pattern = unmatched = 0
    key = -errors.ulp
    numeric = errors
    if errors.finite is not None:
        pattern, unmatched = _pattern(errors, errors.finite)
        key[~(np.isfinite(errors.ulp) & errors.finite)] = -np.inf
        numeric = errors.numeric()
    differing = np.flatnonzero(errors.differing)
    return Tally(
        numeric=len(numeric.absolute),
        differing=len(differing),
        pattern=pattern,
        unmatched=unmatched,
        got=got,
        want=want,
        **_maxima(numeric),
        sums=_sums(numeric),
        histogram=_histogram(numeric.ulp),
        worst=_worst(key, differing, offset),
    )


def _count(mask: npt.ArrayLike) -> int:
    return int(np.count_nonzero(mask))


def _special(values: Floats, element: DType, finite: bool) -> tuple[int, ...]:
    nan = posinf = neginf = negzero = subnormal = 0
    if not finite:
        nan = _count(np.isnan(values))
        posinf = _count(values == np.inf)
        neginf = _count(values == -np.inf)
    zeros = values.size - _count(values)
    if zeros:
        negzero = _count(np.signbit(values) & (values == 0))
    if element.format is not None:
        subnormal = _count(np.abs(values) < 2.0**element.format.emin) - zeros
    return nan, posinf, neginf, negzero, subnormal


def _pattern(errors: Errors, finite: Mask) -> tuple[int, int]:
    """How many elements differ in pattern, and of how many of these `want` is not finite."""
    agree = np.isfinite(errors.got) & np.isfinite(errors.want)
    agree |= errors.got == errors.want
    agree |= np.isnan(errors.got) & np.isnan(errors.want)
    differ = ~agree if agree.ndim == 1 else ~agree.all(axis=1)
    return _count(differ), _count(differ & ~finite)


def _maxima(errors: Errors) -> dict[str, float]:
    absolute = errors.absolute
    if not len(absolute):
        return {"max_abs": 0.0, "max_rel": 0.0, "min_rtol": 0.0, "max_ulp": 0.0}
    want = np.abs(errors.want)
    if want.ndim == 2:
        want = np.hypot(want[:, 0], want[:, 1])
    relative = np.zeros_like(absolute)
    np.divide(absolute, want, out=relative, where=absolute != 0)
    max_rel = float(relative.max())
    short = (relative == max_rel) & (max_rel * want < absolute)
    return {
        "max_abs": float(absolute.max()) if errors.exact is None else errors.exact,
        "max_rel": max_rel,
        "min_rtol": math.nextafter(max_rel, math.inf) if short.any() else max_rel,
        "max_ulp": float(errors.ulp.max()),
    }


def _sums(errors: Errors) -> Sums:
    if not len(errors.absolute):
        return Sums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    e, w, g = errors.error.ravel(), errors.want.ravel(), errors.got.ravel()
    extremes = g.max(), g.min(), w.max(), w.min()
    exponent = scaling_exponent(max(abs(float(v)) for v in extremes))
    if exponent:
        e, w, g = (np.ldexp(a, -exponent) for a in (e, w, g))
    return Sums(
        float(np.add.reduce(errors.absolute)),
        float(np.add.reduce(errors.ulp)),
        float(np.add.reduce(errors.signed_ulp, axis=None)),
        float(np.add.reduce(e * e)),
        float(np.add.reduce(w * w)),
        float(np.add.reduce(g * g)),
        float(np.add.reduce(g * w)),
        exponent,
    )


def scaling_exponent(largest: float) -> int:
    """The power of two to divide values by so that their squares are safe; mostly 0."""
    if not math.isfinite(largest) or largest == 0:
        return 0
    exponent = math.frexp(largest)[1]
    return max(exponent, -1000) if abs(exponent) > SAFE_EXPONENT else 0  # 2^1000 is finite


def _histogram(errors: Floats) -> tuple[int, ...]:
    exponent = (errors.view(np.int64) >> 52) & 0x7FF  # biased by 1023; of inf and NaN 2047
    bucket = np.minimum(np.maximum(exponent - (1021 + LOWEST_BUCKET), 1), BUCKETS - 1)
    bucket *= errors != 0
    return tuple(np.bincount(bucket, minlength=BUCKETS).tolist())


def _worst(
    key: Floats, differing: npt.NDArray[np.intp], offset: int
) -> tuple[tuple[float, int], ...]:
    key = key[differing]
    if len(key) > 8 * WORST:
        near = np.flatnonzero(key <= np.partition(key, WORST - 1)[WORST - 1])
        key, differing = key[near], differing[near]
    order = np.argsort(key, kind="stable")[:WORST]
    return tuple(zip(key[order].tolist(), (differing[order] + offset).tolist(), strict=True))


def combine(tallies: Sequence[Tally]) -> Tally:
    """The tally of several blocks as one."""
    if len(tallies) == 1:
        return tallies[0]

    def total(name: str) -> int:
        return sum(getattr(t, name) for t in tallies)

    return Tally(
        numeric=total("numeric"),
        differing=total("differing"),
        pattern=total("pattern"),
        unmatched=total("unmatched"),
        got=_columns([t.got for t in tallies]),
        want=_columns([t.want for t in tallies]),
        max_abs=_largest([t.max_abs for t in tallies]),
        max_rel=_largest([t.max_rel for t in tallies]),
        min_rtol=_largest([t.min_rtol for t in tallies]),
        max_ulp=_largest([t.max_ulp for t in tallies]),
        sums=_combine_sums([t.sums for t in tallies]),
        histogram=_columns([t.histogram for t in tallies]),
        worst=tuple(sorted(w for t in tallies for w in t.worst)[:WORST]),
    )


def _columns(rows: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sum(column) for column in zip(*rows, strict=True))


def _largest(values: Sequence[float]) -> float:
    return math.nan if any(math.isnan(v) for v in values) else max(values)


def _combine_sums(sums: Sequence[Sums]) -> Sums:
    exponent = max((s.exponent for s in sums if s.want_squared or s.got_squared), default=0)

    def total(name: str) -> float:
        return _sum([getattr(s, name) for s in sums])

    def squares(name: str) -> float:
        return _sum([math.ldexp(getattr(s, name), 2 * (s.exponent - exponent)) for s in sums])

    return Sums(
        total("absolute"), total("ulp"), total("signed_ulp"),
        squares("error_squared"), squares("want_squared"), squares("got_squared"),
        squares("product"), exponent,
    )  # fmt: skip


def _sum(values: Sequence[float]) -> float:
    # fsum raises where infinities meet or the total overflows; plain addition gives NaN and inf
    return math.fsum(values) if all(abs(v) < 1e300 for v in values) else sum(values)
