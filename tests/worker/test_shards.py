"""Arrays of JAX on several devices, in a process of its own that has four."""

import subprocess
import sys

import numpy as np
import pytest

from parity.worker.protocol import PathOutcome, Shard, pack_shards, unpack_shards

FOUR = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from parity.worker.shards import shards

mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
whole = np.arange(16, dtype=np.float32).reshape(4, 4)

def held(spec):
    array = jax.device_put(whole, NamedSharding(mesh, spec))
    return [(s.device, s.start, s.shape, s.replica, s.data) for s in shards(array, whole)]

assert shards(jax.numpy.asarray(whole), whole) == ()
assert shards(whole, whole) == ()
assert held(P("a", "b")) == [
    (0, (0, 0), (2, 2), 0, None), (1, (0, 2), (2, 2), 0, None),
    (2, (2, 0), (2, 2), 0, None), (3, (2, 2), (2, 2), 0, None),
]
assert held(P(None, "b")) == [
    (0, (0, 0), (4, 2), 0, None), (1, (0, 2), (4, 2), 0, None),
    (2, (0, 0), (4, 2), 1, None), (3, (0, 2), (4, 2), 1, None),
]
copies = [jax.device_put(whole + (i == 3), d) for i, d in enumerate(jax.devices())]
array = jax.make_array_from_single_device_arrays((4, 4), NamedSharding(mesh, P()), copies)
found = shards(array, np.asarray(array))
assert [s.replica for s in found] == [0, 1, 2, 3]
assert [s.data is None for s in found] == [True, True, True, False]
assert (found[3].data == whole + 1).all()
"""


def test_what_each_device_holds():
    done = subprocess.run([sys.executable, "-c", FOUR], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_they_travel():
    shards = {
        "out": (
            Shard(0, (0, 2), (2, 2)),
            Shard(1, (0, 2), (2, 2), 1, np.array([[1, 2], [3, 4]], np.float16)),
        )
    }
    (first, second) = unpack_shards(pack_shards(shards))["out"]
    assert first == shards["out"][0]
    assert second.data.dtype == np.float16
    assert second.data.tolist() == [[1, 2], [3, 4]]
    assert second.index == (slice(0, 2), slice(2, 4))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (
            "  ROOT %all-reduce.1 = f16[32,16]{1,0} all-reduce(f16[32,16]{1,0} %dot)",
            ["all-reduce f16"],
        ),
        ("  %a = (f32[2]{0}, f32[3]{0}) all-reduce-start(f32[2]{0} %x)", ["all-reduce f32"]),
        ("  %add = f32[2]{0} add(%all-reduce.1, %all-reduce.2)", []),
        (
            "  %c = bf16[8]{0} collective-permute(bf16[8]{0} %x), channel_id=1",
            ["collective-permute bf16"],
        ),
    ],
)
def test_collectives_are_read_off_hlo(line, found):
    from parity.worker.evidence import collectives

    assert collectives(f"HloModule m\n{line}\n") == found


def test_they_outlive_a_run_that_is_killed():
    from parity.record.arrived import pack_outcome, unpack_outcome

    shards = {"out": (Shard(0, (), ()), Shard(1, (), (), 1, np.array(2.0)))}
    outcome = PathOutcome("jit", outputs={"out": np.array(1.0)}, shards=shards)
    known = unpack_outcome("jit", pack_outcome(outcome))
    assert [(one.device, one.replica, one.data) for one in known.shards["out"]] == [
        (0, 0, None),
        (1, 1, 2.0),
    ]
