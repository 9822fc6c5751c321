"""What each device holds of an array that lies on several."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from parity.worker.protocol import Shard, digest


def shards(array: Any, whole: np.ndarray) -> tuple[Shard, ...]:
    """The parts of an array by device; none of one that lies on a single device.

    Args:
        array: of JAX.
        whole: the same as NumPy has it, of each part the first replica.
    """
    if not isinstance(array, jax.Array) or len(array.sharding.device_set) < 2:
        return ()
    held = sorted(array.addressable_shards, key=lambda shard: int(shard.device.id))
    return tuple(_shard(one, whole) for one in held)


def _shard(one: Any, whole: np.ndarray) -> Shard:
    bounds = [part.indices(size) for part, size in zip(one.index, whole.shape, strict=True)]
    data = np.asarray(one.data)
    return Shard(
        device=int(one.device.id),
        start=tuple(int(start) for start, _, _ in bounds),
        shape=data.shape,
        replica=int(one.replica_id),
        data=None if digest(data) == digest(whole[one.index]) else data,
    )
