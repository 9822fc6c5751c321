"""Equal parts of the cases of one file, held once.

A sweep of ten thousand cases has few different programs and operands.
"""

from __future__ import annotations

from typing import Any, TypeVar

from parity.casefile.case import Operand
from parity.program.spec import ProgramSpec

Part = TypeVar("Part")


class Shared:
    """Gives back, for a part that equals an earlier one, the earlier one."""

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}

    def program(self, program: ProgramSpec) -> ProgramSpec:
        """The program, or its equal."""
        return self._same(repr(program), program)

    def operands(self, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """The operands, or their equals. Values, which may be large, are told by identity."""
        return tuple(self._same(_without_values(o) + str(id(o.values)), o) for o in operands)

    def tuple(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The names, or their equals."""
        return self._same(repr(names), names)

    def _same(self, token: str, part: Part) -> Part:
        held: Part = self._held.setdefault(token, part)
        return held


def _without_values(o: Operand) -> str:
    how = (o.file, o.key, o.draw, tuple(o.parameters.items()), o.seed, o.repeat)
    return repr((o.name, o.shape, o.dtype, how))
