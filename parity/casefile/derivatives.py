"""The arrays that a transform takes beside the operands: tangents and cotangents."""

from __future__ import annotations

from collections.abc import Sequence

from parity.casefile.case import Operand
from parity.casefile.filling import Fillings
from parity.casefile.op import Result
from parity.casefile.problem import Location, Problem, did_you_mean, listed, spell
from parity.casefile.schema import Body, CotangentModel, Filling
from parity.casefile.values import shape_of
from parity.dtypes import DTYPES
from parity.program.spec import PARAMETERS, OperandSpec

_OPERANDS = "operands"
_NORMAL = {"draw": "normal"}


def gradients(body: Body, specs: Sequence[OperandSpec]) -> tuple[str, ...]:
    """What vjp and jvp differentiate: operands by name and "parameters"; empty for all operands.

    Raises:
        Problem: one of them is neither a floating operand nor there.
    """
    if body.gradients is None:
        return ()
    floating = _floating(specs)
    words = [_OPERANDS, PARAMETERS] if body.flax is not None else [_OPERANDS]
    found: dict[str, None] = {}
    for index, name in enumerate(body.gradients):
        if name not in (*floating, *words):
            at: Location = ("gradients", index)
            allowed = [*words, *floating]
            what = f"{spell(at)} names no floating operand (got {name}; allowed {listed(allowed)})"
            raise Problem(what, at, hint=did_you_mean(name, allowed))
        found.update(dict.fromkeys(floating if name == _OPERANDS else [name]))
    return tuple(found)


def extra(
    body: Body,
    transform: str,
    specs: Sequence[OperandSpec],
    result: Result | None,
    chosen: Sequence[str],
    fillings: Fillings,
) -> list[Operand]:
    """The arrays that a transform needs beside the operands.

    Args:
        body: what the case file says.
        transform: which.
        specs: the operands.
        result: what the program gives, None where only JAX knows.
        chosen: as `gradients` gives it.
        fillings: checks them.

    Raises:
        Problem: one is given for what is not there, or cannot be inferred.
    """
    floating = _floating(specs)
    for name in body.tangents:
        if name not in floating:
            allowed = listed(floating) or "none"
            what = f"tangents names no floating operand (got {name}; allowed {allowed})"
            raise Problem(what, ("tangents", name), key=True)
    if transform in ("vjp", "jvp") and not (floating or PARAMETERS in chosen):
        what = f"{transform} needs a floating operand (got {listed(s.dtype for s in specs)})"
        raise Problem(what, ("transforms",), instead=("operands",))
    if transform == "jvp":
        wanted = chosen or floating
        return [_tangent(body, spec, fillings) for spec in specs if spec.name in wanted]
    if result is not None and body.cotangents:
        what = "cotangents is for programs of several outputs (got one output)"
        raise Problem(what, ("cotangents",), key=True, hint="write cotangent: {…}")
    if transform == "vjp":
        return _declared(body, fillings) if result is None else [_cotangent(body, result, fillings)]
    return []


def _floating(specs: Sequence[OperandSpec]) -> list[str]:
    return [spec.name for spec in specs if DTYPES[spec.dtype].is_inexact]


def _tangent(body: Body, spec: OperandSpec, fillings: Fillings) -> Operand:
    model = _drawn(body.tangents.get(spec.name, Filling()))
    at = ("tangents", spec.name)
    return fillings.fill(f"tangent.{spec.name}", model, spec.shape, spec.dtype, body.seed, at)


def _cotangent(body: Body, result: Result, fillings: Fillings) -> Operand:
    given = body.cotangent.dtype
    dtype = result.dtype or given
    if dtype is None:
        raise Problem(
            "the output's dtype, which the cotangent must have, cannot be inferred without JAX",
            ("cotangent",),
            instead=("transforms",),
            hint="say it: cotangent: {dtype: float32}",
        )
    if given is not None and given != dtype:
        what = f"cotangent.dtype is not the output's (got {given}; allowed {dtype})"
        raise Problem(what, ("cotangent", "dtype"))
    shape = body.cotangent.shape
    if shape is not None and tuple(shape) != result.shape:
        what = f"cotangent.shape is not the output's (got {shape}; allowed {list(result.shape)})"
        raise Problem(what, ("cotangent", "shape"))
    if not DTYPES[dtype].is_inexact:
        what = f"vjp needs a floating output (got {dtype})"
        raise Problem(what, ("transforms",), hint="leave the point out with sweep: {exclude: […]}")
    model = _drawn(body.cotangent)
    return fillings.fill("cotangent", model, result.shape, dtype, body.seed, ("cotangent",))


def _declared(body: Body, fillings: Fillings) -> list[Operand]:
    """The cotangents of a program whose outputs only JAX knows, in the shapes that are given."""
    if body.cotangent == CotangentModel():
        return [
            _declared_one(f"cotangent.{name}", model, ("cotangents", name), body.seed, fillings)
            for name, model in body.cotangents.items()
        ]
    if body.cotangents:
        what = "cotangent stands beside cotangents"
        raise Problem(what, ("cotangent",), key=True, hint="write it as cotangents: {out: {…}}")
    return [_declared_one("cotangent", body.cotangent, ("cotangent",), body.seed, fillings)]


def _declared_one(
    name: str, model: CotangentModel, at: Location, seed: int, fillings: Fillings
) -> Operand:
    if model.dtype is None:
        raise Problem(f"missing key 'dtype' in {spell(at)}", at, hint="the output's dtype")
    if not DTYPES[model.dtype].is_inexact:
        what = f"{spell(at)}.dtype is not floating (got {model.dtype})"
        raise Problem(what, (*at, "dtype"))
    if model.shape is not None:
        shape = tuple(model.shape)
    elif model.values is not None:
        shape = shape_of(model.values)
    else:
        hint = "the output's shape: [2, 3]"
        raise Problem(f"missing key 'shape' in {spell(at)}", at, hint=hint)
    return fillings.fill(name, _drawn(model), shape, model.dtype, seed, at)


def _drawn(model: Filling) -> Filling:
    """The filling, drawn `normal` where it does not say how."""
    if model.values is None and model.file is None and model.draw is None:
        return model.model_copy(update=_NORMAL)
    return model
