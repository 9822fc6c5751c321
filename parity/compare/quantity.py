"""A measured quantity as every sentence and table writes it."""

from __future__ import annotations

_EXACT_INTEGERS = 10**7


def metric(value: float | None) -> str:
    """A measured quantity to 4 significant digits; small integers in full; "" for None."""
    if value is None:
        return ""
    if float(value).is_integer() and abs(value) < _EXACT_INTEGERS:
        return str(int(value))
    return f"{value:.4g}"
