"""A Python function: one of a file beside the case file, or an installed one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from parity.program import source
from parity.program.ops import EVERY
from parity.program.outputs import NotTaken
from parity.program.spelling import arguments, data


def build(attributes: Mapping[str, Any]) -> Callable[..., Any]:
    """The operands, in order -> what the function makes of them and of `arguments`."""
    function = source.function(attributes["callable"])
    arguments = source.resolved(attributes.get("arguments", {}))

    def call(*operands: Any) -> Any:
        _check_call(attributes["callable"], function, operands, arguments)
        return function(*operands, **arguments)

    return call


def _check_call(
    name: str, function: Callable[..., Any], operands: Sequence[Any], arguments: Mapping[str, Any]
) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin tells nothing
        return
    try:
        signature.bind(*operands, **arguments)
    except TypeError as error:
        raise NotTaken(f"{name} does not take what it is passed: {error}") from None


def arity(attributes: Mapping[str, Any]) -> int:
    """All operands."""
    return EVERY


def statements(
    attributes: Mapping[str, Any], operands: Mapping[str, str], parameters: Mapping[str, str]
) -> list[str]:
    """See `program.ops.statements`."""
    called, imports = data({"callable": attributes["callable"]})
    given, more = arguments(attributes.get("arguments", {}))
    listed = ", ".join(operands.values())
    return [*dict.fromkeys([*imports, *more]), f"out = {called}({listed}{given})"]
