"""The JSON Schema of case files, for editors and other tools."""

from __future__ import annotations

from typing import Any

from parity.casefile.ops import FIELDS, op, ops
from parity.casefile.schema import CaseFileModel, SweepModel

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_SOURCES = ("values", "file", "draw")


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a case file, each op's attributes included.

    A sweep may give any field, so what is required is required only of files without one. Whether
    shapes fit is beyond JSON Schema; `load` says so.
    """
    schema = CaseFileModel.model_json_schema(ref_template="#/$defs/{model}")
    definitions = schema.pop("$defs")
    definitions |= SweepModel.model_json_schema().pop("$defs", {})
    definitions["SweepModel"] = SweepModel.model_json_schema()
    properties = schema["properties"]
    properties["op"] = {"enum": list(ops()), "description": properties["op"]["description"]}
    properties["sweep"] |= _sweep()
    required = [name for name in schema.pop("required") if name != "about"]
    operand = definitions["OperandModel"].pop("required")
    rules = [_without_sweep(required, operand)]
    for name in (*ops(), *FIELDS.values()):
        attributes = op(name).Attributes.model_json_schema(ref_template="#/$defs/{model}")
        needed = attributes.pop("required", [])
        definitions |= attributes.pop("$defs", {})
        definitions[name] = attributes | {"title": f"attributes of {name}"}
        if name in ops():
            rules += _op(name, needed)
    for field, name in FIELDS.items():
        described = {"description": properties[field]["description"]}
        inside = definitions[name]["properties"]
        properties[field] = inside.get(field, {"$ref": f"#/$defs/{name}"}) | described
    return {
        "$schema": DIALECT,
        **schema,
        "title": "parity case file",
        "required": ["about"],
        "allOf": rules,
        "$defs": definitions,
    }


def _sweep() -> dict[str, Any]:
    axes = {"type": "object", "minProperties": 1}
    axes["additionalProperties"] = {"type": "array", "minItems": 1}
    full_form = [{"required": [name]} for name in SweepModel.model_fields]
    short = {**axes, "not": {"anyOf": full_form}}
    full = {"$ref": "#/$defs/SweepModel", "minProperties": 1}
    return {"anyOf": [short, full, {"type": "null"}]}


def _without_sweep(required: list[str], operand: list[str]) -> dict[str, Any]:
    """What a file must have if no sweep gives it."""
    filled = {"required": operand, "oneOf": [{"required": [source]} for source in _SOURCES]}
    return {
        "if": {"not": {"required": ["sweep"]}},
        "then": {
            "required": required,
            "oneOf": [{"required": [field]} for field in ("op", *FIELDS)],
            "properties": {
                "operands": {"additionalProperties": filled},
                "program": {"required": ["callable"]},
                "flax": {"required": ["module"]},
            },
        },
    }


def _op(name: str, required: list[str]) -> list[dict[str, Any]]:
    """The attributes of one op: which there are, and which there must be."""
    chosen = {"properties": {"op": {"const": name}}, "required": ["op"]}
    attributes = {"properties": {"attributes": {"$ref": f"#/$defs/{name}"}}}
    needed = {"required": ["attributes"], "properties": {"attributes": {"required": required}}}
    return [
        {"if": chosen, "then": attributes},
        {"if": {**chosen, "not": {"required": ["sweep"]}}, "then": needed if required else {}},
    ]
