"""A program under both references and under the named arithmetic models."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parity.dtypes import DType, dtype
from parity.program.build import Program
from parity.program.jax_versions import equations
from parity.program.spec import LICENCES
from parity.reference import honest, implementations
from parity.reference.features import features
from parity.reference.interpreter import Interpreter
from parity.reference.models import ALWAYS, MODELS
from parity.reference.policies import F64, FLUSH, STRICT, Policy
from parity.reference.value import Value, parts, union
from parity.reference.wide import ideal, narrow, widen
from parity.worker.protocol import Enclosure, Latitude, References, Spread

_TELLING_ORDERS = ("sequential", "pairwise")
"""Those of `honest.ORDERS` that are farthest apart: enough for a model."""


class _Evaluation:
    """One program, traced once, under as many policies as are asked for."""

    def __init__(self, program: Program, inputs: Sequence[np.ndarray]) -> None:
        self.closed = program.jaxpr
        self.names = program.outputs
        self.inputs = inputs
        self._spreads: dict[Policy, tuple[Any, Any]] = {}
        self.traced = [dtype(np.dtype(aval.dtype)) for aval in self.closed.in_avals]
        self.declared = [dtype(np.dtype(aval.dtype)) for aval in self.closed.out_avals]

    def under(self, policy: Policy) -> tuple[dict[str, Value], Interpreter]:
        """The outputs by name, and the interpreter with what it noted."""
        seen = [_as_seen(x, d, policy) for x, d in zip(self.inputs, self.traced, strict=True)]
        interpreter = Interpreter(policy)
        outputs = interpreter.run(self.closed, seen)
        return dict(zip(self.names, outputs, strict=True)), interpreter

    def enclosures(self, policy: Policy) -> dict[str, Enclosure]:
        """The outputs under a rounding policy, in their declared dtypes."""
        return self.narrowed(self.under(policy)[0])

    def spread(
        self, policy: Policy, points: Mapping[str, Value]
    ) -> tuple[dict[str, dict[str, Spread]], dict[str, Spread]]:
        """What honest orders do to the outputs of a model, and one rounding error in each sum.

        Had once for all variants of a model that have the same points.
        """
        key = dataclasses.replace(policy, name="", optional=False, licences=frozenset())
        if key not in self._spreads:
            tried = {order: policy.adding(order) for order in _TELLING_ORDERS}
            found = _spreads(self, points, tried), _spread(self, points, policy.jolted())
            self._spreads[key] = found
        return self._spreads[key]

    def narrowed(self, outputs: Mapping[str, Value]) -> dict[str, Enclosure]:
        """Wide outputs in their declared dtypes."""
        found = {}
        for (name, value), declared in zip(outputs.items(), self.declared, strict=True):
            point = narrow(value.point, declared)
            exact = value.exact or not declared.is_inexact
            lo = point if exact else narrow(value.lo, declared)
            found[name] = Enclosure(point, lo, point if exact else narrow(value.hi, declared))
        return found


def evaluate(
    program: Program,
    inputs: Sequence[np.ndarray],
    *,
    licences: Sequence[str] = LICENCES,
    models: Sequence[str] = (),
) -> References:
    """Interpret a program under both references, with their bounds.

    Args:
        program: what is computed.
        inputs: the operands' bits in their declared dtypes, the same that every path receives.
        licences: those of `LICENCES` that a path may need and still be what was declared.
        models: names of the arithmetic models (`models.NAMES`) that are asked for beside those
            that every program is interpreted under.

    Returns:
        `f64` wide; `strict` and the models in the declared dtypes; a model is there only where the
        program has something it applies to.
    """
    it = _Evaluation(program, inputs)
    truth, _ = it.under(F64)
    strict, noted = it.under(STRICT)
    undecided = {name: v.undecided for name, v in strict.items() if v.undecided is not None}
    under = {model: it.under(model) for model in _models(it, noted, models)}
    found = {model.name: outputs for model, (outputs, _) in under.items()}
    usual = _honest(it, strict) if noted.reordered else {}
    jolted = _spread(it, strict, STRICT.jolted()) if noted.reordered else {}
    both = {name: union([truth[name].unspecified, strict[name].unspecified]) for name in truth}
    return References(
        f64={name: _accuracy(value) for name, value in truth.items()},
        strict=it.narrowed(strict),
        licensed={
            "+".join(granted): it.enclosures(STRICT.granting(*granted))
            for granted in _combinations(noted.granted & set(licences))
        },
        models={name: it.narrowed(outputs) for name, outputs in found.items()},
        open={name: marked for name, of in found.items() if (marked := _undecided(of))},
        latitudes={
            model.name: _latitude(it, model, outputs, usual, jolted)
            for model, (outputs, of_model) in [(STRICT, (strict, noted)), *under.items()]
            if models and of_model.reordered
        },
        honest=usual,
        jolted=jolted,
        erring=_erring(it, strict) if noted.reordered and noted.erred else {},
        unspecified={name: mask for name, mask in both.items() if mask is not None},
        undecided=undecided,
        estimated=tuple(sorted(noted.estimated)),
        notes=_notes(it, noted),
    )


def _accuracy(value: Value) -> Enclosure:
    point = ideal(value.point)
    if value.exact:
        return Enclosure(point, point, point)
    return Enclosure(point, value.lo, value.hi)


def _undecided(outputs: Mapping[str, Value]) -> dict[str, np.ndarray]:
    return {name: v.undecided for name, v in outputs.items() if v.undecided is not None}


def _models(it: _Evaluation, noted: Interpreter, asked: Sequence[str]) -> list[Policy]:
    """The arithmetic models that could differ from `strict` on this program: the usual first."""
    has = features(it.closed, noted)
    applicable = [model for model in MODELS if model.applies(has)]
    policies = [policy for model in applicable for policy in model.policies]
    wanted = [policy for model in applicable if model.name in asked for policy in model.policies]
    always = [policy for policy in ALWAYS if policy in policies]
    return always + [policy for policy in wanted if policy not in ALWAYS]


def _latitude(
    it: _Evaluation,
    policy: Policy,
    points: Mapping[str, Value],
    usual: Mapping[str, Mapping[str, Spread]],
    jolted: Mapping[str, Spread],
) -> dict[str, Latitude]:
    """By floating output: how far honest evaluations of a model are from its point.

    A model that rounds results as declared and adds in the same accumulator is as far off as
    `strict` is. One rounding error in each sum counts only where no order moves anything.

    Args:
        it: the program.
        policy: the model.
        points: its outputs.
        usual: what honest orders do to those of `strict`.
        jolted: and one rounding error in each sum.
    """
    as_usual = policy.floor is None and not policy.narrow_sums and bool(usual)
    if not as_usual:
        usual, jolted = it.spread(policy, points)
    narrow = it.under(policy.in_one_order())[0]
    found = {}
    for name, of in usual.items():
        moving = [one for one in of.values() if one.rms > 0] or [jolted[name]]
        rms, moved = max(one.rms for one in moving), max(one.moved for one in moving)
        found[name] = Latitude(rms, moved, _rms_radius(narrow[name]))
    return found


def _rms_radius(value: Value) -> float:
    radius = value.radius.reshape(-1).view(np.float64)
    finite = radius[np.isfinite(radius)]
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0


def _combinations(granted: set[str]) -> list[tuple[str, ...]]:
    """Every set of the licences that apply, smaller ones first."""
    ordered = [name for name in LICENCES if name in granted]
    sizes = range(1, len(ordered) + 1)
    return list(itertools.chain.from_iterable(itertools.combinations(ordered, n) for n in sizes))


def _honest(it: _Evaluation, strict: Mapping[str, Value]) -> dict[str, dict[str, Spread]]:
    """By output and order: how far adding in that order leads from `strict`."""
    return _spreads(it, strict, {order: STRICT.adding(order) for order in honest.ORDERS})


def _erring(it: _Evaluation, strict: Mapping[str, Value]) -> dict[str, dict[str, Spread]]:
    """By output and direction: how far stated errors of functions lead from `strict`."""
    policies = {way: STRICT.erring(way) for way in implementations.DIRECTIONS}
    return _spreads(it, strict, policies)


def _spreads(
    it: _Evaluation, strict: Mapping[str, Value], policies: Mapping[str, Policy]
) -> dict[str, dict[str, Spread]]:
    found: dict[str, dict[str, Spread]] = {}
    for key, policy in policies.items():
        for name, spread in _spread(it, strict, policy).items():
            found.setdefault(name, {})[key] = spread
    return found


def _spread(it: _Evaluation, strict: Mapping[str, Value], policy: Policy) -> dict[str, Spread]:
    """By floating output: how far a policy leads from `strict` in its decided elements."""
    found = {}
    for name, value in it.under(policy)[0].items():
        if value.point.dtype.kind not in "fc":
            continue
        with np.errstate(all="ignore"):
            distance = (value.point - strict[name].point).reshape(-1)
        undecided = strict[name].undecided
        if undecided is not None:
            distance = distance[~np.broadcast_to(undecided, value.point.shape).reshape(-1)]
        kept = distance.view(np.float64)  # real and imaginary parts apart
        kept = kept[np.isfinite(kept)]
        if kept.size:
            rms = float(np.sqrt(np.mean(kept**2)))
            found[name] = Spread(rms, float(np.mean(kept)), float(np.mean(kept != 0)))
    return found


def _as_seen(array: np.ndarray, traced: DType, policy: Policy) -> Value:
    """An operand as the program sees it.

    Where x64 is off, JAX narrows 64-bit operands first: a cast to a narrower float, hence the
    identity for the ideal, and an error in its bound. Where the backend flushes, a subnormal
    operand may count as zero: that is part of the accuracy bound as well.
    """
    ideal_float = traced.is_inexact and not policy.rounds
    if array.dtype.name == traced.name or ideal_float:
        wide = widen(array)
    else:
        wide = widen(narrow(widen(array), traced))
    if not ideal_float:
        return Value.exactly(policy.flush(wide, traced))
    if array.dtype.name != traced.name:
        return Value(*policy.finish("convert_element_type", wide, wide, wide, traced))
    flushed = FLUSH.flush(wide, traced)
    if flushed is wide or np.array_equal(flushed, wide, equal_nan=True):
        return Value.exactly(wide)
    return Value(wide, parts(np.minimum, wide, flushed), parts(np.maximum, wide, flushed))


def _notes(it: _Evaluation, noted: Interpreter) -> tuple[str, ...]:
    notes = []
    narrowed = {
        f"{x.dtype.name} as {d.name}"
        for x, d in zip(it.inputs, it.traced, strict=True)
        if x.dtype.name != d.name
    }
    if narrowed:
        notes.append(f"x64 is off: JAX takes {', '.join(sorted(narrowed))}")
    if noted.not_wider:
        notes.append(f"reference no wider than float64 in {', '.join(sorted(noted.not_wider))}")
    notes += dict.fromkeys(noted.overflows)
    mixed = sorted({_mixture(eqn) for eqn in equations(it.closed)} - {""})
    converted = "JAX converts both to the result's dtype first, `strict` does not"
    notes += [f"{one}: {converted}" for one in mixed]
    return tuple(notes)


def _mixture(eqn: Any) -> str:
    """The operand dtypes of a dot where they differ, else ""."""
    if eqn.primitive.name != "dot_general":
        return ""
    names = [atom.aval.dtype.name for atom in eqn.invars]
    return "" if names[0] == names[1] else f"dot of {names[0]} and {names[1]}"
