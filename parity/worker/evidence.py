"""Texts of what was compiled, without what says nothing about the arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parity.paths import Probe

_LOCATION = re.compile(r"\s*loc\((?:[^()\"]|\"[^\"]*\"|\((?:[^()\"]|\"[^\"]*\")*\))*\)")
_LOCATION_DEFINITION = re.compile(r"^#loc.*$\n?", re.MULTILINE)
_FOREIGN_ATTRIBUTE = re.compile(r"\b(?:jax|mhlo)\.[\w.]+\s*=\s*(?:\"[^\"]*\"|[^,{}\"]+)")
_EMPTY_BRACES = re.compile(r"\s*(?:attributes\s*)?\{[\s,]*\}")
_SYMBOL = re.compile(r"@([\w.$-]+|\"[^\"]*\")")
_METADATA = re.compile(r",?\s*metadata=\{[^{}]*\}")
_HLO_TABLE = re.compile(
    r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d.*\n)*", re.MULTILINE
)
_HLO_NAME = re.compile(
    r"%[\w.-]+"  # where it is used or defined
    r"|(?<=[(\s])[\w.-]+(?=: \(?[a-z]\w*\[)"  # a parameter in a computation's head
    r"|\b[A-Za-z_][\w-]*\.\d+\b"
)
_HLO_TYPE = r"[a-z]\w*\[[^\]]*\](?:\{[^{}]*\})?"
_OPERAND_TYPE = re.compile(rf"(?<=[(\s])(?:{_HLO_TYPE}|\((?:{_HLO_TYPE}(?:, )?)*\)) (?=%)")
_COLLECTIVE = re.compile(
    r"= \(?([a-z]\w*)\[[^=]*? "
    r"(all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("
)
_INDEX_COMMENT = re.compile(r"/\*index=\d+\*/")
_DEFINED = re.compile(r"\s+(?:ROOT )?(%[\w.-]+) =|(?:ENTRY )?(%[\w.-]+) ")


def leave(probe: Probe, *, stablehlo: str, hlo: str) -> None:
    """Leave in a probe what XLA was given and made of it, and the collectives that it uses."""
    probe.compiled("stablehlo", canonical_stablehlo(stablehlo))
    probe.compiled("hlo", canonical_hlo(hlo))
    if used := collectives(hlo):
        probe.evidence["collectives"] = ", ".join(used)


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
    """Optimized HLO text without metadata, source tables, paths, operand types and names.

    Instructions stand in the order in which the root needs them: independent ones have no order of
    their own. An operand's type is that of the instruction that defines it; JAX up to 0.4 prints
    both.
    """
    text = _HLO_TABLE.sub("", _INDEX_COMMENT.sub("", _METADATA.sub("", text)))
    head, _, body = text.partition("\n")
    head = re.sub(r"^HloModule [^,\s]+", "HloModule m", head)
    computations = [block for block in re.split(r"\n\s*\n", body.strip("\n")) if block.strip()]
    in_order = _needed_first([_ordered(block) for block in computations], root="ENTRY")
    body = _renumbered(_HLO_NAME, "\n\n".join(in_order), "%v")
    return head + "\n\n" + _OPERAND_TYPE.sub("", body)


def collectives(hlo: str) -> list[str]:
    """The collectives of optimized HLO with the dtypes that they move or add: `all-reduce f16`."""
    found = (f"{op} {dtype}" for dtype, op in _COLLECTIVE.findall(hlo))
    return sorted(set(found))


def _ordered(computation: str) -> str:
    """A computation with its instructions in the order in which its root needs them."""
    first, *instructions, last = computation.strip("\n").split("\n")
    return "\n".join([first, *_needed_first(instructions, root="  ROOT"), last])


def _needed_first(definitions: list[str], *, root: str) -> list[str]:
    """Definitions, each after those it refers to, beginning with what the root refers to."""
    by_name = {}
    for definition in definitions:
        found = _DEFINED.match(definition)
        if found is not None:
            by_name[found[1] or found[2]] = definition
    ordered: dict[str, None] = {}
    waiting = [*reversed(definitions), *(d for d in definitions if d.startswith(root))]
    entered = set()
    while waiting:
        definition = waiting.pop()
        if definition in entered or definition in ordered:
            ordered.setdefault(definition)
            continue
        entered.add(definition)
        waiting.append(definition)
        used = (by_name.get(name) for name in re.findall(r"%[\w.-]+", definition))
        waiting += reversed([u for u in used if u is not None and u not in entered])
    return [*ordered]


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
