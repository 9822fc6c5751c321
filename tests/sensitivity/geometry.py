"""The shapes of the convs and dots, each as an explicit list of products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Unfolded = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Where the factors of output [B, M, N] lie and where it goes.

Positions in the flat lhs [B, M, K] and in the flat rhs [B, N, K], -1 for an implicit zero; and, in
the shape of the program's output, the position of each of its elements in the flat [B, M, N].
"""


@dataclass(frozen=True)
class Geometry:
    """Shapes and attributes of an op."""

    name: str
    lhs: tuple[int, ...]
    rhs: tuple[int, ...]

    @property
    def op(self) -> str:
        """Its name in a program."""
        raise NotImplementedError

    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes in a program."""
        raise NotImplementedError

    @property
    def terms(self) -> int:
        """K, how many products each sum has."""
        raise NotImplementedError

    def unfold(self) -> Unfolded:
        """Its products."""
        raise NotImplementedError

    def spanned(self) -> np.ndarray:
        """Positions in the flat lhs [B, M, …] between the first and the last factor of an output.

        Those that are no factors meet a hole of a dilated rhs.
        """
        return self.unfold()[0]


@dataclass(frozen=True)
class Dot(Geometry):
    """`dot_general`.

    Attributes:
        layout: the axes of lhs (some order of "bmk") and of rhs (of "bnk"); "b" in both or none.
    """

    layout: tuple[str, str]

    @property
    def op(self) -> str:
        return "dot_general"

    @property
    def attributes(self) -> dict[str, Any]:
        contracting = tuple((axes.index("k"),) for axes in self.layout)
        batch = tuple((axes.index("b"),) if "b" in axes else () for axes in self.layout)
        return {"dimension_numbers": (contracting, batch)}

    @property
    def terms(self) -> int:
        return self.lhs[self.layout[0].index("k")]

    def unfold(self) -> Unfolded:
        has_batch = "b" in self.layout[0]
        orders = ("bmk", "bnk") if has_batch else ("mk", "nk")
        shapes = (self.lhs, self.rhs)
        left, right = (_numbered(*each) for each in zip(shapes, self.layout, orders, strict=True))
        if has_batch:
            return left, right, _count(left.shape[0], left.shape[1], right.shape[1])
        return left[None], right[None], _count(left.shape[0], right.shape[0])


@dataclass(frozen=True)
class Conv(Geometry):
    """`conv_general_dilated`; the fields are named as its arguments, `specs` by letters."""

    specs: tuple[str, str, str]
    padding: tuple[tuple[int, int], ...]
    window_strides: tuple[int, ...] = (1, 1)
    lhs_dilation: tuple[int, ...] = (1, 1)
    rhs_dilation: tuple[int, ...] = (1, 1)
    feature_group_count: int = 1
    batch_group_count: int = 1

    @property
    def op(self) -> str:
        return "conv_general_dilated"

    @property
    def attributes(self) -> dict[str, Any]:
        rank = len(self.padding)
        return {
            "dimension_numbers": self.specs,
            "padding": self.padding,
            "window_strides": self.window_strides[:rank],
            "lhs_dilation": self.lhs_dilation[:rank],
            "rhs_dilation": self.rhs_dilation[:rank],
            "feature_group_count": self.feature_group_count,
            "batch_group_count": self.batch_group_count,
        }

    @property
    def terms(self) -> int:
        return math.prod(self.rhs) // self.rhs[self.specs[1].index("O")]

    def unfold(self) -> Unfolded:
        space = "".join(axis for axis in self.specs[1] if axis not in "OI")
        left = _numbered(self.lhs, self.specs[0], "NC" + space)
        right = _numbered(self.rhs, self.specs[1], "OI" + space)
        source, sizes = self._sources(left.shape[2:], right.shape[2:])
        images = left.reshape(*left.shape[:2], -1)[:, :, source]  # N, C, position, tap
        images = np.where(source < 0, -1, images)

        by_batch, by_feature = self.batch_group_count, self.feature_group_count
        groups = by_batch * by_feature
        batch, features = left.shape[0] // by_batch, left.shape[1] // by_feature
        positions = math.prod(sizes)
        images = images.reshape(by_batch, batch, by_feature, features, *source.shape)
        images = images.transpose(0, 2, 1, 4, 3, 5).reshape(groups, batch * positions, -1)
        kernels = right.reshape(groups, right.shape[0] // groups, -1)

        out = _count(groups, batch, positions, kernels.shape[1]).transpose(1, 0, 3, 2)
        out = out.reshape(batch, -1, *sizes)  # N, C, space
        axes = [("NC" + space).index(axis) for axis in self.specs[2]]
        return images, kernels, out.transpose(axes)

    def spanned(self) -> np.ndarray:
        axes = [self.specs[1].index(axis) for axis in self.specs[1] if axis not in "OI"]
        rhs = list(self.rhs)
        for axis, dilation in zip(axes, self.rhs_dilation, strict=False):
            rhs[axis] = (rhs[axis] - 1) * dilation + 1
        return replace(self, rhs=tuple(rhs), rhs_dilation=(1, 1)).unfold()[0]

    def _sources(self, sizes: Sequence[int], taps: Sequence[int]) -> tuple[np.ndarray, list[int]]:
        """Which flat place of an image each tap meets [position, tap], -1 for none; out sizes."""
        flat, inside, out = np.zeros((1, 1), int), np.ones((1, 1), bool), []
        for axis, (size, count) in enumerate(zip(sizes, taps, strict=True)):
            (low, high), hole = self.padding[axis], self.lhs_dilation[axis]
            spread, stride = self.rhs_dilation[axis], self.window_strides[axis]
            room = (size - 1) * hole + 1 + low + high - ((count - 1) * spread + 1)
            begin = np.arange(room // stride + 1) * stride - low
            place = begin[:, None] + np.arange(count) * spread
            valid = (place >= 0) & (place % hole == 0) & (place // hole < size)
            flat = _combined(flat * size, np.where(valid, place // hole, 0), np.add)
            inside = _combined(inside, valid, np.logical_and)
            out.append(len(begin))
        return np.where(inside, flat, -1), out


def _numbered(shape: Sequence[int], axes: str, order: str) -> np.ndarray:
    """Positions in a flat array of some shape, its axes brought from one order into another."""
    return _count(*shape).transpose([axes.index(axis) for axis in order])


def _count(*shape: int) -> np.ndarray:
    return np.arange(math.prod(shape)).reshape(shape)


def _combined(outer: np.ndarray, inner: np.ndarray, ufunc: np.ufunc) -> np.ndarray:
    """Two arrays [position, tap] of different axes as one over both, the first one slower."""
    both = ufunc(outer[:, None, :, None], inner[None, :, None, :])
    return both.reshape(outer.shape[0] * inner.shape[0], outer.shape[1] * inner.shape[1])


_NHWC, _NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
_NWC, _NCH = ("NWC", "WIO", "NWC"), ("NCH", "OIH", "NCH")
_SAME = ((1, 1), (1, 1))
_VALID = ((0, 0), (0, 0))

GEOMETRIES: tuple[Geometry, ...] = (
    Dot("dot K=1", (8, 1), (1, 8), ("mk", "kn")),
    Dot("dot K=2", (2, 12), (2, 8), ("km", "kn")),
    Dot("dot K=3, 1x1", (1, 3), (3, 1), ("mk", "kn")),
    Dot("dot K=4 in 3 batches", (3, 6, 4), (3, 6, 4), ("bmk", "bnk")),
    Dot("dot K=16, square", (16, 16), (16, 16), ("mk", "kn")),
    Dot("dot K=17", (9, 17), (5, 17), ("mk", "nk")),
    Dot("dot K=100, 2x3", (2, 100), (100, 3), ("mk", "kn")),
    Dot("dot K=256 in 4 batches", (256, 4, 8), (8, 4, 256), ("kbm", "nbk")),
    Dot("dot K=1024", (16, 1024), (1024, 16), ("mk", "kn")),
    Dot("dot K=4096", (16, 4096), (4096, 16), ("mk", "kn")),
    Dot("dot K=4096, 4x4", (4, 4096), (4096, 4), ("mk", "kn")),
    Conv("conv depthwise K=1", (2, 8, 8), (1, 1, 8), _NWC, ((0, 0),), feature_group_count=8),
    Conv("conv depthwise K=3", (2, 9, 6), (3, 1, 6), _NWC, ((1, 1),), feature_group_count=6),
    Conv("conv 3x3", (1, 6, 7, 4), (3, 3, 4, 8), _NHWC, _SAME),
    Conv(
        "conv groups, strided", (2, 6, 7, 7), (6, 2, 3, 3), _NCHW, ((1, 1), (1, 0)),
        window_strides=(2, 2), feature_group_count=3,
    ),
    Conv("conv dilated", (1, 3, 9, 9), (4, 3, 3, 3), _NCHW, _SAME, rhs_dilation=(2, 2)),
    Conv("conv transposed", (1, 4, 4, 4), (3, 3, 4, 4), _NHWC, _SAME, lhs_dilation=(2, 2)),
    Conv("conv batch groups", (4, 3, 8), (6, 3, 3), _NCH, ((1, 1),), batch_group_count=2),
    Conv("conv one window", (6, 4, 3), (6, 4, 3), _NCH, ((0, 0),)),
    Conv("conv 1x1 K=1024", (1, 4, 4, 1024), (1, 1, 1024, 8), _NHWC, _VALID),
    Conv("conv 4x4 K=4096", (1, 256, 6, 6), (8, 256, 4, 4), _NCHW, _SAME),
)  # fmt: skip
