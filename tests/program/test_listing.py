"""Every equation of a program with the line of code and the module that it comes from."""

import pytest

from parity.program.build import build
from parity.program.listing import sites

USER = """\
import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def twice(x):
    return x * 2


def program(x):
    y = twice(x)
    z = jax.nn.silu(y)
    w = jax.nn.silu(z)
    return lax.scan(lambda c, row: (c + row, jnp.tanh(row)), w[0], w)
"""


@pytest.fixture
def listed(spec):
    return [*sites(build(spec(USER, "user:program", {"x": ((3, 2), "bfloat16")})))]


def line_of(text):
    (number,) = [i for i, line in enumerate(USER.splitlines(), 1) if text in line]
    return number


def test_the_users_line_inside_a_function_that_is_jitted(listed):
    (call,) = [s for s in listed if s.runs and s.line == line_of("y = twice(x)")]
    (inner,) = [s for s in listed if s.address.startswith(f"{call.address}.0.")]
    assert (inner.primitive, inner.within) == ("mul", (call.primitive,))
    assert (inner.file, inner.line, inner.function, inner.own) == ("user.py", 8, "twice", True)
    assert inner.place == "user.py:8 in twice"


def test_the_callers_line_inside_a_function_of_jax_traced_once(listed):
    """JAX keeps what it traced for the first call, with its line."""
    logistics = [s for s in listed if s.primitive == "logistic"]
    assert [s.line for s in logistics] == [line_of("z = jax.nn"), line_of("w = jax.nn")]
    assert {s.file for s in listed} == {"user.py"}


def test_the_body_of_a_loop(listed):
    (scan,) = [s for s in listed if s.primitive == "scan"]
    body = [s for s in listed if s.within == ("scan",)]
    assert [s.primitive for s in body if not s.runs] == ["add", "tanh"]
    assert {s.line for s in body} == {scan.line} == {line_of("lax.scan")}
    assert {s.shapes for s in body} == {((2,),)}  # of one step
    assert all(s.observable for s in body)
    assert [s.address for s in listed] == sorted((s.address for s in listed), key=_numbers)


def _numbers(address):
    return tuple(map(int, address.split(".")))


def test_a_loop_that_may_end_at_any_time_cannot_be_looked_into(spec):
    text = """
from jax import lax


def program(x):
    return lax.while_loop(lambda y: y[0] < 9, lambda y: y * y, x)
"""
    listed = [*sites(build(spec(text, "loop:program", {"x": ((3,), "float32")})))]
    assert [s.observable for s in listed if s.primitive == "while"] == [True]
    inside = [s for s in listed if s.within == ("while",)]
    assert {"mul", "lt"} <= {s.primitive for s in inside}
    assert not any(s.observable for s in inside)


FLAX = """
import jax.numpy as jnp
from flax import linen as nn


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.Dense(4, dtype=jnp.bfloat16)(x)
        return x + y


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return Block()(Block()(x))
"""


@pytest.mark.parametrize("transform", ["forward", "jvp"])
def test_flax_modules_by_path_and_line(spec, transform):
    pytest.importorskip("flax")
    from parity.program.spec import OperandSpec

    extra = (OperandSpec("tangent.x", (2, 4), "float32"),) if transform == "jvp" else ()
    made = spec(
        FLAX, "net:Net", {"x": ((2, 4), "float32")}, op="flax", transform=transform, extra=extra
    )
    listed = [*sites(build(made))]
    dots = [s for s in listed if s.primitive == "dot_general"]
    assert {s.module for s in dots} == {"Net/Block_0/Dense_0", "Net/Block_1/Dense_0"}
    assert {s.place for s in dots} == {"net.py:9 in Block.__call__"} or {s.place for s in dots} == {
        "net.py:9 in __call__"
    }


def test_a_module_of_flax_itself_has_the_librarys_line(spec):
    pytest.importorskip("flax")
    made = spec(
        None,
        "flax.linen:Dense",
        {"x": ((2, 4), "float32")},
        op="flax",
        attributes={"kwargs": {"features": 3}},
    )
    (dot,) = [s for s in sites(build(made)) if s.primitive == "dot_general"]
    assert dot.file == "flax/linen/linear.py"
    assert not dot.own


def test_an_op_that_a_case_file_names_has_no_line():
    from parity.program.spec import OperandSpec, ProgramSpec

    operands = tuple(OperandSpec(name, (2, 2), "float32") for name in ("lhs", "rhs"))
    numbers = {"dimension_numbers": (((1,), (0,)), ((), ()))}
    made = ProgramSpec("dot_general", operands, numbers, compute_dtype="bfloat16")
    listed = [*sites(build(made))]
    assert [s.primitive for s in listed] == ["convert_element_type"] * 2 + ["dot_general"]
    assert {(s.place, s.own, s.module) for s in listed} == {("", False, "")}
    assert listed[2].dtypes == ("bfloat16",)
