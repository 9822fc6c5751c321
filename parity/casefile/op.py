"""What a file in `casefile/ops` is made of.

Such a file has `Attributes`, a model of the op's keyword arguments; `takes(names, keywords,
residual)`, which operands the op takes, in order; `infer(operands, keywords)`, the shape and dtype
of its result, None where only JAX knows; and `EXAMPLE`, the operands and attributes of a new case
file, which sweeps `AXES` together, if there are some, instead of compute_dtype. `program/ops` has
its counterpart in the worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parity.casefile.fields import Strict
from parity.casefile.problem import Location, Problem, listed, show, spell
from parity.dtypes import DTYPES
from parity.program.spec import OperandSpec

Keywords = Mapping[str, Any]

_PROMOTED_FLOATS = ("bfloat16", "float16", "float32", "float64")


@dataclass(frozen=True)
class Result:
    """What an op gives.

    Attributes:
        shape: of the result; zero-size dimensions are legal.
        dtype: None where only JAX's promotion knows.
        terms: K, the products summed for one element.
    """

    shape: tuple[int, ...]
    dtype: str | None
    terms: int


class Attributes(Strict):
    """Keyword arguments of an op."""

    def keywords(self) -> dict[str, Any]:
        """Those that were given, under the op's own names; sequences are tuples."""
        given = ((name, getattr(self, name)) for name in type(self).model_fields)
        return {name: frozen(value) for name, value in given if value is not None}


def frozen(value: Any) -> Any:
    """A value with tuples instead of lists."""
    if isinstance(value, dict):
        return {key: frozen(item) for key, item in value.items()}
    return tuple(frozen(item) for item in value) if isinstance(value, (list, tuple)) else value


def lhs_and_rhs(names: Sequence[str], keywords: Keywords, residual: str | None) -> tuple[str, ...]:
    """The operands of a binary op; a further one may only be the residual.

    Raises:
        Problem: `lhs` or `rhs` is missing, or an operand is not used.
    """
    for name in ("lhs", "rhs"):
        if name not in names:
            raise Problem(
                f"operands has no '{name}' (got {listed(names)}; required lhs, rhs)", ("operands",)
            )
    refuse_unused(names, ("lhs", "rhs"), residual)
    return ("lhs", "rhs")


def refuse_unused(names: Sequence[str], used: Sequence[str], residual: str | None) -> None:
    """Raise a Problem for an operand that neither the op takes nor the residual is."""
    for name in names:
        if name not in used and name != residual:
            got = f"got {listed(names)}; the op takes {listed(used)}"
            what = f"operand '{name}' is not used ({got})"
            hint = f"remove it, or add it to the result with residual: {name}"
            raise Problem(what, ("operands", name), key=True, hint=hint)


def promoted(dtypes: Sequence[str]) -> str | None:
    """The dtype that JAX's operators give for these, None where parity does not predict it.

    Source: https://docs.jax.dev/en/latest/type_promotion.html (the lattice's floating part, and
    integers with a floating type).
    """
    distinct = list(dict.fromkeys(dtypes))
    if len(distinct) == 1:
        return distinct[0]
    floats = [name for name in distinct if name in _PROMOTED_FLOATS]
    integers = [name for name in distinct if DTYPES[name].is_integer]
    if not floats or len(floats) + len(integers) < len(distinct):
        return None
    if {"bfloat16", "float16"} <= set(floats):
        floats.append("float32")
    return max(floats, key=_PROMOTED_FLOATS.index)


def broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of a sum by NumPy's rules, None if there is none."""
    rank = max(len(one), len(other))
    left = (1,) * (rank - len(one)) + one
    right = (1,) * (rank - len(other)) + other
    if any(a != b and 1 not in (a, b) for a, b in zip(left, right, strict=True)):
        return None
    return tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))


def contracted(dtypes: Sequence[str], preferred: str | None) -> str | None:
    """The dtype of a contraction: the preferred one, that of equal operands, or None."""
    if preferred is not None:
        return preferred
    return dtypes[0] if len(set(dtypes)) == 1 else None


def refuse(
    at: Location, what: str, got: object, allowed: str, *, hint: str | None = None
) -> Problem:
    """The problem of a value at a location: `attributes.padding what (got X; allowed …)`."""
    return Problem(f"{spell(at)} {what} (got {show(got)}; allowed {allowed})", at, hint=hint)


def shapes(operands: Sequence[OperandSpec]) -> str:
    """Operands and their shapes in words."""
    return ", ".join(f"{operand.name} {list(operand.shape)}" for operand in operands)
