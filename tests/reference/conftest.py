"""Programs made of plain functions, and their interpretation."""

import jax
import pytest

from parity.dtypes import DTYPES
from parity.program.build import Program
from parity.program.jax_versions import enable_x64
from parity.program.spec import OperandSpec, ProgramSpec
from parity.reference.evaluate import evaluate
from parity.reference.interpreter import Interpreter
from parity.reference.policies import STRICT


def _program(function, *arrays):
    """A program with one output, "out", of operands like the given arrays."""
    operands = tuple(OperandSpec(f"x{i}", a.shape, a.dtype.name) for i, a in enumerate(arrays))
    return Program(ProgramSpec("none", operands), lambda *xs: (function(*xs),), ("out",))


def _references(function, *arrays, x64=False):
    """The references of a function of arrays with one output, "out"."""
    with enable_x64(x64):
        return evaluate(_program(function, *arrays), arrays)


def _enclosed(function, *values, dtype="float32", policy=STRICT, x64=False):
    """What becomes of values of one dtype, or of (value, dtype) pairs, under a policy."""
    pairs = [value if isinstance(value, tuple) else (value, dtype) for value in values]
    with enable_x64(x64):
        inputs = [jax.ShapeDtypeStruct(v.point.shape, DTYPES[name].numpy()) for v, name in pairs]
        closed = jax.make_jaxpr(function)(*inputs)
        return Interpreter(policy).run(closed, [value for value, _ in pairs])[0]


@pytest.fixture(scope="session")
def make_program():
    return _program


@pytest.fixture(scope="session")
def interpret():
    return _references


@pytest.fixture(scope="session")
def enclosed():
    return _enclosed
