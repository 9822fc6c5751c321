"""What a traced program has that an arithmetic model could apply to."""

from __future__ import annotations

from typing import Any

from parity.dtypes import DTYPES, DType
from parity.program.jax_versions import equations, is_key
from parity.reference.algorithms import algorithm_of
from parity.reference.bounds import BOUNDS
from parity.reference.equation import declared_dtype
from parity.reference.interpreter import Interpreter
from parity.reference.models import Features
from parity.reference.narrowing import SUMMED

_CONTRACTIONS = ("conv_general_dilated", "dot_general")
_DIVISIONS = ("div", "integer_pow", "sqrt")


def features(closed: Any, noted: Interpreter) -> Features:
    """The features of a program.

    Args:
        closed: its `jax.extend.core.ClosedJaxpr`.
        noted: the interpreter that has run it under `strict`.
    """
    eqns = list(equations(closed))
    results = [declared_dtype(var) for eqn in eqns for var in eqn.outvars if not is_key(var.aval)]
    given = [declared_dtype(var) for eqn in eqns for var in eqn.invars if not is_key(var.aval)]
    names = {eqn.primitive.name for eqn in eqns}
    return Features(
        narrow=is_narrow(closed),
        subnormal=noted.subnormal,
        granted=frozenset(noted.granted),
        contracts=any(_contracts(eqn) for eqn in eqns),
        sums=bool(names & SUMMED),
        integers=any(found.is_integer for found in (*given, *results)),
        functions=any(_is_function(name) for name in names),
        inexact=any(found.is_inexact for found in results),
        casts=frozenset(
            (declared_dtype(eqn.invars[0]), declared_dtype(eqn.outvars[0]))
            for eqn in eqns
            if eqn.primitive.name == "convert_element_type"
        ),
    )


def _is_function(name: str) -> bool:
    return name in _DIVISIONS or (name in BOUNDS and BOUNDS[name].ulps > 0)


def _contracts(eqn: Any) -> bool:
    """Whether an equation contracts operands of 24 significant bits."""
    held = DTYPES["float32"].format
    return eqn.primitive.name in _CONTRACTIONS and all(
        declared_dtype(atom).format == held for atom in eqn.invars
    )


def is_narrow(closed: Any) -> bool:
    """Whether any value of the program has a float dtype under 32 bits."""
    for eqn in equations(closed):
        algorithm = algorithm_of(eqn)
        if algorithm is not None and algorithm.narrows:
            return True
        for var in (*eqn.invars, *eqn.outvars):
            found: DType = declared_dtype(var)
            if found.kind == "float" and found.bits < 32:
                return True
    return False
