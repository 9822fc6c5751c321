"""The ops that a case file may name: one file each, found by listing this package.

What stands for an op where a program is more than one has a file, too, and a field of its own.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from parity.casefile.op import Attributes, Keywords, Result
from parity.program.spec import PROGRAMS, OperandSpec

FIELDS = {"program": "callable", "flax": "flax", "steps": "steps"}
"""The fields that stand instead of `op`, and the files here that check them."""


class Op(Protocol):
    """A file of this package."""

    Attributes: type[Attributes]
    EXAMPLE: str

    @staticmethod
    def takes(names: Sequence[str], keywords: Keywords, residual: str | None) -> tuple[str, ...]:
        """The operands the op takes, in order."""
        ...

    @staticmethod
    def infer(operands: Sequence[OperandSpec], keywords: Keywords) -> Result | None:
        """Shape and dtype of the op's result, None where only JAX knows."""
        ...


@cache
def ops() -> tuple[str, ...]:
    """The names that `op` may have, sorted."""
    names = {module.name for module in pkgutil.iter_modules(__path__)}
    return tuple(sorted(names - set(PROGRAMS)))


@cache
def op(name: str) -> Op:
    """The file of one op.

    Raises:
        KeyError: no such op.
    """
    if name not in (*ops(), *PROGRAMS):
        raise KeyError(name)
    return cast(Op, import_module(f"{__name__}.{name}"))


def infer(
    name: str, operands: Sequence[OperandSpec], attributes: Mapping[str, Any]
) -> Result | None:
    """Shape and dtype of what an op makes of operands, without JAX; None where only JAX knows.

    Args:
        name: of the op.
        operands: those the op takes, in order, in the dtypes it computes with.
        attributes: its keyword arguments, as `ProgramSpec.attributes` spells them.

    Raises:
        Problem: the shapes do not fit.
        KeyError: no such op.
    """
    return op(name).infer(operands, attributes)
