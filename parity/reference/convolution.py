"""Convolution in the arithmetic of one dtype: windows gathered block by block, a GEMM for each.

Inside, lhs is (group, batch, spatial…, feature), the kernel (group, taps × features, output
feature) and the output (group, batch, spatial…, output feature), where the groups are those of
features or those of the batch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

_BLOCK_BYTES = 2**22
"""A block of gathered windows; it stays in the cache until the GEMM has read it."""

_MIN_BLOCK_ROWS = 64
"""Windows in a block at least: each block reads the kernel again."""


@dataclass(frozen=True)
class Geometry:
    """The attributes of a convolution, named as in `jax.lax.conv_general_dilated`."""

    window_strides: Sequence[int]
    padding: Sequence[tuple[int, int]]
    lhs_dilation: Sequence[int]
    rhs_dilation: Sequence[int]
    dimension_numbers: tuple[Sequence[int], Sequence[int], Sequence[int]]
    feature_group_count: int
    batch_group_count: int

    def padded_shape(self, spatial: Sequence[int]) -> list[int]:
        """Sizes of the spatial axes of lhs with dilation holes and padding."""
        axes = zip(spatial, self.lhs_dilation, self.padding, strict=True)
        return [max(dilated(size, step) + sum(pads), 0) for size, step, pads in axes]

    def out_shape(self, spatial: Sequence[int], taps: Sequence[int]) -> list[int]:
        """Sizes of the spatial axes of the output."""
        spans = map(dilated, taps, self.rhs_dilation)
        axes = zip(self.padded_shape(spatial), spans, self.window_strides, strict=True)
        return [max((padded - span) // stride + 1, 0) for padded, span, stride in axes]


def convolve(lhs: np.ndarray, rhs: np.ndarray, geometry: Geometry) -> np.ndarray:
    """The convolution of two arrays of one dtype, in the arithmetic of that dtype.

    Args:
        lhs: float64, complex128, int64 or object (Python ints).
        rhs: of the same dtype.
        geometry: the attributes.
    """
    lhs_spec, rhs_spec, out_spec = geometry.dimension_numbers
    inputs = _split_groups(_features_last(lhs, lhs_spec), geometry)
    groups, batch, *spatial, features = inputs.shape
    kernel = rhs.transpose([*rhs_spec[2:], rhs_spec[1], rhs_spec[0]])
    *taps, _, out_features = kernel.shape
    kernel = kernel.reshape(math.prod(taps) * features, groups, out_features // groups)
    kernel = np.ascontiguousarray(kernel.swapaxes(0, 1))

    out_shape = [groups, batch, *geometry.out_shape(spatial, taps), out_features // groups]
    out = np.zeros(out_shape, lhs.dtype)
    if out.size and kernel.size:
        if lhs.dtype.kind in "fc" and not np.isfinite(kernel).all():
            _add_tap_by_tap(inputs, kernel, geometry, taps, out)
        else:
            _multiply_windows(inputs, kernel, geometry, taps, out)

    out = np.moveaxis(out, 0, -2).reshape([*out_shape[1:-1], out_features])
    order = [out_spec[0], *out_spec[2:], out_spec[1]]
    return out.transpose([order.index(axis) for axis in range(out.ndim)])


def dilated(size: int, dilation: int) -> int:
    """Size of an axis with holes between its elements."""
    return (size - 1) * dilation + 1 if size else 0


def _features_last(lhs: np.ndarray, spec: Sequence[int]) -> np.ndarray:
    """View as (batch, spatial…, feature)."""
    return lhs.transpose([spec[0], *spec[2:], spec[1]])


def _split_groups(lhs: np.ndarray, geometry: Geometry) -> np.ndarray:
    """View of (batch, spatial…, feature) as (group, batch, spatial…, feature)."""
    batch, *spatial, features = lhs.shape
    by_batch, by_feature = geometry.batch_group_count, geometry.feature_group_count
    per_group = [batch // by_batch, *spatial, features // by_feature]
    split = lhs.reshape([by_batch, *per_group[:-1], by_feature, per_group[-1]])
    return np.moveaxis(split, -2, 1).reshape([by_batch * by_feature, *per_group])


def _multiply_windows(
    inputs: np.ndarray, kernel: np.ndarray, geometry: Geometry, taps: Sequence[int], out: np.ndarray
) -> None:
    """Fill `out` with the windows of the padded inputs times the kernel."""
    _, depth, columns = kernel.shape
    limit = max(_BLOCK_BYTES // (depth * out.itemsize), _MIN_BLOCK_ROWS)
    # One buffer for all blocks: the pages of a fresh array cost as much as the GEMM.
    buffer = np.empty(min(limit, out.size // columns) * depth, out.dtype)
    for images, padded in _padded(inputs, geometry):
        windows = _windows(padded, geometry, taps, out.shape[2:-1])
        weights, rows = kernel[images[0]], out[images].reshape(-1, columns)
        start = 0
        for block in _blocks(windows.shape[: out.ndim - 1], limit):
            gathered = windows[block]
            if not gathered.flags.c_contiguous:
                copied = buffer[: gathered.size].reshape(gathered.shape)
                np.copyto(copied, gathered)
                gathered = copied
            gathered = gathered.reshape(gathered.shape[0], -1, depth)
            stop = start + gathered.shape[0] * gathered.shape[1]
            target = rows[start:stop].reshape(*gathered.shape[:2], columns)
            np.matmul(gathered, weights[block[0]], out=target)
            start = stop


def _padded(
    inputs: np.ndarray, geometry: Geometry
) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
    """Images (slices of group and batch) with their dilation holes and padding, or cropped.

    Each array is valid until the next one is asked for.
    """
    sizes = geometry.padded_shape(inputs.shape[2:-1])
    kept, places = [slice(None)] * 2, [slice(None)] * 2
    axes = zip(inputs.shape[2:-1], sizes, geometry.padding, geometry.lhs_dilation, strict=True)
    for size, padded, (low, _), step in axes:
        first = max(0, -(low // step))  # the elements before it are cropped
        where = range(first * step + low, padded, step)[: max(size - first, 0)]
        kept.append(slice(first, first + len(where)))
        places.append(slice(where.start, where.stop, step))
    cropped = inputs[tuple(kept)]
    shape = (*inputs.shape[:2], *sizes, inputs.shape[-1])
    if cropped.shape == shape:
        yield (slice(None), slice(None)), cropped
        return
    image_bytes = math.prod(shape[2:]) * inputs.itemsize
    blocks = list(_blocks(shape[:2], max(_BLOCK_BYTES // image_bytes, 1)))
    largest = [axis.stop for axis in blocks[0]]
    buffer = np.zeros([*largest, *shape[2:]], inputs.dtype)
    for images in blocks:
        count = tuple(slice(axis.stop - axis.start) for axis in images)
        buffer[(*count, *places[2:])] = cropped[images]
        yield images, buffer[count]


def _windows(
    padded: np.ndarray, geometry: Geometry, taps: Sequence[int], out_spatial: Sequence[int]
) -> np.ndarray:
    """View of (group, batch, spatial…, feature) as (group, batch, output…, taps…, feature)."""
    lead, spatial, feature = padded.strides[:2], padded.strides[2:-1], padded.strides[-1]
    steps = [s * step for s, step in zip(spatial, geometry.window_strides, strict=True)]
    holes = [s * step for s, step in zip(spatial, geometry.rhs_dilation, strict=True)]
    shape = [*padded.shape[:2], *out_spatial, *taps, padded.shape[-1]]
    return as_strided(padded, shape, [*lead, *steps, *holes, feature], writeable=False)


def _blocks(shape: Sequence[int], limit: int) -> Iterator[tuple[slice, ...]]:
    """Blocks of at most `limit` elements, contiguous and in C order."""
    steps: list[int] = []
    for size in reversed(shape):
        steps.insert(0, min(size, limit))
        limit = max(limit // steps[0], 1)
    starts = [range(0, size, step) for size, step in zip(shape, steps, strict=True)]
    for corner in itertools.product(*starts):
        axes = zip(corner, steps, shape, strict=True)
        yield tuple(slice(at, min(at + step, size)) for at, step, size in axes)


def _add_tap_by_tap(
    inputs: np.ndarray, kernel: np.ndarray, geometry: Geometry, taps: Sequence[int], out: np.ndarray
) -> None:
    """Add to `out` what each tap sees of the inputs themselves: no zero meets an infinity here."""
    groups, _, columns = kernel.shape
    kernel = kernel.reshape(groups, *taps, -1, columns)
    seen = [
        _seen_by_tap(*axis)
        for axis in zip(
            inputs.shape[2:-1],
            out.shape[2:-1],
            taps,
            geometry.window_strides,
            geometry.padding,
            geometry.lhs_dilation,
            geometry.rhs_dilation,
            strict=True,
        )
    ]
    lead = [np.arange(n) for n in out.shape[:2]]
    for tap in np.ndindex(*taps):
        places = [axis[i] for axis, i in zip(seen, tap, strict=True)]
        targets = np.ix_(*lead, *(to for _, to in places))
        values = inputs[np.ix_(*lead, *(source for source, _ in places))]
        weights = kernel[(slice(None), *tap)]
        rows = math.prod(values.shape[1:-1])
        product = values.reshape(groups, rows, values.shape[-1]) @ weights
        out[targets] += product.reshape(*values.shape[:-1], columns)


def _seen_by_tap(
    size: int,
    out_size: int,
    taps: int,
    stride: int,
    padding: tuple[int, int],
    lhs_dilation: int,
    rhs_dilation: int,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each tap along one axis: indices of the inputs it sees, and of the outputs they go to."""
    pairs = []
    for tap in range(taps):
        position = np.arange(out_size) * stride + tap * rhs_dilation - padding[0]
        index, hole = np.divmod(position, lhs_dilation)
        (to,) = np.nonzero((hole == 0) & (index >= 0) & (index < size))
        pairs.append((index[to], to))
    return pairs
