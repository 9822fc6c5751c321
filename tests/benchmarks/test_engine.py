"""The price of a run, as ratios to scripts that only make the bare calls."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.benchmark

ONE_BARE = """
import numpy as np, jax, jax.numpy as jnp, tensorflow as tf
from jax import lax
from jax.experimental import jax2tf
x = np.array([[[-1.0932409763336182, -1.2380176782608032]]], np.float32)
k = np.array([[[0.25436434, 0.8453059]]], np.float32)
def f(x, k):
    y = lax.conv_general_dilated(
        x.astype(jnp.bfloat16), k.astype(jnp.bfloat16), (1,), "VALID",
        dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=2)
    return y.astype(jnp.float32) + x
print(np.asarray(f(jnp.asarray(x), jnp.asarray(k))), np.asarray(jax.jit(f)(x, k)),
      jax2tf.convert(f, native_serialization=True)(x, k).numpy(),
      jax2tf.convert(f, native_serialization=False)(x, k).numpy())
"""
ONE = "cases/conv_bf16.yaml::conv_bf16:compute_dtype=bfloat16"

HUNDRED_BARE = """
import numpy as np, jax, jax.numpy as jnp, tensorflow as tf
from jax import lax
from jax.experimental import jax2tf
rng = np.random.default_rng(0)
for i in range(100):
    m, k, dtype = 1 + i // 3, 4 + i % 7, ("float32", "bfloat16", "float16")[i % 3]
    a = rng.normal(size=(m, k)).astype(np.float32)
    b = rng.normal(size=(k, 8)).astype(np.float32)
    def f(a, b):
        dot = lax.dot_general(a.astype(dtype), b.astype(dtype), (((1,), (0,)), ((), ())))
        return dot.astype(np.float32)
    np.asarray(f(jnp.asarray(a), jnp.asarray(b)))
    np.asarray(jax.jit(f)(a, b))
    jax2tf.convert(f, native_serialization=True)(a, b).numpy()
    jax2tf.convert(f, native_serialization=False)(a, b).numpy()
"""
HUNDRED = """
name: hundred
about: A hundred small dots, each of another shape.
op: dot_general
operands:
  lhs: {shape: [1, 4], dtype: float32, draw: normal}
  rhs: {shape: [4, 8], dtype: float32, draw: normal, seed: 2}
attributes: {contracting: [[1], [0]]}
output_dtype: float32
sweep:
  zip:
"""


def _run(*command):
    return lambda: subprocess.run(command, check=True, capture_output=True)


def _parity(*arguments):
    # Whether something diverges is not the question here.
    return _run(sys.executable, "-m", "parity", "run", *arguments, "--fail-on", "mismatched")


def test_one_case_on_four_paths_against_a_script_with_the_bare_calls(ratio, interleaved):
    bare = _run(sys.executable, "-W", "ignore", "-c", ONE_BARE)
    ours, theirs = interleaved(_parity(ONE), bare, rounds=4)
    ratio("one case, four paths, both references / bare calls", ours, theirs, 1.1)


def test_a_hundred_cases_against_a_bare_loop(ratio, interleaved, tmp_path):
    points = [(1 + i // 3, 4 + i % 7) for i in range(100)]
    dtypes = [("float32", "bfloat16", "float16")[i % 3] for i in range(100)]
    axes = {
        "compute_dtype": dtypes,
        "operands.lhs.shape": [[m, k] for m, k in points],
        "operands.rhs.shape": [[k, 8] for _, k in points],
    }
    lines = "".join(f"    {axis}: {str(v).replace(chr(39), '')}\n" for axis, v in axes.items())
    (tmp_path / "hundred.yaml").write_text(HUNDRED + lines)
    bare = _run(sys.executable, "-W", "ignore", "-c", HUNDRED_BARE)
    ours, theirs = interleaved(_parity(str(tmp_path)), bare, rounds=2)
    ratio("100 cases, four paths / bare loop", ours, theirs, 1.25)


def test_help_against_importing_click(ratio, interleaved):
    ours, theirs = interleaved(
        _run(sys.executable, "-m", "parity", "--help"),
        _run(sys.executable, "-c", "import click"),
        rounds=10,
    )
    ratio("parity --help / python -c 'import click'", ours, theirs, 3.0)
