"""The dot kernel against its definition, evaluated in exact rationals, and the kernels' dtypes."""

import itertools
from fractions import Fraction
from typing import NamedTuple

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.dtypes import DTYPES
from parity.reference.kernels import conv_general_dilated, dot_general

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
MATMUL = (((1,), (0,)), ((), ()))


class Dot(NamedTuple):
    """Shapes and axes of a `dot_general`."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    dimension_numbers: tuple


@st.composite
def dots(draw):
    """Small dots: up to two batch, contracting and free axes of each operand, in any order."""
    sizes = st.lists(st.sampled_from([1, 2, 3, 4] * 6 + [0]), max_size=2)
    batch, contract, lhs_free, rhs_free = (draw(sizes) for _ in range(4))
    shapes, axes = [], []
    for free in (lhs_free, rhs_free):
        order = draw(st.permutations(range(len(batch) + len(contract) + len(free))))
        unordered = [*batch, *contract, *free]
        shape = [0] * len(unordered)
        for size, axis in zip(unordered, order, strict=True):
            shape[axis] = size
        shapes.append(tuple(shape))
        axes.append((tuple(order[: len(batch)]), tuple(order[len(batch) :][: len(contract)])))
    (lhs_batch, lhs_contract), (rhs_batch, rhs_contract) = axes
    return Dot(*shapes, ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)))


def summed(dot, lhs, rhs):
    """The dot by its definition, in the arithmetic of the elements (Python's own)."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dot.dimension_numbers
    lhs_free = [i for i in range(lhs.ndim) if i not in lhs_contract + lhs_batch]
    rhs_free = [i for i in range(rhs.ndim) if i not in rhs_contract + rhs_batch]
    sizes = [lhs.shape[i] for i in (*lhs_batch, *lhs_free)] + [rhs.shape[i] for i in rhs_free]
    out = np.full(sizes, 0, dtype=object)
    left, right = lhs.astype(object), rhs.astype(object)
    for where in np.ndindex(*sizes):
        batch, rest = where[: len(lhs_batch)], where[len(lhs_batch) :]
        for k in itertools.product(*(range(lhs.shape[i]) for i in lhs_contract)):
            i = dict(zip((*lhs_batch, *lhs_free, *lhs_contract), (*where, *k), strict=False))
            i |= dict(zip(lhs_contract, k, strict=True))
            j = dict(zip(rhs_batch, batch, strict=True)) | dict(zip(rhs_contract, k, strict=True))
            j |= dict(zip(rhs_free, rest[len(lhs_free) :], strict=True))
            out[where] += (
                left[tuple(i[a] for a in range(lhs.ndim))]
                * right[tuple(j[a] for a in range(rhs.ndim))]
            )
    return out
