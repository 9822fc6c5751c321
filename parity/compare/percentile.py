"""The 99th percentile of ulp errors that arrive block by block.

It is the smallest error that at least 99% of the errors do not exceed: an order statistic, not an
interpolation. NaN ranks above infinity.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BIN_SHIFT = 44
"""A bin is the upper 20 bits of a float64 that is not negative: 2^-8 of its power of two wide."""
BINS = 1 << (64 - BIN_SHIFT - 1)


def rank(n: int) -> int:
    """The 1-based rank ceil(0.99 n) in ascending order."""
    return n - n // 100


@dataclass
class ExactPercentile:
    """Keeps every error."""

    blocks: list[Floats] = field(default_factory=list)

    def add(self, errors: Floats) -> None:
        """Take in a block of errors, none negative."""
        self.blocks.append(errors)

    def value(self) -> float:
        """The percentile; NaN if there were no errors."""
        errors = self.blocks[0] if len(self.blocks) == 1 else np.concatenate(self.blocks)
        if not len(errors):
            return float("nan")
        k = rank(len(errors)) - 1
        return float(np.partition(errors, k)[k])


@dataclass
class BinnedPercentile:
    """Counts errors in bins 2^-8 of a power of two wide."""

    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def add(self, errors: Floats) -> None:
        """Take in a block of errors, none negative."""
        index = np.abs(errors).view(np.int64) >> BIN_SHIFT
        above = index[index > 0]
        self.counts[0] += len(index) - len(above)
        if not len(above):
            return
        low = int(above.min())
        counts = np.bincount(above - low)
        self.counts[low : low + len(counts)] += counts

    def value(self) -> float:
        """The lower edge of the percentile's bin; NaN if there were no errors.

        Errors of up to 9 significant bits, whole ulps up to 512 for example, are exact.
        """
        n = int(self.counts.sum())
        index = int(np.searchsorted(np.cumsum(self.counts), rank(n)))
        return float(np.int64(index << BIN_SHIFT).view(np.float64)) if n else float("nan")
