"""Texts of what was compiled, without what says nothing about the arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_LOCATION = re.compile(r"\s*loc\((?:[^()\"]|\"[^\"]*\"|\((?:[^()\"]|\"[^\"]*\")*\))*\)")
_LOCATION_DEFINITION = re.compile(r"^#loc.*$\n?", re.MULTILINE)
_FOREIGN_ATTRIBUTE = re.compile(r"\b(?:jax|mhlo)\.[\w.]+\s*=\s*(?:\"[^\"]*\"|[^,{}\"]+)")
_EMPTY_BRACES = re.compile(r"\s*(?:attributes\s*)?\{[\s,]*\}")
_SYMBOL = re.compile(r"@([\w.$-]+|\"[^\"]*\")")
_METADATA = re.compile(r",?\s*metadata=\{[^{}]*\}")
_HLO_NAME = re.compile(r"%?\b[A-Za-z_][\w-]*\.\d+\b|%[\w.-]+")


def canonical_stablehlo(text: str) -> str:
    """StableHLO text without locations, `jax.*` and `mhlo.*` attributes and symbol names.

    Symbols are renumbered in order of appearance, so that two modules that compute the same read
    the same.
    """
    text = _LOCATION_DEFINITION.sub("", _LOCATION.sub("", text))
    text = _FOREIGN_ATTRIBUTE.sub("", text)
    text = _EMPTY_BRACES.sub("", text)
    text = _renumbered(_SYMBOL, text, "@s")
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def canonical_hlo(text: str) -> str:
    """Optimized HLO text without metadata, paths and instruction ids."""
    text = _METADATA.sub("", text)
    head, _, body = text.partition("\n")
    head = re.sub(r"^HloModule [^,\s]+", "HloModule m", head)
    body = _renumbered(_HLO_NAME, body, "%v")
    return head + "\n" + body


def _renumbered(pattern: re.Pattern[str], text: str, prefix: str) -> str:
    numbers: dict[str, str] = {}

    def replace(match: re.Match[str]) -> str:
        name = match.group(0).lstrip("%")
        return numbers.setdefault(name, f"{prefix}{len(numbers)}")

    return pattern.sub(replace, text)


def canonical_graph(operations: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """TensorFlow operations in the order they ran, a line each, with their attributes."""
    return "\n".join(
        f"{op} {sorted((k, str(v)) for k, v in attrs.items())}" for op, attrs in operations
    )
