"""Hypothesis strategies for what case files say of operands, whatever the op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from parity.casefile import values
from parity.compare.ulp import part_of
from parity.dtypes import DTYPES, DType
from parity.reference.rounding import cast

Fields = dict[str, Any]

FLOATS = ("float32", "bfloat16", "float16", "float64", "float8_e4m3fn", "float8_e5m2")
INTEGERS = ("int32", "int8", "uint8", "int16", "int64", "uint32", "int4")
COMPLEX = ("complex64", "complex128")
_LISTED = 16
_SEEDS = 1000
_HAS_SUBNORMALS = ("float32", "bfloat16", "float16")


def dtypes() -> st.SearchStrategy[str]:
    """A dtype: most often a float, but any kind."""
    kinds = st.sampled_from([FLOATS, FLOATS, FLOATS, INTEGERS, INTEGERS, ("bool",), COMPLEX])
    return kinds.flatmap(st.sampled_from)


def precisions() -> st.SearchStrategy[Any]:
    """A precision of a contraction, most often the default."""
    one = st.sampled_from(["default", "high", "highest"])
    return st.one_of(st.none(), st.none(), st.none(), one, st.lists(one, min_size=2, max_size=2))


def preferred(dtype: str) -> st.SearchStrategy[str | None]:
    """A `preferred_element_type`: none, one that is wide enough, or any at all.

    JAX refuses what is narrower than the operands, and complex results of others and vice versa.
    """
    given = DTYPES[dtype]
    complex_ = given.kind == "complex"
    wide = [
        name
        for name in (*COMPLEX, *FLOATS, *INTEGERS)
        if DTYPES[name].bits >= given.bits and (DTYPES[name].kind == "complex") == complex_
    ]
    fitting, whatever = st.sampled_from(wide), st.sampled_from([*FLOATS, *INTEGERS, *COMPLEX])
    return st.integers(0, 9).flatmap(
        lambda n: st.none() if n < 5 else whatever if n == 9 else fitting
    )


@st.composite
def operand(draw: st.DrawFn, shape: Sequence[int], dtype: str) -> Fields:
    """An operand of a shape and dtype: drawn, or of values that are hard to compute with."""
    made: Fields = {"shape": list(shape), "dtype": dtype}
    count = int(np.prod(shape, dtype=int))
    if 0 < count <= _LISTED and draw(st.integers(0, 2)) == 0:
        hard = st.sampled_from(_hard(DTYPES[dtype]))
        flat = draw(st.lists(hard, min_size=count, max_size=count))
        made["values"] = np.array(flat, object).reshape(shape).tolist()
    else:
        made |= draw(_drawn(DTYPES[dtype])) | {"seed": draw(st.integers(0, _SEEDS))}
    return made


def _hard(kind: DType) -> list[Any]:
    """Values at which arithmetic goes wrong, as case files write them."""
    if kind.kind == "bool":
        return [False, True]
    if not kind.is_inexact:
        info = np.iinfo(kind.numpy()) if kind.bits >= 8 else None
        low = int(info.min) if info else (-(2 ** (kind.bits - 1)) if kind.kind == "int" else 0)
        high = int(info.max) if info else 2 ** (kind.bits - (kind.kind == "int")) - 1
        return sorted({0, 1, 2, low, low + 1, high, high - 1, *([-1] if low else [])})
    assert kind.format is not None
    form = kind.format
    wide = [0.0, -0.0, 1.0, -1.0, 1 / 3, 1 + 2 * form.unit_roundoff, 2.0**form.emin]
    wide += [form.smallest_subnormal, form.max_finite, -form.max_finite]
    wide += [float("inf"), float("-inf"), float("nan")]
    return [values.listing(one) for one in cast(np.array(wide), part_of(kind))]


def _drawn(kind: DType) -> st.SearchStrategy[Fields]:
    """A distribution with its parameters."""
    if kind.kind == "bool":
        return st.just({"draw": "integers", "low": 0, "high": 1})
    if not kind.is_inexact:
        least = 0 if kind.kind == "uint" else 1
        most = 2 ** min(kind.bits - least, 31) - 1
        few = min(4, most)
        spans = st.sampled_from([1, few, few, few, most // 2, most])
        low = (lambda high: -high) if least else (lambda high: 0)
        return spans.map(lambda high: {"draw": "integers", "low": low(high), "high": high})
    plain = [{"draw": name} for name in ("normal", "normal", "uniform", "integers", "cancellation")]
    plain += [{"draw": name} for name in ("log_uniform", "wide_range", "signed_zeros", "nonfinite")]
    if kind.name in _HAS_SUBNORMALS:
        plain.append({"draw": "subnormals", "of": kind.name})
    return st.sampled_from(plain)


@st.composite
def around(draw: st.DrawFn, fields: Fields, *, inexact: bool) -> Fields:
    """A case with casts around its op, and under a transform.

    Args:
        draw: Hypothesis's.
        fields: `op`, `operands` and `attributes`.
        inexact: whether its operands can be differentiated.
    """
    made = dict(fields)
    if inexact and draw(st.integers(0, 4)) == 0:
        made["compute_dtype"] = draw(st.sampled_from(["bfloat16", "float16", "float32"]))
        made["output_dtype"] = draw(st.sampled_from(["float32", "bfloat16"]))
    known = ["forward"] * 5 + ["vmap"] + (["vjp", "vjp", "jvp"] if inexact else [])
    transform = draw(st.sampled_from(known))
    if transform != "forward":
        made["transforms"] = [transform]
    if transform == "vmap":
        made["batch"] = draw(st.integers(1, 3))
    return made
