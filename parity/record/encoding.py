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
    if indent is not None:
        return json.dumps(_plain(value), indent=indent, allow_nan=False)
    try:
        return _encode(value)
    except ValueError:  # something is not finite
        return _encode(_plain(value))


def word(value: float) -> str:
    """What stands for a float that is not finite."""
    return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"


def _plain(value: Any) -> Any:
    """`value` as what `json` takes; NumPy scalars and arrays as Python numbers and lists."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else word(value)
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [_plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} object is not JSON serializable")


_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=_plain).encode
