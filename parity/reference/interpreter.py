"""A jaxpr interpreted on wide NumPy arrays with intervals, under an arithmetic model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from parity.dtypes import DType
from parity.program import jax_versions
from parity.reference import (
    algorithms,
    bounds,
    declared,
    honest,
    implementations,
    intermediate,
    narrowing,
    sums,
    wider,
)
from parity.reference.accumulators import FLUSHING
from parity.reference.bounds import Bound
from parity.reference.control import CONTROL
from parity.reference.elementwise import estimate, reciprocal
from parity.reference.equation import Equation, declared_dtype
from parity.reference.extremes import EXTREMES, winners
from parity.reference.indexing import INDEXED
from parity.reference.masks import implicit_zeros, opened, spread
from parity.reference.policies import Policy, is_subnormal
from parity.reference.primitives import RULES, by_jax
from parity.reference.rearranging import rearranged
from parity.reference.sharding import over_positions, shard_map
from parity.reference.structure import STRUCTURAL, move
from parity.reference.value import Value, parts, union
from parity.reference.wide import widen

_FUSED = frozenset({"float16", "float32", "float64"})
"""Dtypes whose products a following addition may take unrounded."""

_WALKED = {
    **CONTROL,
    "pmax": over_positions,
    "pmin": over_positions,
    "psum": over_positions,
    "shard_map": shard_map,
}
"""Primitives that are evaluated as jaxprs: those they hold, or ones that say the same."""


class Interpreter:
    """Evaluates closed jaxprs under one policy.

    Args:
        policy: what becomes of each equation's result.

    Attributes:
        estimated: names of primitives whose interval is a Monte Carlo estimate.
        granted: licences that had something to apply to.
        not_wider: names of float64 primitives that were evaluated in plain float64.
        reordered: whether a sum had an order to choose.
        erred: whether a function's implementation may add an error of its own.
        subnormal: whether an operand or result of a flushing dtype has subnormal elements.
        overflows: a sentence for each rounding that makes a finite value NaN or infinite.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._seeds: dict[Any, int] = {}
        self.estimated: set[str] = set()
        self.granted: set[str] = set()
        self.not_wider: set[str] = set()
        self.reordered = False
        self.erred = False
        self.subnormal = False
        self.overflows: list[str] = []

    def run(self, closed: Any, inputs: Sequence[Value]) -> list[Value]:
        """The outputs of a whole program.

        Args:
            closed: a `jax.extend.core.ClosedJaxpr`.
            inputs: one value for each of its inputs.
        """
        for var, value in zip(closed.jaxpr.invars, inputs, strict=True):
            self._note_subnormal(value.point, declared_dtype(var))
        return self.walk(closed, [dataclasses.replace(value, given=True) for value in inputs])

    def walk(self, closed: Any, inputs: Sequence[Value]) -> list[Value]:
        """The outputs of a closed jaxpr, the program's own or one that an equation holds."""
        jaxpr = closed.jaxpr
        env: dict[Any, Value] = {}
        for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
            env[var] = Value.exactly(widen(np.asarray(const)), constant=True)
        env.update(zip(jaxpr.invars, inputs, strict=True))

        def read(atom: Any) -> Value:
            if isinstance(atom, jax_versions.Literal):
                array = np.asarray(atom.val, dtype=atom.aval.dtype)
                return Value.exactly(widen(array), constant=True)
            return env[atom]

        for eqn in jaxpr.eqns:
            values = [read(atom) for atom in eqn.invars]
            env.update(zip(eqn.outvars, self._equation(eqn, values), strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, eqn: Any, values: list[Value]) -> list[Value]:
        inner = jax_versions.called_jaxpr(eqn)
        if inner is not None:
            return self.walk(inner, values)
        name = eqn.primitive.name
        with np.errstate(all="ignore"):  # overflow and NaN are results here, not accidents
            if name in _WALKED:
                return _WALKED[name](self.walk, eqn, values)
            if name in STRUCTURAL:
                return move(eqn, values)
            if name in INDEXED:
                return INDEXED[name](eqn, values)
            if name in declared.DECLARED:
                return declared.evaluate(eqn, values)
            if name == "optimization_barrier":
                return [self._held(*pair) for pair in zip(values, eqn.outvars, strict=True)]
            algorithm = algorithms.imposed(eqn, self._policy.algorithm)
            if algorithm is None and self._policy.operand_casts:
                algorithm = algorithms.algorithm_of(eqn)
            if algorithm is not None:
                eqn, values = algorithm.applied(eqn, values, rounds=self._policy.rounds)
            points, wide = self._points(eqn, values)
            return [
                self._output(self._describe(eqn, i, point, values, wide), i)
                for i, point in enumerate(points)
            ]

    def _held(self, value: Value, var: Any) -> Value:
        """What passes a barrier: it stands in its declared dtype, whatever the model."""
        if jax_versions.is_key(var.aval):
            return value
        ends = self._policy.finish(
            "optimization_barrier", value.point, value.lo, value.hi, declared_dtype(var), exact=True
        )
        return Value(*ends, value.unspecified, value.undecided, constant=value.constant)

    def _points(self, eqn: Any, values: list[Value]) -> tuple[list[np.ndarray], bool]:
        """The wide results, and whether they are wider than plain float64 makes them."""
        name = eqn.primitive.name
        points = [value.point for value in values]
        inexact = declared_dtype(eqn.outvars[0]).is_inexact
        if self._policy.order is not None and name in honest.REORDERED and inexact:
            held = None
            if self._policy.narrow_sums:
                operands = [declared_dtype(atom) for atom in eqn.invars]
                held = narrowing.narrow_sum(operands, values, declared_dtype(eqn.outvars[0]))
            return [honest.add_up(eqn, points, self._policy.order, held=held)], False
        if name == "reduce_precision" and not self._policy.rounds:
            return points, False
        if name == "convert_element_type" and (self._policy.integers or self._policy.saturates):
            kinds = declared_dtype(eqn.invars[0]).kind, declared_dtype(eqn.outvars[0]).kind
            if kinds in (("float", "int"), ("float", "uint")):
                return [narrowing.whole_numbers(points[0])], False
        plain = [RULES[name](eqn, *points)] if name in RULES else by_jax(eqn, *points)
        fmt = declared_dtype(eqn.outvars[0]).format
        if fmt is None or fmt.precision < 53 or not wider.needed(name):
            return plain, False
        found = wider.evaluate(eqn, points)
        if found is None or (np.isfinite(plain[0]) & ~np.isfinite(found)).any():
            self.not_wider.add(name)
        if found is None:
            return plain, False
        return [wider.settled(found, plain[0])], bool(np.isfinite(found).all())

    def _output(self, equation: Equation, index: int) -> Value:
        eqn, values, point = equation.eqn, list(equation.values), equation.point
        name, dtype = eqn.primitive.name, equation.declared
        bound = bounds.bound_of(equation)
        if self._policy.jolts and name in honest.REORDERED and dtype.is_inexact:
            point = point + _random_signs(point) * sums.one_rounding(equation)
        if self._policy.errs is not None and implementations.errs(bound, equation):
            seed = self._seeds.setdefault(eqn.outvars[index], len(self._seeds))
            point = implementations.off(bound, equation, self._policy.errs, seed)
        lo = hi = point
        if self._policy.encloses:
            lo, hi = bounds.enclose(bound, equation)
            self._note(name, bound, equation, exact=lo is point)
            lo, hi = _unbounded(equation, lo, hi)
            if self._policy.reassociates:
                lo, hi = rearranged(bound, equation, lo, hi)
        of_input = any(value.given for value in values)
        ends = intermediate.first(equation, (point, lo, hi))
        finished = ends
        if not jax_versions.is_key(eqn.outvars[index].aval):
            finished = self._policy.finish(
                name, *ends, dtype, of_input=of_input, exact=bound.exact(equation)
            )
        self._note_subnormal(finished[0], dtype)
        self._note_overflow(name, point, finished[0], dtype)
        loose = None
        if name in ("mul", "dot_general", "conv_general_dilated") and dtype.name in _FUSED:
            single = name == "mul" or _products(eqn, values) <= 1
            loose = (lo, hi) if single and self._policy.encloses else None
        undecided = spread(eqn, values, [value.undecided for value in values])
        undecided = union([undecided, opened(eqn, values)])
        if lo is not hi and (bound.decides or not dtype.is_inexact):
            jumps = np.asarray((lo != hi) & (point == point))  # NaN jumps nowhere
            undecided = union([undecided, jumps if jumps.any() else None])
        unspecified = spread(eqn, values, [value.unspecified for value in values])
        return Value(
            *finished,
            unspecified=union([unspecified, implicit_zeros(eqn, values)]),
            undecided=undecided,
            loose=loose,
            constant=all(value.constant for value in values),
            chosen=winners(eqn, values) if name in EXTREMES else (),
            cast_from=intermediate.held_by(equation),
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
            declared_dtype(eqn.outvars[index]),
            tuple(declared_dtype(atom) for atom in eqn.invars),
            self._policy,
            evaluate,
            _products(eqn, values),
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
        if implementations.errs(bound, equation):
            self.erred = True
        if bound.expanded(equation):
            self.granted.add("expansion")
        if name == "div" and reciprocal(equation):
            self.granted.add("reciprocal")
        if name in ("add", "sub", "add_any") and any(v.loose for v in equation.values):
            self.granted.add("fma")


def _random_signs(like: np.ndarray) -> np.ndarray:
    """Seeded; ±1 in the shape of an array. The parts of a complex sum go the same way."""
    return np.random.default_rng(0).choice([-1.0, 1.0], like.shape)


def _unbounded(equation: Equation, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of a floating result, infinite where it depends on an undecided whole number."""
    eqn, values = equation.eqn, list(equation.values)
    if not equation.declared.is_inexact or eqn.primitive.name == "select_n":
        return lo, hi
    masks = [value.undecided if value.point.dtype.kind in "iuO" else None for value in values]
    open_ = spread(eqn, values, masks)
    if open_ is None or not open_.any():
        return lo, hi
    return (
        parts(lambda x: np.where(open_, -np.inf, x), lo),
        parts(lambda x: np.where(open_, np.inf, x), hi),
    )


def _products(eqn: Any, values: list[Value]) -> int:
    """How many products each sum of a contraction has; 0 for any other primitive."""
    name = eqn.primitive.name
    if name == "dot_general":
        (contracting, _), _ = eqn.params["dimension_numbers"]
        return int(np.prod([values[0].point.shape[axis] for axis in contracting], dtype=int))
    if name == "conv_general_dilated":
        shape = values[1].point.shape
        out_features = eqn.params["dimension_numbers"].rhs_spec[0]
        return int(np.prod([size for i, size in enumerate(shape) if i != out_features], dtype=int))
    return 0
