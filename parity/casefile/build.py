"""From a checked case file to the program and operands of one case."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from parity.casefile.case import Operand, Tolerance, Variant
from parity.casefile.derivatives import extra, gradients
from parity.casefile.filling import Fillings
from parity.casefile.messages import validated
from parity.casefile.op import Result, broadcast, promoted
from parity.casefile.ops import FIELDS, infer, op, ops
from parity.casefile.problem import Problem, did_you_mean, listed, show, spell
from parity.casefile.schema import Body
from parity.casefile.sources import Sources
from parity.dtypes import DTYPES
from parity.program.spec import OperandSpec, ProgramSpec, strings

_WIDE = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}

Known = Mapping[str, Mapping[str, Sequence[Any]] | None]
"""By path, the options it takes with the values that each may have, any if there are none; None
where that is not known before it runs."""


@dataclass(frozen=True)
class Built:
    """The program of a case and how the bits of its inputs come about, in the same order."""

    program: ProgramSpec
    operands: tuple[Operand, ...]


def build(body: Body, transform: str, fillings: Fillings, sources: Sources) -> Built:
    """The program and operands of one case.

    Args:
        body: what the case file says at one point of its sweep.
        transform: forward, vjp, jvp or vmap.
        fillings: checks the arrays.
        sources: finds the Python files that it names.

    Raises:
        Problem: shapes, dtypes or names contradict each other.
        ExceptionGroup: of Problems: the op's attributes have the wrong form.
    """
    name, attributes = _attributes(body, sources)
    _check_residual(body)
    taken = op(name).takes(list(body.operands), attributes, body.residual)
    order = [*taken, *(name for name in body.operands if name not in taken)]
    operands = [fillings.operand(name, body.operands[name], body.seed) for name in order]
    specs = [_spec(operand) for operand in operands]
    parameters = _parameters(attributes, fillings) if name == FIELDS["flax"] else []
    x64 = _x64(body, [*specs, *map(_spec, parameters)], attributes)
    result = _result(body, name, specs[: len(taken)], specs, attributes, x64)
    chosen = gradients(body, specs)
    more = extra(body, transform, specs, result, chosen, fillings)
    if name == FIELDS["steps"]:
        attributes["operands"] = taken
    program = ProgramSpec(
        op=name,
        operands=tuple(specs),
        attributes=attributes,
        compute_dtype=body.compute_dtype,
        output_dtype=body.output_dtype,
        residual=body.residual,
        transform=transform,
        extra=tuple(map(_spec, more)),
        batch=body.batch if transform == "vmap" else 0,
        x64=x64,
        devices=body.devices,
        parameters=tuple(map(_spec, parameters)),
        gradients=chosen if transform in ("vjp", "jvp") else (),
        batched=_mapped(body) if transform == "vmap" else (),
    )
    batched = [_batched(o, program) for o in operands]
    return Built(program, (*batched, *more, *parameters))


def variants(body: Body) -> tuple[Variant, ...]:
    """The paths to run, each under its name; plain ones have no flags."""
    found = []
    for item in body.paths:
        if isinstance(item, str):
            found.append(Variant(item, item))
            continue
        given = item.compiler_options, item.settings, item.polymorphic_shapes, item.env
        flags = sorted((name, of) for flags in given for name, of in flags.items())
        short = hashlib.sha256(repr(flags).encode()).hexdigest()[:8]
        name = item.name or f"{item.path}+{short}"
        found.append(
            Variant(
                name,
                item.path,
                item.compiler_options,
                item.settings,
                item.polymorphic_shapes,
                item.env,
            )
        )
    return tuple(found)


def check_paths(body: Body, known: Known | None) -> None:
    """Raise a Problem for a path that is unknown, named twice, given what it does not take, or no
    baseline among them.
    """
    names = [variant.name for variant in variants(body)]
    for index, variant in enumerate(variants(body)):
        at = ("paths", index)
        if variant.name in names[:index]:
            raise Problem(f"paths names '{variant.name}' twice", at, hint="keep one of the two")
        if known is not None and variant.path not in known:
            what = f"unknown path (got {show(variant.path)}; allowed {listed(known)})"
            raise Problem(what, at, hint=did_you_mean(variant.path, known))
        if known is not None and not isinstance(body.paths[index], str):
            _check_options(variant, known[variant.path], at)
            _check_shapes(variant, body, at)
    if body.baseline not in names:
        what = f"baseline is not among the paths (got {show(body.baseline)}; "
        what += f"allowed {listed(names)})"
        raise Problem(what, ("baseline",), instead=("paths",))


def _check_options(
    variant: Variant, taken: Mapping[str, Sequence[Any]] | None, at: tuple[str | int, ...]
) -> None:
    """Raise a Problem for an option that a path does not take, or a value that it cannot have."""
    if taken is None:
        return
    for name, value in variant.options().items():
        inside = (*at, name) if name not in variant.settings else (*at, "settings", name)
        if name not in taken:
            what = f"{variant.path} does not take it (got {name}; allowed {listed(taken)})"
            raise Problem(what, inside, key=True, hint=did_you_mean(name, taken))
        allowed = taken[name]
        values = value if isinstance(value, list) else [value]
        wrong = [one for one in values if one not in allowed] if allowed else []
        if wrong:
            what = f"unknown {name} of {variant.path} (got {show(wrong[0])}; "
            what += f"allowed {listed(allowed)})"
            raise Problem(what, inside, hint=did_you_mean(str(wrong[0]), map(str, allowed)))


def _check_shapes(variant: Variant, body: Body, at: tuple[str | int, ...]) -> None:
    """Raise a Problem for a polymorphic shape that is no operand's."""
    allowed = [*body.operands, "cotangent", *(f"cotangent.{name}" for name in body.cotangents)]
    for name, text in variant.polymorphic_shapes.items():
        inside = (*at, "polymorphic_shapes", name)
        if name not in allowed:
            what = f"no such operand (got {name}; allowed {listed(allowed)})"
            raise Problem(what, inside, key=True, hint=did_you_mean(name, allowed))
        shape = body.operands[name].shape if name in body.operands else None
        dimensions = [one.strip() for one in text.strip(" ()").split(",") if one.strip()]
        if shape is None or "..." in dimensions:
            continue
        if len(dimensions) != len(shape):
            what = f"another number of dimensions than {name} has "
            what += f"(got {show(text)}; allowed {len(shape)} for shape {list(shape)})"
            raise Problem(what, inside, hint="one for each, or ... for those that stay")


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


def _attributes(body: Body, sources: Sources) -> tuple[str, dict[str, Any]]:
    """The op, or what stands for it, and its attributes."""
    given = [field for field in ("op", *FIELDS) if getattr(body, field) is not None]
    if len(given) > 1:
        what = f"{given[1]} cannot stand beside {given[0]}"
        raise Problem(what, (given[1],), key=True, hint="keep one of the two")
    if body.op is not None:
        if body.op not in ops():
            what = f"unknown op (got {show(body.op)}; allowed {listed(ops())})"
            raise Problem(what, ("op",), hint=did_you_mean(body.op, ops()))
        found = validated(op(body.op).Attributes, body.attributes, ("attributes",))
        return body.op, found.keywords()
    (field,) = given
    if body.attributes:
        what = "attributes stands beside op only"
        raise Problem(what, ("attributes",), key=True, hint=f"put them under {field}")
    name, data = FIELDS[field], getattr(body, field)
    checks: Any = op(name)
    if field == "steps":
        return name, validated(checks.Attributes, {field: data}, ()).keywords()
    attributes = validated(checks.Attributes, data, (field,)).keywords()
    named = (((field, *at), text) for at, text in checks.names(attributes))
    beside = {"folder": str(sources.folder), "sources": sources.of(named)}
    return name, attributes | beside


def _parameters(attributes: dict[str, Any], fillings: Fillings) -> list[Operand]:
    """The parameters of a module that stand in a file."""
    file = attributes.get("parameters", {}).get("file")
    return [] if file is None else fillings.stored(file, ("flax", "parameters", "file"))


def _mapped(body: Body) -> tuple[str, ...]:
    """The operands that vmap maps over, empty for all."""
    for index, name in enumerate(body.batched or ()):
        if name not in body.operands:
            at = ("batched", index)
            what = f"{spell(at)} names no operand (got {name}; allowed {listed(body.operands)})"
            raise Problem(what, at, hint=did_you_mean(name, body.operands))
    return tuple(body.batched or ())


def _spec(operand: Operand) -> OperandSpec:
    return OperandSpec(operand.name, operand.shape, operand.dtype)


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
    declared += [body.compute_dtype, body.output_dtype, *strings(attributes)]
    return any(name in _WIDE for name in declared)


def _result(
    body: Body,
    name: str,
    taken: Sequence[OperandSpec],
    specs: Sequence[OperandSpec],
    attributes: dict[str, Any],
    x64: bool,
) -> Result | None:
    """Shape and dtype of the program's output; one or both None where only JAX knows."""

    def canonical(name: str) -> str:
        return name if x64 else _WIDE.get(name, name)

    def computed(spec: OperandSpec) -> OperandSpec:
        cast = body.op is not None or DTYPES[spec.dtype].is_inexact
        return replace(
            spec, dtype=canonical(body.compute_dtype if cast and body.compute_dtype else spec.dtype)
        )

    known = attributes if x64 else _narrowed(attributes)
    result = infer(name, [computed(spec) for spec in taken], known)
    if result is None:
        return None
    shape, dtype = result.shape, body.output_dtype or result.dtype
    dtype = canonical(dtype) if dtype is not None else None
    if body.residual is not None:
        residual = next(spec for spec in specs if spec.name == body.residual)
        added = broadcast(shape, residual.shape)
        if added is None:
            what = (
                f"residual '{residual.name}' cannot be added to the result "
                f"(got {list(residual.shape)}; allowed {list(shape)} or what broadcasts to it)"
            )
            raise Problem(what, ("residual",))
        shape = added
        dtype = promoted((dtype, canonical(residual.dtype))) if dtype is not None else None
    return Result(shape, dtype, result.terms)


def _narrowed(attributes: Any) -> Any:
    """Attributes in which dtypes of 64 bits are what JAX makes of them without x64."""
    if isinstance(attributes, dict):
        return {name: _narrowed(value) for name, value in attributes.items()}
    if isinstance(attributes, tuple):
        return tuple(map(_narrowed, attributes))
    return _WIDE.get(attributes, attributes) if isinstance(attributes, str) else attributes


def _batched(operand: Operand, program: ProgramSpec) -> Operand:
    """The operand with the leading axis of vmap: drawn anew, given values repeated along it."""
    if not program.is_batched(operand.name):
        return operand
    repeat = program.batch if operand.draw is None else 0
    return replace(operand, shape=(program.batch, *operand.shape), repeat=repeat)
