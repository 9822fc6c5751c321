"""The distributions that operands are drawn from.

Only PCG64's raw 64-bit words (whose stream NumPy guarantees), integer arithmetic, and the exactly
rounded +, -, * and ldexp are used: the bits are the same on every NumPy release and processor,
which those of np.exp, np.log or Generator.normal are not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from parity.dtypes import dtype
from parity.stream import Stream

if TYPE_CHECKING:
    import numpy as np

Parameters = Mapping[str, float | str]

PARAMETERS: Mapping[str, Parameters] = {
    "normal": {},
    "uniform": {"low": -1.0, "high": 1.0},
    "log_uniform": {"min_exponent": -8, "max_exponent": 8},
    "integers": {"low": -4.0, "high": 4.0},
    "cancellation": {},
    "wide_range": {"min_exponent": -14, "max_exponent": 14},
    "subnormals": {"of": "float32"},
    "signed_zeros": {"share": 0.5},
    "nonfinite": {"share": 0.1},
}
"""Each distribution's parameters and their defaults.

The range of `integers` is the same for every dtype, so that a sweep over dtypes keeps the data,
and small, so that sums of K products stay exact up to K = 2**p / 16 (`casefile.exactness`). The
exponents of `wide_range` are those of float16's normal range, finite in every wider format.
"""


def draw(
    name: str, shape: tuple[int, ...], distribution: str, parameters: Parameters, seed: int
) -> np.ndarray:
    """Elements of a distribution, before they are rounded to a dtype.

    They depend on the arguments alone, hashed with SHA-256: neither on the dtype nor on where in a
    file the operand stands.

    Args:
        name: of the operand; two operands of the same shape differ.
        shape: of the result.
        distribution: a key of `PARAMETERS`.
        parameters: all that the distribution has.
        seed: the user's.

    Returns:
        float64, of the given shape.
    """
    stream = Stream(json.dumps([name, shape, distribution, sorted(parameters.items()), seed]))
    flat = _DRAWS[distribution](stream, math.prod(shape), parameters)
    elements: np.ndarray = flat.reshape(shape)
    return elements


def _normal(stream: Stream, count: int, parameters: Parameters) -> np.ndarray:
    """Approximately normal: mean 0, variance 1."""
    return stream.normal(count)


def _uniform(stream: Stream, count: int, parameters: Parameters) -> np.ndarray:
    """Uniform in [low, high)."""
    low, high = float(parameters["low"]), float(parameters["high"])
    return low + stream.fractions(count) * (high - low)


def _log_uniform(stream: Stream, count: int, parameters: Parameters) -> np.ndarray:
    """±m * 2**e, e uniform in [min_exponent, max_exponent], m uniform in [1, 2)."""
    import numpy as np

    low, high = int(parameters["min_exponent"]), int(parameters["max_exponent"])
    significands = stream.signs(count) * (1.0 + stream.fractions(count))
    exponents = (low + stream.below(count, high - low + 1)).astype(np.intc)
    scaled: np.ndarray = np.ldexp(significands, exponents)
    return scaled


def _integers(stream: Stream, count: int, parameters: Parameters) -> np.ndarray:
    """Whole numbers, uniform in [low, high], both included."""
    import numpy as np

    low, high = int(parameters["low"]), int(parameters["high"])
    return (low + stream.below(count, high - low + 1)).astype(np.float64)


def _cancellation(stream: Stream, count: int, parameters: Parameters) -> np.ndarray:
    """Neighbours in C order that nearly cancel: x, then -x + r with |r| < 2**-10, 1 <= |x| < 2.

    A sum along the last axis, hence a contraction over it with an operand that is constant there,
    keeps the remainders only; a last element without a neighbour is a remainder itself.
    """
    import numpy as np

    pairs = count // 2
    large = stream.signs(pairs) * (1.0 + stream.fractions(pairs))
    small = np.ldexp(2.0 * stream.fractions(count - pairs) - 1.0, -10)
    elements = np.empty(count)
    elements[0 : 2 * pairs : 2] = large
    elements[1 : 2 * pairs : 2] = small[:pairs] - large
    elements[2 * pairs :] = small[pairs:]
    return elements


def _subnormals(stream: Stream, count: int, parameters: Parameters) -> np.ndarray:
    """±k * η of a format, k uniform over all its subnormals."""
    import numpy as np

    fmt = dtype(parameters["of"]).format
    assert fmt is not None  # the schema admits floating formats only
    steps = 1.0 + stream.below(count, 2 ** (fmt.precision - 1) - 1)
    exponent = fmt.emin - fmt.precision + 1
    scaled: np.ndarray = np.ldexp(stream.signs(count) * steps, exponent)
    return scaled


def _signed_zeros(stream: Stream, count: int, parameters: Parameters) -> np.ndarray:
    """`normal` with a share of zeros, of either sign."""
    import numpy as np

    special = stream.fractions(count) < float(parameters["share"])
    zeros = np.copysign(0.0, stream.signs(count))
    return np.where(special, zeros, stream.normal(count))


def _nonfinite(stream: Stream, count: int, parameters: Parameters) -> np.ndarray:
    """`normal` with a share of NaN, inf and -inf, equally often."""
    import numpy as np

    special = stream.fractions(count) < float(parameters["share"])
    kinds = np.array([np.nan, np.inf, -np.inf])[stream.below(count, 3)]
    return np.where(special, kinds, stream.normal(count))


_DRAWS: Mapping[str, Callable[[Stream, int, Parameters], np.ndarray]] = {
    "normal": _normal,
    "uniform": _uniform,
    "log_uniform": _log_uniform,
    "integers": _integers,
    "cancellation": _cancellation,
    "wide_range": _log_uniform,
    "subnormals": _subnormals,
    "signed_zeros": _signed_zeros,
    "nonfinite": _nonfinite,
}
