"""The bits of an operand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from parity.casefile import arrayfile, values
from parity.casefile.case import Operand
from parity.casefile.distributions import draw
from parity.casefile.document import shown
from parity.dtypes import DType, dtype
from parity.errors import CaseFileError

if TYPE_CHECKING:
    import numpy as np


def generate(operand: Operand, *, file: Path) -> np.ndarray:
    """An operand's elements in its declared dtype, each rounded once.

    What is drawn depends on the operand's name, shape, distribution and seed only; for a complex
    dtype the real part is what a real dtype would get, the imaginary part a draw of its own.

    Args:
        operand: as `load` gives it.
        file: the case file; array files are read from its folder.

    Returns:
        An array of the operand's shape and dtype.

    Raises:
        CaseFileError: an array file is missing, unreadable or of another shape or dtype.
        UnsupportedDType: the installed ml_dtypes is too old for the dtype.
    """
    kind = dtype(operand.dtype)
    if operand.draw is not None:
        return _drawn(operand, operand.draw, kind)
    one = operand.shape[1:] if operand.repeat else operand.shape
    if operand.file is None:
        array = values.array(operand.values, one, kind)
    else:
        array = _stored(operand, operand.file, one, file)
    return _repeated(array, operand.repeat) if operand.repeat else array


def _repeated(array: np.ndarray, times: int) -> np.ndarray:
    import numpy as np

    return np.repeat(array[np.newaxis], times, axis=0)


def _drawn(operand: Operand, distribution: str, kind: DType) -> np.ndarray:
    import numpy as np

    from parity.reference.rounding import cast

    def part(suffix: str) -> np.ndarray:
        name = operand.name + suffix
        return draw(name, operand.shape, distribution, operand.parameters, operand.seed)

    elements = part("")
    if kind.kind == "bool":
        truth: np.ndarray = elements != 0
        return truth
    if kind.format is None:
        whole: np.ndarray = elements.astype(np.int64).astype(kind.numpy())
        return whole
    if kind.kind == "complex":
        both = np.empty(operand.shape, dtype=np.complex128)
        both.real, both.imag = elements, part(".imag")
        elements = both
    return cast(elements, kind)


def _stored(operand: Operand, name: Path, shape: tuple[int, ...], file: Path) -> np.ndarray:
    try:
        array = arrayfile.read(arrayfile.locate(file.parent, str(name)), operand.key)
    except arrayfile.ArrayFileError as error:
        what = f"operands.{operand.name}.file {error}"
        raise CaseFileError(what, file=shown(file), hint=error.hint) from None
    if array.shape != shape or array.dtype.name != operand.dtype:
        what = (
            f"operands.{operand.name}.file is not what is declared (got {array.dtype.name} "
            f"{list(array.shape)}; allowed {operand.dtype} {list(shape)})"
        )
        raise CaseFileError(what, file=shown(file))
    return array
