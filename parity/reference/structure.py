"""Primitives that move elements by rules fixed in the program: one rule moves values and masks.

A rule takes the equation and one array per operand and returns one array, or a list of them where
the primitive has several results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from parity.reference.value import Mask, Value
from parity.reference.wide import widen

Mover = Callable[..., "np.ndarray | list[np.ndarray]"]


def move(eqn: Any, values: list[Value]) -> list[Value]:
    """What a primitive of `STRUCTURAL` makes of each part of its operands."""
    rule = STRUCTURAL[eqn.primitive.name]

    def moved(arrays: list[np.ndarray]) -> list[np.ndarray]:
        found = rule(eqn, *arrays)
        return found if isinstance(found, list) else [found]

    def masks(marked: list[Mask]) -> list[Mask]:
        if all(mask is None for mask in marked):
            return [None] * len(points)
        return [np.asarray(mask) for mask in moved(full(values, marked))]

    points = moved([value.point for value in values])
    lows, highs = points, points
    if not all(value.exact for value in values):
        lows = moved([value.lo for value in values])
        highs = moved([value.hi for value in values])
    unspecified = masks([value.unspecified for value in values])
    undecided = masks([value.undecided for value in values])
    constant = all(value.constant for value in values)
    chosen = values[0].chosen if len(values) == 1 else ()
    held = values[0].cast_from if len(values) == 1 else None
    parts = zip(points, lows, highs, unspecified, undecided, strict=True)
    return [Value(*part, constant=constant, chosen=chosen, cast_from=held) for part in parts]


def full(values: list[Value], masks: list[Mask]) -> list[np.ndarray]:
    """Masks as arrays of the shapes of their values."""
    return [
        np.zeros(value.point.shape, bool) if mask is None else mask
        for value, mask in zip(values, masks, strict=True)
    ]


def _broadcast_in_dim(eqn: Any, x: np.ndarray) -> np.ndarray:
    shape = eqn.params["shape"]
    expanded = [1] * len(shape)
    for axis, size in zip(eqn.params["broadcast_dimensions"], x.shape, strict=True):
        expanded[axis] = size
    return np.broadcast_to(x.reshape(expanded), shape)


def _reshape(eqn: Any, x: np.ndarray) -> np.ndarray:
    dimensions = eqn.params.get("dimensions")
    return (x if dimensions is None else x.transpose(dimensions)).reshape(eqn.params["new_sizes"])


def _slice(eqn: Any, x: np.ndarray) -> np.ndarray:
    strides = eqn.params["strides"] or (1,) * x.ndim
    bounds = zip(eqn.params["start_indices"], eqn.params["limit_indices"], strides, strict=True)
    return x[tuple(slice(*bound) for bound in bounds)]


def pad(x: np.ndarray, value: Any, config: Any) -> np.ndarray:
    """`lax.pad`: (low, high, interior) for each axis, low and high cropping where negative."""
    shape = [
        max(lo + hi + size + max(size - 1, 0) * interior, 0)
        for size, (lo, hi, interior) in zip(x.shape, config, strict=True)
    ]
    out = np.full(shape, value, dtype=x.dtype)
    into, of = [], []
    for size, length, (lo, _, interior) in zip(x.shape, shape, config, strict=True):
        step = interior + 1
        first = max(0, -(lo // step)) if lo < 0 else 0
        last = min(size, (length - 1 - lo) // step + 1)
        into.append(slice(lo + first * step, max(lo + (last - 1) * step + 1, 0), step))
        of.append(slice(first, max(last, first)))
    if all(part.stop > part.start for part in of):
        out[tuple(into)] = x[tuple(of)]
    return out


def _split(eqn: Any, x: np.ndarray) -> list[np.ndarray]:
    ends = np.cumsum(eqn.params["sizes"])[:-1]
    return np.split(x, ends, axis=eqn.params["axis"])


def _empty(eqn: Any) -> np.ndarray:
    """Nobody reads what an uninitialised array holds; JAX uses them as placeholders."""
    aval = eqn.outvars[0].aval
    return widen(np.zeros(aval.shape, aval.dtype))


def _same(eqn: Any, x: np.ndarray) -> np.ndarray:
    return x


STRUCTURAL: Mapping[str, Mover] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": lambda eqn, *xs: np.concatenate(xs, axis=eqn.params["dimension"]),
    "copy": _same,
    "copy_p": _same,
    "empty": _empty,
    "empty2": _empty,
    "expand_dims": lambda eqn, x: np.expand_dims(x, eqn.params["dimensions"]),
    "layout_constraint": _same,
    "mesh_cast": _same,
    "pad": lambda eqn, x, value: pad(x, value, eqn.params["padding_config"]),
    "pbroadcast": _same,
    "pcast": _same,
    "pvary": _same,
    "reshape": _reshape,
    "reshard": _same,
    "rev": lambda eqn, x: np.flip(x, eqn.params["dimensions"]),
    "sharding_constraint": _same,
    "slice": _slice,
    "split": _split,
    "squeeze": lambda eqn, x: x.squeeze(eqn.params["dimensions"]),
    "transpose": lambda eqn, x: x.transpose(eqn.params["permutation"]),
}
