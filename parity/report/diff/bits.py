"""Outputs of two sides, bit for bit, as far as records have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from parity.compare.elementwise import same_bits
from parity.compare.metrics import measure, plain
from parity.compare.rows import Row
from parity.dtypes import dtype
from parity.report.diff.model import Aligned, Distance
from parity.worker.protocol import digest

Outputs = Mapping[tuple[str, str], np.ndarray]
"""By path, or reference, and output."""


def array_of(row: Row, outputs: Outputs) -> np.ndarray | None:
    """The output of a row: what is kept or, of a small one, what the row lists.

    Args:
        row: of a path or of a reference.
        outputs: the bits that are kept of its case.

    Returns:
        The array, None if its bits are not at hand: those of a listed NaN may be others.
    """
    kept = outputs.get((row.path, row.output))
    if kept is not None:
        return kept
    listed = _listed(row)
    return listed if listed is not None and digest(listed) == row.sha256 else None


def _listed(row: Row) -> np.ndarray | None:
    """The elements that a row lists: exactly, but for the bits of a NaN."""
    if row.values is None or row.dtype is None:
        return None
    with np.errstate(invalid="ignore"):
        array = np.array(row.values, dtype=dtype(row.dtype).numpy())
    return array.reshape(row.shape or ())


def same_output(a: Row, b: Row, a_outputs: Outputs, b_outputs: Outputs) -> bool:
    """Whether two rows have the same bits, all NaNs being equal where the elements are at hand.

    Of what differs between devices only the SHA-256 is at hand.
    """
    if a.bits is None or b.bits is None or a.bits == b.bits:
        return a.bits == b.bits
    if a.bits[1:] != b.bits[1:]:
        return False
    kept = a_outputs.get((a.path, a.output)), b_outputs.get((b.path, b.output))
    want, got = (
        array if array is not None else _listed(row)
        for array, row in zip(kept, (a, b), strict=True)
    )
    return got is not None and want is not None and same_bits(got, want)


def distance(a: np.ndarray, b: np.ndarray, f64: np.ndarray | None) -> Distance:
    """How far B's output is from A's.

    Args:
        a: any shape, any dtype of `parity.dtypes`.
        b: the same shape and dtype.
        f64: the ideal, of the same shape; None if it is not at hand.
    """
    metrics = measure(b, a)
    ideal = f64 if f64 is not None and f64.shape == a.shape else None
    worst = tuple(
        Aligned(
            index=element.index,
            a=element.want,
            b=element.got,
            a_bits=element.want_bits,
            b_bits=element.got_bits,
            ulp=element.ulp,
            f64=None if ideal is None else plain(ideal[element.index].reshape(1))[0],
        )
        for element in metrics.worst
    )
    return Distance(replace(metrics, worst=()), worst)
