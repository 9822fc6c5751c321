"""A Python function: one of a file beside the case file, or an installed one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from parity.program import source
from parity.program.ops import EVERY


def build(attributes: Mapping[str, Any]) -> Callable[..., Any]:
    """The operands, in order -> what the function makes of them and of `arguments`."""
    function = source.function(attributes["callable"])
    arguments = source.resolved(attributes.get("arguments", {}))
    return lambda *operands: function(*operands, **arguments)


def arity(attributes: Mapping[str, Any]) -> int:
    """All operands."""
    return EVERY
