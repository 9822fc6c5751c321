"""JAX's own test harnesses as plain data: the op, attributes and operands that each one is.

A harness is traced, and what it computes is read off its jaxpr; so what comes out needs nothing of
JAX's test code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parity.dtypes import DTYPES
from parity.program.precision import precision_name
from parity.worker.protocol import pack, unpack


class Inexpressible(Exception):
    """A harness is not one op as case files spell it; says why."""


@dataclass(frozen=True)
class Harness:
    """One harness as a case file spells it.

    Attributes:
        name: its full name, unique in its JAX.
        op: as case files name it.
        attributes: of the op, those that differ from their defaults and the dimension numbers.
        operands: arrays by operand name, in order.
        reason: why no case file can say it, "" if one can; there is nothing else then.
    """

    name: str
    op: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    operands: Mapping[str, np.ndarray] = field(default_factory=dict)
    reason: str = ""

    def to_wire(self) -> dict[str, Any]:
        """Nested builtins that `from_wire` reads back."""
        operands = {name: pack(array) for name, array in self.operands.items()}
        return {**vars(self), "operands": operands}

    @staticmethod
    def from_wire(wire: Mapping[str, Any]) -> Harness:
        """The harness that `to_wire` wrote."""
        operands = {name: unpack(array) for name, array in wire["operands"].items()}
        return Harness(**{**wire, "operands": operands})


def groups() -> list[str]:
    """The names of all groups, sorted."""
    return sorted({harness.group_name for harness in _all()})


def harnesses(chosen: Collection[str]) -> list[Harness]:
    """The harnesses of some groups, in JAX's order.

    Args:
        chosen: names of groups.
    """
    return [described(harness) for harness in _all() if harness.group_name in chosen]


def described(harness: Any) -> Harness:
    """A harness of JAX, its arrays made by `np.random.RandomState(0)`, as data."""
    name = str(harness.fullname)
    try:
        arrays, jaxpr = _traced(harness)
        equation = _only_equation(jaxpr)
        op = equation.primitive.name
        if op not in _ATTRIBUTES:
            raise Inexpressible(f"no case file has the op {op}")
        attributes = _ATTRIBUTES[op](equation.params)
    except Inexpressible as error:
        return Harness(name, reason=str(error))
    return Harness(name, op, attributes, dict(zip(("lhs", "rhs"), arrays, strict=True)))


def _traced(harness: Any) -> tuple[list[np.ndarray], Any]:
    """The arrays that a harness is called with, and its jaxpr."""
    import jax

    try:
        arrays = [np.asarray(x) for x in harness.dyn_args_maker(np.random.RandomState(0))]
        jaxpr = jax.make_jaxpr(harness.dyn_fun)(*arrays).jaxpr
    except Exception as error:  # what a harness raises is why there is no case
        raise Inexpressible(f"cannot be traced: {type(error).__name__}: {error}") from error
    unknown = {array.dtype.name for array in arrays} - set(DTYPES)
    if unknown:
        raise Inexpressible(f"operands of {', '.join(sorted(unknown))}")
    return arrays, jaxpr


def _all() -> Sequence[Any]:
    from jax._src.internal_test_util import test_harnesses

    found: Sequence[Any] = test_harnesses.all_harnesses
    return found


def _only_equation(jaxpr: Any) -> Any:
    """The equation of a jaxpr that is nothing but one op of its inputs."""
    if len(jaxpr.eqns) != 1:
        names = ", ".join(eqn.primitive.name for eqn in jaxpr.eqns) or "nothing"
        raise Inexpressible(f"not one op (got {names})")
    (equation,) = jaxpr.eqns
    if equation.invars != jaxpr.invars or equation.outvars != jaxpr.outvars:
        raise Inexpressible(f"{equation.primitive.name} is not taken of the operands in order")
    return equation


def _dot_general(params: Mapping[str, Any]) -> dict[str, Any]:
    contracting, batch = params["dimension_numbers"]
    attributes = {"contracting": [list(side) for side in contracting]}
    if any(batch):
        attributes["batch"] = [list(side) for side in batch]
    return attributes | _arithmetic(params)


def _conv_general_dilated(params: Mapping[str, Any]) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "window_strides": [int(stride) for stride in params["window_strides"]],
        "padding": [[int(low), int(high)] for low, high in params["padding"]],
        "dimension_numbers": _letters(params["dimension_numbers"]),
    }
    for name in ("lhs_dilation", "rhs_dilation"):
        if set(params[name]) - {1}:
            attributes[name] = [int(dilation) for dilation in params[name]]
    for name in ("feature_group_count", "batch_group_count"):
        if params[name] != 1:
            attributes[name] = int(params[name])
    return attributes | _arithmetic(params)


def _letters(numbers: Any) -> list[str]:
    """`ConvDimensionNumbers`, which list the axes of each letter, as one letter for each axis."""
    rank = len(numbers.lhs_spec)
    if rank > 5:
        raise Inexpressible(f"a convolution of {rank - 2} spatial dimensions")
    spatial = "DHW"[5 - rank :]
    return [
        "".join(letter for _, letter in sorted(zip(axes, named + spatial, strict=True)))
        for axes, named in zip(numbers, ("NC", "OI", "NC"), strict=True)
    ]


def _arithmetic(params: Mapping[str, Any]) -> dict[str, Any]:
    """`precision` and `preferred_element_type` where they are given."""
    attributes = {}
    if params.get("out_sharding") is not None:
        raise Inexpressible("it has an out_sharding")
    if params["precision"] is not None:
        attributes["precision"] = precision_name(params["precision"])
        if attributes["precision"] is None:
            raise Inexpressible(f"precision {params['precision']} has no name")
    if params["preferred_element_type"] is not None:
        attributes["preferred_element_type"] = np.dtype(params["preferred_element_type"]).name
    return attributes


_ATTRIBUTES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "conv_general_dilated": _conv_general_dilated,
    "dot_general": _dot_general,
}
