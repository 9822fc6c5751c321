"""What a transform makes of a function: forward, vjp, jvp, vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from parity.dtypes import dtype
from parity.program.spec import ProgramSpec

Function = Callable[..., tuple[Any, ...]]


def apply(spec: ProgramSpec, forward: Callable[..., Any]) -> tuple[Function, tuple[str, ...]]:
    """The transformed function and the names of its outputs.

    Args:
        spec: says which transform.
        forward: takes the operands, in order, and returns one array.

    Returns:
        A function of `spec.inputs()` that returns a tuple, and a name for each of its members:
        "out"; for vjp one gradient "vjp.NAME" per floating operand; for jvp the tangent
        "jvp.out"; "vmap.out".
    """
    return _TRANSFORMS[spec.transform](spec, forward)


def _differentiable(spec: ProgramSpec) -> list[int]:
    return [i for i, o in enumerate(spec.operands) if dtype(o.dtype).is_inexact]


def _restricted(
    forward: Callable[..., Any], operands: tuple[Any, ...], indices: list[int]
) -> Callable[..., Any]:
    """`forward` as a function of the operands at `indices` alone."""

    def function(*chosen: Any) -> Any:
        full = list(operands)
        for index, value in zip(indices, chosen, strict=True):
            full[index] = value
        return forward(*full)

    return function


def _forward(spec: ProgramSpec, forward: Callable[..., Any]) -> tuple[Function, tuple[str, ...]]:
    return lambda *operands: (forward(*operands),), ("out",)


def _vjp(spec: ProgramSpec, forward: Callable[..., Any]) -> tuple[Function, tuple[str, ...]]:
    indices = _differentiable(spec)

    def gradients(*inputs: Any) -> tuple[Any, ...]:
        *operands, cotangent = inputs
        function = _restricted(forward, tuple(operands), indices)
        _, pullback = jax.vjp(function, *(operands[i] for i in indices))
        return tuple(pullback(cotangent))

    return gradients, tuple(f"vjp.{spec.operands[i].name}" for i in indices)


def _jvp(spec: ProgramSpec, forward: Callable[..., Any]) -> tuple[Function, tuple[str, ...]]:
    indices = _differentiable(spec)
    count = len(spec.operands)

    def tangent(*inputs: Any) -> tuple[Any, ...]:
        operands, tangents = inputs[:count], inputs[count:]
        function = _restricted(forward, operands, indices)
        _, out = jax.jvp(function, tuple(operands[i] for i in indices), tuple(tangents))
        return (out,)

    return tangent, ("jvp.out",)


def _vmap(spec: ProgramSpec, forward: Callable[..., Any]) -> tuple[Function, tuple[str, ...]]:
    return lambda *operands: (jax.vmap(forward)(*operands),), ("vmap.out",)


_TRANSFORMS = {"forward": _forward, "vjp": _vjp, "jvp": _jvp, "vmap": _vmap}
