"""A resolved case as the YAML of a case file without a sweep, which loads to the same case."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parity.casefile.case import Case, Expectation, Operand
from parity.casefile.ops import FIELDS, op
from parity.program.spec import ProgramSpec
from parity.report.html.characters import is_invisible

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./+-]*\Z")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_KEPT = re.compile(r"[^\x20-\x7e]")


def resolved_yaml(case: Case) -> str:
    """The case with everything that its file and the sweep left open filled in."""
    return text(document(case))


def text(fields: Mapping[str, Any]) -> str:
    """A case file of these fields: a line for each, and one for each operand and expectation."""
    return "".join(f"{line}\n" for line in _lines(fields))


def document(case: Case) -> dict[str, Any]:
    """The fields of the case file that is this case alone."""
    program = case.program
    by_name = {operand.name: operand for operand in case.operands}
    fields: dict[str, Any] = {"name": case.name, "about": case.about}
    fields |= {"links": case.links} if case.links else {}
    fields |= {
        **_computed(program),
        "operands": {
            spec.name: {"shape": spec.shape, "dtype": spec.dtype}
            | _filling(by_name[spec.name], case)
            for spec in program.operands
            if spec.name in by_name
        },
        "compute_dtype": program.compute_dtype,
        "output_dtype": program.output_dtype,
        "residual": program.residual,
        "transforms": [program.transform],
        "batch": program.batch or None,
        "batched": program.batched or None,
        "gradients": program.gradients or None,
    }
    fields |= _extra(case, by_name)
    fields |= {
        "paths": [_path(case, name) for name in case.paths],
        "baseline": case.baseline,
        "tolerance": _given(case.tolerance),
        "licences": case.licences,
        "x64": program.x64,
        "devices": program.devices,
        "timeout": case.timeout,
        "expect": [_expectation(entry) for entry in case.expect] or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _computed(program: ProgramSpec) -> dict[str, Any]:
    """The op with its attributes, or the field that stands for it."""
    field = next((field for field, name in FIELDS.items() if name == program.op), None)
    if field is None:
        return {"op": program.op, "attributes": program.attributes}
    fields = op(program.op).Attributes.model_fields
    given = {name: of for name, of in program.attributes.items() if name in fields}
    return {field: given["steps"] if field == "steps" else given}


def _extra(case: Case, by_name: Mapping[str, Operand]) -> dict[str, Any]:
    """What a transform takes beside the operands."""
    found: dict[str, Any] = {}
    for spec in case.program.extra:
        if spec.name not in by_name:
            continue
        filling = _filling(by_name[spec.name], case)
        kind, _, of = spec.name.partition(".")
        if kind == "cotangent":
            filling = {"shape": spec.shape, "dtype": spec.dtype} | filling
        if of:
            found.setdefault(f"{kind}s", {})[of] = filling
        else:
            found[kind] = filling
    return found


def _filling(operand: Operand, case: Case) -> dict[str, Any]:
    if operand.values is not None:
        return {"values": operand.values}
    if operand.file is not None:
        folder = case.file.parent
        inside = operand.file.is_relative_to(folder)
        file = operand.file.relative_to(folder) if inside else operand.file
        return {"file": file.as_posix()} | ({"key": operand.key} if operand.key else {})
    return {"draw": operand.draw, **operand.parameters, "seed": operand.seed}


def _path(case: Case, name: str) -> Any:
    variant = case.variants.get(name)
    if variant is None:
        return name
    flags = {
        "compiler_options": variant.compiler_options,
        "settings": variant.settings,
        "polymorphic_shapes": variant.polymorphic_shapes,
        "env": variant.variables,
    }
    return {"path": variant.path, "name": name} | {key: of for key, of in flags.items() if of}


def _expectation(entry: Expectation) -> dict[str, Any]:
    found = {
        "path": entry.paths,
        "output": entry.outputs,
        "grade": entry.grades,
        "outcome": entry.outcome,
        "stage": entry.stage,
        "match": entry.match,
        "because": entry.because,
        "link": entry.link,
        "until": None if entry.until is None else _Literal(entry.until.isoformat()),
        "when": entry.when or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _given(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    found = {name: getattr(value, name) for name in value.__slots__}
    return {name: of for name, of in found.items() if of is not None}


class _Literal(str):
    """Text that YAML reads as something else than text, and is to."""


def _lines(fields: Mapping[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        if name in ("operands", "tangents", "cotangents"):
            yield f"{name}:"
            yield from (f"  {_flow(key)}: {_flow(of)}" for key, of in value.items())
        elif name in ("expect", "paths", "steps") and any(isinstance(of, Mapping) for of in value):
            yield f"{name}:"
            yield from (f"  - {_flow(of)}" for of in value)
        else:
            yield f"{name}: {_flow(value)}"


def _flow(value: Any) -> str:
    """A value in YAML's flow style."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(of)}" for key, of in value.items()) + "}"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, float):
        return _float(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value)


def _float(value: float) -> str:
    if math.isfinite(value):
        mantissa, e, exponent = repr(value).partition("e")
        return mantissa + (".0" if e and "." not in mantissa else "") + e + exponent
    return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"


def _quoted(value: str) -> str:
    if isinstance(value, _Literal) or (_PLAIN.match(value) and value.lower() not in _WORDS):
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _KEPT.sub(lambda match: _escaped(match.group()), quoted)


def _escaped(character: str) -> str:
    """A character as it is if people see it, else as YAML escapes it."""
    code = ord(character)
    if not is_invisible(character):
        return character
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
