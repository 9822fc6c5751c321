"""The precisions that whole programs ask for, and the same programs without them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from parity.program.build import build
from parity.program.jax_versions import jaxpr_as_fun
from parity.program.precision import precisions, without_precisions
from parity.program.spec import OperandSpec, ProgramSpec

A = jnp.ones((2, 2))


def plain(x):
    return x @ x


def argument(x):
    return jnp.dot(x, x, precision="high")


def pair(x):
    return lax.dot(x, x, precision=("default", "highest"))


def preset(x):
    return lax.dot(x, x, precision=lax.DotAlgorithmPreset.BF16_BF16_F32)


def context(x):
    with jax.default_matmul_precision("highest"):
        return jax.jit(plain)(x)


def nested(x):
    def body(carry, _):
        return argument(carry), None

    def branch(y):
        return lax.cond(y[0, 0] > 0, context, plain, y)

    return branch(lax.scan(body, x, None, length=2)[0])


@pytest.mark.parametrize(
    ("function", "asked"),
    [
        (plain, ()),
        (argument, ("high",)),
        (pair, ("highest",)),
        (preset, ("BF16_BF16_F32",)),
        (context, ("highest",)),
        (nested, ("high", "highest")),
        (jax.grad(lambda x: nested(x).sum()), ("high", "highest")),
    ],
)
def test_what_is_asked_for(function, asked):
    closed = jax.make_jaxpr(function)(A)
    assert precisions(closed) == asked
    stripped = without_precisions(closed)
    assert precisions(stripped) == ()
    np.testing.assert_array_equal(jaxpr_as_fun(stripped)(A)[0], function(A))


def test_of_an_op_and_of_a_program(spec):
    operands = (OperandSpec("lhs", (2, 2), "float32"), OperandSpec("rhs", (2, 2), "float32"))
    attributes = {"dimension_numbers": (((1,), (0,)), ((), ())), "precision": ("high", "default")}
    op = build(ProgramSpec("dot_general", operands, attributes))
    assert op.precisions() == ("high", "default")
    assert op.without_precisions().precisions() == ()
    assert build(
        ProgramSpec(
            "steps",
            operands,
            {
                "operands": ("lhs", "rhs"),
                "steps": (
                    {
                        "dot": {"dimension_numbers": (((1,), (0,)), ((), ())), "precision": "high"},
                        "with": "rhs",
                    },
                ),
            },
        )
    ).precisions() == ("high",)
    text = "import jax.numpy as jnp\ndef f(x): return jnp.dot(x, x, precision='highest')\n"
    program = build(spec(text, "plain:f", {"x": ((2, 2), "float32")}))
    control = program.without_precisions()
    assert (program.precisions(), control.precisions()) == (("highest",), ())
    np.testing.assert_array_equal(control.function(A)[0], program.function(A)[0])
    assert control.outputs == ("out",)
