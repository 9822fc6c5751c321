"""Errors by device, of an output that lies on several, and whether its replicas agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from parity.compare.elementwise import same_bits
from parity.compare.grade import Targets
from parity.compare.metrics import Metrics, comparable, measure
from parity.worker.protocol import Shard


@dataclass(frozen=True)
class ShardError:
    """How far what one device holds is from what it should be; None where that is not known.

    Attributes:
        device: its number.
        start: index in the output of the first element it holds.
        shape: of its part.
        replica: which one of the devices with this part it is, from 0.
        differing: elements that differ from the baseline.
        max_abs: largest absolute error against `f64`.
        max_ulp: the same in ulps of the output's dtype.
        rms_rel: rms error relative to the rms of `f64`, both of this part.
        apart: elements that differ from replica 0 of the same part.
        max_apart: the largest such difference, absolute.
    """

    device: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    replica: int
    differing: int | None = None
    max_abs: float | None = None
    max_ulp: float | None = None
    rms_rel: float | None = None
    apart: int = 0
    max_apart: float | None = None


def shard_errors(
    got: np.ndarray, shards: Sequence[Shard], targets: Targets
) -> tuple[ShardError, ...]:
    """What each device holds against `f64`, the baseline, and the first device with that part.

    Args:
        got: the output, of each part replica 0.
        shards: what its devices hold.
        targets: what the output is compared with, of the same shape if at all.
    """
    return tuple(_error(got, one, targets) for one in shards)


def _error(got: np.ndarray, one: Shard, targets: Targets) -> ShardError:
    first = got[one.index]
    held = first if one.data is None else one.data
    mask = targets.mask(got)
    exclude = None if mask is None else mask[one.index]

    def against(whole: np.ndarray | None) -> Metrics | None:
        if whole is None or not comparable(got, whole):
            return None
        return measure(held, whole[one.index], exclude=exclude)

    ideal, baseline = against(targets.f64), against(targets.baseline)
    same = same_bits(held, first, exclude=exclude)
    apart = None if same else measure(held, first, exclude=exclude)
    return ShardError(
        device=one.device,
        start=one.start,
        shape=one.shape,
        replica=one.replica,
        differing=None if baseline is None else baseline.differing,
        max_abs=None if ideal is None else ideal.max_abs,
        max_ulp=None if ideal is None else ideal.max_ulp,
        rms_rel=None if ideal is None else ideal.rms_rel,
        apart=0 if apart is None else apart.differing,
        max_apart=None if apart is None else apart.max_abs,
    )


def other_answers(
    got: np.ndarray, shards: Sequence[Shard], errors: Sequence[ShardError]
) -> Iterator[np.ndarray]:
    """The output as it would be with what a device holds that disagrees with replica 0."""
    for one, error in zip(shards, errors, strict=True):
        if error.apart and one.data is not None:
            whole = got.copy()
            whole[one.index] = one.data
            yield whole


def disagreement(errors: Sequence[ShardError]) -> str:
    """In how many elements the devices disagree at most, and which; "" where they agree."""
    apart = [error for error in errors if error.apart]
    if not apart:
        return ""
    most = max(error.apart for error in apart)
    size = max(int(np.prod(error.shape)) for error in apart)
    distances = [error.max_apart for error in apart if error.max_apart is not None]
    far = f", by at most {max(distances):.3g}" if distances else ""
    devices = ", ".join(str(error.device) for error in apart)
    who = "device" if len(apart) == 1 else "devices"
    return f"replicas differ: {most} of {size} elements{far}, on {who} {devices}"
