"""Case files from data: text that people read, with the bits of every operand kept."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq

from parity.casefile import arrayfile, values
from parity.dtypes import dtype

if TYPE_CHECKING:
    import numpy as np

_LISTED = 100
"""Elements up to which an operand stands in the case file itself."""

_LONGEST_NAME = 80
_UNBROKEN = 1 << 20
"""A line width that breaks no line."""


@dataclass(frozen=True)
class Draft:
    """A case file to be written; fields as case files name them.

    Attributes:
        name: made by `safe_name`.
        about: one sentence.
        links: where that is discussed.
        op: which one.
        operands: arrays by name, in order.
        attributes: of the op.
        fields: any others: `x64` and so on.
    """

    name: str
    about: str
    links: tuple[str, ...]
    op: str
    operands: Mapping[str, np.ndarray]
    attributes: Mapping[str, Any]
    fields: Mapping[str, Any] = field(default_factory=dict)


def safe_name(text: str) -> str:
    """A name that ids can hold, of at most 80 characters; another text gets another name."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", text)
    if name == text and len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST_NAME - 9]}-{digest}"


def write(draft: Draft, folder: Path) -> Path:
    """Write `NAME.yaml` and, for operands too long for it, array files beside it.

    Args:
        draft: what to write.
        folder: exists.

    Returns:
        The case file.

    Raises:
        OSError: it cannot be written.
    """
    operands: dict[str, Any] = {}
    stored: dict[str, dict[str, np.ndarray]] = {}
    for name, array in draft.operands.items():
        kind = dtype(array.dtype)
        operand: dict[str, Any] = {"shape": _flow(array.shape), "dtype": kind.name}
        suffix = arrayfile.suffix(kind)
        if suffix is None or _fits(array):
            operand["values"] = _rows(values.listing(array))
        else:
            operand |= {"file": draft.name + suffix, "key": name}
            stored.setdefault(suffix, {})[name] = array
        operands[name] = operand
    for suffix, arrays in stored.items():
        arrayfile.write(folder / f"{draft.name}{suffix}", arrays)
    path = folder / f"{draft.name}.yaml"
    path.write_text(_text(draft, operands), encoding="utf-8")
    return path


def _fits(array: np.ndarray) -> bool:
    """Whether an array can be listed: it is short, and its bits come back."""
    if array.size > _LISTED:
        return False
    again = values.array(values.listing(array), array.shape, dtype(array.dtype))
    return again.tobytes() == array.tobytes()


def _text(draft: Draft, operands: Mapping[str, Any]) -> str:
    """The case file: a line for each field and attribute and for each row of values."""
    document = {"name": draft.name, "about": draft.about, "links": _flow(draft.links)}
    document |= {"op": draft.op, "operands": operands}
    document["attributes"] = {name: _flow(value) for name, value in draft.attributes.items()}
    yaml = YAML()
    yaml.width = _UNBROKEN
    out = io.StringIO()
    yaml.dump({**document, **draft.fields}, out)
    return out.getvalue()


def _flow(items: Any) -> Any:
    """A list in the form that stands on one line; anything else itself."""
    if not isinstance(items, list | tuple):
        return items
    sequence = CommentedSeq(map(_flow, items))
    sequence.fa.set_flow_style()
    return sequence


def _rows(values: Any) -> Any:
    """Nested lists of which the innermost stand on one line each."""
    nested = isinstance(values, list) and values and isinstance(values[0], list)
    return [_rows(row) for row in values] if nested else _flow(values)
