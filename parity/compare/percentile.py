"""The 99th percentile of ulp errors that arrive block by block.

It is the smallest error that at least 99% of the errors do not exceed: an order statistic, not an
interpolation. NaN ranks above infinity.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BIN_SHIFT = 44
"""A bin is the upper 20 bits of a float64 that is not negative: 2^-8 of its power of two wide."""
BINS = 1 << (64 - BIN_SHIFT - 1)


def rank(n: int) -> int:
    """The 1-based rank ceil(0.99 n) in ascending order."""
    return n - n // 100


class ExactPercentile:
    """Keeps every error."""

    def __init__(self) -> None:
        self._blocks: list[Floats] = []

    def add(self, errors: Floats) -> None:
        """Take in a block of errors, none negative."""
        self._blocks.append(errors)

    def value(self) -> float:
        """The percentile; NaN if there were no errors."""
        errors = self._blocks[0] if len(self._blocks) == 1 else np.concatenate(self._blocks)
        if not len(errors):
            return float("nan")
        k = rank(len(errors)) - 1
        return float(np.partition(errors, k)[k])


class BinnedPercentile:
    """Counts errors in bins 2^-8 of a power of two wide."""

    def __init__(self) -> None:
        self.counts: npt.NDArray[np.int64] = np.zeros(BINS, np.int64)

    def add(self, errors: Floats) -> None:
        """Take in a block of errors, none negative."""
        if not len(errors):
            return
        index = np.abs(errors).view(np.int64) >> BIN_SHIFT
        low = int(index.min())
        counts = np.bincount(index - low)
        self.counts[low : low + len(counts)] += counts

    def value(self) -> float:
        """The lower edge of the percentile's bin; NaN if there were no errors.

        Errors of up to 9 significant bits, whole ulps up to 512 for example, are exact.
        """
        n = int(self.counts.sum())
        index = int(np.searchsorted(np.cumsum(self.counts), rank(n)))
        return float(np.int64(index << BIN_SHIFT).view(np.float64)) if n else float("nan")
