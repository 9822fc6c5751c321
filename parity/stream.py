"""Random numbers with the same bits on every NumPy release and processor; for host and workers.

Only PCG64's raw 64-bit words (whose stream NumPy guarantees), integer arithmetic, and the exactly
rounded +, -, * and ldexp are used.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


class Stream:
    """Raw random words and the exact numbers made of them.

    Args:
        label: its SHA-256 is the seed.
    """

    def __init__(self, label: str) -> None:
        from numpy.random import PCG64

        self._bits = PCG64(int.from_bytes(hashlib.sha256(label.encode()).digest(), "little"))

    def words(self, count: int) -> np.ndarray:
        """uint64[count], uniform."""
        words: np.ndarray = self._bits.random_raw(count)
        return words

    def fractions(self, count: int) -> np.ndarray:
        """float64[count], uniform multiples of 2**-53 in [0, 1)."""
        import numpy as np

        whole = (self.words(count) >> np.uint64(11)).astype(np.float64)
        fractions: np.ndarray = np.ldexp(whole, -53)
        return fractions

    def below(self, count: int, limit: int) -> np.ndarray:
        """int64[count], uniform in [0, limit) up to limit / 2**64."""
        import numpy as np

        return (self.words(count) % np.uint64(limit)).astype(np.int64)

    def signs(self, count: int) -> np.ndarray:
        """float64[count] of -1 and 1."""
        return 1.0 - 2.0 * self.below(count, 2)

    def normal(self, count: int) -> np.ndarray:
        """float64[count], approximately normal: sums of 12 uniform numbers, less 6 (Irwin-Hall).

        Mean 0 and variance 1 exactly, kurtosis 2.9 instead of 3, no element beyond ±6. The sum is
        taken in integers, so it is rounded once, to float64.

        Source: Johnson, Kotz, Balakrishnan, Continuous Univariate Distributions 2 (1995), section
        26.9.
        """
        import numpy as np

        total = np.full(count, -6 * 2**53, dtype=np.int64)
        for _ in range(12):
            total += (self.words(count) >> np.uint64(11)).astype(np.int64)
        normal: np.ndarray = np.ldexp(total.astype(np.float64), -53)
        return normal
