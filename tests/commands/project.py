"""The case file of the tests, right and mistaken."""

from collections.abc import Callable

GOOD = """\
about: A case for tests.
op: dot_general
operands:
  lhs: {shape: [2], dtype: float32, values: [1, 2]}
  rhs: {shape: [2], dtype: float32, values: [3, 4]}
attributes: {contracting: [[0], [0]]}
paths: [eager, jit]
"""
BAD = GOOD.replace("about:", "abuot:")

Invoke = Callable[..., tuple[int, str, str]]
"""A command line -> exit code, stdout, stderr."""
