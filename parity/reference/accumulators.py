"""Which dtype a dtype's arithmetic is really done in: the accumulators and the compute dtypes.

Measured on XLA's CPU backend and its documented rewrites, not taken from a program's declaration;
a backend that accumulates narrower shows up as outside the interval.

| operands | contraction accumulates in | elementary function computed in |
|---|---|---|
| float64, complex128 | float64 | float64 |
| float32, complex64 | float32 | float32 |
| bfloat16, float16, float8, float4 | float32 | float32 |
| integers and bool, integer result | exact, wraps at the end | |
| integers, floating result | float32 or, if wider, that result's dtype | |

On a processor with float16 arithmetic (AVX512-FP16) XLA's CPU backend up to JAX 0.7.1 adds a small
float16 convolution in float16, product by product: that is outside.

A `reduce_sum` or `cumsum` that the program itself declares narrow is taken to add in that dtype:
XLA's CPU backend sums blocks and rounds each block's sum (of 128 sums of 512 bfloat16 values in
[0, 1), half differ from the value that a float32 accumulator gives). `jnp.sum` casts up first.

On processors with AVX512-FP16, XLA before JAX 0.10 leaves float16 convolutions in float16, where
each product and each partial sum is rounded: that is outside the interval.

A dot algorithm that a program asks for by name has an accumulator of its own (`algorithms`).

Source: XLA `xla/service/cpu/cpu_compiler.cc` (`ChangeOpDataType` from F16 to F32 for dots and
convolutions, float normalization for bfloat16 and float8); StableHLO's `dot_general` leaves the
accumulation type to the implementation.
"""

from __future__ import annotations

from parity.dtypes import DTYPES, DType

_FLOAT32 = DTYPES["float32"]
_FLOAT64 = DTYPES["float64"]

FLUSHING = frozenset({"float32", "bfloat16", "complex64"})
"""Dtypes whose subnormal values XLA's CPU runtime flushes to zero.

Source: measured with products of subnormals (jax-ml/jax#16200); float16 is computed in float32,
where its subnormals are normal numbers.
"""


def accumulator(operands: tuple[DType, DType], result: DType) -> DType:
    """The floating dtype in which a contraction's products are added (for complex: each part)."""
    if any(d.bits >= (128 if d.kind == "complex" else 64) and d.is_inexact for d in operands):
        return _FLOAT64
    if result.is_inexact and result.format == _FLOAT64.format:
        return _FLOAT64
    return _FLOAT32


def compute(declared: DType) -> DType:
    """The dtype in which an elementary function of a declared dtype is computed."""
    if declared.format == _FLOAT64.format:
        return _FLOAT64
    return _FLOAT32


def smallest(declared: DType) -> float:
    """η: the smallest subnormal, or the smallest normal number where subnormals are flushed."""
    assert declared.format is not None, declared
    if declared.name in FLUSHING:
        return 2.0**declared.format.emin
    return declared.format.smallest_subnormal
