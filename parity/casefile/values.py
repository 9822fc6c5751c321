"""Explicit values of an operand: nested lists of numbers, checked and made an array.

A number is a YAML number, or a string: "nan", "inf", "-inf", a hexadecimal float "0x1.8p3", or for
complex dtypes "1+2j".
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from parity.casefile.problem import Location, Problem, show, spell
from parity.dtypes import DTYPES, DType

if TYPE_CHECKING:
    import numpy as np

_WORDS = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf}
_BEYOND_FLOAT32 = 3.4028235e38
"""The shortest decimal of float32's largest value, which it exceeds."""


def shape_of(values: Any) -> tuple[int, ...]:
    """The shape of nested lists, read off the first element of each."""
    shape = []
    while isinstance(values, list):
        shape.append(len(values))
        values = values[0] if values else None
    return tuple(shape)


def check(values: Any, shape: tuple[int, ...], dtype: DType, at: Location) -> None:
    """Raise a Problem where values do not fill a shape or are none of the dtype's."""
    if not shape:
        if isinstance(values, list):
            what = f"{spell(at)} is a list (got {show(values)}; allowed a number)"
            raise Problem(what, at)
        try:
            number(values, dtype)
        except ValueError as error:
            raise Problem(f"{spell(at)} {error}", at) from None
        return
    if not isinstance(values, list) or len(values) != shape[0]:
        got = f"{len(values)} entries" if isinstance(values, list) else show(values)
        what = f"{spell(at)} does not fill the shape (got {got}; allowed a list of {shape[0]})"
        raise Problem(what, at)
    for index, value in enumerate(values):
        check(value, shape[1:], dtype, (*at, index))


def array(values: Any, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """Values that `check` has passed, each rounded once to the dtype."""
    import numpy as np

    from parity.reference.rounding import cast

    flat = [number(value, dtype) for value in _flat(values)]
    if dtype.format is not None:
        wide = np.array(flat, dtype=np.complex128 if dtype.kind == "complex" else np.float64)
        return cast(wide.reshape(shape), dtype)
    exact = np.array(flat, dtype=np.uint64 if dtype.kind == "uint" else np.int64)
    return exact.astype(dtype.numpy()).reshape(shape)


def listing(array: np.ndarray) -> Any:
    """Nested lists of which `array` makes an array again, in as few digits as that needs.

    NaNs come back as the one that `array` makes.
    """
    if array.ndim:
        return [listing(part) for part in array]
    element = array[()]
    if DTYPES[array.dtype.name].kind == "complex":
        return str(complex(_short(element.real), _short(element.imag))).strip("()")
    if DTYPES[array.dtype.name].kind == "float":
        short = _short(element)
        return short if math.isfinite(short) else str(short)
    return element.item() if isinstance(element.item(), bool) else int(element)


def _short(element: Any) -> float:
    """A float32 as the shortest decimal that rounds to it, others exactly."""
    short = float(str(element)) if element.dtype.name == "float32" else float(element)
    return short if abs(short) < _BEYOND_FLOAT32 else float(element)


def number(value: Any, dtype: DType) -> complex | float | int:
    """One element as a Python number that the dtype can hold, but for rounding.

    Raises:
        ValueError: it is not a number, or the dtype holds none near it.
    """
    if dtype.kind == "bool":
        if isinstance(value, bool):
            return value
        raise ValueError(f"is not a bool (got {show(value)}; allowed true, false)")
    if dtype.is_integer:
        return _integer(value, dtype)
    if dtype.kind == "complex":
        parts = _complex(value)
        return complex(_held(parts.real, value, dtype), _held(parts.imag, value, dtype))
    return _held(_real(value), value, dtype)


def _flat(values: Any) -> list[Any]:
    if not isinstance(values, list):
        return [values]
    return [leaf for value in values for leaf in _flat(value)]


def _integer(value: Any, dtype: DType) -> int:
    if type(value) is not int:
        got = f"got {show(value)}; allowed integers for {dtype.name}"
        raise ValueError(f"is not an integer ({got})")
    low, high = dtype.integer_range
    if not low <= value <= high:
        raise ValueError(f"is out of range of {dtype.name} (got {value}; allowed {low} to {high})")
    return value


def _real(value: Any) -> float:
    allowed = "a number, 'nan', 'inf', '-inf' or a hexadecimal float such as '0x1.8p3'"
    if isinstance(value, str):
        if value.casefold() in _WORDS:
            return _WORDS[value.casefold()]
        try:
            if "0x" in value.casefold():
                return float.fromhex(value)
        except (ValueError, OverflowError):
            pass  # said below, as of any other string
    elif isinstance(value, int) and not isinstance(value, bool):
        if abs(value) <= 2**53:
            return float(value)
        raise ValueError(f"is not exact in float64 (got {value}; allowed up to 2**53)")
    elif isinstance(value, float):
        return value
    raise ValueError(f"is not a number (got {show(value)}; allowed {allowed})")


def _complex(value: Any) -> complex:
    if isinstance(value, str) and value.rstrip().endswith("j"):
        try:
            return complex(value.replace(" ", ""))
        except ValueError:
            allowed = "a number or a string such as '1+2j'"
            raise ValueError(f"is not complex (got {show(value)}; allowed {allowed})") from None
    return complex(_real(value), 0.0)


def _held(part: float, value: Any, dtype: DType) -> float:
    """A real number, if the format has anything near it."""
    fmt = dtype.format
    assert fmt is not None  # only called for inexact dtypes
    if math.isnan(part):
        lacks = "NaN" if fmt.overflow == "saturate" else None
    elif math.isinf(part):
        lacks = "infinity" if fmt.overflow != "inf" else None
    elif abs(part) > fmt.max_finite:
        most = f"allowed up to {fmt.max_finite!r}"
        raise ValueError(f"is out of range of {dtype.name} (got {show(value)}; {most})")
    elif part == 0:
        lacks = None if fmt.has_zero else "zero"
    else:
        lacks = "negative numbers" if part < 0 and not fmt.signed else None
    if lacks:
        what = f"does not exist in {dtype.name}, which has no {lacks} (got {show(value)})"
        raise ValueError(what)
    return part
