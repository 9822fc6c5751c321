"""Numbers as people read them: few significant digits, never a fixed number of decimals."""

from __future__ import annotations

from typing import Any

from parity.dtypes import DTYPES

_EXACT_INTEGERS = 10**7


def metric(value: float | None) -> str:
    """A measured quantity to 4 significant digits; small integers in full; "" for None."""
    if value is None:
        return ""
    if float(value).is_integer() and abs(value) < _EXACT_INTEGERS:
        return str(int(value))
    return f"{value:.4g}"


def element(value: Any, dtype: str) -> str:
    """An element of an output: the shortest text that tells it from its neighbours.

    float64 is cut to 10 significant digits.

    Args:
        value: a Python number, exactly the element's.
        dtype: the output's.
    """
    if isinstance(value, complex):
        part = "float32" if DTYPES[dtype].bits == 64 else "float64"
        imaginary = element(value.imag, part)
        sign = "" if imaginary.startswith("-") else "+"
        return f"{element(value.real, part)}{sign}{imaginary}j"
    if not isinstance(value, float):
        return str(value)
    if DTYPES[dtype].bits == 64:
        return f"{value:.10g}"
    return str(DTYPES[dtype].numpy().type(value))


def index(position: tuple[int, ...]) -> str:
    """An element's index: `[0,0,1]`."""
    return f"[{','.join(map(str, position))}]"


def plural(count: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
