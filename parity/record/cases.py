"""Resolved cases as plain data, so that a record can be read without their case files."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parity.casefile.case import Case, Expectation, Operand, Tolerance, Variant
from parity.program.spec import REWRITING, ProgramSpec
from parity.record.encoding import NONFINITE

_FOLDER, _SOURCES = "folder", "sources"


def case_as_dict(case: Case) -> dict[str, Any]:
    """A case as nested mappings and sequences; array files are named, not read."""
    return _fields(case) | {
        "file": str(case.file),
        "program": _program(case.program),
        "operands": [_text(operand, "file") for operand in case.operands],
        "tolerance": case.tolerance and _fields(case.tolerance),
        "expect": [_text(entry, "until") for entry in case.expect],
        "variants": {name: _fields(variant) for name, variant in case.variants.items()},
    }


def _program(program: ProgramSpec) -> dict[str, Any]:
    """A program; the folder of its Python files, told by their digests, is that of its case."""
    attributes = {k: v for k, v in program.attributes.items() if k != _FOLDER}
    arrays = ("operands", "extra", "parameters")
    fields = _fields(program)
    as_given = [name for name in REWRITING if not fields[name]]
    return {name: of for name, of in fields.items() if name not in as_given} | {
        "attributes": attributes,
        **{name: [_fields(one) for one in getattr(program, name)] for name in arrays},
    }


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that has slots."""
    return {name: getattr(value, name) for name in value.__slots__}


def _text(value: object, name: str) -> dict[str, Any]:
    """The fields of a dataclass, the named one as text."""
    found = getattr(value, name)
    return _fields(value) | {name: None if found is None else str(found)}


def case_from_dict(flat: Mapping[str, Any]) -> Case:
    """The case that `case_as_dict` flattened, also after a way through JSON."""
    known = {name: _tuples(value) for name, value in flat.items() if name != "operands"}
    known["file"] = Path(known["file"])
    if _SOURCES in known["program"]["attributes"]:
        known["program"]["attributes"][_FOLDER] = str(known["file"].parent)
    known["program"] = ProgramSpec.from_wire(known["program"])
    known["operands"] = tuple(map(_operand, flat["operands"]))
    known["expect"] = tuple(map(_expectation, known["expect"]))
    known["variants"] = {name: Variant(**of) for name, of in known["variants"].items()}
    if known["tolerance"] is not None:
        known["tolerance"] = Tolerance(**_finite_or_not(known["tolerance"]))
    return Case(**known)


def _operand(flat: Mapping[str, Any]) -> Operand:
    known = dict(flat)
    known["shape"] = tuple(known["shape"])
    known["file"] = None if known["file"] is None else Path(known["file"])
    known["values"] = _finite_or_not(known["values"])
    known["parameters"] = _finite_or_not(known["parameters"])
    return Operand(**known)


def _expectation(flat: Mapping[str, Any]) -> Expectation:
    until = flat["until"] and datetime.date.fromisoformat(flat["until"])
    return Expectation(**dict(flat) | {"until": until})


def _tuples(value: Any) -> Any:
    """Lists as tuples, which is what everything in a case but an operand's values is made of."""
    if isinstance(value, Mapping):
        return {name: _tuples(of) for name, of in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _finite_or_not(value: Any) -> Any:
    """The floats that JSON has words for, at any depth."""
    if isinstance(value, Mapping):
        return {name: _finite_or_not(of) for name, of in value.items()}
    if isinstance(value, list):
        return [_finite_or_not(of) for of in value]
    return float(value) if value in NONFINITE else value
