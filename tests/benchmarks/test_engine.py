"""The price of a run, as ratios to scripts that only make the bare calls."""

import os
import subprocess
import sys
import time
from pathlib import Path

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
import sys
import numpy as np, jax, jax.numpy as jnp, tensorflow as tf
from jax import lax
from jax.experimental import jax2tf
rng = np.random.default_rng(0)
for i in range(*map(int, sys.argv[1:])):
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


COUNTING = """
about: Many dots of two elements.
op: dot_general
operands:
  lhs: {shape: [2], dtype: float32, values: [0, 2]}
  rhs: {shape: [2], dtype: float32, values: [0, 3]}
attributes: {contracting: [[0], [0]]}
baseline: fake-instant
paths: [fake-instant, fake-instant-b, fake-instant-c, fake-instant-d]
"""
SYNTHETIC = """
import resource, sys
import numpy as np
import parity
from parity.engine.workers import Execution, Workers
from parity.worker.protocol import PathOutcome, References

def execute(self, case, paths, where, *, known, arrived):
    self.found[where.name] = {"jax": "1.0"}
    outcomes = tuple(
        PathOutcome(path, outputs={"out": np.float32(i)}, evidence={"hlo": "0" * 2000})
        for i, path in enumerate(paths)
    )
    for outcome in outcomes:
        arrived(outcome)
    return Execution(where.name, outcomes, References())

Workers.execute = execute
result = parity.run(sys.argv[1], out=sys.argv[2], jobs=2)
assert len(result.rows) == 4 * int(sys.argv[3])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def hundred(folder, count):
    """A file of so many dots, each of another shape."""
    points = [(1 + i // 3, 4 + i % 7) for i in range(count)]
    dtypes = [("float32", "bfloat16", "float16")[i % 3] for i in range(count)]
    axes = {
        "compute_dtype": dtypes,
        "operands.lhs.shape": [[m, k] for m, k in points],
        "operands.rhs.shape": [[k, 8] for _, k in points],
    }
    lines = "".join(f"    {axis}: {str(v).replace(chr(39), '')}\n" for axis, v in axes.items())
    file = folder / f"dots-{count}.yaml"
    file.write_text(HUNDRED.replace("name: hundred\n", "") + lines)
    return str(file)


def counting(folder, count):
    """A file of so many dots of two elements."""
    left, right = (", ".join(f"[{i}, 2]" for i in range(n)) for n in (10, count // 10))
    file = folder / f"counting-{count}.yaml"
    axes = f"{{operands.lhs.values: [{left}], operands.rhs.values: [{right}]}}"
    file.write_text(f"{COUNTING}sweep: {axes}\n")
    return str(file)


def _run(*command):
    return lambda: subprocess.run(command, check=True, capture_output=True)


def _parity(*arguments):
    # Whether something diverges is not the question here.
    return _run(sys.executable, "-m", "parity", "run", *arguments, "--fail-on", "mismatched")


def test_one_case_on_four_paths_against_a_script_with_the_bare_calls(ratio, interleaved):
    bare = _run(sys.executable, "-W", "ignore", "-c", ONE_BARE)
    ours, theirs = interleaved(_parity(ONE, "--no-cache"), bare, rounds=4)
    ratio("one case, four paths, both references / bare calls", ours, theirs, 1.1)


def test_a_hundred_cases_against_a_bare_loop(ratio, interleaved, tmp_path):
    bare = _run(sys.executable, "-W", "ignore", "-c", HUNDRED_BARE, "100")
    ours, theirs = interleaved(
        _parity(hundred(tmp_path, 100), "-j", "1", "--no-cache"), bare, rounds=2
    )
    ratio("100 cases, four paths / bare loop", ours, theirs, 1.25)


def test_help_against_importing_click(ratio, interleaved):
    ours, theirs = interleaved(
        _run(sys.executable, "-m", "parity", "--help"),
        _run(sys.executable, "-c", "import click"),
        rounds=10,
    )
    ratio("parity --help / python -c 'import click'", ours, theirs, 3.0)


def test_an_unchanged_rerun_against_the_first_run(ratio, tmp_path):
    command = _parity(hundred(tmp_path, 400), "--out", str(tmp_path / "records"))
    first, again = seconds(command), min(seconds(command) for _ in range(3))
    ratio("unchanged rerun of 400 cases / first run", again, first, 0.03)


def test_two_at_a_time_against_two_bare_processes(ratio, interleaved, tmp_path):
    file = hundred(tmp_path, 100)
    bare = [sys.executable, "-W", "ignore", "-c", HUNDRED_BARE]

    def both():
        halves = [subprocess.Popen([*bare, *half]) for half in (("0", "50"), ("50", "100"))]
        assert [half.wait() for half in halves] == [0, 0]

    one, two, bare_one, bare_two = interleaved(
        _parity(file, "-j", "1", "--no-cache"),
        _parity(file, "-j", "2", "--no-cache"),
        _run(*bare, "0", "100"),
        both,
        rounds=2,
    )
    ratio("gain of two bare processes / gain of -j 2", bare_one / bare_two, one / two, 1 / 0.9)


def test_memory_does_not_grow_with_the_number_of_cases(ratio, tmp_path, fake_paths):
    (tmp_path / "pyproject.toml").write_text("[tool.parity]\nmax_cases = 20000\n")
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{os.environ['PYTHONPATH']}"}

    def largest(count):
        arguments = [counting(tmp_path, count), str(tmp_path / f"{count}"), str(count)]
        command = [sys.executable, "-c", SYNTHETIC, *arguments]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment, cwd=tmp_path
        )
        return int(done.stdout) * 1024

    ratio("memory with 10,000 cases / with 1,000 (bytes)", largest(10_000), largest(1000), 1.2)


def test_the_engine_costs_little_a_row(ratio, tmp_path, fake_paths):
    def run(count):
        out = str(tmp_path / f"records-{count}")
        return seconds(_parity(counting(tmp_path, count), "-j", "1", "--no-cache", "--out", out))

    few, many = (min(run(count) for _ in range(2)) for count in (10, 310))
    ratio("a row of an instant path, references included / 5 ms", (many - few) / 1200, 0.005, 1.0)


def seconds(function):
    """How long one call takes."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin
