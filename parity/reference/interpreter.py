"""A jaxpr interpreted on wide NumPy arrays under an arithmetic model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parity.dtypes import dtype
from parity.program import jax_versions
from parity.reference import kernels
from parity.reference.policies import Policy, widen
from parity.reference.primitives import (
    CONTRACTIONS,
    ELEMENTWISE,
    RULES,
    STRUCTURAL,
    convolution_attributes,
)

Mask = np.ndarray | None
"""Which elements no rule determines (bool, of the value's shape); None for none."""


class Interpreter:
    """Evaluates closed jaxprs under one policy.

    Args:
        policy: what becomes of each equation's result.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def run(
        self, closed: Any, inputs: Sequence[np.ndarray], masks: Sequence[Mask], *, top: bool = True
    ) -> tuple[list[np.ndarray], list[Mask]]:
        """The wide outputs of a closed jaxpr, and which of their elements are unspecified.

        Args:
            closed: a `jax.extend.core.ClosedJaxpr`.
            inputs: wide arrays, one for each input.
            masks: their unspecified elements.
            top: whether these are the inputs of the whole program.
        """
        jaxpr = closed.jaxpr
        env: dict[Any, tuple[np.ndarray, Mask]] = {}
        for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
            env[var] = (widen(np.asarray(const)), None)
        for var, value, mask in zip(jaxpr.invars, inputs, masks, strict=True):
            env[var] = (value, mask)
        own = set(jaxpr.invars) if top else set()

        def read(atom: Any) -> tuple[np.ndarray, Mask]:
            if isinstance(atom, jax_versions.Literal):
                return widen(np.asarray(atom.val, dtype=atom.aval.dtype)), None
            return env[atom]

        for eqn in jaxpr.eqns:
            pairs = [read(atom) for atom in eqn.invars]
            of_input = any(
                not isinstance(atom, jax_versions.Literal) and atom in own for atom in eqn.invars
            )
            for var, out in zip(eqn.outvars, self._equation(eqn, pairs, of_input), strict=True):
                env[var] = out
        results = [read(atom) for atom in jaxpr.outvars]
        return [value for value, _ in results], [mask for _, mask in results]

    def _equation(
        self, eqn: Any, pairs: list[tuple[np.ndarray, Mask]], of_input: bool
    ) -> list[tuple[np.ndarray, Mask]]:
        values = [value for value, _ in pairs]
        masks = [mask for _, mask in pairs]
        inner = jax_versions.called_jaxpr(eqn)
        if inner is not None:
            outs, marks = self.run(inner, values, masks, top=of_input)
            return list(zip(outs, marks, strict=True))
        name = eqn.primitive.name
        with np.errstate(all="ignore"):  # overflow and NaN are results here, not accidents
            results = [RULES[name](eqn, *values)] if name in RULES else _by_jax(eqn, values)
            finished = [
                self._policy.finish(
                    name, out, dtype(np.dtype(var.aval.dtype)), of_input=of_input
                )
                for out, var in zip(results, eqn.outvars, strict=True)
            ]
        marks = _masks(eqn, values, masks)
        return list(zip(finished, marks, strict=True))


def _by_jax(eqn: Any, values: list[np.ndarray]) -> list[np.ndarray]:
    """A primitive without a rule: evaluated by JAX on the CPU with 64-bit types."""
    import jax

    with jax_versions.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        outs = jax_versions.bind(eqn, [jax.numpy.asarray(value) for value in values])
    return [widen(np.asarray(out)) for out in outs]


def _masks(eqn: Any, values: list[np.ndarray], masks: list[Mask]) -> list[Mask]:
    """Which elements of an equation's outputs are unspecified."""
    name = eqn.primitive.name
    own: Mask = None
    if name == "conv_general_dilated":
        own = kernels.implicit_zero_mask(
            ~np.isfinite(values[0]), ~np.isfinite(values[1]), **convolution_attributes(eqn)
        )
    if all(mask is None for mask in masks):
        return [own] * len(eqn.outvars)
    full = [
        np.zeros(value.shape, bool) if mask is None else mask
        for value, mask in zip(values, masks, strict=True)
    ]
    if name in STRUCTURAL:
        return [STRUCTURAL[name](eqn, *full)]
    if name in ELEMENTWISE:
        return [np.logical_or.reduce(np.broadcast_arrays(*full))]
    if name in CONTRACTIONS:
        reached = _reached(eqn, full)
        return [reached if own is None else reached | own]
    return [np.ones(var.aval.shape, bool) for var in eqn.outvars]


def _reached(eqn: Any, masks: list[np.ndarray]) -> np.ndarray:
    """Outputs of a contraction in whose sum a marked element takes part."""
    rule = CONTRACTIONS[eqn.primitive.name]
    lhs, rhs = (mask.astype(np.float64) for mask in masks)
    through_lhs = rule(eqn, lhs, np.ones_like(rhs))
    through_rhs = rule(eqn, np.ones_like(lhs), rhs)
    return np.asarray((np.real(through_lhs) + np.real(through_rhs)) > 0)
