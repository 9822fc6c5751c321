"""Functions as far off as stated: what that adds to the orders of summation, and what it does not.

Paths are evaluated here in NumPy, with functions that err as an implementation may or may not.
"""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from parity.compare.standing import standing
from parity.reference.implementations import DIRECTIONS

bf16 = ml_dtypes.bfloat16
F32 = np.float32
ULPS = 4 * 2.0**-23
"""What is stated of tanh in float32, relative."""


def wide(x):
    return np.asarray(x).astype(np.float64)


def rounded(x, dtype):
    """A float64 array rounded to a dtype, in float64; bfloat16 by way of no other dtype."""
    if dtype is F32:
        return x.astype(F32).astype(np.float64)
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.rint(fraction * 2.0**8), exponent - 8)


def off_by(size):
    """tanh with a relative error that a function of the argument gives for each element."""
    return lambda x: rounded(np.tanh(x) * (1 + size(x)), F32)


def by_chance(x):
    return ULPS * np.random.default_rng(7).choice([-0.9, 0.9], x.shape)


HONEST = {
    "exact": lambda x: 0.0,
    "too large": lambda x: 0.9 * ULPS,
    "too small": lambda x: -0.9 * ULPS,
    "either way": by_chance,
    "too high": lambda x: 0.9 * ULPS * np.sign(x),
    "too low": lambda x: -0.9 * ULPS * np.sign(x),
    "in small arguments alone": lambda x: 0.9 * ULPS * (np.abs(x) < 1),
}
FAULTY = {
    "three times too large": lambda x: 3 * ULPS,
    "three times, either way": lambda x: 3 * by_chance(x) / 0.9,
}


def bfloat16_operands(x):
    return rounded(np.tanh(rounded(x, bf16)), F32)


def drawn(*shape, seed=0, dtype=F32):
    return np.random.default_rng(seed).standard_normal(shape).astype(F32).astype(dtype)


def chain(x, w):
    """A dot, rounded to bfloat16, which hides the order of its sum; then tanh in float32."""
    h = jnp.matmul(x, w, preferred_element_type=F32).astype(bf16).astype(F32)
    return jnp.tanh(h * F32(0.3))


def chain_by(tanh, x, w):
    return tanh(rounded(rounded(wide(x) @ wide(w), bf16) * wide(F32(0.3)), F32))


def mixed(x, w, v):
    """The chain, and a second dot whose interval is wide."""
    return chain(x, w) @ v


def mixed_by(tanh, x, w, v):
    return rounded(chain_by(tanh, x, w) @ wide(v), F32)


def recurrent(x, w):
    """A float32 carry through a bfloat16 dot: [T, B, D] -> [T, B, D]."""

    def step(carry, row):
        hidden = jnp.matmul(carry.astype(bf16), w, preferred_element_type=F32)
        carry = jnp.tanh(hidden.astype(bf16).astype(F32) + row)
        return carry, carry

    return lax.scan(step, jnp.zeros(x.shape[1:], F32), x)[1]


def recurrent_by(tanh, x, w):
    carry, rows = np.zeros(x.shape[1:]), []
    for row in wide(x):
        hidden = rounded(rounded(carry, bf16) @ wide(w), bf16)
        carry = tanh(rounded(hidden + row, F32))
        rows.append(carry)
    return np.stack(rows)


TWO = drawn(32, 64, dtype=bf16), drawn(64, 16, seed=1, dtype=bf16)
PROGRAMS = {
    "chain": (chain, chain_by, TWO),
    "second dot": (mixed, mixed_by, (*TWO, drawn(16, 32, seed=2))),
    "scan": (recurrent, recurrent_by, (drawn(5, 4, 16), drawn(16, 16, seed=1, dtype=bf16))),
}


@pytest.fixture(scope="module")
def references(interpret):
    """Of each program."""
    return {name: interpret(function, *arrays) for name, (function, _, arrays) in PROGRAMS.items()}


@pytest.fixture
def stands(references):
    """Where a program stands whose tanh is given."""

    def of(name, tanh):
        _, evaluated, arrays = PROGRAMS[name]
        return standing(evaluated(tanh, *arrays).astype(F32), "out", references[name])

    return of


@pytest.mark.parametrize("error", HONEST)
@pytest.mark.parametrize("name", PROGRAMS)
def test_errors_within_what_is_stated_are_faithful(stands, name, error):
    found = stands(name, off_by(HONEST[error]))
    assert (found.faithful, found.licences, found.aggregate) == (True, "", "")


@pytest.mark.parametrize("error", FAULTY)
@pytest.mark.parametrize("name", PROGRAMS)
def test_three_times_what_is_stated_is_not(stands, name, error):
    assert not stands(name, off_by(FAULTY[error])).faithful


def test_the_second_dot_hides_it_from_every_element(stands):
    found = stands("second dot", off_by(FAULTY["three times too large"]))
    assert found.inside.all()
    assert ", functions as stated " in found.aggregate


@pytest.mark.parametrize("name", PROGRAMS)
def test_nor_is_a_function_of_narrower_operands(stands, name):
    assert not stands(name, bfloat16_operands).faithful


def tf32(x):
    """To 11 bits, as the operands of a TF32 dot."""
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.rint(fraction * 2.0**11), exponent - 11)


def test_the_aggregate_test_still_sees_what_a_wide_interval_hides(interpret):
    """4096 products hide TF32 operands in every element; a tanh before them changes nothing."""
    x, v = drawn(8, 4096), drawn(4096, 16, seed=1)
    references = interpret(lambda x, v: jnp.tanh(x) @ v, x, v)
    exact = rounded(np.tanh(wide(x)), F32)
    for operands, faithful in ((lambda x: x, True), (tf32, False)):
        got = rounded(operands(exact) @ operands(wide(v)), F32).astype(F32)
        found = standing(got, "out", references)
        assert found.inside.all()
        assert found.faithful == faithful
        assert found.aggregate.startswith("" if faithful else "rms distance from strict")


def test_a_function_alone_is_off_by_what_is_stated_of_it(interpret):
    """exp of positive numbers: 4 ulps of float32 up, down, or by chance; a sum besides."""
    x = np.random.default_rng(0).random((40, 50), F32)
    found = interpret(lambda x: jnp.exp(x) + 0 * jnp.sum(x), x)
    size = ULPS * np.exp(wide(x))
    spreads = found.erring["out"]
    assert set(spreads) == set(DIRECTIONS)
    for one in spreads.values():
        assert one.rms == pytest.approx(np.sqrt(np.mean(size**2)), rel=0.01)  # then rounded
        assert one.moved == 1
    for ways, sign in ((("up", "outward"), 1), (("down", "inward"), -1)):
        for way in ways:
            assert spreads[way].mean == pytest.approx(sign * np.mean(size), rel=0.01)
    assert abs(spreads["random"].mean) < 4 * spreads["random"].rms / np.sqrt(x.size)


def test_a_quotient_cancels_one_sign_and_a_sum_averages_chance(interpret):
    """exp(x) / exp(x): 2 · 4 ulps where signs differ, which is half the time, 0 where all agree."""
    x = np.abs(drawn(40, 50))
    ratio = interpret(lambda x: jnp.exp(x) / jnp.exp(x) + 0 * jnp.sum(x), x).erring["out"]
    assert ratio["random"].rms == pytest.approx(np.sqrt(2) * ULPS, rel=0.1)
    assert ratio["outward"].rms < 2.0**-23
    total = interpret(lambda x: jnp.sum(jnp.exp(x), 1), x).erring["out"]
    assert total["outward"].mean == pytest.approx(ULPS * np.mean(np.exp(wide(x)).sum(1)), rel=0.02)
    assert total["random"].rms < total["outward"].rms / 3


def test_factors_err_by_the_roundings_of_their_product(interpret):
    """Six factors: (1 + u)^6 - 1 of the product."""
    x = 1 + np.abs(drawn(300, 6)) / 4
    found = interpret(lambda x: jnp.prod(x, 1) + 0 * jnp.sum(x), x).erring["out"]
    assert found["outward"].mean == pytest.approx(
        6 * 2.0**-24 * np.mean(np.prod(wide(x), 1)), rel=0.1
    )


def test_a_program_without_functions_or_without_sums_has_no_such_errors(interpret):
    x, w = drawn(8, 20), drawn(20, 8, seed=1)
    assert interpret(jnp.matmul, x, w).erring == {}
    assert interpret(jnp.tanh, x).erring == {}


def test_the_ends_of_a_complex_function_are_off_in_both_parts(interpret):
    """16 ulps of the modulus, in either part."""
    x = (drawn(30, 30) + 1j * drawn(30, 30, seed=1)).astype(np.complex64)
    found = interpret(lambda x: jnp.exp(x) + 0 * jnp.sum(x), x).erring["out"]
    size = 16 * 2.0**-23 * np.abs(np.exp(x.astype(np.complex128)))
    assert found["outward"].rms == pytest.approx(np.sqrt(np.mean(size**2)), rel=0.02)
