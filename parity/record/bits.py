"""Outputs as raw bits, compressed where that is smaller."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parity.record.encoding import dumps, loads
from parity.worker.protocol import pack, unpack

if TYPE_CHECKING:
    import numpy as np


_SMALL = 2**16


def is_small_reference(path: str, array: np.ndarray) -> bool:
    """Whether an output is the ideal and so small that it is kept whatever the paths gave.

    Two records are comparable only where their ideals agree.
    """
    return path == "f64" and array.nbytes <= _SMALL


@dataclass(frozen=True)
class Bits:
    """An array as four columns.

    Attributes:
        dtype: its name.
        shape: JSON.
        compression: "zlib" or None.
        data: in C order, little endian.
    """

    dtype: str
    shape: str
    compression: str | None
    data: bytes

    @staticmethod
    def of(array: np.ndarray) -> Bits:
        """Of an array of any shape and dtype of `parity.dtypes`."""
        wire = pack(array)
        raw, small = wire["data"], zlib.compress(wire["data"], 1)
        shape = dumps(wire["shape"])
        if len(small) < len(raw):
            return Bits(wire["dtype"], shape, "zlib", small)
        return Bits(wire["dtype"], shape, None, raw)

    def columns(self) -> tuple[str, str, str | None, bytes]:
        """In the order in which tables have them."""
        return self.dtype, self.shape, self.compression, self.data

    def array(self) -> np.ndarray:
        """The array, bit for bit."""
        data = zlib.decompress(self.data) if self.compression else self.data
        return unpack({"dtype": self.dtype, "shape": loads(self.shape), "data": data})
