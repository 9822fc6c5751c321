"""What a case gives an op, as Python source that needs JAX alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax

RESULT = "out"
"""The name to which the statements of an op assign its result."""

_WIDTH = 88


class NotWritten(Exception):
    """A program cannot be said in Python without parity; says why."""


def element(name: str) -> str:
    """A dtype as `jax.numpy` calls it: `jnp.bfloat16`."""
    return "jnp.bool_" if name == "bool" else f"jnp.{name}"


def call(function: str, positional: Iterable[str], attributes: Mapping[str, Any]) -> list[str]:
    """The statement that assigns a call of `lax` or `jax.numpy` to `out`.

    Args:
        function: which.
        positional: expressions.
        attributes: keyword arguments, as a case gives them.
    """
    given = [*positional, *(f"{name}={_argument(name, of)}" for name, of in attributes.items())]
    line = f"{RESULT} = {function}({', '.join(given)})"
    if len(line) <= _WIDTH:
        return [line]
    return [f"{RESULT} = {function}(", *(f"    {one}," for one in given), ")"]


def _argument(name: str, value: Any) -> str:
    if value is None:
        return "None"
    if name == "preferred_element_type":
        return element(value)
    if name == "precision":
        return _precision(value)
    return repr(value)


def _precision(value: Any) -> str:
    if not isinstance(value, str):
        return f"({', '.join(map(_precision, value))})"
    known = value.upper() in jax.lax.Precision.__members__
    return f"lax.{'Precision' if known else 'DotAlgorithmPreset'}.{value.upper()}"


def data(value: Any) -> tuple[str, list[str]]:
    """Plain data as source, with the imports that it needs.

    Args:
        value: in which `{callable: module:name}` stands for what it names.
    """
    imports: list[str] = []

    def spelt(one: Any) -> str:
        if isinstance(one, Mapping) and set(one) == {"callable"}:
            module, _, name = one["callable"].partition(":")
            imports.append(f"import {module}")
            return f"{module}.{name}"
        if isinstance(one, Mapping):
            return "{" + ", ".join(f"{key!r}: {spelt(of)}" for key, of in one.items()) + "}"
        if isinstance(one, list | tuple):
            return "(" + "".join(f"{spelt(of)}, " for of in one) + ")"
        return repr(one)

    return spelt(value), imports


def arguments(values: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Keyword arguments of a user's function, each behind a comma, and their imports."""
    spelt = {name: data(of) for name, of in values.items()}
    text = "".join(f", {name}={one}" for name, (one, _) in spelt.items())
    return text, [line for _, imports in spelt.values() for line in imports]
