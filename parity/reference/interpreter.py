"""A jaxpr interpreted on wide NumPy arrays with intervals, under an arithmetic model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parity.dtypes import DType, dtype
from parity.program import jax_versions
from parity.reference import bounds, honest, kernels, wider
from parity.reference.accumulators import FLUSHING
from parity.reference.bounds import Bound
from parity.reference.elementwise import estimate, reciprocal
from parity.reference.equation import Equation
from parity.reference.policies import Policy, is_subnormal, widen
from parity.reference.primitives import (
    CONTRACTIONS,
    ELEMENTWISE,
    ELEMENTWISE_BY_JAX,
    RULES,
    STRUCTURAL,
    by_jax,
    convolution_attributes,
)
from parity.reference.value import Mask, Value, union

_FUSED = frozenset({"float32", "float64"})
"""Dtypes whose products a following addition may take unrounded."""


class Interpreter:
    """Evaluates closed jaxprs under one policy.

    Args:
        policy: what becomes of each equation's result.

    Attributes:
        estimated: names of primitives whose interval is a Monte Carlo estimate.
        granted: licences that had something to apply to.
        not_wider: names of float64 primitives that were evaluated in plain float64.
        reordered: whether a sum had an order to choose.
        subnormal: whether an operand or result of a flushing dtype has subnormal elements.
        overflows: a sentence for each rounding that makes a finite value NaN or infinite.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.estimated: set[str] = set()
        self.granted: set[str] = set()
        self.not_wider: set[str] = set()
        self.reordered = False
        self.subnormal = False
        self.overflows: list[str] = []

    def run(self, closed: Any, inputs: Sequence[Value], *, top: bool = True) -> list[Value]:
        """The outputs of a closed jaxpr.

        Args:
            closed: a `jax.extend.core.ClosedJaxpr`.
            inputs: one value for each of its inputs.
            top: whether these are the inputs of the whole program.
        """
        jaxpr = closed.jaxpr
        env: dict[Any, Value] = {}
        for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
            env[var] = Value.exactly(widen(np.asarray(const)), constant=True)
        for var, value in zip(jaxpr.invars, inputs, strict=True):
            env[var] = value
            self._note_subnormal(value.point, _dtype_of(var))
        own = set(jaxpr.invars) if top else set()

        def read(atom: Any) -> Value:
            if isinstance(atom, jax_versions.Literal):
                array = np.asarray(atom.val, dtype=atom.aval.dtype)
                return Value.exactly(widen(array), constant=True)
            return env[atom]

        for eqn in jaxpr.eqns:
            values = [read(atom) for atom in eqn.invars]
            of_input = any(
                not isinstance(atom, jax_versions.Literal) and atom in own for atom in eqn.invars
            )
            env.update(zip(eqn.outvars, self._equation(eqn, values, of_input), strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, eqn: Any, values: list[Value], of_input: bool) -> list[Value]:
        inner = jax_versions.called_jaxpr(eqn)
        if inner is not None:
            return self.run(inner, values, top=of_input)
        name = eqn.primitive.name
        if name in STRUCTURAL:
            return [_moved(eqn, values)]
        with np.errstate(all="ignore"):  # overflow and NaN are results here, not accidents
            points, wide = self._points(eqn, values)
            return [
                self._output(self._describe(eqn, i, point, values, wide), i, of_input)
                for i, point in enumerate(points)
            ]

    def _points(self, eqn: Any, values: list[Value]) -> tuple[list[np.ndarray], bool]:
        """The wide results, and whether they are wider than plain float64 makes them."""
        name = eqn.primitive.name
        points = [value.point for value in values]
        if self._policy.order is not None and name in honest.REORDERED:
            declared = dtype(np.dtype(eqn.outvars[0].aval.dtype))
            if declared.is_inexact:
                return [honest.add_up(eqn, points, self._policy.order)], False
        plain = [RULES[name](eqn, *points)] if name in RULES else by_jax(eqn, *points)
        declared = _dtype_of(eqn.outvars[0])
        if declared.format is None or declared.format.precision < 53 or not wider.needed(name):
            return plain, False
        found = wider.evaluate(eqn, points)
        if found is None or (np.isfinite(plain[0]) & ~np.isfinite(found)).any():
            self.not_wider.add(name)
        if found is None:
            return plain, False
        return [wider.settled(found, plain[0])], bool(np.isfinite(found).all())

    def _output(self, equation: Equation, index: int, of_input: bool) -> Value:
        eqn, values, point = equation.eqn, list(equation.values), equation.point
        name, declared = eqn.primitive.name, equation.declared
        bound = bounds.bound_of(equation)
        if self._policy.jolts and name in honest.REORDERED and declared.is_inexact:
            point = point + _random_signs(point) * bounds.one_rounding(equation)
        lo = hi = point
        if self._policy.encloses:
            lo, hi = bounds.enclose(bound, equation)
            self._note(name, bound, equation, exact=lo is point)
        finished = self._policy.finish(
            name, point, lo, hi, declared, of_input=of_input, exact=bound.exact(equation)
        )
        self._note_subnormal(finished[0], declared)
        self._note_overflow(name, point, finished[0], declared)
        loose = None
        if name in ("mul", "dot_general", "conv_general_dilated") and declared.name in _FUSED:
            single = name == "mul" or _products(eqn) <= 1
            loose = (lo, hi) if single and self._policy.encloses else None
        undecided = _spread(eqn, values, [value.undecided for value in values])
        if lo is not hi and (bound.decides or not declared.is_inexact):
            jumps = np.asarray((lo != hi) & (point == point))  # NaN jumps nowhere
            undecided = union([undecided, jumps if jumps.any() else None])
        unspecified = _spread(eqn, values, [value.unspecified for value in values])
        return Value(
            *finished,
            unspecified=union([unspecified, _implicit_zeros(eqn, values)]),
            undecided=undecided,
            loose=loose,
            constant=all(value.constant for value in values),
        )

    def _describe(
        self, eqn: Any, index: int, point: np.ndarray, values: list[Value], wide: bool
    ) -> Equation:
        def evaluate(*arrays: np.ndarray) -> np.ndarray:
            if eqn.primitive.name in RULES:
                return RULES[eqn.primitive.name](eqn, *arrays)
            return by_jax(eqn, *arrays)[index]

        return Equation(
            eqn,
            tuple(values),
            point,
            _dtype_of(eqn.outvars[index]),
            tuple(_dtype_of(atom) for atom in eqn.invars),
            self._policy,
            evaluate,
            _products(eqn),
            wide,
        )

    def _note_overflow(
        self, name: str, point: np.ndarray, rounded: np.ndarray, declared: DType
    ) -> None:
        if not declared.is_inexact or rounded is point:
            return
        over = np.count_nonzero(np.isfinite(point) & ~np.isfinite(rounded))
        if over:
            what = "a cast" if name == "convert_element_type" else name
            self.overflows.append(
                f"{what} to {declared.name} overflows in {over} of {point.size} elements"
            )

    def _note_subnormal(self, point: np.ndarray, declared: DType) -> None:
        if not self.subnormal and declared.name in FLUSHING:
            real, imaginary = np.real(point), np.imag(point)
            self.subnormal = bool(
                is_subnormal(real, declared).any() or is_subnormal(imaginary, declared).any()
            )

    def _note(self, name: str, bound: Bound, equation: Equation, *, exact: bool) -> None:
        """Remember what a reader must be told of: estimates, licences, sums with an order."""
        if bound.enclose is estimate and not equation.exact:
            self.estimated.add(name)
        if name in honest.REORDERED and equation.declared.is_inexact and not exact:
            self.reordered = True
        if bound.expanded(equation):
            self.granted.add("expansion")
        if name == "div" and reciprocal(equation):
            self.granted.add("reciprocal")
        if name in ("add", "sub", "add_any") and any(v.loose for v in equation.values):
            self.granted.add("fma")


def _random_signs(like: np.ndarray) -> np.ndarray:
    """Seeded; ±1 in the shape of an array. The parts of a complex sum go the same way."""
    return np.random.default_rng(0).choice([-1.0, 1.0], like.shape)


def _dtype_of(atom: Any) -> DType:
    return dtype(np.dtype(atom.aval.dtype))


def _products(eqn: Any) -> int:
    """How many products each sum of a contraction has; 0 for any other primitive."""
    name = eqn.primitive.name
    if name == "dot_general":
        (contracting, _), _ = eqn.params["dimension_numbers"]
        return int(np.prod([eqn.invars[0].aval.shape[axis] for axis in contracting], dtype=int))
    if name == "conv_general_dilated":
        shape = eqn.invars[1].aval.shape
        out_features = eqn.params["dimension_numbers"].rhs_spec[0]
        return int(np.prod([size for i, size in enumerate(shape) if i != out_features], dtype=int))
    return 0


def _moved(eqn: Any, values: list[Value]) -> Value:
    """What a primitive that only moves elements makes of each part of its operands."""
    rule = STRUCTURAL[eqn.primitive.name]
    point = rule(eqn, *(value.point for value in values))
    lo = hi = point
    if not all(value.exact for value in values):
        lo = rule(eqn, *(value.lo for value in values))
        hi = rule(eqn, *(value.hi for value in values))

    def moved(masks: list[Mask]) -> Mask:
        if all(mask is None for mask in masks):
            return None
        return np.asarray(rule(eqn, *_full(values, masks)))

    return Value(
        point,
        lo,
        hi,
        moved([value.unspecified for value in values]),
        moved([value.undecided for value in values]),
        constant=all(value.constant for value in values),
    )


def _full(values: list[Value], masks: list[Mask]) -> list[np.ndarray]:
    return [
        np.zeros(value.point.shape, bool) if mask is None else mask
        for value, mask in zip(values, masks, strict=True)
    ]


def _spread(eqn: Any, values: list[Value], masks: list[Mask]) -> Mask:
    """Which elements of a result depend on marked elements of the operands."""
    if all(mask is None for mask in masks):
        return None
    name = eqn.primitive.name
    full = _full(values, masks)
    if name in ELEMENTWISE or name in ELEMENTWISE_BY_JAX:
        return union(full)
    if name.startswith(("reduce_", "arg")) and "axes" in eqn.params:
        return np.asarray(full[0].any(axis=tuple(eqn.params["axes"])))
    if name in CONTRACTIONS:
        return _reached(eqn, full)
    if any(mask.any() for mask in full):
        return np.ones(eqn.outvars[0].aval.shape, bool)
    return None


def _implicit_zeros(eqn: Any, values: list[Value]) -> Mask:
    """Elements of a convolution in which padding or a dilation hole meets a non-finite value."""
    if eqn.primitive.name != "conv_general_dilated":
        return None
    lhs, rhs = (~np.isfinite(value.point.astype(np.complex128)) for value in values)
    return kernels.implicit_zero_mask(lhs, rhs, **convolution_attributes(eqn))


def _reached(eqn: Any, masks: list[np.ndarray]) -> np.ndarray:
    """Outputs of a contraction in whose sum a marked element takes part."""
    rule = CONTRACTIONS[eqn.primitive.name]
    lhs, rhs = (mask.astype(np.float64) for mask in masks)
    through_lhs = rule(eqn, lhs, np.ones_like(rhs))
    through_rhs = rule(eqn, np.ones_like(lhs), rhs)
    return np.asarray((np.real(through_lhs) + np.real(through_rhs)) > 0)
