"""The parameters of a model, drawn with NumPy in the worker.

Only there are their shapes known. A parameter's bits depend on its name, shape and dtype and on the
seed alone, so every path, environment and release of flax has the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import numpy as np

from parity.dtypes import DType, dtype
from parity.program.spec import PARAMETERS, ProgramSpec
from parity.program.transforms import differentiated
from parity.reference.rounding import cast
from parity.stream import Stream

_SPREAD = 0.125
_NEAR_ONE = "scale"


def draw(name: str, shape: tuple[int, ...], kind: DType, seed: int) -> np.ndarray:
    """A parameter.

    A matrix or kernel is normal with variance 1/n, where n is the product of all dimensions but
    the last one, as in LeCun's rule; a vector or scalar is normal with deviation 1/8, around 1 if
    its name ends in `scale`, else around 0.

    Args:
        name: with dots: `params.Dense_0.kernel`.
        shape: of the result.
        kind: a floating or complex dtype; the imaginary parts are 0.
        seed: the user's.

    Source: LeCun, Bottou, Orr, Müller, Efficient BackProp (1998), section 4.6.
    """
    normal = _normal(name, shape, seed)
    if len(shape) > 1:
        elements = normal / np.sqrt(float(max(math.prod(shape[:-1]), 1)))
    else:
        elements = normal * _SPREAD + float(name.rpartition(".")[2] == _NEAR_ONE)
    return cast(elements, kind)


def tangents(spec: ProgramSpec, drawn: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A normal tangent for each parameter that jvp differentiates, "tangent.NAME".

    Args:
        spec: under jvp, with the parameters that the host gives.
        drawn: the others.
    """
    like = {p.name: (p.shape, dtype(p.dtype)) for p in spec.parameters}
    like |= {name: (array.shape, dtype(array.dtype)) for name, array in drawn.items()}
    found = {}
    for name in differentiated(spec, list(like)):
        if name in like:
            shape, kind = like[name]
            tangent = f"tangent.{name}"
            found[tangent] = cast(_normal(tangent, shape, 0), kind)
    return found


def _normal(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    stream = Stream(json.dumps([name, shape, PARAMETERS, seed]))
    elements: np.ndarray = stream.normal(math.prod(shape)).reshape(shape)
    return elements
