"""The tally of a large floating output in one pass, compiled by Numba.

Imported only when there is such an output: Numba takes longer to import than most cases to run.
The kernel gives what `metrics.scan_blocks` gives, up to the order in which sums are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt

from parity.compare.percentile import BIN_SHIFT, BINS, BinnedPercentile
from parity.compare.tally import (
    BUCKETS,
    CLASSES,
    LOWEST_BUCKET,
    SAFE_EXPONENT,
    WORST,
    Sums,
    Tally,
    combine,
    scaling_exponent,
)
from parity.dtypes import DType

BLOCK = 2**16

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Where the kernel leaves its counts and floats.
_NUMERIC, _DIFFERING, _PATTERN, _UNMATCHED, _EQUAL, _GOT = range(6)
_WANT = _GOT + len(CLASSES)
_COUNTS = _WANT + len(CLASSES)
_MAX_ABS, _MAX_REL, _MIN_RTOL, _MAX_ULP, _SUMS = range(5)
_FLOATS = _SUMS + 7
_NEGZERO, _SUBNORMAL = CLASSES.index("negzero"), CLASSES.index("subnormal")


def _compiled(function: _Function) -> _Function:
    """Compile on first use; keep the code on disk if there is a place for it."""
    options: dict[str, Any] = {"error_model": "numpy"}
    try:
        compiled: _Function = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache is writable
        compiled = numba.njit(**options)(function)
    return compiled


@_compiled
def _steps(got: Any, want: Any, sign: Any) -> Any:
    """Steps between two values of one dtype from their bits as int64; `sign` is the sign bit."""
    mask = (np.int64(1) << sign) - np.int64(1)
    a, b = got & mask, want & mask
    if ((got ^ want) >> sign) & np.int64(1):
        return np.float64(np.uint64(a) + np.uint64(b))
    return np.float64(abs(a - b))


@_compiled
def _nonfinite_class(value: Any) -> Any:
    """0 where finite, else 1 + the position in `CLASSES`."""
    if np.isfinite(value):
        return 0
    if np.isnan(value):
        return 1
    return 2 if value > 0 else 3


@_compiled
def _count_small(value: Any, counts: Any, side: Any) -> None:
    """Count a value below the smallest normal one."""
    if value != 0:
        counts[side + _SUBNORMAL] += 1
    elif math.copysign(1.0, value) < 0:
        counts[side + _NEGZERO] += 1


@_compiled
def _keep_worst(keys: Any, indices: Any, key: Any, index: Any) -> None:
    """Insert into ascending keys before the first larger one, and drop the last."""
    place = len(keys) - 1
    while place > 0 and keys[place - 1] > key:
        keys[place] = keys[place - 1]
        indices[place] = indices[place - 1]
        place -= 1
    keys[place] = key
    indices[place] = index


@_compiled
def _scan_block(
    got: Any,
    want: Any,
    got_bits: Any,
    want_bits: Any,
    same: Any,
    sign: Any,
    precision: Any,
    emin: Any,
    scale: Any,
    bins: Any,
    counts: Any,
    floats: Any,
    keys: Any,
    indices: Any,
) -> None:
    """One block: got, want as floats and as signed integers of their width, all of shape (n,)."""
    smallest_normal = 2.0**emin
    differing = 0
    equal = 0
    numeric = got.size
    max_abs = max_rel = max_ulp = 0.0
    short = False
    absolute = ulps = signed = error2 = want2 = got2 = product = 0.0
    for i in range(got.size):
        g, w = np.float64(got[i]), np.float64(want[i])
        error = g - w
        gap = abs(error)
        if abs(g) < smallest_normal:
            _count_small(g, counts, _GOT)
        if abs(w) < smallest_normal:
            _count_small(w, counts, _WANT)
        if same:
            g_bits, w_bits = np.int64(got_bits[i]), np.int64(want_bits[i])
            differs = g_bits != w_bits
            ulp = _steps(g_bits, w_bits, sign)
        else:
            differs = g != w
            exponent = ((want_bits[i] >> 52) & 0x7FF) - 1023
            exponent = max(exponent, emin)
            ulp = gap * np.int64((precision - 1 - exponent + 1023) << 52).view(np.float64)
        if not np.isfinite(gap):
            g_class, w_class = _nonfinite_class(g), _nonfinite_class(w)
            if g_class:
                counts[_GOT + g_class - 1] += 1
            if w_class:
                counts[_WANT + w_class - 1] += 1
            if g_class != w_class:
                counts[_PATTERN] += 1
            if w_class:
                numeric -= 1
                if g_class != w_class:
                    counts[_UNMATCHED] += 1
                    differing += 1
                    if keys[-1] > -np.inf:
                        _keep_worst(keys, indices, -np.inf, i)
                continue
            if g_class:
                ulp = gap
            if np.isnan(gap):
                max_abs = max_rel = max_ulp = np.nan
        if differs:
            differing += 1
            key = -ulp if np.isfinite(ulp) else -np.inf
            if key < keys[-1]:
                _keep_worst(keys, indices, key, i)
        if ulp > max_ulp:
            max_ulp = ulp
        if gap > max_abs:
            max_abs = gap
        if gap != 0:
            relative = gap / abs(w)
            if relative >= max_rel:
                if relative > max_rel:
                    max_rel = relative
                    short = False
                short = short or bool(relative * abs(w) < gap)
        equal += ulp == 0
        bins[(np.float64(ulp).view(np.int64) >> BIN_SHIFT) & (BINS - 1)] += 1
        absolute += gap
        ulps += ulp
        signed += math.copysign(ulp, error)
        error, w, g = error * scale, w * scale, g * scale
        error2 += error * error
        want2 += w * w
        got2 += g * g
        product += g * w
    counts[_NUMERIC], counts[_DIFFERING], counts[_EQUAL] = numeric, differing, equal
    floats[_MAX_ABS], floats[_MAX_REL], floats[_MAX_ULP] = max_abs, max_rel, max_ulp
    floats[_MIN_RTOL] = np.nextafter(max_rel, np.inf) if short else max_rel
    floats[_SUMS:] = (absolute, ulps, signed, error2, want2, got2, product)


def scan(got: np.ndarray, want: np.ndarray, element: DType) -> tuple[Tally, float]:
    """The tally of large flat arrays and their p99 ulp error.

    Args:
        got: shape (n,), float16, bfloat16, float32 or float64.
        want: shape (n,), the same dtype or float64.
        element: the dtype of `got`.
    """
    percentile = BinnedPercentile()
    total = combine(
        [
            _tally_block(got[i : i + BLOCK], want[i : i + BLOCK], element, percentile.counts, i)
            for i in range(0, len(got), BLOCK)
        ]
    )
    histogram = _histogram(percentile.counts, total.histogram[0])
    return replace(total, histogram=histogram), percentile.value()


def _tally_block(
    got: np.ndarray, want: np.ndarray, element: DType, bins: npt.NDArray[np.int64], offset: int
) -> Tally:
    assert element.format is not None
    counts, floats = np.zeros(_COUNTS, np.int64), np.zeros(_FLOATS)
    keys, indices = np.full(WORST, np.inf), np.zeros(WORST, np.int64)
    g, w = _machine_floats(got), _machine_floats(want)
    arguments = (
        g,
        w,
        got.view(f"i{got.itemsize}"),
        want.view(f"i{want.itemsize}"),
        got.dtype == want.dtype,
        np.int64(element.bits - 1),
        element.format.precision,
        element.format.emin,
    )
    _scan_block(*arguments, 1.0, bins, counts, floats, keys, indices)
    sums = Sums(*floats[_SUMS:].tolist())
    exponent = 0 if _safe(sums) else _exponent(g, w)
    if exponent:  # once more for the sums alone: the squares overflowed or were lost
        scale = 2.0**-exponent
        rest = np.zeros(BINS, np.int64), np.zeros(_COUNTS, np.int64), floats
        _scan_block(*arguments, scale, *rest, keys.copy(), indices.copy())
        sums = replace(Sums(*floats[_SUMS:].tolist()), exponent=exponent)
    count = counts.tolist()
    worst = zip(keys.tolist(), (indices + offset).tolist(), strict=True)
    return Tally(
        numeric=count[_NUMERIC],
        differing=count[_DIFFERING],
        pattern=count[_PATTERN],
        unmatched=count[_UNMATCHED],
        got=tuple(count[_GOT:_WANT]),
        want=tuple(count[_WANT:]),
        max_abs=float(floats[_MAX_ABS]),
        max_rel=float(floats[_MAX_REL]),
        min_rtol=float(floats[_MIN_RTOL]),
        max_ulp=float(floats[_MAX_ULP]),
        sums=sums,
        histogram=(count[_EQUAL],),
        worst=tuple((key, index) for key, index in worst if key < math.inf),
    )


def _machine_floats(array: np.ndarray) -> np.ndarray:
    """float32 or float64 with the same values."""
    return array if array.itemsize > 2 else array.astype(np.float32)


def _safe(sums: Sums) -> bool:
    low, high = 4.0**-SAFE_EXPONENT * BLOCK, 4.0**SAFE_EXPONENT
    return low < max(sums.got_squared, sums.want_squared) < high


def _exponent(got: np.ndarray, want: np.ndarray) -> int:
    finite = np.isfinite(want)
    if not finite.any():
        return 0
    return scaling_exponent(max(float(np.abs(a[finite]).max()) for a in (got, want)))


def _histogram(bins: npt.NDArray[np.int64], equal: int) -> tuple[int, ...]:
    """The log2-ulp histogram from bins that are 2^-8 of a power of two wide."""
    per_exponent = bins.reshape(-1, 1 << (52 - BIN_SHIFT)).sum(axis=1)
    per_exponent[0] -= equal
    bucket = np.clip(np.arange(len(per_exponent)) - (1021 + LOWEST_BUCKET), 1, BUCKETS - 1)
    counts = np.zeros(BUCKETS, np.int64)
    np.add.at(counts, bucket, per_exponent)
    counts[0] = equal
    return tuple(counts.tolist())
