"""A program as Python source that needs JAX alone: what somebody without parity runs."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping, Sequence

from parity.dtypes import dtype
from parity.program import ops
from parity.program.build import Program
from parity.program.spec import PROGRAMS, ProgramSpec
from parity.program.spelling import RESULT, NotWritten, element

_TAKEN = frozenset({RESULT, "jax", "jnp", "lax", "np", "forward", "program"})


def written(program: Program) -> str:
    """The definition of a function `program` that takes and gives the same arrays, in order.

    It uses `jax`, `jnp` and `lax`, imports what else it needs, and returns a tuple.

    Raises:
        NotWritten: parity puts something into the program that has no such form.
    """
    spec = program.spec
    if spec.barriers or spec.observed:
        raise NotWritten("its equations are rewritten")
    names = identifiers([one.name for one in program.inputs])
    if spec.transform == "forward":
        return _forward(spec, program, names, "program")
    taken = _taken(spec, program)
    forward = _forward(spec, program, {name: names[name] for name in taken}, "forward")
    body = _TRANSFORMS[spec.transform](program, names, taken)
    return f"{forward}\n\n{_function('program', names.values(), body)}"


def _taken(spec: ProgramSpec, program: Program) -> list[str]:
    """The operands and parameters that the program takes without its transform."""
    beside = {one.name for one in spec.extra}
    return [
        one.name
        for one in program.inputs
        if one.name not in beside and not one.name.startswith("tangent.")
    ]


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """For each name one that Python takes, all different."""
    found: dict[str, str] = {}
    for name in names:
        plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
        if not plain.isidentifier() or keyword.iskeyword(plain) or plain in _TAKEN:
            plain = f"x_{plain}"
        while plain in found.values():
            plain += "_"
        found[name] = plain
    return found


def _function(name: str, parameters: Iterable[str], body: Sequence[str]) -> str:
    inner = "\n".join(f"    {line}" for line in body)
    return f"def {name}({', '.join(parameters)}):\n{inner}\n"


def _forward(spec: ProgramSpec, program: Program, names: Mapping[str, str], function: str) -> str:
    """The op between its casts, and the residual."""
    operands = [one.name for one in spec.operands]
    taken = list(operands)
    if len(operands) > ops.arity(spec.op, spec.attributes):
        taken.remove(spec.residual or operands[-1])
    whole = spec.op in PROGRAMS
    body, given = [], {}
    for name in taken:
        given[name] = names[name]
        floating = dtype(next(o.dtype for o in spec.operands if o.name == name)).is_inexact
        if spec.compute_dtype is not None and (floating or not whole):
            given[name] = f"{names[name]}_cast"
            cast = f"lax.convert_element_type({names[name]}, {element(spec.compute_dtype)})"
            body.append(f"{given[name]} = {cast}")
    parameters = {name: of for name, of in names.items() if name not in operands}
    body += ops.statements(spec.op, spec.attributes, given, parameters)
    if whole:
        body += _cast_leaves(spec)
    elif spec.output_dtype is not None:
        cast = f"lax.convert_element_type({RESULT}, {element(spec.output_dtype)})"
        body.append(f"{RESULT} = {cast}")
    if spec.residual is not None:
        added = f"{RESULT}[0]" if whole else RESULT
        body.append(f"return ({added} + {names[spec.residual]},)")
    else:
        body.append(f"return {RESULT}" if whole else f"return ({RESULT},)")
    return _function(function, names.values(), body)


def _cast_leaves(spec: ProgramSpec) -> list[str]:
    leaves = [
        f"{RESULT} = tuple(jnp.asarray(leaf) for leaf in jax.tree_util.tree_leaves({RESULT}))"
    ]
    if spec.output_dtype is None:
        return leaves
    to = element(spec.output_dtype)
    floating = f"lax.convert_element_type(x, {to}) if jnp.issubdtype(x.dtype, jnp.inexact) else x"
    return [*leaves, f"{RESULT} = tuple({floating} for x in {RESULT})"]


def _vjp(program: Program, names: Mapping[str, str], taken: Sequence[str]) -> list[str]:
    wanted = [names[name] for name in program.differentiated]
    forward = program.forward()
    given = program.cotangents(forward)
    called = f"forward({', '.join(names[name] for name in taken)})"
    if list(given) != list(forward.outputs):
        chosen = [forward.outputs.index(name) for name in given]
        called = f"tuple({called}[i] for i in {chosen})"
    cotangents = [
        f"jnp.ones((), outputs[{at}].dtype)" if one is None else names[one]
        for at, one in enumerate(given.values())
    ]
    listed = ", ".join(wanted)
    return [
        f"outputs, pullback = jax.vjp(lambda {listed}: {called}, {listed})",
        f"return pullback(({', '.join(cotangents)},))",
    ]


def _jvp(program: Program, names: Mapping[str, str], taken: Sequence[str]) -> list[str]:
    wanted = program.differentiated
    listed = ", ".join(names[name] for name in wanted)
    tangents = ", ".join(names[f"tangent.{name}"] for name in wanted)
    called = f"forward({', '.join(names[name] for name in taken)})"
    return [
        f"outputs, tangents = jax.jvp(lambda {listed}: {called}, ({listed},), ({tangents},))",
        "return tuple(t for t in tangents if t.dtype != jax.dtypes.float0)",
    ]


def _vmap(program: Program, names: Mapping[str, str], taken: Sequence[str]) -> list[str]:
    axes = ", ".join("0" if program.spec.is_batched(name) else "None" for name in taken)
    listed = ", ".join(names[name] for name in taken)
    return [f"return jax.vmap(forward, in_axes=({axes},))({listed})"]


_TRANSFORMS = {"vjp": _vjp, "jvp": _jvp, "vmap": _vmap}
