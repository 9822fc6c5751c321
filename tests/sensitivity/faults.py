"""The planted faults: each makes of a contraction the output of a path that has it.

A fault is a function of a contraction, of the honest evaluation that the path would otherwise be,
and of a random generator; it returns the output, or None where it cannot be planted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from .contraction import DTYPES, EMIN, PRECISION, Contraction
from .geometry import Conv
from .honest import Evaluation, add_sequentially, products

Fault = Callable[[Contraction, Evaluation, np.random.Generator], np.ndarray | None]


def to_tf32(x: np.ndarray) -> np.ndarray:
    """float32 rounded to 10 explicit bits, to nearest even; NaN and infinity stay."""
    bits = x.view(np.uint32)
    rounded = (bits + np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(
        0xFFFFE000
    )
    return np.where(np.isfinite(x), rounded.view(np.float32), x)


def narrowed(dtype: str) -> Callable[[np.ndarray], np.ndarray]:
    """float32 through a narrower dtype."""

    def narrow(x: np.ndarray) -> np.ndarray:
        return x.astype(DTYPES[dtype]).astype(np.float32)

    return narrow


def one_ulp(c: Contraction, evaluate: Evaluation, rng: np.random.Generator) -> np.ndarray | None:
    """A random finite element moved to a neighbour."""
    out = c.output(evaluate(*c.factors))
    finite = np.flatnonzero(np.isfinite(out.astype(np.float32)))
    if not finite.size:
        return None
    element = rng.choice(finite)
    raw = out.reshape(-1).view(f"u{out.dtype.itemsize}").copy()
    magnitude = raw[element] & ~np.array(1 << (8 * out.dtype.itemsize - 1), raw.dtype)
    one = np.array(1, raw.dtype)
    outward = magnitude == 0 or rng.random() < 0.5
    raw[element] = raw[element] + one if outward else raw[element] - one
    return raw.view(out.dtype).reshape(out.shape)


def operands(
    rounding: Callable[[np.ndarray], np.ndarray],
    c: Contraction,
    evaluate: Evaluation,
    rng: np.random.Generator,
) -> np.ndarray | None:
    """Both operands rounded to a narrower format; None where they have it already."""
    rounded = [rounding(x) for x in c.factors]
    if all(np.array_equal(x, y, equal_nan=True) for x, y in zip(rounded, c.factors, strict=True)):
        return None
    return c.output(evaluate(*rounded))


def accumulator(
    dtype: str, c: Contraction, evaluate: Evaluation, rng: np.random.Generator
) -> np.ndarray:
    """Every product and every partial sum rounded to a narrow dtype."""
    terms = products(*c.factors).astype(DTYPES[dtype])
    return c.output(add_sequentially(terms).astype(np.float32))


def dropped_rounding(
    c: Contraction, evaluate: Evaluation, rng: np.random.Generator
) -> np.ndarray | None:
    """The contraction's own rounding left out, only that of the output kept."""
    if len(c.scheme.chain) == 1:
        return None
    return c.arranged(evaluate(*c.factors)).astype(DTYPES[c.scheme.chain[-1]])


def truncated(c: Contraction, evaluate: Evaluation, rng: np.random.Generator) -> np.ndarray:
    """Sums of a wide accumulator cut off instead of rounded."""
    a, b = (x.astype(np.float64) for x in c.factors)
    out = c.arranged(np.matmul(a, b.swapaxes(-1, -2)))
    for name in c.scheme.chain:
        quantum = np.maximum(np.frexp(out)[1], EMIN[name] + 1) - PRECISION[name]
        out = np.ldexp(np.trunc(np.ldexp(out, -quantum)), quantum)
    return out.astype(DTYPES[c.scheme.chain[-1]])


def flushed(c: Contraction, evaluate: Evaluation, rng: np.random.Generator) -> np.ndarray | None:
    """Subnormal operands and results replaced by zeros of their sign."""

    def flush(x: np.ndarray, dtype: str) -> np.ndarray:
        zeros = np.copysign(np.float32(0), x)
        return np.where(np.abs(x) < np.float32(2.0 ** EMIN[dtype]), zeros, x)

    sums = evaluate(*(flush(x, c.scheme.compute) for x in c.factors))
    out = c.arranged(flush(sums, "float32"))
    for name in c.scheme.chain:
        out = flush(out.astype(DTYPES[name]).astype(np.float32), name)
    out = out.astype(DTYPES[c.scheme.chain[-1]])
    return None if np.array_equal(out, c.output(evaluate(*c.factors)), equal_nan=True) else out


def nan_to_zero(
    c: Contraction, evaluate: Evaluation, rng: np.random.Generator
) -> np.ndarray | None:
    out = c.output(evaluate(*c.factors))
    nan = np.isnan(out.astype(np.float32))
    return np.where(nan, np.zeros_like(out), out) if nan.any() else None


def plus_zero(c: Contraction, evaluate: Evaluation, rng: np.random.Generator) -> np.ndarray | None:
    """-0 turned to +0."""
    out = c.output(evaluate(*c.factors))
    negative = (out == 0) & np.signbit(out.astype(np.float32))
    return np.where(negative, np.zeros_like(out), out) if negative.any() else None


def transposed_filter(
    c: Contraction, evaluate: Evaluation, rng: np.random.Generator
) -> np.ndarray | None:
    """Two axes of rhs swapped where they are of one length, else its only taps reversed."""
    lhs, rhs = c.inputs
    if isinstance(c.geometry, Conv):
        spec = c.geometry.specs[1]
        space = [spec.index(axis) for axis in spec if axis not in "OI"]
        if rhs.shape[space[0]] == 1:
            return None
        swapped = rhs.swapaxes(*space) if len(space) == 2 else np.flip(rhs, space[0])
    elif rhs.ndim == 2 and rhs.shape[0] == rhs.shape[1]:
        swapped = rhs.T
    else:
        return None
    wrong = dataclasses.replace(c, inputs=(lhs, np.ascontiguousarray(swapped)))
    return c.output(evaluate(*wrong.factors))


def shifted_pad(
    c: Contraction, evaluate: Evaluation, rng: np.random.Generator
) -> np.ndarray | None:
    """One more row of padding before and one less after."""
    if not isinstance(c.geometry, Conv):
        return None
    padding = tuple((low + 1, high - 1) for low, high in c.geometry.padding)
    left, right, _ = dataclasses.replace(c.geometry, padding=padding).unfold()
    return c.output(evaluate(*c.gather(left, right)))


def wrong_group(
    c: Contraction, evaluate: Evaluation, rng: np.random.Generator
) -> np.ndarray | None:
    """Each group (of a dot: each batch) takes the filter of the one before."""
    a, b = c.factors
    return None if len(b) == 1 else c.output(evaluate(a, np.roll(b, 1, axis=0)))


def swapped(c: Contraction, evaluate: Evaluation, rng: np.random.Generator) -> np.ndarray | None:
    """rhs in the place of lhs and lhs in that of rhs."""
    a, b = c.factors
    same = c.inputs[0].shape == c.inputs[1].shape or not isinstance(c.geometry, Conv)
    return c.output(evaluate(b, a)) if a.shape == b.shape and a.shape[1] > 1 and same else None


def wrong_dtype(c: Contraction, evaluate: Evaluation, rng: np.random.Generator) -> np.ndarray:
    """bfloat16 for float32, float32 for anything narrower."""
    out = c.output(evaluate(*c.factors))
    return out.astype(DTYPES["bfloat16" if out.dtype == np.float32 else "float32"])


def bias(
    size: float, c: Contraction, evaluate: Evaluation, rng: np.random.Generator
) -> np.ndarray | None:
    """A share of the output's rms added to every element."""
    out = c.output(evaluate(*c.factors))
    wide = out.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    if not finite.any():
        return None
    moved = wide + size * np.sqrt(np.mean(finite**2))
    return moved.astype(np.float32).astype(out.dtype)


FAULTS: Mapping[str, Fault] = {
    "one ulp in one element": one_ulp,
    "bf16 operands": partial(operands, narrowed("bfloat16")),
    "TF32 operands": partial(operands, to_tf32),
    "f16 operands": partial(operands, narrowed("float16")),
    "bf16 accumulator": partial(accumulator, "bfloat16"),
    "f16 accumulator": partial(accumulator, "float16"),
    "output rounding dropped": dropped_rounding,
    "output truncated": truncated,
    "subnormals flushed": flushed,
    "NaN turned to 0": nan_to_zero,
    "-0 turned to +0": plus_zero,
    "transposed filter": transposed_filter,
    "off-by-one pad": shifted_pad,
    "wrong group order": wrong_group,
    "swapped operands": swapped,
    "wrong output dtype": wrong_dtype,
    "bias of 2^-8 rms": partial(bias, 2.0**-8),
    "bias of 2^-16 rms": partial(bias, 2.0**-16),
}
