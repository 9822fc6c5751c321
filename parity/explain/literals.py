"""Arrays as Python source: in digits where these say every bit, else as the bits themselves."""

from __future__ import annotations

import base64
import pprint
import textwrap
import zlib
from typing import Any

import numpy as np

DIGITS = 64
"""Arrays of up to so many elements are written in digits."""

_WIDTH = 92


def literal(array: np.ndarray) -> str:
    """An expression of `np`, `base64` and `zlib` that gives an array, bit for bit.

    Dtypes that NumPy lacks go by the names under which ml_dtypes registers them.
    """
    listed = _digits(array) if array.size <= DIGITS else None
    if listed is not None:
        text = pprint.pformat(listed, width=_WIDTH, compact=True)
        return f"np.array({text}, {array.dtype.name!r})"
    packed = base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes())).decode()
    lines = "\n".join(f'        "{line}"' for line in textwrap.wrap(packed, _WIDTH))
    read = f"zlib.decompress(base64.b64decode(\n{lines}\n    ))"
    return f"np.frombuffer({read}, {array.dtype.name!r}).reshape({array.shape})"


def _digits(array: np.ndarray) -> Any:
    """Nested lists of numbers that give the array again, bit for bit; None if there are none.

    Non-finite numbers are no literals of Python, and a complex one may lose the sign of a zero.
    """
    if array.dtype.kind == "c" or not array.size:
        return None
    whole = array.dtype.kind in "biu" or array.dtype.name.lstrip("u").startswith("int")
    values = array.astype(np.int64 if whole and array.dtype.kind == "V" else array.dtype)
    if not whole:
        values = array.astype(np.float64)
        if not np.isfinite(values).all():
            return None
    listed = values.tolist()
    again = np.array(listed, array.dtype)
    return listed if again.tobytes() == array.tobytes() else None
