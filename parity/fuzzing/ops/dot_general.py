"""`jax.lax.dot_general`, all of its attributes."""

from __future__ import annotations

from hypothesis import strategies as st

from parity.dtypes import DTYPES
from parity.fuzzing.operands import Fields, around, dtypes, operand, precisions, preferred


@st.composite
def cases(draw: st.DrawFn) -> Fields:
    """Up to two batch, contracting and free dimensions on each side, in any order."""
    sizes = st.sampled_from([1, 2, 3, 3, 5, 0])
    batch = [draw(sizes) for _ in range(draw(st.integers(0, 2)))]
    contracted = [draw(sizes) for _ in range(draw(st.integers(0, 2)))]
    sides, dimensions = [], []
    for _ in range(2):
        free = [draw(sizes) for _ in range(draw(st.integers(0, 2)))]
        shape = [*batch, *contracted, *free]
        order = draw(st.permutations(range(len(shape))))
        at = [order.index(n) for n in range(len(shape))]
        sides.append([shape[n] for n in order])
        dimensions.append((at[len(batch) : len(batch) + len(contracted)], at[: len(batch)]))
    (left, left_batch), (right, right_batch) = dimensions
    dtype = draw(dtypes())
    other = draw(dtypes()) if draw(st.integers(0, 6)) == 0 else dtype
    attributes = {
        "dimension_numbers": [[left, right], [left_batch, right_batch]],
        "precision": draw(precisions()),
        "preferred_element_type": draw(preferred(dtype)),
    }
    fields = {
        "op": "dot_general",
        "attributes": {name: of for name, of in attributes.items() if of is not None},
        "operands": {
            "lhs": draw(operand(sides[0], dtype)),
            "rhs": draw(operand(sides[1], other)),
        },
    }
    inexact = DTYPES[dtype].is_inexact and DTYPES[other].is_inexact
    return draw(around(fields, inexact=inexact))
