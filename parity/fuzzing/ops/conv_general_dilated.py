"""`jax.lax.conv_general_dilated`, all of its attributes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from parity.dtypes import DTYPES
from parity.fuzzing.operands import Fields, around, dtypes, operand, precisions, preferred

_SPATIAL = "XYZ"


@st.composite
def cases(draw: st.DrawFn) -> Fields:
    """Up to three spatial dimensions, groups of either kind, any layout, any padding."""
    rank = draw(st.sampled_from([1, 1, 2, 2, 0, 3]))
    letters = _SPATIAL[:rank]
    sizes, attributes = draw(_geometry(rank, letters))
    layout = [draw(_permuted(one + letters)) for one in ("NC", "OI", "NC")]
    if draw(st.booleans()):
        layout = ["NC" + letters, "OI" + letters, "NC" + letters]
    else:
        attributes["dimension_numbers"] = layout
    dtype = draw(dtypes())
    attributes |= {
        "precision": draw(precisions()),
        "preferred_element_type": draw(preferred(dtype)),
    }
    shapes = [[of[letter] for letter in spec] for of, spec in zip(sizes, layout, strict=False)]
    fields = {
        "op": "conv_general_dilated",
        "attributes": {name: of for name, of in attributes.items() if of is not None},
        "operands": {
            "lhs": draw(operand(shapes[0], dtype)),
            "rhs": draw(operand(shapes[1], dtype)),
        },
    }
    return draw(around(fields, inexact=DTYPES[dtype].is_inexact))


@st.composite
def _geometry(
    draw: st.DrawFn, rank: int, letters: str
) -> tuple[tuple[dict[str, int], dict[str, int]], dict[str, Any]]:
    """Sizes by letter of lhs and rhs, and the attributes that go with them."""
    few = st.integers(1, 3)
    images, features, channels = draw(few), draw(few), draw(few)
    if draw(st.integers(0, 15)) == 0:
        images = 0
    attributes: dict[str, Any] = {}
    left = {"N": images, "C": features}
    right = {"O": channels, "I": features}
    kind = draw(st.sampled_from(["", "", "", "feature_group_count", "batch_group_count"]))
    if kind:
        groups = draw(st.integers(2, 3))
        attributes[kind] = groups
        left["C" if kind == "feature_group_count" else "N"] *= groups
        right["O"] *= groups
    size = {letter: draw(st.integers(1, 5)) for letter in letters}
    kernel = {letter: draw(st.integers(1, 3)) for letter in letters}

    def each(most: int) -> list[int]:
        return [draw(st.integers(1, most)) for _ in range(rank)]

    attributes["window_strides"] = each(3) if draw(st.booleans()) else [1] * rank
    if draw(st.integers(0, 2)) == 0:
        attributes["rhs_dilation"] = each(2)
    if draw(st.integers(0, 2)) == 0:
        attributes["lhs_dilation"] = each(3)
    attributes["padding"] = draw(_padding(rank, named="lhs_dilation" not in attributes))
    return (left | size, right | kernel), attributes


def _padding(rank: int, *, named: bool) -> st.SearchStrategy[Any]:
    pair = st.lists(st.integers(-1, 2), min_size=2, max_size=2)
    pairs: st.SearchStrategy[Any] = st.lists(pair, min_size=rank, max_size=rank)
    names = st.sampled_from(["VALID", "SAME", "SAME_LOWER"])
    return st.one_of(names, pairs) if named else pairs


def _permuted(letters: str) -> st.SearchStrategy[str]:
    return st.permutations(list(letters)).map("".join)
