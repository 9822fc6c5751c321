"""Convs and dots on drawn operands, in the dtypes that a program declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

from parity.program.spec import OperandSpec, ProgramSpec

from .geometry import Geometry, Unfolded

DTYPES = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
PRECISION = {"float32": 24, "float16": 11, "bfloat16": 8}
EMIN = {"float32": -126, "float16": -14, "bfloat16": -126}


@dataclass(frozen=True)
class Scheme:
    """Which dtypes a program declares; its accumulator is float32 throughout.

    Attributes:
        name: as the tables call it.
        operands: as given.
        compute: what the operands are cast to before the contraction.
        chain: what its sums are rounded to, one after the other; the last is the output's dtype.
        preferred: the contraction's preferred_element_type.
    """

    name: str
    operands: str
    compute: str
    chain: tuple[str, ...]
    preferred: str | None = None

    @property
    def fields(self) -> Mapping[str, Any]:
        """What makes a `ProgramSpec` declare the casts before and after the contraction."""
        before = self.compute if self.compute != self.operands else None
        after = self.chain[-1] if len(self.chain) > 1 else None
        return {"compute_dtype": before, "output_dtype": after}


_F32, _F16, _BF16 = "float32", "float16", "bfloat16"

SCHEMES = (
    Scheme("f32", _F32, _F32, (_F32,)),
    Scheme("f32>bf16", _F32, _F32, (_F32, _BF16)),
    Scheme("f32>f16", _F32, _F32, (_F32, _F16)),
    Scheme("bf16", _BF16, _BF16, (_BF16,)),
    Scheme("bf16>f32", _BF16, _BF16, (_F32,), preferred=_F32),
    Scheme("bf16.f32", _F32, _BF16, (_BF16, _F32)),
    Scheme("f16", _F16, _F16, (_F16,)),
    Scheme("f16>f32", _F16, _F16, (_F32,), preferred=_F32),
    Scheme("f16.f32", _F32, _F16, (_F16, _F32)),
)
"""`a>b`: operands in a, output in b. `a.b`: computed in and rounded to a, output in b."""


@dataclass(frozen=True)
class Contraction:
    """A geometry under a scheme on drawn operands.

    Attributes:
        geometry: which products are added.
        scheme: in which dtypes.
        data: how the operands were drawn, one of `DRAWS`.
        inputs: lhs and rhs as given.
    """

    geometry: Geometry
    scheme: Scheme
    data: str
    inputs: tuple[np.ndarray, np.ndarray]

    @property
    def name(self) -> str:
        """Geometry, dtypes and data."""
        return f"{self.geometry.name} {self.scheme.name} {self.data}"

    @property
    def spec(self) -> ProgramSpec:
        """The program that computes it."""
        attributes = self.geometry.attributes
        if self.scheme.preferred is not None:
            attributes["preferred_element_type"] = self.scheme.preferred
        operands = tuple(
            OperandSpec(name, array.shape, self.scheme.operands)
            for name, array in zip(("lhs", "rhs"), self.inputs, strict=True)
        )
        return ProgramSpec(self.geometry.op, operands, attributes, **self.scheme.fields)

    @cached_property
    def unfolded(self) -> Unfolded:
        """The geometry's."""
        return self.geometry.unfold()

    @cached_property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """The operands as computed with, float32: [B, M, K] and [B, N, K]."""
        return self.gather(*self.unfolded[:2])

    def gather(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The operands as computed with, at some flat positions; 0 at -1."""
        cast = DTYPES[self.scheme.compute]
        found = []
        for array, index in zip(self.inputs, (left, right), strict=True):
            flat = array.astype(np.float32).astype(cast).astype(np.float32).reshape(-1)
            found.append(np.where(index < 0, np.float32(0), flat[index]))
        return found[0], found[1]

    @property
    def unspecified(self) -> np.ndarray:
        """Which of [B, M, 1] have a NaN in lhs meet a hole of rhs: 0 times NaN or nothing."""
        flat = np.isnan(self.inputs[0].astype(np.float32)).reshape(-1)
        spanned = self.geometry.spanned()
        met = (flat[spanned] & (spanned >= 0)).any(axis=-1)
        return (met & ~np.isnan(self.factors[0]).any(axis=-1))[:, :, None]

    def arranged(self, sums: np.ndarray) -> np.ndarray:
        """Values of [B, M, N] in the shape of the program's output."""
        return sums.reshape(-1)[self.unfolded[2]]

    def output(self, sums: np.ndarray) -> np.ndarray:
        """Sums [B, M, N], float32, rounded as declared and in the shape of the output."""
        out = self.arranged(sums)
        with np.errstate(over="ignore"):  # some draws overflow float16
            for name in self.scheme.chain:
                out = out.astype(DTYPES[name])
        return out


DRAWS = (
    "normal", "positive", "integers", "cancellation", "repeated", "wide",
    "subnormal", "underflow", "nan", "zeros",
)  # fmt: skip
"""positive: uniform in [0, 1). repeated: 0.1 throughout lhs, three values in rhs. wide: normal
times 2**-6 to 2**6. subnormal: results among the subnormals of an operand's or output's dtype.
underflow: results below all of them. zeros: lhs of zeros of either sign."""


def draw(geometry: Geometry, scheme: Scheme, data: str, seed: int) -> Contraction:
    """A contraction on operands that depend on its geometry, on `data` and on `seed`."""
    rng = np.random.default_rng([seed, DRAWS.index(data), *geometry.name.encode()])
    cast = DTYPES[scheme.operands]
    lhs, rhs = (x.astype(np.float32).astype(cast) for x in _drawn(geometry, scheme, data, rng))
    return Contraction(geometry, scheme, data, (lhs, rhs))


def _drawn(
    geometry: Geometry, scheme: Scheme, data: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Operands in float64."""
    lhs, rhs = rng.standard_normal(geometry.lhs), rng.standard_normal(geometry.rhs)
    if data == "positive":
        return rng.random(lhs.shape), rng.random(rhs.shape)
    if data == "integers":
        return rng.integers(-8, 9, lhs.shape).astype(float), rng.integers(-8, 9, rhs.shape) * 1.0
    if data == "cancellation":
        rows = geometry.unfold()[1]
        rhs.reshape(-1)[rows] -= rhs.reshape(-1)[rows].mean(axis=-1, keepdims=True)
        return 1 + lhs / 64, rhs
    if data == "repeated":
        return np.full(lhs.shape, 0.1), 0.1 + np.arange(rhs.size).reshape(rhs.shape) % 3 / 70
    if data == "wide":
        return tuple(x * 2.0 ** rng.integers(-6, 7, x.shape) for x in (lhs, rhs))
    if data == "subnormal":
        return lhs * 2.0 ** (max(EMIN[name] for name in (scheme.compute, *scheme.chain)) - 1), rhs
    if data == "underflow":
        narrowest = max(scheme.chain, key=EMIN.__getitem__)
        depth = PRECISION[narrowest] - EMIN[narrowest] + 3
        return lhs * 2.0 ** -(depth // 2), rhs * 2.0 ** (depth // 2 - depth)
    if data == "nan":
        lhs.flat[rng.integers(0, lhs.size, 1 + lhs.size // 64)] = np.nan
    if data == "zeros":
        return np.where(rng.random(lhs.shape) < 0.5, -0.0, 0.0), np.abs(rhs)
    return lhs, rhs
