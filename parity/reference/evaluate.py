"""A program under both references and under the named arithmetic models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parity.dtypes import DType, dtype
from parity.program.build import Program
from parity.reference.interpreter import Interpreter
from parity.reference.policies import (
    EXCESS_PRECISION,
    F64,
    STRICT,
    WIDE,
    Policy,
    ideal,
    narrow,
    widen,
)
from parity.worker.protocol import References


def evaluate(program: Program, inputs: Sequence[np.ndarray]) -> References:
    """Interpret a program, traced once.

    Args:
        program: what is computed.
        inputs: the operands' bits in their declared dtypes, the same that every path receives.

    Returns:
        `f64` wide; `strict` and the models in the declared dtypes; the models are there only
        where the program has a floating dtype narrower than float32.
    """
    closed = program.jaxpr
    avals = closed.in_avals
    traced = [dtype(np.dtype(aval.dtype)) for aval in avals]
    declared = [dtype(np.dtype(aval.dtype)) for aval in closed.out_avals]

    def under(policy: Policy) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
        wide = [_as_seen(x, d, policy) for x, d in zip(inputs, traced, strict=True)]
        return Interpreter(policy).run(closed, wide, [None] * len(wide))

    ideal_values, masks = under(F64)
    strict_values, _ = under(STRICT)
    models = [EXCESS_PRECISION, WIDE] if _is_narrow(closed) else []
    names = program.outputs
    return References(
        f64={name: ideal(value) for name, value in zip(names, ideal_values, strict=True)},
        strict=_narrowed(names, strict_values, declared),
        models={model.name: _narrowed(names, under(model)[0], declared) for model in models},
        unspecified={
            name: mask for name, mask in zip(names, masks, strict=True) if mask is not None
        },
        notes=_notes(inputs, traced, declared),
    )


def _as_seen(array: np.ndarray, traced: DType, policy: Policy) -> np.ndarray:
    """An operand as the program sees it: where x64 is off, JAX narrows 64-bit operands first.

    That is a cast to a narrower float, hence the identity for the ideal.
    """
    if array.dtype.name == traced.name or (traced.is_inexact and not policy.rounds):
        return widen(array)
    return widen(narrow(widen(array), traced))


def _narrowed(
    names: Sequence[str], values: Sequence[np.ndarray], declared: Sequence[DType]
) -> dict[str, np.ndarray]:
    return {n: narrow(v, d) for n, v, d in zip(names, values, declared, strict=True)}


def _is_narrow(closed: object) -> bool:
    """Whether any value of the program, calls included, has a float dtype under 32 bits."""
    from parity.program.jax_versions import called_jaxpr

    jaxpr = closed.jaxpr  # type: ignore[attr-defined]
    for eqn in jaxpr.eqns:
        inner = called_jaxpr(eqn)
        if inner is not None and _is_narrow(inner):
            return True
        for var in (*eqn.invars, *eqn.outvars):
            found = dtype(np.dtype(var.aval.dtype))
            if found.kind == "float" and found.bits < 32:
                return True
    return False


def _notes(
    inputs: Sequence[np.ndarray], traced: Sequence[DType], declared: Sequence[DType]
) -> tuple[str, ...]:
    notes = []
    narrowed = sorted(
        {f"{x.dtype.name} as {d.name}" for x, d in zip(inputs, traced, strict=True) if x.dtype.name != d.name}
    )
    if narrowed:
        notes.append(f"x64 is off: JAX takes {', '.join(narrowed)}")
    if any(d.format is not None and d.format.precision == 53 for d in declared):
        notes.append("reference no wider than the float64 that the program declares")
    return tuple(notes)
