"""One equation of a jaxpr as its bounds see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from parity.dtypes import DTYPES, DType, dtype
from parity.program import jax_versions
from parity.reference.policies import Policy
from parity.reference.value import Value

Ends = tuple[np.ndarray, np.ndarray]
"""Lower and upper ends of a result, wide, before it is rounded; the point itself where exact."""


def declared_dtype(atom: Any) -> DType:
    """The dtype that a program declares for a variable; random keys count as 64-bit integers."""
    if jax_versions.is_key(atom.aval):
        return DTYPES["uint64"]
    return dtype(np.dtype(atom.aval.dtype))


@dataclass(frozen=True)
class Equation:
    """One equation being enclosed.

    Attributes:
        eqn: of the jaxpr.
        values: its operands.
        point: its wide result on the operands' points.
        declared: the dtype of that result.
        operands: the declared dtypes of the operands.
        policy: the arithmetic model.
        evaluate: wide arrays to the wide result.
        products: for a contraction, how many products each sum has.
        wide: whether the point is the exact result rounded once to float64, where plain float64
            would have added up its terms one by one.
    """

    eqn: Any
    values: tuple[Value, ...]
    point: np.ndarray
    declared: DType
    operands: tuple[DType, ...]
    policy: Policy
    evaluate: Callable[..., np.ndarray]
    products: int = 0
    wide: bool = False

    @property
    def exact(self) -> bool:
        """Whether every operand is known exactly."""
        return all(value.exact for value in self.values)

    @property
    def is_complex(self) -> bool:
        """Whether an operand is complex."""
        return any(value.point.dtype.kind == "c" for value in self.values)
