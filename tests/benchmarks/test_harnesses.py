"""The price of running all of JAX's conv and dot harnesses, as a ratio to a bare loop over them."""

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.benchmark, pytest.mark.full]

GROUPS = ("conv_general_dilated", "dot_general")
BARE = """
import numpy as np
import jax
import tensorflow as tf
from jax._src.internal_test_util import test_harnesses
from jax.experimental import jax2tf
for harness in test_harnesses.all_harnesses:
    if harness.group_name not in ("conv_general_dilated", "dot_general"):
        continue
    f, arrays = harness.dyn_fun, harness.dyn_args_maker(np.random.RandomState(0))
    np.asarray(f(*map(jax.numpy.asarray, arrays)))
    np.asarray(jax.jit(lambda *arrays: f(*arrays))(*arrays))
    for native in (True, False):
        try:
            jax2tf.convert(f, native_serialization=native)(*map(tf.constant, arrays)).numpy()
        except tf.errors.InvalidArgumentError:  # bool dots
            pass
"""


def _run(*command):
    return lambda: subprocess.run(command, check=True, capture_output=True)


def test_all_harnesses_on_four_paths_against_a_bare_loop(ratio, interleaved, tmp_path):
    parity = (sys.executable, "-m", "parity")
    groups = [word for group in GROUPS for word in ("--group", group)]
    _run(*parity, "import", "jax-harnesses", *groups, "-o", str(tmp_path / "cases"))()
    command = (*parity, "run", str(tmp_path / "cases"))

    def ours():
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode == 1, done.stderr  # bool dots, NaNs and mixed dots are findings

    bare = _run(sys.executable, "-W", "ignore", "-c", BARE)
    seconds = interleaved(ours, bare, rounds=2)
    ratio("384 harnesses, four paths, both references / bare loop", *seconds, 1.35)
