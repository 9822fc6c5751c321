"""What travels between the host and a worker, and how.

Standard library and NumPy (ml_dtypes where an array needs it) only, so that both sides import it.
Messages are nested builtins; an array travels as its raw bits, its dtype's name and its shape.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
class Shard:
    """What one device holds of an output that lies on several.

    Attributes:
        device: its number.
        start: index in the output of the first element it holds, one number for each dimension.
        shape: of its part.
        replica: which one of the devices with this part it is; of the first, 0, are the output's
            own elements.
        data: what it holds, None where that is what the output has there.
    """

    device: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    replica: int = 0
    data: np.ndarray | None = None

    @property
    def index(self) -> tuple[slice, ...]:
        """Where its part stands in the output."""
        bounds = zip(self.start, self.shape, strict=True)
        return tuple(slice(start, start + size) for start, size in bounds)


@dataclass(frozen=True)
class PathOutcome:
    """What one path made of one program.

    Attributes:
        path: the path's name.
        outputs: arrays by output name ("out", "vjp.lhs", …), in the dtype the path returned.
        evidence: proof that the path ran: executed operations, SHA-256 of StableHLO and HLO, notes.
        timings: seconds by stage.
        failure: None if there are outputs.
        programs: the canonical texts of what was compiled, by their SHA-256.
        shards: by output name, of those that lie on several devices, what each device holds.
        artifact: what the path exported, packed (`record.artifacts`), if that is to be kept.
    """

    path: str
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    programs: Mapping[str, str] = field(default_factory=dict)
    shards: Mapping[str, tuple[Shard, ...]] = field(default_factory=dict)
    artifact: bytes | None = None

    @property
    def outcome(self) -> str:
        """One of `casefile.case.OUTCOMES`."""
        return "ok" if self.failure is None else self.failure.outcome


@dataclass(frozen=True)
class Enclosure:
    """An output and the interval around it; `lo` and `hi` are `point` itself where it is exact.

    Attributes:
        point: any shape and dtype.
        lo: lower ends (complex: of both parts).
        hi: upper ends.
    """

    point: np.ndarray
    lo: np.ndarray
    hi: np.ndarray

    @property
    def exact(self) -> bool:
        """Whether nothing but the point is possible."""
        return self.lo is self.point and self.hi is self.point


class Spread(NamedTuple):
    """How far an output is from `strict` as a whole; complex parts count apart.

    Attributes:
        rms: root mean square distance.
        mean: mean signed distance.
        moved: share of the elements that differ at all.
    """

    rms: float
    mean: float
    moved: float = 1.0


class Latitude(NamedTuple):
    """How far honest evaluations of an arithmetic model are from its point, as a whole.

    Attributes:
        rms: the largest root mean square distance that an order of summation leads to.
        moved: the largest share of the elements that one moves at all.
        reach: root mean square of what the model's interval allows beside the order.
    """

    rms: float
    moved: float
    reach: float


@dataclass(frozen=True)
class References:
    """What the references say of one program; each mapping is by output name.

    Attributes:
        f64: the ideal: float64 or complex128 for a floating output; int64, uint64 or (beyond both)
            float64 for an integer one, not wrapped; bool. Its interval is the accuracy bound, in
            float64.
        strict: as declared, in the declared dtype. Its interval is the order interval.
        licensed: the same by the licences granted, "fma" or "fma+reciprocal"; smaller sets first.
        models: the same under further named arithmetic models.
        open: by model and output, masks of the elements that are undecided under that model.
        latitudes: by model ("strict" among them) and output, how far honest evaluations of the
            model are from its point; only where models were asked for and a sum has an order to
            choose.
        honest: by output and order of summation, how far that is from `strict`; absent where no
            sum has an order to choose.
        jolted: by output, how far a single rounding error in each sum, u·Σ|a||b| in size and of
            random sign, leads from `strict`; absent likewise.
        erring: by output and direction, how far results that are all as far off as their
            implementation is stated to be, sums apart, lead from `strict`; absent likewise, and
            where no result may be off.
        unspecified: boolean masks of the elements that no rule determines (an implicit zero times
            a non-finite value); absent where there are none.
        undecided: boolean masks of the elements that depend on a comparison, an index or a
            conversion to integer which another correct evaluation may decide otherwise.
        estimated: primitives whose bound is a Monte Carlo estimate.
        notes: sentences about the reference: "no wider than float64", …
        failure: None if there are outputs.
    """

    f64: Mapping[str, Enclosure] = field(default_factory=dict)
    strict: Mapping[str, Enclosure] = field(default_factory=dict)
    licensed: Mapping[str, Mapping[str, Enclosure]] = field(default_factory=dict)
    models: Mapping[str, Mapping[str, Enclosure]] = field(default_factory=dict)
    open: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    latitudes: Mapping[str, Mapping[str, Latitude]] = field(default_factory=dict)
    honest: Mapping[str, Mapping[str, Spread]] = field(default_factory=dict)
    jolted: Mapping[str, Spread] = field(default_factory=dict)
    erring: Mapping[str, Mapping[str, Spread]] = field(default_factory=dict)
    unspecified: Mapping[str, np.ndarray] = field(default_factory=dict)
    undecided: Mapping[str, np.ndarray] = field(default_factory=dict)
    estimated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failure: Failure | None = None


_MESSAGE_LIMIT = 1 << 20
"""Bytes above which an array travels through a file: a message is copied several times."""


def pack(array: np.ndarray, folder: str | None = None) -> dict[str, Any]:
    """An array as builtins: dtype name, shape, raw bits in C order, little endian.

    Args:
        array: any shape and dtype of `parity.dtypes`.
        folder: where an array above 1 MiB may be left as a file; None keeps it in the message.
    """
    array = np.asarray(array)
    wire: dict[str, Any] = {"dtype": array.dtype.name, "shape": array.shape}
    if folder is None or array.nbytes <= _MESSAGE_LIMIT:
        return wire | {"data": array.tobytes()}
    handle, path = tempfile.mkstemp(dir=folder)
    with open(handle, "wb") as file:
        file.write(np.ascontiguousarray(array).view(np.uint8).data)
    return wire | {"file": path}


def unpack(wire: Mapping[str, Any]) -> np.ndarray:
    """The array that `pack` wrote, bit for bit; its file, if any, is removed."""
    element = dtype(wire["dtype"]).numpy()
    if "file" in wire:
        flat = np.fromfile(wire["file"], dtype=np.uint8).view(element)
        os.unlink(wire["file"])
    else:
        flat = np.frombuffer(wire["data"], dtype=element)
    return flat.reshape(tuple(wire["shape"]))


def digest(array: np.ndarray) -> str:
    """SHA-256 over dtype, shape and raw bits."""
    array = np.asarray(array)
    head = f"{array.dtype.name}{array.shape}".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()


def pack_all(arrays: Mapping[str, np.ndarray], folder: str | None = None) -> dict[str, Any]:
    """`pack` over a mapping."""
    return {name: pack(array, folder) for name, array in arrays.items()}


def unpack_all(wire: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """`unpack` over a mapping."""
    return {name: unpack(array) for name, array in wire.items()}


def pack_shards(
    shards: Mapping[str, tuple[Shard, ...]], folder: str | None = None
) -> dict[str, Any]:
    """Shards by output name as builtins that `unpack_shards` reads back."""
    return {
        name: [
            {**vars(one), "data": None if one.data is None else pack(one.data, folder)}
            for one in held
        ]
        for name, held in shards.items()
    }


def unpack_shards(wire: Mapping[str, Any]) -> dict[str, tuple[Shard, ...]]:
    """The shards that `pack_shards` wrote."""
    return {name: tuple(map(_unpack_shard, held)) for name, held in wire.items()}


def _unpack_shard(wire: Mapping[str, Any]) -> Shard:
    data = wire["data"]
    return Shard(
        device=wire["device"],
        start=tuple(wire["start"]),
        shape=tuple(wire["shape"]),
        replica=wire["replica"],
        data=None if data is None else unpack(data),
    )


def pack_references(found: References, folder: str | None = None) -> dict[str, Any]:
    """References as builtins that `unpack_references` reads back."""

    def enclosures(of: Mapping[str, Enclosure]) -> dict[str, Any]:
        return {name: _pack_enclosure(one, folder) for name, one in of.items()}

    return {
        "f64": enclosures(found.f64),
        "strict": enclosures(found.strict),
        "licensed": {name: enclosures(of) for name, of in found.licensed.items()},
        "models": {name: enclosures(of) for name, of in found.models.items()},
        "open": {name: pack_all(of, folder) for name, of in found.open.items()},
        "latitudes": _pack_spreads(found.latitudes),
        "honest": _pack_spreads(found.honest),
        "jolted": {name: tuple(one) for name, one in found.jolted.items()},
        "erring": _pack_spreads(found.erring),
        "unspecified": pack_all(found.unspecified, folder),
        "undecided": pack_all(found.undecided, folder),
        "estimated": found.estimated,
        "notes": found.notes,
    }


def unpack_references(wire: Mapping[str, Any]) -> References:
    """The references that `pack_references` wrote."""

    def enclosures(of: Mapping[str, Any]) -> dict[str, Enclosure]:
        return {name: _unpack_enclosure(one) for name, one in of.items()}

    return References(
        f64=enclosures(wire["f64"]),
        strict=enclosures(wire["strict"]),
        licensed={name: enclosures(of) for name, of in wire["licensed"].items()},
        models={name: enclosures(of) for name, of in wire["models"].items()},
        open={name: unpack_all(of) for name, of in wire["open"].items()},
        latitudes={
            name: {output: Latitude(*one) for output, one in of.items()}
            for name, of in wire["latitudes"].items()
        },
        honest=_unpack_spreads(wire["honest"]),
        jolted={name: Spread(*one) for name, one in wire["jolted"].items()},
        erring=_unpack_spreads(wire["erring"]),
        unspecified=unpack_all(wire["unspecified"]),
        undecided=unpack_all(wire["undecided"]),
        estimated=tuple(wire["estimated"]),
        notes=tuple(wire["notes"]),
    )


def _pack_spreads(
    found: Mapping[str, Mapping[str, Spread]] | Mapping[str, Mapping[str, Latitude]],
) -> dict[str, Any]:
    return {name: {key: tuple(one) for key, one in of.items()} for name, of in found.items()}


def _unpack_spreads(wire: Mapping[str, Any]) -> dict[str, dict[str, Spread]]:
    return {name: {key: Spread(*one) for key, one in of.items()} for name, of in wire.items()}


def _pack_enclosure(one: Enclosure, folder: str | None) -> dict[str, Any]:
    if one.exact:
        return {"point": pack(one.point, folder)}
    return pack_all({"point": one.point, "lo": one.lo, "hi": one.hi}, folder)


def _unpack_enclosure(wire: Mapping[str, Any]) -> Enclosure:
    arrays = unpack_all(wire)
    point = arrays["point"]
    return Enclosure(point, arrays.get("lo", point), arrays.get("hi", point))
