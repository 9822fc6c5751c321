"""Errors by device, of an output that lies on several, and whether its replicas agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from parity.compare.elementwise import Mask, same_bits
from parity.compare.grade import Targets
from parity.compare.metrics import Metrics, comparable, measure
from parity.worker.protocol import Shard, digest


@dataclass(frozen=True)
class Output:
    """An output and, if it lies on several devices, what each of them holds.

    Attributes:
        whole: of each part replica 0.
        shards: by device, none of an output on a single one.
    """

    whole: np.ndarray
    shards: tuple[Shard, ...] = ()

    def like(self, one: Shard) -> Shard:
        """What the device of another output's shard holds of the same part; else replica 0."""
        for own in self.shards:
            if (own.device, own.start, own.shape) == (one.device, one.start, one.shape):
                return own
        return Shard(one.device, one.start, one.shape)

    def part(self, one: Shard) -> np.ndarray:
        """The elements of a shard of this output."""
        return self.whole[one.index] if one.data is None else one.data

    def on(self, one: Shard) -> np.ndarray:
        """The whole output as it is with the elements of a shard in place of replica 0's."""
        if one.data is None:
            return self.whole
        whole = self.whole.copy()
        whole[one.index] = one.data
        return whole


@dataclass(frozen=True)
class ShardError:
    """How far what one device holds is from what it should be; None where that is not known.

    Attributes:
        device: its number.
        start: index in the output of the first element it holds.
        shape: of its part.
        replica: which one of the devices with this part it is, from 0.
        differing: elements that differ from what the same device has of the baseline.
        max_abs: largest absolute error against `f64`.
        max_ulp: the same in ulps of the output's dtype.
        rms_rel: rms error relative to the rms of `f64`, both of this part.
        apart: elements that differ from replica 0 of the same part.
        max_apart: the largest such difference, absolute.
        sha256: of its part, "" where that is replica 0's.
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
    sha256: str = ""


def shard_errors(
    got: Output, targets: Targets, baseline: Output | None = None
) -> tuple[ShardError, ...]:
    """What each device holds against `f64`, the baseline, and the first device with that part.

    Args:
        got: the output.
        targets: what it is compared with, of the same shape if at all.
        baseline: that of the baseline, with what its devices hold.
    """
    return tuple(_error(got, one, targets, baseline) for one in got.shards)


def _error(got: Output, one: Shard, targets: Targets, baseline: Output | None) -> ShardError:
    first, held = got.whole[one.index], got.part(one)
    mask = targets.mask(got.whole)
    exclude = None if mask is None else mask[one.index]

    def against(output: Output | None) -> Metrics | None:
        if output is None or not comparable(got.whole, output.whole):
            return None
        return measure(held, output.part(output.like(one)), exclude=exclude)

    ideal = against(None if targets.f64 is None else Output(targets.f64))
    other = against(baseline)
    same = same_bits(held, first, exclude=exclude)
    apart = None if same else measure(held, first, exclude=exclude)
    return ShardError(
        device=one.device,
        start=one.start,
        shape=one.shape,
        replica=one.replica,
        differing=None if other is None else other.differing,
        max_abs=None if ideal is None else ideal.max_abs,
        max_ulp=None if ideal is None else ideal.max_ulp,
        rms_rel=None if ideal is None else ideal.rms_rel,
        apart=0 if apart is None else apart.differing,
        max_apart=None if apart is None else apart.max_abs,
        sha256="" if same else digest(held),
    )


def answers(got: Output, baseline: Output | None) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """The output as each device has it, beside the baseline's on the same device.

    First that of replica 0, then those that differ from it, or whose counterpart does.

    Args:
        got: the output.
        baseline: that of the baseline, None where it has none.
    """
    yield got.whole, None if baseline is None else baseline.whole
    for one in got.shards:
        other = None if baseline is None else baseline.like(one)
        if one.data is not None or (other is not None and other.data is not None):
            counterpart = None if baseline is None or other is None else baseline.on(other)
            yield got.on(one), counterpart


def same_on_each_device(a: Output, b: Output, *, exclude: Mask | None = None) -> bool:
    """Whether two outputs have the same bits on every device (all NaNs are equal).

    Args:
        a: one of them.
        b: the other.
        exclude: True where no rule determines the element.
    """
    if not same_bits(a.whole, b.whole, exclude=exclude):
        return False
    pairs = [(one, b.like(one)) for one in a.shards] + [(a.like(one), one) for one in b.shards]
    return all(
        same_bits(
            a.part(own), b.part(other), exclude=None if exclude is None else exclude[own.index]
        )
        for own, other in pairs
        if own.data is not None or other.data is not None
    )


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
