"""The case file of the tests."""

from pathlib import Path

HEAD = """\
about: A case for tests.  # it stays
op: dot_general
operands:
  lhs: {shape: [2], dtype: float32, values: [1, 2]}
  rhs: {shape: [2], dtype: float32, values: [3, 4]}
attributes: {contracting: [[0], [0]]}
paths: [eager, jit, jax2tf-native]
"""
SWEEP = """\
sweep:
  seed: [1, 2, 3]
  batch: [4, 5]
"""
FILE = Path("cases/d.yaml")
