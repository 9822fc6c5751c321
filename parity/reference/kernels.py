"""Contractions without rounding to speak of: `dot_general` and `conv_general_dilated` in NumPy.

Floating operands give float64 (complex ones complex128), each element within K * 2**-53 * sum(|a|
|b|) of the exact sum of its K products (2K products for each part of a complex one). Integer
operands give exact integers, never wrapped. Two boolean operands give or-of-ands, as XLA does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from parity.dtypes import dtype
from parity.reference import convolution

ConvSpecs = tuple[Sequence[int], Sequence[int], Sequence[int]]
DotDimensions = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def dot_general(
    lhs: np.ndarray, rhs: np.ndarray, *, dimension_numbers: DotDimensions
) -> np.ndarray:
    """`jax.lax.dot_general`, computed in float64, complex128 or exact integers.

    Args:
        lhs: floating, complex, integer or bool; widened before the products are formed.
        rhs: the same; the two may differ in dtype.
        dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)) axes.

    Returns:
        Axes (batch…, lhs free…, rhs free…); float64, complex128, bool, or the first of int64,
        uint64 and object (Python ints) that holds every element.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free = [i for i in range(lhs.ndim) if i not in lhs_contract and i not in lhs_batch]
    rhs_free = [i for i in range(rhs.ndim) if i not in rhs_contract and i not in rhs_batch]
    batch = [lhs.shape[i] for i in lhs_batch]
    rows, columns = [lhs.shape[i] for i in lhs_free], [rhs.shape[i] for i in rhs_free]
    terms = math.prod(lhs.shape[i] for i in lhs_contract)

    def product(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        left = lhs.transpose([*lhs_batch, *lhs_free, *lhs_contract])
        right = rhs.transpose([*rhs_batch, *rhs_contract, *rhs_free])
        left = left.reshape(math.prod(batch), math.prod(rows), terms)
        right = right.reshape(math.prod(batch), terms, math.prod(columns))
        return np.matmul(left, right).reshape([*batch, *rows, *columns])

    return _widened(product, lhs, rhs, terms)


def conv_general_dilated(
    lhs: np.ndarray,
    rhs: np.ndarray,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: ConvSpecs,
    feature_group_count: int,
    batch_group_count: int,
) -> np.ndarray:
    """`jax.lax.conv_general_dilated`, computed in float64, complex128 or exact integers.

    Implicit zeros (padding, dilation holes) contribute nothing, even beside NaN and infinity.

    Args:
        lhs: floating, complex, integer or bool; widened before the products are formed.
        rhs: the same; the two may differ in dtype.
        window_strides: per spatial axis.
        padding: (low, high) per spatial axis; negative ones crop.
        lhs_dilation: per spatial axis.
        rhs_dilation: per spatial axis.
        dimension_numbers: `jax.lax.ConvDimensionNumbers`: the axes of (batch, feature, spatial…)
            in lhs and in the output, of (output feature, input feature, spatial…) in rhs.
        feature_group_count: groups of input features, each seen by its own output features.
        batch_group_count: groups of the batch, each seen by its own output features.

    Returns:
        Axes as the output specification says; float64, complex128, bool, or the first of int64,
        uint64 and object (Python ints) that holds every element.
    """
    geometry = convolution.Geometry(
        tuple(window_strides),
        tuple(padding),
        tuple(lhs_dilation),
        tuple(rhs_dilation),
        dimension_numbers,
        feature_group_count,
        batch_group_count,
    )
    out_features = rhs.shape[dimension_numbers[1][0]]
    terms = rhs.size // out_features if out_features else 0
    return _widened(lambda a, b: convolution.convolve(a, b, geometry), lhs, rhs, terms)


def _widened(
    product: Callable[[np.ndarray, np.ndarray], np.ndarray],
    lhs: np.ndarray,
    rhs: np.ndarray,
    terms: int,
) -> np.ndarray:
    """A sum of `terms` products of elements, in the narrowest arithmetic that is wide enough."""
    kinds = {dtype(lhs.dtype).kind, dtype(rhs.dtype).kind}
    with np.errstate(all="ignore"):
        if kinds == {"bool"}:
            return product(lhs.astype(np.float64), rhs.astype(np.float64)) > 0
        if kinds & {"float", "complex"}:
            wide = np.complex128 if "complex" in kinds else np.float64
            return product(lhs.astype(wide, copy=False), rhs.astype(wide, copy=False))
    bound = terms * _largest(lhs) * _largest(rhs)
    if bound < 2**53:
        return product(lhs.astype(np.float64), rhs.astype(np.float64)).astype(np.int64)
    if bound < 2**63:
        return product(lhs.astype(np.int64), rhs.astype(np.int64))
    return _narrowed(product(lhs.astype(object), rhs.astype(object)))


def _largest(integers: np.ndarray) -> int:
    """The largest magnitude, 0 if there is none."""
    if integers.size == 0:
        return 0
    return max(-int(integers.min()), int(integers.max()))


def _narrowed(integers: np.ndarray) -> np.ndarray:
    """Python ints as int64 or uint64 where one of them holds all."""
    low, high = integers.min(initial=0), integers.max(initial=0)
    if -(2**63) <= low and high < 2**63:
        return integers.astype(np.int64)
    if low >= 0 and high < 2**64:
        return integers.astype(np.uint64)
    return integers
