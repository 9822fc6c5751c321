"""What travels between the host and a worker, and how.

Standard library and NumPy (ml_dtypes where an array needs it) only, so that both sides import it.
Messages are nested builtins; an array travels as its raw bits, its dtype's name and its shape.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parity.dtypes import dtype


@dataclass(frozen=True)
class Failure:
    """Why there is no output.

    Attributes:
        outcome: unsupported, error, crashed, timeout or out-of-memory.
        stage: start, build, trace, lower, convert, compile or run.
        type: the exception's type, the signal's name, or "".
        message: what it said, or the reason why it is unsupported.
        stderr: the last lines the worker wrote to stderr.
        traceback: the worker's traceback, or "".
    """

    outcome: str
    stage: str
    type: str = ""
    message: str = ""
    stderr: str = ""
    traceback: str = ""


@dataclass(frozen=True)
class PathOutcome:
    """What one path made of one program.

    Attributes:
        path: the path's name.
        outputs: arrays by output name ("out", "vjp.lhs", …), in the dtype the path returned.
        evidence: proof that the path ran: executed operations, SHA-256 of StableHLO and HLO, notes.
        timings: seconds by stage.
        failure: None if there are outputs.
    """

    path: str
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None

    @property
    def outcome(self) -> str:
        """One of `casefile.case.OUTCOMES`."""
        return "ok" if self.failure is None else self.failure.outcome


@dataclass(frozen=True)
class References:
    """What the references say of one program.

    Attributes:
        f64: the ideal: float64 or complex128 for a floating output; int64, uint64 or (beyond both)
            float64 for an integer one, not wrapped; bool.
        strict: as declared, in the declared dtype.
        models: outputs under further named arithmetic models, in the declared dtype.
        unspecified: boolean masks of the elements that no rule determines (an implicit zero times
            a non-finite value); absent where there are none.
        notes: sentences about the reference: "no wider than float64", …
        failure: None if there are outputs.
    """

    f64: Mapping[str, np.ndarray] = field(default_factory=dict)
    strict: Mapping[str, np.ndarray] = field(default_factory=dict)
    models: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    unspecified: Mapping[str, np.ndarray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    failure: Failure | None = None


def pack(array: np.ndarray) -> dict[str, Any]:
    """An array as builtins: dtype name, shape, raw bits in C order, little endian."""
    array = np.asarray(array)
    return {"dtype": array.dtype.name, "shape": array.shape, "data": array.tobytes()}


def unpack(wire: Mapping[str, Any]) -> np.ndarray:
    """The array that `pack` wrote, bit for bit (read-only)."""
    flat = np.frombuffer(wire["data"], dtype=dtype(wire["dtype"]).numpy())
    return flat.reshape(tuple(wire["shape"]))


def digest(array: np.ndarray) -> str:
    """SHA-256 over dtype, shape and raw bits."""
    array = np.asarray(array)
    head = f"{array.dtype.name}{array.shape}".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()


def pack_all(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """`pack` over a mapping."""
    return {name: pack(array) for name, array in arrays.items()}


def unpack_all(wire: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """`unpack` over a mapping."""
    return {name: unpack(array) for name, array in wire.items()}
