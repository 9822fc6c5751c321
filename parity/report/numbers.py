"""Numbers as people read them: few significant digits, never a fixed number of decimals."""

from __future__ import annotations

from typing import Any

from parity.compare.quantity import metric as metric
from parity.dtypes import DTYPES


def factor(old: float | None, new: float | None) -> str:
    """By which factor a number changed: `2 times`, `12,200 times less`; "" where it says nothing.

    To 3 significant digits.
    """
    if not old or not new or old - old != 0 or new - new != 0:
        return ""
    less = abs(new) < abs(old)
    times = float(f"{old / new if less else new / old:.3g}")
    if times == 1:
        return ""
    text = f"{times:,.0f}" if 100 <= times < 1e7 else f"{times:.3g}"
    return f"{text} times less" if less else f"{text} times"


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
