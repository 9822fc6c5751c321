"""JSON that every reader takes: no NaN or Infinity literals, no NumPy types."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parity.engine.run import RunResult

FORMAT = "parity-run/1"


def run_as_dict(result: RunResult) -> dict[str, Any]:
    """A run as one object: format, verdict, environment, rows, references, groups and notes.

    Rows are flat, as `compare.rows.as_dict` gives them; `groups` maps case id and output name to
    the lists of paths that gave equal bits, `notes` a case id to what a reader must know of its
    references.
    """
    from parity.compare.rows import as_dict

    return {
        "format": FORMAT,
        "verdict": result.verdict,
        "wanted": result.wanted,
        "done": len(result.cases),
        "record": None if result.record is None else str(result.record),
        "environment": dict(result.environment),
        "rows": [as_dict(row) for row in result.rows],
        "references": [as_dict(row) for case in result.cases for row in case.references],
        "groups": {case.case.id: case.groups for case in result.cases},
        "notes": {case.case.id: case.notes for case in result.cases if case.notes},
    }


def dumps(value: Any, *, indent: int | None = None) -> str:
    """JSON text of nested mappings, sequences and scalars, in ASCII.

    Non-finite floats become the strings "NaN", "Infinity" and "-Infinity".

    Raises:
        TypeError: something is not a mapping, a sequence or a scalar.
    """
    return json.dumps(_plain(value), indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    """`value` as what `json` takes; NumPy scalars and arrays as Python numbers and lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value
