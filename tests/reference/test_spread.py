"""How far the honest orders are said to be from `strict`, against sums written out here."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

F32 = np.float32


def added_one_by_one(lhs, rhs):
    """lhs @ rhs in the operands' own dtype, from the first product to the last."""
    total = lhs[:, :1] * rhs[:1]
    for k in range(1, lhs.shape[1]):
        total = total + lhs[:, k, None] * rhs[k]
    return total


def drawn(rng, *shape):
    return rng.standard_normal(shape).astype(F32)


@pytest.mark.parametrize("terms", [3, 300])
def test_rms_mean_and_share(interpret, terms):
    rng = np.random.default_rng(terms)
    lhs, rhs = drawn(rng, 9, terms), drawn(rng, terms, 7)
    found = interpret(jnp.matmul, lhs, rhs)
    distance = added_one_by_one(lhs, rhs).astype(float) - found.strict["out"].point
    spread = found.honest["out"]["sequential"]
    assert spread.rms == pytest.approx(np.sqrt(np.mean(distance**2)))
    assert spread.mean == pytest.approx(np.mean(distance))
    assert spread.moved == pytest.approx(np.mean(distance != 0))
    assert 0 < spread.moved < 1


def test_the_parts_of_a_complex_output_count_apart(interpret):
    """Imaginary parts of zero, all exact, halve the mean square, the mean and the share."""
    rng = np.random.default_rng(0)
    lhs, rhs = drawn(rng, 9, 300), drawn(rng, 300, 7)
    real = interpret(jnp.matmul, lhs, rhs).honest["out"]["sequential"]
    found = interpret(jnp.matmul, lhs.astype(np.complex64), rhs.astype(np.complex64))
    spread = found.honest["out"]["sequential"]
    assert spread.rms == pytest.approx(real.rms / np.sqrt(2))
    assert (spread.mean, spread.moved) == pytest.approx((real.mean / 2, real.moved / 2))


def test_an_output_that_is_no_float_has_no_spread(interpret):
    """Which of two sums is larger depends on their order, but has no distance."""
    rng = np.random.default_rng(1)
    found = interpret(
        lambda a, b: lax.argmax(a @ b, 1, np.int32), drawn(rng, 5, 40), drawn(rng, 40, 6)
    )
    assert found.honest.get("out", {}) == {}


def test_one_rounding_error_is_u_times_the_sum_of_magnitudes(interpret):
    rng = np.random.default_rng(2)
    lhs, rhs = drawn(rng, 9, 300), drawn(rng, 300, 7)
    size = 2.0**-24 * (np.abs(lhs).astype(float) @ np.abs(rhs).astype(float))
    jolted = interpret(jnp.matmul, lhs, rhs).jolted["out"]
    assert jolted.rms == pytest.approx(np.sqrt(np.mean(size**2)), rel=0.02)  # then rounded
    assert jolted.moved > 0.9
    assert abs(jolted.mean) < jolted.rms / 2


def test_sums_that_are_exact_in_every_order_are_left_alone(interpret):
    """The first row is of integers, the second is not."""
    rng = np.random.default_rng(3)
    lhs, rhs = drawn(rng, 2, 50), rng.integers(-8, 9, (50, 40)).astype(F32)
    lhs[0] = rng.integers(-8, 9, 50)
    jolted = interpret(jnp.matmul, lhs, rhs).jolted["out"]
    assert 0.4 < jolted.moved <= 0.5
    assert interpret(jnp.matmul, lhs[:1], rhs).jolted == {}
