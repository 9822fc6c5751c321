"""A chain of steps, each of the result before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
from jax import Array, lax

from parity.dtypes import dtype
from parity.program.ops import EVERY
from parity.program.ops import build as build_op
from parity.program.ops import statements as statements_of
from parity.program.spelling import element

Step = Callable[[Array, Mapping[str, Array]], Array]
"""Of the array it starts from and of all arrays by name."""

_BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
}
_OPS = {"conv": "conv_general_dilated", "dot": "dot_general"}


def build(attributes: Mapping[str, Any]) -> Callable[..., Array]:
    """The operands, in order -> the result of the last step."""
    names = attributes["operands"]
    steps = [(step, _step(step)) for step in attributes["steps"]]

    def chain(*operands: Array) -> Array:
        known = dict(zip(names, operands, strict=True))
        result = operands[0]
        for step, function in steps:
            result = function(known[step["from"]] if "from" in step else result, known)
            if "as" in step:
                known[step["as"]] = result
        return result

    return chain


def arity(attributes: Mapping[str, Any]) -> int:
    """All operands."""
    return EVERY


def _step(step: Mapping[str, Any]) -> Step:
    for name, binary in _BINARY.items():
        if name in step:
            return lambda x, known: binary(x, known[step[name]])
    for name, op in _OPS.items():
        if name in step:
            function = build_op(op, step[name])
            return lambda x, known: function(x, known[step["with"]])
    if "cast" in step:
        to = dtype(step["cast"]).numpy()
        return lambda x, known: lax.convert_element_type(x, to)
    activation = getattr(jax.nn, step["activation"])
    return lambda x, known: activation(x)


def statements(
    attributes: Mapping[str, Any], operands: Mapping[str, str], parameters: Mapping[str, str]
) -> list[str]:
    """See `program.ops.statements`."""
    known = dict(operands)
    found = [f"out = {operands[attributes['operands'][0]]}"]
    for step in attributes["steps"]:
        found += _written(step, known)
        if "as" in step:
            known[step["as"]] = f"step_{len(found)}"
            found.append(f"{known[step['as']]} = out")
    return found


def _written(step: Mapping[str, Any], known: Mapping[str, str]) -> list[str]:
    """The statement of one step, of `out` and of what is known by name."""
    start = known[step["from"]] if "from" in step else "out"
    for name, sign in {"add": "+", "sub": "-", "mul": "*"}.items():
        if name in step:
            return [f"out = {start} {sign} {known[step[name]]}"]
    for name, op in _OPS.items():
        if name in step:
            return statements_of(op, step[name], {"lhs": start, "rhs": known[step["with"]]}, {})
    if "cast" in step:
        return [f"out = lax.convert_element_type({start}, {element(step['cast'])})"]
    return [f"out = jax.nn.{step['activation']}({start})"]
