"""Contractions wide enough to refer to: `dot_general` and `conv_general_dilated` in NumPy.

Floating operands give float64, each element within K·2**-53·Σ|a||b| of the exact sum of its K
products; complex ones give complex128, with 2K products in each part. Integer operands give exact
integers, never wrapped. Two bool operands give the or of ands, as in XLA.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypedDict, Unpack

import numpy as np

from parity.dtypes import dtype
from parity.reference import convolution

DotDimensions = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


class ConvAttributes(TypedDict):
    """The attributes of `jax.lax.conv_general_dilated`; sequences have one entry a spatial axis.

    `padding` is (low, high), which crop where negative. `dimension_numbers` are those of
    `jax.lax.ConvDimensionNumbers`: the axes of (batch, feature, spatial…) in lhs and in the
    output, of (output feature, input feature, spatial…) in rhs.
    """

    window_strides: Sequence[int]
    padding: Sequence[tuple[int, int]]
    lhs_dilation: Sequence[int]
    rhs_dilation: Sequence[int]
    dimension_numbers: tuple[Sequence[int], Sequence[int], Sequence[int]]
    feature_group_count: int
    batch_group_count: int


def dot_general(
    lhs: np.ndarray, rhs: np.ndarray, *, dimension_numbers: DotDimensions
) -> np.ndarray:
    """`jax.lax.dot_general` in float64, complex128 or exact integers.

    Args:
        lhs: floating, complex, integer (also object: Python ints) or bool, widened before the
            products are formed.
        rhs: the same; its dtype may be another.
        dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)) axes.

    Returns:
        Axes (batch…, lhs free…, rhs free…); float64, complex128, bool, or for integers the first
        of int64, uint64 and object (Python ints) that holds every element.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free = [i for i in range(lhs.ndim) if i not in (*lhs_contract, *lhs_batch)]
    rhs_free = [i for i in range(rhs.ndim) if i not in (*rhs_contract, *rhs_batch)]
    batch = [lhs.shape[i] for i in lhs_batch]
    rows, columns = [lhs.shape[i] for i in lhs_free], [rhs.shape[i] for i in rhs_free]
    terms = math.prod(lhs.shape[i] for i in lhs_contract)

    def product(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        left = lhs.transpose([*lhs_batch, *lhs_free, *lhs_contract])
        right = rhs.transpose([*rhs_batch, *rhs_contract, *rhs_free])
        left = left.reshape(math.prod(batch), math.prod(rows), terms)
        right = right.reshape(math.prod(batch), terms, math.prod(columns))
        out: np.ndarray = np.matmul(left, right)
        return out.reshape([*batch, *rows, *columns])

    return _widened(product, lhs, rhs, terms)


def conv_general_dilated(
    lhs: np.ndarray, rhs: np.ndarray, **attributes: Unpack[ConvAttributes]
) -> np.ndarray:
    """`jax.lax.conv_general_dilated` in float64, complex128 or exact integers.

    Implicit zeros (padding and dilation holes) contribute nothing, even beside NaN and infinity.

    Args:
        lhs: floating, complex, integer (also object: Python ints) or bool, widened before the
            products are formed.
        rhs: the same; its dtype may be another.
        **attributes: see `ConvAttributes`.

    Returns:
        Axes as the output's dimension numbers say; float64, complex128, bool, or for integers the
        first of int64, uint64 and object (Python ints) that holds every element.
    """
    geometry = convolution.Geometry(**attributes)
    out_features = rhs.shape[attributes["dimension_numbers"][1][0]]
    terms = rhs.size // max(out_features, 1)
    return _widened(lambda a, b: convolution.convolve(a, b, geometry), lhs, rhs, terms)


def implicit_zero_mask(
    lhs_nonfinite: np.ndarray, rhs_nonfinite: np.ndarray, **attributes: Unpack[ConvAttributes]
) -> np.ndarray | None:
    """Where a convolution multiplies an implicit zero by a non-finite value of the other operand.

    An implementation may skip the product or form it and get NaN.

    Args:
        lhs_nonfinite: bool, of the shape of lhs.
        rhs_nonfinite: bool, of the shape of rhs.
        **attributes: see `ConvAttributes`.

    Returns:
        Bool, of the shape of the output; None where it would be False throughout.
    """
    mask: np.ndarray | None = None
    _, rhs_spec, out_spec = attributes["dimension_numbers"]
    lhs_count, rhs_count = lhs_nonfinite.astype(np.float64), rhs_nonfinite.astype(np.float64)
    if rhs_nonfinite.any():
        met = conv_general_dilated(np.ones(lhs_count.shape), rhs_count, **attributes)
        in_kernel = rhs_count.sum(axis=tuple(rhs_spec[1:]))
        mask = met < np.expand_dims(in_kernel, [i for i in range(met.ndim) if i != out_spec[1]])
    if lhs_nonfinite.any() and any(dilation > 1 for dilation in attributes["rhs_dilation"]):
        met = conv_general_dilated(lhs_count, np.ones(rhs_count.shape), **attributes)
        span = list(rhs_count.shape)
        for axis, dilation in zip(rhs_spec[2:], attributes["rhs_dilation"], strict=True):
            span[axis] = convolution.dilated(span[axis], dilation)
        attributes["rhs_dilation"] = [1] * len(attributes["rhs_dilation"])
        in_span = conv_general_dilated(lhs_count, np.ones(span), **attributes)
        mask = met < in_span if mask is None else mask | (met < in_span)
    return mask if mask is not None and mask.any() else None


def _widened(
    product: Callable[[np.ndarray, np.ndarray], np.ndarray],
    lhs: np.ndarray,
    rhs: np.ndarray,
    terms: int,
) -> np.ndarray:
    """A bilinear product with `terms` summands an element, in an arithmetic that is wide enough."""
    kinds = {"int" if x.dtype == object else dtype(x.dtype).kind for x in (lhs, rhs)}
    with np.errstate(all="ignore"):
        if kinds == {"bool"}:
            counts = product(lhs.astype(np.float64), rhs.astype(np.float64))
            return np.asarray(counts > 0)
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
    """The largest magnitude, 0 where there is no element."""
    return max(-int(integers.min()), int(integers.max())) if integers.size else 0


def _narrowed(integers: np.ndarray) -> np.ndarray:
    """Python ints as int64 or uint64 where that holds them all."""
    low, high = integers.min(initial=0), integers.max(initial=0)
    if low >= -(2**63) and high < 2**63:
        return integers.astype(np.int64)
    if low >= 0 and high < 2**64:
        return integers.astype(np.uint64)
    return integers
