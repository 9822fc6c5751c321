"""JSON that every reader takes: no NaN or Infinity literals, no NumPy types.

SQLite and its JSON functions, pandas and other languages read what is written here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

loads = json.loads
"""The value that `dumps` wrote, but tuples come back as lists and non-finite floats as words."""

NONFINITE = ("NaN", "Infinity", "-Infinity")
"""What stands for a float that JSON lacks; `float` reads each back."""


def dumps(value: Any, *, indent: int | None = None) -> str:
    """JSON text of nested mappings, sequences and scalars, in ASCII.

    Non-finite floats become the strings "NaN", "Infinity" and "-Infinity".

    Raises:
        TypeError: something is not a mapping, a sequence or a scalar.
    """
    separators = (",", ":") if indent is None else None
    return json.dumps(_plain(value), indent=indent, separators=separators, allow_nan=False)


def _plain(value: Any) -> Any:
    """`value` as what `json` takes; NumPy scalars and arrays as Python numbers and lists."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is dict:
        return {str(key): _plain(item) for key, item in value.items()}
    if kind in (list, tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, Mapping):
        return _plain(dict(value))
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return _plain(list(value))
    return value


_AS_THEY_ARE = frozenset((str, int, bool, type(None)))
