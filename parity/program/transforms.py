"""What a transform makes of a function: forward, vjp, jvp, vmap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from parity.dtypes import dtype
from parity.program.outputs import OUT, ProgramError, spelt
from parity.program.spec import PARAMETERS, ProgramSpec

Arrays = Mapping[str, Any]
Function = Callable[[Arrays], dict[str, Any]]
"""Arrays by name in, arrays by name out."""

LEARNT = "params."
"""How the names of the parameters begin that gradients are taken of."""


def apply(spec: ProgramSpec, forward: Function, parameters: Sequence[str]) -> Function:
    """The transformed function.

    Args:
        spec: says which transform.
        forward: of operands and parameters.
        parameters: the names of all parameters.

    Returns:
        A function of the operands, the parameters and what the transform takes beside them. Its
        outputs are those of `forward`; for vjp one gradient "vjp.NAME" for each operand and
        parameter that is differentiated; for jvp the tangent "jvp.OUTPUT" of each floating output;
        "vmap.OUTPUT".
    """
    return _TRANSFORMS[spec.transform](spec, forward, parameters)


def differentiated(spec: ProgramSpec, parameters: Sequence[str]) -> list[str]:
    """The operands and parameters, by name, that vjp and jvp differentiate."""
    floating = [o.name for o in spec.operands if dtype(o.dtype).is_inexact]
    names = [name for name in floating if name in (spec.gradients or floating)]
    learnt = PARAMETERS in spec.gradients
    return names + [name for name in parameters if learnt and name.startswith(LEARNT)]


def cotangents(spec: ProgramSpec, outputs: Arrays) -> dict[str, str | None]:
    """The outputs that vjp differentiates, each with the input that is its cotangent; None is 1.

    Raises:
        ProgramError: there is no such output, or none is named and it is not clear which one.
    """
    given = {e.name.partition(".")[2] or OUT: e.name for e in spec.extra}
    for name in given:
        if name not in outputs:
            listed = ", ".join(outputs)
            written = ", ".join(f"{n}: …" for n, out in outputs.items() if _is_inexact(out))
            raise ProgramError(
                f"a cotangent is given for {name} (the outputs are {listed}); "
                f"write cotangents: {{{written}}}"
            )
    if given:
        return {name: given[name] for name in outputs if name in given}
    floating = {name: out for name, out in outputs.items() if _is_inexact(out)}
    if len(floating) == 1 and next(iter(floating.values())).shape == ():
        return dict.fromkeys(floating)
    shown = ", ".join(f"{name} {spelt(out)}" for name, out in floating.items()) or "none"
    raise ProgramError(
        f"vjp needs a cotangent of one or more outputs (the floating ones are {shown}); "
        "write cotangents: {NAME: {shape: […], dtype: …}}"
    )


def _is_inexact(array: Any) -> bool:
    return dtype(array.dtype).is_inexact


def _as_tuple(function: Function, inputs: Arrays, names: Sequence[str], seen: list[str]) -> Any:
    """`function` as one of the named inputs alone that gives a tuple; `seen` gets its names."""

    def tupled(*values: Any) -> tuple[Any, ...]:
        outputs = function({**inputs, **dict(zip(names, values, strict=True))})
        seen[:] = outputs
        return tuple(outputs.values())

    return tupled


def _forward(spec: ProgramSpec, forward: Function, parameters: Sequence[str]) -> Function:
    return forward


def _vjp(spec: ProgramSpec, forward: Function, parameters: Sequence[str]) -> Function:
    names = differentiated(spec, parameters)

    def gradients(inputs: Arrays) -> dict[str, Any]:
        chosen: dict[str, str | None] = {}

        def differentiable(inside: Arrays) -> dict[str, Any]:
            outputs = forward(inside)
            chosen.update(cotangents(spec, outputs))
            return {name: outputs[name] for name in chosen}

        seen: list[str] = []
        function = _as_tuple(differentiable, inputs, names, seen)
        outputs, pullback = jax.vjp(function, *(inputs[name] for name in names))
        pulled = pullback(
            tuple(
                _cotangent(inputs, chosen[name], name, out)
                for name, out in zip(seen, outputs, strict=True)
            )
        )
        return {f"vjp.{name}": gradient for name, gradient in zip(names, pulled, strict=True)}

    return gradients


def _cotangent(inputs: Arrays, given: str | None, name: str, output: Any) -> Any:
    """The cotangent of an output, checked against it."""
    if given is None:
        return jax.numpy.ones((), output.dtype)
    cotangent = inputs[given]
    if (cotangent.shape, cotangent.dtype) != (output.shape, output.dtype):
        raise ProgramError(
            f"the cotangent of {name} is not like the output "
            f"(got {spelt(cotangent)}; allowed {spelt(output)})"
        )
    return cotangent


def _jvp(spec: ProgramSpec, forward: Function, parameters: Sequence[str]) -> Function:
    names = differentiated(spec, parameters)

    def tangents(inputs: Arrays) -> dict[str, Any]:
        seen: list[str] = []
        function = _as_tuple(forward, inputs, names, seen)
        primals = tuple(inputs[name] for name in names)
        given = tuple(inputs[f"tangent.{name}"] for name in names)
        _, out = jax.jvp(function, primals, given)
        pairs = zip(seen, out, strict=True)
        found = {f"jvp.{n}": t for n, t in pairs if t.dtype != jax.dtypes.float0}
        if not found:
            raise ProgramError("jvp needs a floating output")
        return found

    return tangents


def _vmap(spec: ProgramSpec, forward: Function, parameters: Sequence[str]) -> Function:
    names = [operand.name for operand in spec.operands]
    axes = tuple(0 if spec.is_batched(name) else None for name in names)

    def mapped(inputs: Arrays) -> dict[str, Any]:
        seen: list[str] = []
        function = _as_tuple(forward, inputs, names, seen)
        outputs = jax.vmap(function, in_axes=axes)(*(inputs[name] for name in names))
        return {f"vmap.{name}": out for name, out in zip(seen, outputs, strict=True)}

    return mapped


_TRANSFORMS = {"forward": _forward, "vjp": _vjp, "jvp": _jvp, "vmap": _vmap}
