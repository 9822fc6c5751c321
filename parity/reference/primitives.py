"""The value of each primitive on wide NumPy arrays, one entry per primitive.

A rule takes the equation and its wide operands and returns the wide result. A primitive without a
rule here is evaluated by JAX on the CPU with 64-bit types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from parity.dtypes import dtype
from parity.reference import kernels, pooling
from parity.reference.equation import declared_dtype
from parity.reference.ieee import MAXIMUM, MINIMUM, Extreme
from parity.reference.positions import of_windows, ranked, scatter_window

Rule = Callable[..., np.ndarray]


def _convert_element_type(eqn: Any, x: np.ndarray) -> np.ndarray:
    target = dtype(np.dtype(eqn.params["new_dtype"]))
    if target.kind == "complex":
        return x.astype(np.complex128)
    if target.kind == "float":
        return to_float(x)
    if target.kind == "bool":
        return np.asarray(x != 0)
    if x.dtype.kind in "fc":
        return _float_to_integer(eqn, x.real)
    return x.astype(np.int64) if x.dtype == bool else x


def to_float(x: np.ndarray) -> np.ndarray:
    """Wide values as float64 such that a later rounding to at most 43 bits is still the only one.

    An integer beyond 2**53 is cut to 53 bits with the lost part or-ed into the last one.
    Source: rounding to odd, Boldo and Melquiond, IEEE Trans. Computers 57(4), 2008.
    """
    if x.dtype.kind not in "iu" or not x.size or max(abs(int(x.min())), int(x.max())) <= 2**53:
        return np.real(x).astype(np.float64)
    lost = (x & 0x7FF) != 0
    return np.asarray(((x >> 11) | lost.astype(x.dtype)) << 11, np.float64)


def _float_to_integer(eqn: Any, x: np.ndarray) -> np.ndarray:
    """Rounded toward zero; what is out of range is XLA's choice and left to it."""
    from jax import lax

    from parity.program.jax_versions import enable_x64

    with enable_x64(True):
        out = np.asarray(lax.convert_element_type(x, eqn.params["new_dtype"]))
    return out.astype(np.uint64 if out.dtype == np.uint64 else np.int64)


def _operands(eqn: Any, lhs: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both operands of a contraction in one arithmetic: exact integers only if both are.

    Bools are or-ed only where the result is bool; for any other preferred type they are counted.
    """
    kinds = lhs.dtype.kind + rhs.dtype.kind
    if kinds == "bb" and declared_dtype(eqn.outvars[0]).kind != "bool":
        return lhs.astype(np.int64), rhs.astype(np.int64)
    if "c" in kinds:
        return lhs.astype(np.complex128), rhs.astype(np.complex128)
    if "f" in kinds:
        return to_float(lhs), to_float(rhs)
    return lhs, rhs


def _dot_general(eqn: Any, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    lhs, rhs = _operands(eqn, lhs, rhs)
    out = kernels.dot_general(lhs, rhs, dimension_numbers=eqn.params["dimension_numbers"])
    return _in_output_kind(eqn, out)


def convolution_attributes(eqn: Any) -> dict[str, Any]:
    """The keyword arguments of `kernels.conv_general_dilated` for an equation."""
    names = "window_strides padding lhs_dilation rhs_dilation feature_group_count batch_group_count"
    attributes = {name: eqn.params[name] for name in names.split()}
    numbers = eqn.params["dimension_numbers"]
    attributes["dimension_numbers"] = (numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec)
    return attributes


def _conv_general_dilated(eqn: Any, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    lhs, rhs = _operands(eqn, lhs, rhs)
    out = kernels.conv_general_dilated(lhs, rhs, **convolution_attributes(eqn))
    return _in_output_kind(eqn, out)


def _in_output_kind(eqn: Any, out: np.ndarray) -> np.ndarray:
    """Integer products with a floating preferred_element_type are floating."""
    declared = declared_dtype(eqn.outvars[0])
    if declared.kind == "complex":
        return out.astype(np.complex128)
    if declared.kind == "float" and out.dtype.kind != "f":
        return out.astype(np.float64) if out.dtype == object else to_float(out)
    return out


def _reduce_sum(eqn: Any, x: np.ndarray) -> np.ndarray:
    axes = tuple(eqn.params["axes"])
    if x.dtype.kind in "iu" and x.size:
        largest = max(abs(int(x.min())), abs(int(x.max())))
        if largest * x.size >= 2**63:
            return np.asarray(x.astype(object).sum(axis=axes), dtype=object)
    return np.asarray(x.sum(axis=axes))


def _integer_aware(function: Callable[..., Any]) -> Rule:
    """An arithmetic function that is exact on integers: in Python integers where int64 is short."""

    def rule(eqn: Any, *operands: np.ndarray) -> np.ndarray:
        if any(x.dtype.kind in "iu" and x.dtype.itemsize == 8 for x in operands) and _is_64bit(eqn):
            return np.asarray(function(*(x.astype(object) for x in operands)), dtype=object)
        return np.asarray(function(*operands))

    return rule


def _is_64bit(eqn: Any) -> bool:
    return any(np.dtype(v.aval.dtype).itemsize == 8 for v in eqn.outvars)


def _iota(eqn: Any) -> np.ndarray:
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    kind = np.float64 if declared_dtype(eqn.outvars[0]).is_inexact else np.int64
    line = np.arange(shape[axis], dtype=kind)
    return np.broadcast_to(line.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)


def _select_n(eqn: Any, which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    index = np.broadcast_to(which.astype(np.int64), cases[0].shape)
    found = np.choose(index, cases) if len(cases) <= 32 else np.stack(cases)[index]
    whole = any(case.dtype == object for case in cases)  # NumPy gives one of these as no array
    return np.asarray(found, object if whole else None)


def _same(eqn: Any, x: np.ndarray) -> np.ndarray:
    return x


def _plain(function: Callable[..., Any]) -> Rule:
    return lambda eqn, *operands: np.asarray(function(*operands))


def _floating(function: Callable[..., Any]) -> Rule:
    """A NumPy function for floating operands; integers are left to JAX's own semantics."""

    def rule(eqn: Any, *operands: np.ndarray) -> np.ndarray:
        if all(x.dtype.kind in "fc" for x in operands):
            return np.asarray(function(*operands))
        return by_jax(eqn, *operands)[0]

    return rule


def by_jax(eqn: Any, *operands: np.ndarray) -> list[np.ndarray]:
    """A primitive evaluated by JAX on the CPU with 64-bit types; all its outputs, wide."""
    import jax

    from parity.program.jax_versions import bind, enable_x64
    from parity.reference.wide import widen

    with enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        outs = bind(eqn, [jax.numpy.asarray(value) for value in operands])
    return [widen(np.asarray(out)) for out in outs]


def _reduction(function: np.ufunc) -> Rule:
    return lambda eqn, x: np.asarray(function.reduce(x, axis=tuple(eqn.params["axes"])))


def _extreme(function: Extreme, sign: int) -> Rule:
    """A maximum (sign 1) or minimum (sign -1) over axes, which may be empty."""

    def rule(eqn: Any, x: np.ndarray) -> np.ndarray:
        neutral = pooling.neutral_element(eqn, x, sign)
        return np.asarray(function.reduce(x, axis=tuple(eqn.params["axes"]), initial=neutral))

    return rule


def _scattered(function: Callable[..., np.ndarray]) -> Rule:
    """scatter-add and the like: update after update, those outside left out."""

    def rule(eqn: Any, operand: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        window = scatter_window(eqn.params, operand.shape, updates.shape)
        into = of_windows(operand.shape, indices, window).ravel()
        out, flat = np.array(operand).ravel(), updates.ravel()
        for at, number in ranked(into):
            out[at] = function(out[at], flat[number])
        return out.reshape(operand.shape)

    return rule


def _cumulative(function: Callable[..., Any]) -> Rule:
    def rule(eqn: Any, x: np.ndarray) -> np.ndarray:
        axis = eqn.params["axis"]
        if not eqn.params["reverse"]:
            return np.asarray(function(x, axis=axis))
        return np.flip(function(np.flip(x, axis), axis=axis), axis)

    return rule


def _integer_pow(eqn: Any, x: np.ndarray) -> np.ndarray:
    if x.dtype.kind not in "fc":
        return by_jax(eqn, x)[0]
    return np.asarray(x ** eqn.params["y"])


def _round(eqn: Any, x: np.ndarray) -> np.ndarray:
    to_even = int(eqn.params["rounding_method"]) == 1
    return np.asarray(np.rint(x) if to_even else np.trunc(x + np.copysign(0.5, x)))


def _clamp(eqn: Any, low: np.ndarray, x: np.ndarray, high: np.ndarray) -> np.ndarray:
    return MINIMUM(MAXIMUM(x, low), high)


def _logistic(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


CONTRACTIONS: Mapping[str, Rule] = {
    "conv_general_dilated": _conv_general_dilated,
    "dot_general": _dot_general,
}

ELEMENTWISE: Mapping[str, Rule] = {
    "abs": _plain(np.abs),
    "ceil": _floating(np.ceil),
    "clamp": _clamp,
    "cos": _floating(np.cos),
    "div": _floating(np.divide),
    "exp": _floating(np.exp),
    "exp2": _floating(np.exp2),
    "expm1": _floating(np.expm1),
    "floor": _floating(np.floor),
    "integer_pow": _integer_pow,
    "is_finite": _plain(np.isfinite),
    "log": _floating(np.log),
    "log1p": _floating(np.log1p),
    "logistic": _floating(_logistic),
    "round": _round,
    "rsqrt": _floating(lambda x: 1 / np.sqrt(x)),
    "sign": _floating(lambda x: np.where(x == 0, x, np.sign(x))),  # NumPy loses the sign of -0
    "sin": _floating(np.sin),
    "sqrt": _floating(np.sqrt),
    "square": _floating(np.square),
    "stop_gradient": _same,
    "tanh": _floating(np.tanh),
    "add": _integer_aware(np.add),
    "add_any": _integer_aware(np.add),
    "and": _plain(np.bitwise_and),
    "complex": _plain(lambda re, im: re + 1j * im),
    "conj": _plain(np.conj),
    "convert_element_type": _convert_element_type,
    "eq": _plain(np.equal),
    "ge": _plain(np.greater_equal),
    "gt": _plain(np.greater),
    "imag": _plain(np.imag),
    "le": _plain(np.less_equal),
    "lt": _plain(np.less),
    "max": _plain(MAXIMUM),
    "min": _plain(MINIMUM),
    "mul": _integer_aware(np.multiply),
    "ne": _plain(np.not_equal),
    "neg": _integer_aware(np.negative),
    "or": _plain(np.bitwise_or),
    "real": _plain(np.real),
    "select_n": _select_n,
    "sub": _integer_aware(np.subtract),
}

ELEMENTWISE_BY_JAX = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e", "bessel_i1e",
    "cbrt", "cosh", "digamma", "erf", "erf_inv", "erfc", "igamma", "igammac",
    "lgamma", "polygamma", "pow",
    "reduce_precision", "rem", "sinh", "tan", "xor", "zeta",
}  # fmt: skip
"""Primitives without a rule that treat each element apart."""

RULES: Mapping[str, Rule] = {
    **CONTRACTIONS,
    **ELEMENTWISE,
    "cumlogsumexp": _cumulative(np.logaddexp.accumulate),
    "cummax": _cumulative(MAXIMUM.accumulate),
    "cummin": _cumulative(MINIMUM.accumulate),
    "cumprod": _cumulative(np.cumprod),
    "cumsum": _cumulative(np.cumsum),
    "iota": _iota,
    "reduce_and": _reduction(np.bitwise_and),
    "reduce_max": _extreme(MAXIMUM, 1),
    "reduce_min": _extreme(MINIMUM, -1),
    "reduce_or": _reduction(np.bitwise_or),
    "reduce_prod": _reduction(np.multiply),
    "reduce_sum": _reduce_sum,
    "reduce_window_max": pooling.window_extreme(MAXIMUM, 1),
    "reduce_window_min": pooling.window_extreme(MINIMUM, -1),
    "reduce_window_sum": pooling.window_sum,
    "reduce_xor": _reduction(np.bitwise_xor),
    "scatter-add": _scattered(np.add),
    "scatter-max": _scattered(MAXIMUM),
    "scatter-min": _scattered(MINIMUM),
    "scatter-mul": _scattered(np.multiply),
    "select_and_scatter_add": pooling.scatter_choice,
}
