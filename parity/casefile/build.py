"""From a checked case file to the program and operands of one case."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from parity.casefile.case import Operand, Tolerance, Variant
from parity.casefile.filling import Fillings
from parity.casefile.messages import validated
from parity.casefile.op import Result, promoted
from parity.casefile.ops import infer, op, ops
from parity.casefile.problem import Problem, did_you_mean, listed, show
from parity.casefile.schema import Body, Filling
from parity.dtypes import DTYPES
from parity.program.spec import OperandSpec, ProgramSpec

_WIDE = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
_NORMAL = {"draw": "normal"}


@dataclass(frozen=True)
class Built:
    """The program of a case and how the bits of its inputs come about, in the same order."""

    program: ProgramSpec
    operands: tuple[Operand, ...]


def build(body: Body, transform: str, fillings: Fillings) -> Built:
    """The program and operands of one case.

    Args:
        body: what the case file says at one point of its sweep.
        transform: forward, vjp, jvp or vmap.
        fillings: checks the arrays.

    Raises:
        Problem: shapes, dtypes or names contradict each other.
        ExceptionGroup: of Problems: the op's attributes have the wrong form.
    """
    if body.op not in ops():
        what = f"unknown op (got {show(body.op)}; allowed {listed(ops())})"
        raise Problem(what, ("op",), hint=did_you_mean(body.op, ops()))
    attributes = validated(op(body.op).Attributes, body.attributes, ("attributes",)).keywords()
    _check_residual(body)
    taken = op(body.op).takes(list(body.operands), attributes, body.residual)
    order = [*taken, *(name for name in body.operands if name not in taken)]
    operands = [fillings.operand(name, body.operands[name], body.seed) for name in order]
    specs = [OperandSpec(o.name, o.shape, o.dtype) for o in operands]
    x64 = _x64(body, specs, attributes)
    result = _result(body, specs[: len(taken)], specs, attributes, x64)
    extra = _extra(body, transform, specs, result, fillings)
    program = ProgramSpec(
        op=body.op,
        operands=tuple(specs),
        attributes=attributes,
        compute_dtype=body.compute_dtype,
        output_dtype=body.output_dtype,
        residual=body.residual,
        transform=transform,
        extra=tuple(OperandSpec(o.name, o.shape, o.dtype) for o in extra),
        batch=body.batch if transform == "vmap" else 0,
        x64=x64,
    )
    batched = [_batched(o, program.batch) for o in operands] if program.batch else operands
    return Built(program, (*batched, *extra))


def variants(body: Body) -> tuple[Variant, ...]:
    """The paths to run, each under its name; plain ones have no flags."""
    found = []
    for item in body.paths:
        if isinstance(item, str):
            found.append(Variant(item, item))
            continue
        flags = sorted({**item.compiler_options, **item.env}.items())
        short = hashlib.sha256(repr(flags).encode()).hexdigest()[:8]
        name = item.name or f"{item.path}+{short}"
        found.append(Variant(name, item.path, dict(item.compiler_options), dict(item.env)))
    return tuple(found)


def check_paths(body: Body, known: Collection[str] | None) -> None:
    """Raise a Problem for a path that is unknown, named twice, or no baseline among them."""
    names = [variant.name for variant in variants(body)]
    for index, variant in enumerate(variants(body)):
        at = ("paths", index)
        if variant.name in names[:index]:
            raise Problem(f"paths names '{variant.name}' twice", at, hint="keep one of the two")
        if known is not None and variant.path not in known:
            what = f"unknown path (got {show(variant.path)}; allowed {listed(known)})"
            raise Problem(what, at, hint=did_you_mean(variant.path, known))
    if body.baseline not in names:
        what = f"baseline is not among the paths (got {show(body.baseline)}; "
        what += f"allowed {listed(names)})"
        raise Problem(what, ("baseline",), instead=("paths",))


def tolerance(body: Body) -> Tolerance | None:
    """The explicit limits of a case.

    Raises:
        Problem: no limit is given.
    """
    limits = body.tolerance
    if limits is None:
        return None
    if limits.rtol is None and limits.atol is None and limits.max_ulp is None:
        raise Problem("tolerance has no limit (allowed rtol, atol, max_ulp)", ("tolerance",))
    return Tolerance(limits.rtol, limits.atol, limits.max_ulp, limits.against)


def _check_residual(body: Body) -> None:
    if body.residual is not None and body.residual not in body.operands:
        names = listed(body.operands)
        what = f"residual names no operand (got {show(body.residual)}; allowed {names})"
        hint = did_you_mean(body.residual, body.operands)
        raise Problem(what, ("residual",), hint=hint)


def _x64(body: Body, specs: Sequence[OperandSpec], attributes: dict[str, Any]) -> bool:
    if body.x64 != "auto":
        return bool(body.x64)
    declared: list[str | None] = [spec.dtype for spec in specs]
    declared += [body.compute_dtype, body.output_dtype, attributes.get("preferred_element_type")]
    return any(name in _WIDE for name in declared)


def _result(
    body: Body,
    taken: Sequence[OperandSpec],
    specs: Sequence[OperandSpec],
    attributes: dict[str, Any],
    x64: bool,
) -> Result:
    """Shape and dtype of the program's output; the dtype is None where only JAX knows it."""

    def canonical(name: str) -> str:
        return name if x64 else _WIDE.get(name, name)

    computed = [replace(s, dtype=canonical(body.compute_dtype or s.dtype)) for s in taken]
    result = infer(body.op, computed, attributes)
    shape, dtype = result.shape, body.output_dtype or result.dtype
    dtype = canonical(dtype) if dtype is not None else None
    if body.residual is not None:
        residual = next(spec for spec in specs if spec.name == body.residual)
        shape = _broadcast(shape, residual)
        dtype = promoted((dtype, canonical(residual.dtype))) if dtype is not None else None
    return Result(shape, dtype, result.terms)


def _broadcast(shape: tuple[int, ...], residual: OperandSpec) -> tuple[int, ...]:
    """The shape of result + residual by NumPy's rules."""
    rank = max(len(shape), len(residual.shape))
    left = (1,) * (rank - len(shape)) + shape
    right = (1,) * (rank - len(residual.shape)) + residual.shape
    if any(a != b and 1 not in (a, b) for a, b in zip(left, right, strict=True)):
        what = (
            f"residual '{residual.name}' cannot be added to the result "
            f"(got {list(residual.shape)}; allowed {list(shape)} or what broadcasts to it)"
        )
        raise Problem(what, ("residual",))
    return tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))


def _extra(
    body: Body,
    transform: str,
    specs: Sequence[OperandSpec],
    result: Result,
    fillings: Fillings,
) -> list[Operand]:
    """The arrays that a transform needs beside the operands."""
    floating = [spec for spec in specs if DTYPES[spec.dtype].is_inexact]
    for name in body.tangents:
        if name not in [spec.name for spec in floating]:
            allowed = listed(spec.name for spec in floating) or "none"
            what = f"tangents names no floating operand (got {name}; allowed {allowed})"
            raise Problem(what, ("tangents", name), key=True)
    if transform in ("vjp", "jvp") and not floating:
        what = f"{transform} needs a floating operand (got {listed(s.dtype for s in specs)})"
        raise Problem(what, ("transforms",), instead=("operands",))
    if transform == "jvp":
        return [_tangent(body, spec, fillings) for spec in floating]
    if transform == "vjp":
        return [_cotangent(body, result, fillings)]
    return []


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
    if not DTYPES[dtype].is_inexact:
        what = f"vjp needs a floating output (got {dtype})"
        raise Problem(what, ("transforms",), hint="leave the point out with sweep: {exclude: […]}")
    model = _drawn(body.cotangent)
    return fillings.fill("cotangent", model, result.shape, dtype, body.seed, ("cotangent",))


def _drawn(model: Filling) -> Filling:
    """The filling, drawn `normal` where it does not say how."""
    if model.values is None and model.file is None and model.draw is None:
        return model.model_copy(update=_NORMAL)
    return model


def _batched(operand: Operand, batch: int) -> Operand:
    """The operand with the leading axis of vmap: drawn anew, given values repeated along it."""
    repeat = batch if operand.draw is None else 0
    return replace(operand, shape=(batch, *operand.shape), repeat=repeat)
