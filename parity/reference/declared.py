"""Bits and random numbers: JAX evaluates these exactly as the program declares them.

Random keys are held as Python integers, one a key, so that whatever moves elements moves keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parity.program import jax_versions
from parity.reference.equation import declared_dtype
from parity.reference.value import Mask, Value, parts
from parity.reference.wide import narrow, widen

DECLARED = frozenset({
    "bitcast_convert_type", "clz", "nextafter", "not", "population_count", "random_bits",
    "random_clone", "random_fold_in", "random_seed", "random_split", "random_unwrap",
    "random_wrap", "rng_bit_generator", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "threefry2x32",
})  # fmt: skip
"""Primitives that depend on how wide a value is or on its bits: never evaluated wide."""

_WORD = 32


def evaluate(eqn: Any, values: list[Value]) -> list[Value]:
    """The results of a primitive of `DECLARED`, on operands in their declared dtypes.

    An element is undecided, a floating one of unknown size, where it depends on one that is, or on
    one with an interval.
    """
    operands = [
        _narrowed(value.point, atom) for value, atom in zip(values, eqn.invars, strict=True)
    ]
    points = [
        _widened(out, var)
        for out, var in zip(jax_versions.bind(eqn, operands), eqn.outvars, strict=True)
    ]
    constant = all(value.constant for value in values)
    unsure = any(_unsure(value) for value in values)
    found = []
    for point in points:
        unspecified = _marks(values, [value.unspecified for value in values], point)
        undecided = _marks(values, [_open(v) for v in values], point) if unsure else None
        ends = _anything(point, undecided)
        found.append(Value(point, *ends, unspecified, undecided, constant=constant))
    return found


def _anything(point: np.ndarray, undecided: Mask) -> tuple[np.ndarray, np.ndarray]:
    """Ends of what comes from bits: other bits may be any number."""
    if undecided is None or point.dtype.kind not in "fc":
        return point, point
    return (
        parts(lambda x: np.where(undecided, -np.inf, x), point),
        parts(lambda x: np.where(undecided, np.inf, x), point),
    )


def _unsure(value: Value) -> bool:
    return value.undecided is not None or not value.exact


def _open(value: Value) -> np.ndarray:
    apart = np.zeros(value.point.shape, bool) if value.exact else value.lo != value.hi
    return np.asarray(apart if value.undecided is None else apart | value.undecided)


def _marks(values: list[Value], masks: list[Any], point: np.ndarray) -> np.ndarray | None:
    """Marked elements of the operands, one by one where all shapes agree or are ()."""
    given = [mask for mask in masks if mask is not None]
    if not any(mask.any() for mask in given):
        return None
    if all(value.point.shape in (point.shape, ()) for value in values):
        return np.broadcast_to(np.logical_or.reduce(np.broadcast_arrays(*given)), point.shape)
    return np.ones(point.shape, bool)


def _narrowed(point: np.ndarray, atom: Any) -> Any:
    if not jax_versions.is_key(atom.aval):
        return narrow(point, declared_dtype(atom))
    count = jax_versions.words_of_key(atom.aval)
    words = [(point >> _WORD * (count - 1 - i)) & ((1 << _WORD) - 1) for i in range(count)]
    data = np.stack([np.asarray(word, object) for word in words], axis=-1).astype(np.uint32)
    return jax_versions.keys_of(data, atom.aval)


def _widened(out: Any, var: Any) -> np.ndarray:
    if not jax_versions.is_key(var.aval):
        return widen(np.asarray(out))
    data = np.asarray(jax_versions.words_of(out))
    total = np.zeros(data.shape[:-1], object)
    for i in range(data.shape[-1]):
        total = (total << _WORD) | data[..., i].astype(object)
    return np.asarray(total, object)
