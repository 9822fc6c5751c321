"""Contractions as batches of matrix products, [B, M, K] with [B, N, K], and back; reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Matrices = tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]]
"""lhs [B, M, K], rhs [B, N, K], and what makes the equation's output of their product [B, M, N]."""


def unfold(eqn: Any, lhs: np.ndarray, rhs: np.ndarray) -> Matrices:
    """The matrices of a `dot_general` or `conv_general_dilated` equation."""
    return (_dot if eqn.primitive.name == "dot_general" else _convolution)(eqn, lhs, rhs)


def _dot(eqn: Any, lhs: np.ndarray, rhs: np.ndarray) -> Matrices:
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    lf = [i for i in range(lhs.ndim) if i not in (*lc, *lb)]
    rf = [i for i in range(rhs.ndim) if i not in (*rc, *rb)]
    batch = [lhs.shape[i] for i in lb]
    rows, columns = [lhs.shape[i] for i in lf], [rhs.shape[i] for i in rf]
    terms = math.prod(lhs.shape[i] for i in lc)
    left = lhs.transpose(*lb, *lf, *lc).reshape(math.prod(batch), math.prod(rows), terms)
    right = rhs.transpose(*rb, *rf, *rc).reshape(math.prod(batch), math.prod(columns), terms)
    return left, right, lambda out: out.reshape([*batch, *rows, *columns])


def _convolution(eqn: Any, lhs: np.ndarray, rhs: np.ndarray) -> Matrices:
    """Windows by gathering: one row for each output position, one term for each tap and feature."""
    params = eqn.params
    numbers = params["dimension_numbers"]
    lhs, rhs = lhs.transpose(numbers.lhs_spec), rhs.transpose(numbers.rhs_spec)
    groups, batch_groups = params["feature_group_count"], params["batch_group_count"]
    windows, sizes = _windows(params, lhs, rhs.shape[2:])
    # windows: batch, features, out positions…, taps…
    rank = len(sizes)
    batch, features = lhs.shape[:2]
    split = groups * batch_groups
    windows = windows.reshape(
        batch_groups, batch // batch_groups, groups, features // groups, *windows.shape[2:]
    )
    left = windows.transpose(0, 2, 1, *range(4, 4 + rank), 3, *range(4 + rank, 4 + 2 * rank))
    terms = math.prod(rhs.shape[1:])
    left = left.reshape(split, batch // batch_groups * math.prod(sizes), terms)
    right = rhs.reshape(split, rhs.shape[0] // split, terms)

    def finish(out: np.ndarray) -> np.ndarray:
        shaped = out.reshape(split, batch // batch_groups, *sizes, rhs.shape[0] // split)
        order = (1, 0, 2 + rank, *range(2, 2 + rank))
        whole = shaped.transpose(order).reshape(batch // batch_groups, rhs.shape[0], *sizes)
        return whole.transpose(np.argsort(numbers.out_spec))

    return left, right, finish


def by_parts(
    product: Callable[[np.ndarray, np.ndarray], np.ndarray], lhs: np.ndarray, rhs: np.ndarray
) -> np.ndarray:
    """A product of matrices as `unfold` gives them; each part of a complex one is 2K real terms."""
    if lhs.dtype.kind != "c" and rhs.dtype.kind != "c":
        return product(lhs, rhs)
    lr, li, rr, ri = (x for whole in (lhs, rhs) for x in (np.real(whole), np.imag(whole)))
    left = np.concatenate([lr, li], axis=-1)
    real = product(left, np.concatenate([rr, -ri], axis=-1))
    out = np.empty(real.shape, np.complex128)
    out.real, out.imag = real, product(left, np.concatenate([ri, rr], axis=-1))
    return out


def summed_last(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """The axes that a reduction sums over as one last axis, behind those it keeps."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    terms = math.prod(x.shape[axis] for axis in axes)
    return x.transpose(*kept, *axes).reshape([*(x.shape[axis] for axis in kept), terms])


def _windows(params: Any, lhs: np.ndarray, kernel: tuple[int, ...]) -> tuple[np.ndarray, list[int]]:
    sizes = []
    for axis, taps in enumerate(kernel):
        at = 2 + 2 * axis  # the axes before have each become two
        low, high = params["padding"][axis]
        hole, spread = params["lhs_dilation"][axis], params["rhs_dilation"][axis]
        stride = params["window_strides"][axis]
        length = lhs.shape[at]
        padded = max(0, (length - 1) * hole + 1 if length else 0) + low + high
        reach = (taps - 1) * spread + 1 if taps else 0
        count = max(0, (padded - reach) // stride + 1) if padded >= reach else 0
        sizes.append(count)
        place = np.arange(count)[:, None] * stride + np.arange(taps)[None, :] * spread - low
        valid = (place % hole == 0) & (place >= 0) & (place // hole < length)
        if length:
            picked = np.take(lhs, np.where(valid, place // hole, 0), axis=at)
        else:
            picked = np.zeros((*lhs.shape[:at], count, taps, *lhs.shape[at + 1 :]), lhs.dtype)
        shape = [1] * picked.ndim
        shape[at], shape[at + 1] = count, taps
        lhs = np.where(valid.reshape(shape), picked, 0)
    rank = len(kernel)
    order = (0, 1, *range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2))
    return lhs.transpose(order), sizes
