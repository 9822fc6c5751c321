"""How far an output is from another one: every metric of a comparison, in one pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parity.compare.elementwise import Mask, float_errors, integer_errors
from parity.compare.percentile import BinnedPercentile, ExactPercentile
from parity.compare.profile import Band, profile
from parity.compare.tally import CLASSES, WORST, Tally, combine, tally
from parity.compare.ulp import as_float64, bits, dtype_of, parts
from parity.dtypes import DType
from parity.errors import ParityFault

LARGE = 2**20
"""Up to so many elements p99_ulp is exact and NumPy does the work; above, it is known to 1/256."""

BLOCK = 2**16
"""Elements that NumPy works on at a time: bounds memory, and stays in the cache."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an output: where, what was got and wanted, the raw bits, the ulp error.

    The ulp error is infinite where either side is not finite, None for bool. The bits of a complex
    element are those of its real part, then of its imaginary part.
    """

    index: tuple[int, ...]
    got: Any
    want: Any
    got_bits: str
    want_bits: str
    ulp: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Every metric of one comparison.

    Elements that are excluded count nowhere but in `count` and `excluded`. The numeric metrics
    (max_abs to min_atol) are over the elements that are finite in `want`: a NaN in `got` against
    one of those makes them NaN, an infinity makes them infinite. They are None where there is
    nothing to measure: no such element, or bool. Of complex outputs, absolute and relative errors
    are those of the modulus, the ulp error is that of the worse part, and special values and the
    signed bias are over the parts.

    Attributes:
        count: elements of the output.
        excluded: elements that no rule determines.
        nonfinite_want: elements left out of the numeric metrics.
        differing: elements that differ; between equal dtypes in their bits (all NaNs are equal,
            the zeros are not), against a wider reference in their value.
        pattern: elements of which one side is NaN, +inf or -inf and the other is not.
        max_abs: largest |got - want|; for integers an exact int.
        mean_abs: mean |got - want|.
        max_rel: largest |got - want| / |want|; infinite where want is 0 and got is not.
        max_ulp: largest ulp error: between equal dtypes steps on the grid, against a wider
            reference |got - want| / ulp(want), always in the dtype of `got`; of integers the
            distance.
        mean_ulp: mean ulp error.
        p99_ulp: the smallest ulp error that at least 99% of the elements do not exceed (NaN ranks
            highest); above `LARGE` elements rounded down to 9 significant bits.
        bias_ulp: mean signed ulp error.
        rms_rel: ‖got - want‖₂ / ‖want‖₂.
        cosine: <got, want> / (‖got‖₂ ‖want‖₂); None if either is zero.
        sqnr_db: -20 log10(rms_rel).
        min_rtol: smallest rtol that passes with atol = 0, |got - want| <= rtol * |want| in float64,
            to within one ulp; NaN if none does.
        min_atol: smallest atol that passes with rtol = 0; NaN if none does.
        nan_got: NaNs in `got`; likewise the counts below. What is subnormal in the dtype of `got`
            counts as subnormal in `want`.
        histogram: ulp errors by power of two, see `tally.BUCKETS`; None for bool.
        profile: ulp errors by magnitude of `want`, see `profile.profile`; None for bool.
        worst: at most 8 elements that differ, the worst first.
    """

    count: int
    excluded: int
    nonfinite_want: int
    differing: int
    pattern: int
    max_abs: float | None = None
    mean_abs: float | None = None
    max_rel: float | None = None
    max_ulp: float | None = None
    mean_ulp: float | None = None
    p99_ulp: float | None = None
    bias_ulp: float | None = None
    rms_rel: float | None = None
    cosine: float | None = None
    sqnr_db: float | None = None
    min_rtol: float | None = None
    min_atol: float | None = None
    nan_got: int = 0
    nan_want: int = 0
    posinf_got: int = 0
    posinf_want: int = 0
    neginf_got: int = 0
    neginf_want: int = 0
    negzero_got: int = 0
    negzero_want: int = 0
    subnormal_got: int = 0
    subnormal_want: int = 0
    histogram: tuple[int, ...] | None = None
    profile: tuple[Band, ...] | None = None
    worst: tuple[Element, ...] = ()


def comparable(got: np.ndarray, want: np.ndarray) -> bool:
    """Whether `measure` is defined: equal shapes, and equal dtypes or a wider reference."""
    if got.shape != want.shape:
        return False
    if got.dtype == want.dtype:
        return True
    references = {
        "float": ("float64",),
        "complex": ("complex128",),
        "int": ("int64", "uint64", "float64"),
        "uint": ("int64", "uint64", "float64"),
    }
    kind = dtype_of(got.dtype).kind
    return dtype_of(want.dtype).name in references.get(kind, ())


def measure(got: np.ndarray, want: np.ndarray, *, exclude: Mask | None = None) -> Metrics:
    """Every metric of `got` against `want`.

    Args:
        got: the output, of any dtype in `parity.dtypes`.
        want: of the same shape, and of the same dtype (another path, `strict`) or of the
            reference's: float64, complex128, or for integers int64, uint64 or float64.
        exclude: True where no rule determines the element, of the same shape.

    Raises:
        ParityFault: the two cannot be compared (see `comparable`).
    """
    if not comparable(got, want):
        raise ParityFault(
            f"{got.dtype.name}{got.shape} cannot be measured against {want.dtype.name}{want.shape}"
        )
    element = dtype_of(got.dtype)
    flat_got, flat_want, kept = got.reshape(-1), want.reshape(-1), None
    if exclude is not None and exclude.any():
        kept = np.flatnonzero(~exclude.reshape(-1))
        flat_got, flat_want = flat_got[kept], flat_want[kept]
    n = len(flat_got)
    excluded = got.size - n
    if n == 0:
        return Metrics(count=got.size, excluded=excluded, nonfinite_want=0, differing=0, pattern=0)
    if element.kind == "bool":
        differing = np.flatnonzero(flat_got != flat_want)
        return Metrics(
            count=got.size,
            excluded=excluded,
            nonfinite_want=0,
            differing=len(differing),
            pattern=0,
            worst=_elements(differing[:WORST].tolist(), got, want, kept),
        )
    total, p99 = _scan(flat_got, flat_want, element)
    return Metrics(
        count=got.size,
        excluded=excluded,
        nonfinite_want=n - total.numeric,
        differing=total.differing,
        pattern=total.pattern,
        histogram=total.histogram,
        profile=profile(flat_got, flat_want, element),
        worst=_elements([i for _, i in total.worst], got, want, kept, [-k for k, _ in total.worst]),
        **_special(total),
        **_numeric(total, p99, element),
    )


def _special(total: Tally) -> dict[str, int]:
    sides = {"got": total.got, "want": total.want}
    return {
        f"{c}_{side}": n for side, ns in sides.items() for c, n in zip(CLASSES, ns, strict=True)
    }


def _numeric(total: Tally, p99: float, element: DType) -> dict[str, Any]:
    if total.numeric == 0:
        return {}
    sums, n = total.sums, total.numeric
    error, want, got = (
        math.sqrt(s) for s in (sums.error_squared, sums.want_squared, sums.got_squared)
    )
    rms_rel = _ratio(error, want)
    return {
        "max_abs": total.max_abs,
        "mean_abs": sums.absolute / n,
        "max_rel": total.max_rel,
        "max_ulp": total.max_ulp,
        "mean_ulp": sums.ulp / n,
        "p99_ulp": p99,
        "bias_ulp": sums.signed_ulp / (2 * n if element.kind == "complex" else n),
        "rms_rel": rms_rel,
        "cosine": sums.product / (want * got) if want and got else None,
        "sqnr_db": -20 * math.log10(rms_rel) if rms_rel else math.inf,
        "min_rtol": math.nan if total.unmatched else total.min_rtol,
        "min_atol": math.nan if total.unmatched else total.max_abs,
    }


def _ratio(error: float, size: float) -> float:
    """error / size, where nothing at all is 0 off and something is infinitely far off nothing."""
    if size:
        return error / size
    return error and math.inf * error


def _elements(
    indices: Sequence[int],
    got: np.ndarray,
    want: np.ndarray,
    kept: np.ndarray | None,
    errors: Sequence[float] | None = None,
) -> tuple[Element, ...]:
    """The elements at flat indices (among the kept ones), with their ulp errors."""
    if not indices:
        return ()
    flat = np.asarray(indices) if kept is None else kept[indices]
    axes = np.unravel_index(flat, got.shape) if got.ndim else ()
    places = zip(*(axis.tolist() for axis in axes), strict=True) if got.ndim else [()]
    sides = [array.reshape(-1)[flat] for array in (got, want)]
    return tuple(
        Element(*fields)
        for fields in zip(
            places,
            *(plain(side) for side in sides),
            *(_hexadecimal(side) for side in sides),
            [None] * len(indices) if errors is None else errors,
            strict=True,
        )
    )


def plain(array: np.ndarray) -> list[Any]:
    """The elements of a flat array as Python bool, int, float or complex, exactly."""
    element = dtype_of(array.dtype)
    if element.kind == "float":
        array = as_float64(array)
    elif element.is_integer and element.bits < 64:
        array = array.astype(np.int64)
    return list(array.tolist())


def _hexadecimal(array: np.ndarray) -> list[str]:
    real = parts(array).reshape(len(array), -1)
    digits = 2 + 2 * real.itemsize
    return [" ".join(f"{v:#0{digits}x}" for v in row) for row in bits(real).tolist()]


def _scan(got: np.ndarray, want: np.ndarray, element: DType) -> tuple[Tally, float]:
    """The tally of flat arrays and their p99 ulp error."""
    if len(got) > LARGE and element.name in ("float16", "bfloat16", "float32", "float64"):
        try:
            from parity.compare import large
        except ImportError:  # numba is missing, or too old for this NumPy
            pass
        else:
            return large.scan(got, want, element)
    return scan_blocks(got, want, element)


def scan_blocks(
    got: np.ndarray, want: np.ndarray, element: DType, *, block: int = BLOCK
) -> tuple[Tally, float]:
    """The tally of flat arrays and their p99 ulp error, with NumPy, block by block.

    Args:
        got: shape (n,), n > 0.
        want: shape (n,).
        element: the dtype of `got`.
        block: elements at a time.
    """
    compare = integer_errors if element.is_integer else float_errors
    percentile = ExactPercentile() if len(got) <= LARGE else BinnedPercentile()
    tallies = []
    with np.errstate(all="ignore"):
        for start in range(0, len(got), block):
            errors = compare(got[start : start + block], want[start : start + block])
            tallies.append(tally(errors, element, offset=start))
            percentile.add(errors.numeric().ulp)
    return combine(tallies), percentile.value()
