"""How long sums of small integers stay exact.

While every product and every partial sum is a whole number that the format holds, all legal orders
of summation give the same bits, so any difference between paths is a fault and not rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from parity.casefile.case import Case, Operand
from parity.casefile.ops import infer, op
from parity.dtypes import DType, dtype
from parity.program.spec import PROGRAMS


def exact_limit(kind: DType) -> int:
    """The largest n such that the dtype holds every whole number from 0 to n.

    2**p for a significand of p bits (IEEE 754-2019, 3.3: all smaller ones have at most p bits).
    """
    if kind.format is not None:
        return int(min(2.0**kind.format.precision, kind.format.max_finite))
    return 1 if kind.kind == "bool" else kind.integer_range[1]


def exact_until(case: Case) -> str | None:
    """Why a case of whole numbers is not exact on every path.

    Args:
        case: whose operands are all drawn from `integers` or given as whole numbers.

    Returns:
        One sentence, or None if every order of summation is exact or the operands are not all
        whole numbers (then exactness is not to be had); None, too, beyond one op.
    """
    program = case.program
    if program.op in PROGRAMS:
        return None
    bounds = {operand.name: _largest(operand) for operand in case.operands}
    magnitudes = {name: bound for name, bound in bounds.items() if bound is not None}
    if not magnitudes or len(magnitudes) < len(bounds) or program.transform in ("vjp", "jvp"):
        return None
    names = [spec.name for spec in program.operands]
    taken = op(program.op).takes(names, program.attributes, program.residual)
    specs = {spec.name: spec for spec in program.operands}
    cast = [
        replace(specs[name], dtype=program.compute_dtype or specs[name].dtype) for name in taken
    ]
    for spec in (*specs.values(), *cast):
        limit = exact_limit(dtype(spec.dtype))
        if magnitudes[spec.name] > limit:
            return (
                f"operand {spec.name} reaches {magnitudes[spec.name]}, but {spec.dtype} holds "
                f"every whole number only up to {limit}: a difference may be rounding"
            )
    result = infer(program.op, cast, program.attributes)
    assert result is not None  # known of every op
    terms = result.terms * (2 if any(dtype(s.dtype).kind == "complex" for s in cast) else 1)
    held = [result.dtype] if result.dtype else [spec.dtype for spec in cast]
    if program.output_dtype is not None:
        held.append(program.output_dtype)
    return _sum_exceeds(terms, {name: magnitudes[name] for name in taken}, held)


def _sum_exceeds(terms: int, magnitudes: Mapping[str, int], held: list[str]) -> str | None:
    """The sentence for a sum that may leave the whole numbers of the narrowest dtype."""
    narrowest = min(held, key=lambda name: exact_limit(dtype(name)))
    limit = exact_limit(dtype(narrowest))
    bound = terms * math.prod(magnitudes.values())
    if bound <= limit:
        return None
    factors = "·".join(f"max|{name}|" for name in magnitudes)
    numbers = "·".join(str(number) for number in (terms, *magnitudes.values()))
    what = "be rounding" if dtype(narrowest).format else "come from wrapping around"
    return (
        f"K·{factors} may reach {numbers} = {bound}, but {narrowest} holds every whole number only "
        f"up to {limit}: a difference may {what}"
    )


def _largest(operand: Operand) -> int | None:
    """The largest magnitude of an operand of whole numbers, None if it is not one."""
    if operand.draw == "integers":
        return int(max(abs(float(operand.parameters[name])) for name in ("low", "high")))
    if operand.draw is not None or operand.file is not None:
        return None
    numbers = list(_leaves(operand.values))
    if any(isinstance(number, str) or not float(number).is_integer() for number in numbers):
        return None
    return int(max((abs(number) for number in numbers), default=0))


def _leaves(values: Any) -> Iterator[Any]:
    if isinstance(values, list):
        for value in values:
            yield from _leaves(value)
    else:
        yield values
