"""The element types that parity knows: one table, shared by host and workers.

Imports the standard library only; NumPy and ml_dtypes are asked for when a NumPy dtype is wanted,
because an old ml_dtypes lacks the youngest formats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["float", "complex", "int", "uint", "bool"]
Overflow = Literal["inf", "nan", "saturate"]


class UnsupportedDType(ValueError):
    """The installed ml_dtypes has no such format."""


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format.

    A finite nonzero value is m * 2**(e - p + 1) with |m| < 2**p and emin <= e; `max_finite` is the
    largest one.

    Attributes:
        precision: p, significand bits with the implicit one (bfloat16 8, float16 11, float32 24).
        emin: exponent of the smallest normal number, 2**emin.
        max_finite: largest finite value (exact in float64).
        overflow: what a value beyond the largest finite one rounds to.
        signed: whether negative values exist.
        has_zero: whether zero exists (float8_e8m0fnu has none).
        negative_zero: whether -0 is distinct from +0.

    Source: IEEE 754-2019 table 3.5; ml_dtypes README and OCP OFP8 / MX specifications for 8 bits
    and fewer.
    """

    precision: int
    emin: int
    max_finite: float
    overflow: Overflow = "inf"
    signed: bool = True
    has_zero: bool = True
    negative_zero: bool = True

    @property
    def unit_roundoff(self) -> float:
        """u = 2**-p, half the distance from 1 to the next larger number."""
        return 2.0**-self.precision

    @property
    def smallest_subnormal(self) -> float:
        """eta, the smallest positive value (the smallest normal one where no subnormals exist)."""
        if not self.has_zero:
            return 2.0**self.emin
        return 2.0 ** (self.emin - self.precision + 1)


@dataclass(frozen=True)
class DType:
    """An element type by the name JAX gives it.

    Attributes:
        name: for example "bfloat16", "float8_e4m3fn", "int4".
        kind: which arithmetic it has.
        bits: width of one element (a complex one counts both parts).
        format: its floating-point format; for a complex type that of one part; None for integers.
    """

    name: str
    kind: Kind
    bits: int
    format: FloatFormat | None = None

    @property
    def is_inexact(self) -> bool:
        """Whether values are rounded: floating or complex."""
        return self.format is not None

    @property
    def is_integer(self) -> bool:
        """Whether values are signed or unsigned integers (bool is not)."""
        return self.kind in ("int", "uint")

    @property
    def integer_range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type.

        Raises:
            ValueError: the type is not an integer.
        """
        if self.kind == "int":
            return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1
        if self.kind == "uint":
            return 0, 2**self.bits - 1
        raise ValueError(f"{self.name} is not an integer type")

    def numpy(self) -> np.dtype:
        """The NumPy dtype, from ml_dtypes where NumPy has none.

        Raises:
            UnsupportedDType: the installed ml_dtypes is too old for it.
        """
        return _numpy(self.name)


@cache
def _numpy(name: str) -> np.dtype:
    import numpy as np

    if name in _NUMPY_NATIVE:
        native: np.dtype = np.dtype(name)
        return native
    import ml_dtypes

    scalar = getattr(ml_dtypes, name, None)
    if scalar is None:
        raise UnsupportedDType(f"ml_dtypes {ml_dtypes.__version__} has no {name}")
    found: np.dtype = np.dtype(scalar)
    return found


_F64 = FloatFormat(53, -1022, (2.0 - 2.0**-52) * 2.0**1023)
_F32 = FloatFormat(24, -126, (2.0 - 2.0**-23) * 2.0**127)
_FORMATS: dict[str, tuple[int, FloatFormat]] = {
    "float64": (64, _F64),
    "float32": (32, _F32),
    "float16": (16, FloatFormat(11, -14, 65504.0)),
    "bfloat16": (16, FloatFormat(8, -126, (2.0 - 2.0**-7) * 2.0**127)),
    "float8_e5m2": (8, FloatFormat(3, -14, 57344.0)),
    "float8_e4m3": (8, FloatFormat(4, -6, 240.0)),
    "float8_e3m4": (8, FloatFormat(5, -2, 15.5)),
    "float8_e4m3fn": (8, FloatFormat(4, -6, 448.0, "nan")),
    "float8_e4m3fnuz": (8, FloatFormat(4, -7, 240.0, "nan", negative_zero=False)),
    "float8_e4m3b11fnuz": (8, FloatFormat(4, -10, 30.0, "nan", negative_zero=False)),
    "float8_e5m2fnuz": (8, FloatFormat(3, -15, 57344.0, "nan", negative_zero=False)),
    "float8_e8m0fnu": (
        8,
        FloatFormat(1, -127, 2.0**127, "nan", signed=False, has_zero=False, negative_zero=False),
    ),
    "float4_e2m1fn": (4, FloatFormat(2, 0, 6.0, "saturate")),
}
_NUMPY_NATIVE = {"bool", "float64", "float32", "float16", "complex64", "complex128"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}

DTYPES: dict[str, DType] = {
    **{name: DType(name, "float", bits, fmt) for name, (bits, fmt) in _FORMATS.items()},
    "complex64": DType("complex64", "complex", 64, _F32),
    "complex128": DType("complex128", "complex", 128, _F64),
    **{f"int{bits}": DType(f"int{bits}", "int", bits) for bits in (2, 4, 8, 16, 32, 64)},
    **{f"uint{bits}": DType(f"uint{bits}", "uint", bits) for bits in (2, 4, 8, 16, 32, 64)},
    "bool": DType("bool", "bool", 8),
}


def dtype(name: object) -> DType:
    """The `DType` of a name or of a NumPy dtype.

    Raises:
        KeyError: no such element type.
    """
    if isinstance(name, str):
        return DTYPES[name]
    return DTYPES[str(getattr(name, "name", name))]
