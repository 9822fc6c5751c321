"""The dots of a program, counted by hand."""

import jax
import jax.numpy as jnp
from jax import lax

from parity.program.dots import dots

NARROW, WIDE = jnp.ones((2, 2), jnp.bfloat16), jnp.ones((2, 2), jnp.float32)


def _of(function, *operands):
    return dots(jax.make_jaxpr(function)(*operands))


def test_a_program_without_any():
    assert _of(lambda x: x + x, WIDE) == ""


def test_those_of_equal_dtypes_are_counted():
    assert _of(lambda x: x @ x @ x, NARROW) == "2 bfloat16·bfloat16 -> bfloat16"


def test_the_backward_dots_of_a_preferred_type_mix_dtypes():
    def preferred(x, y):
        return jnp.dot(x, y, preferred_element_type=jnp.float32)

    def backward(x, y, cotangent):
        return jax.vjp(preferred, x, y)[1](cotangent)

    assert _of(backward, NARROW, NARROW, WIDE) == (
        "1 bfloat16·bfloat16 -> float32, 2 float32·bfloat16 -> float32 (mixed)"
    )


def test_inner_programs_and_convolutions_count():
    def program(x):
        x = lax.scan(lambda carry, _: (carry @ carry, None), x, None, length=3)[0]
        return lax.conv(x[None, None], x[None, None], (1, 1), "SAME"), jax.jit(jnp.dot)(x, x)

    assert _of(program, WIDE) == "3 float32·float32 -> float32"
