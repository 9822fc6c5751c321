"""The precision that a dot really delivered, beside what the name of its algorithm says."""

from __future__ import annotations

import math
import string
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from parity.casefile.case import Case
from parity.compare.elementwise import Mask
from parity.compare.ulp import dtype_of
from parity.dtypes import DTYPES

NAMED = {
    "BF16_BF16_BF16": 8,
    "BF16_BF16_F32": 8,
    "F16_F16_F16": 11,
    "F16_F16_F32": 11,
    "TF32_TF32_F32": 11,
    "BF16_BF16_F32_X3": 16,
    "TF32_TF32_F32_X3": 22,
    "BF16_BF16_F32_X6": 24,
    "BF16_BF16_F32_X9": 24,
    "F32_F32_F32": 24,
    "F64_F64_F64": 53,
}
"""Mantissa bits, the implicit one included, of the operands under each `DotAlgorithmPreset`.

X3 splits a float32 operand into two bfloat16 parts, X6 and X9 into three, and TF32 X3 into two of
11 bits. Source: Henry, Tang & Heinecke, Leveraging the bfloat16 Artificial Intelligence Datatype
For Higher-Precision Computations, ARITH 2019.
"""

PRODUCTS = 2
"""Sums of more products are not measured: their errors cancel, and more bits seem to arrive."""

SLACK = 0.5
"""Bits that two measurements may be apart before one counts as less precise."""


def is_on_ladder(case: Case) -> bool:
    """Whether a case's preset adds in float32 or wider: its operands limit what it delivers.

    F16_F16_F16 and BF16_BF16_BF16 round their sums, too: they are no rungs between others.
    """
    name = preset(case)
    return name is not None and name.split("_")[2] in ("F32", "F64")


def breaks_in_ladder(measured: Sequence[tuple[str, int, float]]) -> Iterator[tuple[str, str]]:
    """Where a ladder of presets is not monotone.

    Args:
        measured: for each preset its name, the bits that it names and those that it delivers.

    Yields:
        The names of two presets of which the first names fewer bits and delivers more.
    """
    for (lesser, few, delivers), (greater, many, less) in permutations(measured, 2):
        if few < many and less < delivers - SLACK:
            yield lesser, greater


def preset(case: Case) -> str | None:
    """The `DotAlgorithmPreset` that a case asks its dot for."""
    asked = case.program.attributes.get("precision")
    return asked if isinstance(asked, str) and asked in NAMED else None


def named_bits(case: Case) -> int | None:
    """The bits that the case's preset names, no more than its operands have."""
    name = preset(case)
    if name is None:
        return None
    program = case.program
    dtypes = [program.compute_dtype or operand.dtype for operand in program.operands[:2]]
    formats = [DTYPES[one].format for one in dtypes]
    return min([NAMED[name], *(one.precision for one in formats if one is not None)])


def magnitudes(case: Case) -> np.ndarray | None:
    """Σ|a||b| of each element of a dot that asks for a precision, in float64.

    0 where more than `PRODUCTS` products differ from zero; None for other programs and for complex
    operands.
    """
    program = case.program
    plain = program.op == "dot_general" and program.transform == "forward"
    asked = program.attributes.get("precision") is not None
    if not asked or not plain or program.residual is not None:
        return None
    lhs, rhs = case.arrays()[:2]
    if lhs.dtype.kind == "c" or rhs.dtype.kind == "c":
        return None
    lhs, rhs = (np.abs(array.astype(np.float64)) for array in (lhs, rhs))
    numbers = program.attributes["dimension_numbers"]
    few = _product(1.0 * (lhs != 0), 1.0 * (rhs != 0), numbers) <= PRODUCTS
    return np.where(few, _product(lhs, rhs, numbers), 0.0)


def _product(lhs: np.ndarray, rhs: np.ndarray, dimensions: Any) -> np.ndarray:
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimensions
    letters = string.ascii_letters
    left = list(letters[: lhs.ndim])
    right = list(letters[lhs.ndim : lhs.ndim + rhs.ndim])
    for i, j in zip((*lhs_contracting, *lhs_batch), (*rhs_contracting, *rhs_batch), strict=True):
        right[j] = left[i]
    batch = [left[i] for i in lhs_batch]
    free = [one for one in (*left, *right) if (one in left) != (one in right)]
    spelled = f"{''.join(left)},{''.join(right)}->{''.join(batch + free)}"
    product: np.ndarray = np.einsum(spelled, lhs, rhs)
    return product


def delivered(
    got: np.ndarray, ideal: np.ndarray, sizes: np.ndarray, *, exclude: Mask | None = None
) -> float | None:
    """The effective mantissa bits of a dot.

    The largest p with |got - ideal| <= 2·2^-p·Σ|a||b| in every element, which is what rounding
    both operands to p bits costs at most (to first order); no more than the output's own bits.

    Args:
        got: the output, of shape S and a floating dtype.
        ideal: float64 of shape S.
        sizes: Σ|a||b|, float64 of shape S.
        exclude: True where no rule determines the element.

    Returns:
        Bits; None where there is nothing to measure, 0 where an element is not finite.
    """
    form = dtype_of(got.dtype).format
    if form is None or dtype_of(got.dtype).kind != "float" or got.shape != sizes.shape:
        return None
    kept = np.isfinite(ideal) & (sizes > 0)
    if exclude is not None:
        kept &= ~exclude
    if not kept.any():
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(got[kept].astype(np.float64) - ideal[kept]) / sizes[kept]
    worst = float(np.max(errors))
    if not math.isfinite(worst):
        return 0.0
    return min(float(form.precision), max(0.0, 1.0 - math.log2(worst)) if worst else math.inf)
