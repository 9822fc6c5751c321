"""maximum and minimum of IEEE 754-2019, against its text on numbers written out."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from parity.reference.ieee import MAXIMUM, MINIMUM
from parity.reference.value import Value

F32 = np.float32
NUMBERS = [-math.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.0, math.inf, math.nan, -math.nan]


def chosen(which, a, b):
    """NaN if either is; else by the number, then by its sign."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    return which(a, b, key=lambda x: (x, math.copysign(1, x)))


def same(a, b):
    a, b = np.asarray(a, float), np.asarray(b, float)
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(
        np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)])
    )


@pytest.mark.parametrize(("extreme", "which"), [(MAXIMUM, max), (MINIMUM, min)])
def test_pairs_reductions_and_runs(extreme, which):
    pairs = np.array(list(itertools.product(NUMBERS, NUMBERS)))
    wanted = [chosen(which, *pair) for pair in pairs.tolist()]
    assert same(extreme(pairs[:, 0], pairs[:, 1]), wanted)
    neutral = -math.inf if which is max else math.inf
    assert same(extreme.reduce(pairs, axis=(1,), initial=neutral), wanted)
    triples = np.array(list(itertools.product(NUMBERS[:-1], repeat=3)))
    runs = [
        list(itertools.accumulate(row, functools.partial(chosen, which)))
        for row in triples.tolist()
    ]
    assert same(extreme.accumulate(triples, axis=1), runs)


def test_whole_numbers_are_numpys():
    x = np.array([[3, 2**62 + 1], [5, 2**62]])
    assert MAXIMUM.reduce(x, axis=(0,), initial=-(2**63)).tolist() == [5, 2**62 + 1]
    assert MINIMUM(x[0], x[1]).tolist() == [3, 2**62]


PROGRAMS = {
    "max": jnp.maximum,
    "min": jnp.minimum,
    "clamp": lambda a, b: lax.clamp(b, a, b + 1),
    "relu": lambda a, b: jax.nn.relu(a),
    "reduce_max": lambda a, b: jnp.max(jnp.stack([a, b]), axis=0),
    "reduce_min": lambda a, b: jnp.min(jnp.stack([a, b]), axis=0),
    "cummax": lambda a, b: lax.cummax(a),
    "cummin": lambda a, b: lax.cummin(a),
    "window": lambda a, b: lax.reduce_window(a, -np.inf, lax.max, (2,), (1,), "VALID"),
    "scatter": lambda a, b: b.at[jnp.arange(a.size)].max(a),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_sign_of_a_zero_is_what_jax_gives(interpret, name):
    a, b = np.tile(F32([-0.0, 0.0, -1.0, 1.0]), 8), np.tile(F32([0.0, -0.0]), 16)
    for first, second in ((a, b), (b, a)):
        found = interpret(PROGRAMS[name], first, second).strict["out"]
        got = PROGRAMS[name](jnp.asarray(first), jnp.asarray(second))
        for end in (found.point, found.lo, found.hi):
            assert same(end, got)


@pytest.mark.parametrize("dtype", [F32, np.float16, ml_dtypes.bfloat16])
def test_the_next_number_is_that_of_the_declared_dtype(interpret, dtype):
    """1 + 2^(1 - p), and from 0 the smallest subnormal."""
    x, y = np.array([1, -1, 0], dtype), np.array([2, 0, 1], dtype)
    found = interpret(jnp.nextafter, x, y)
    info = ml_dtypes.finfo(dtype)
    wanted = [1 + float(info.eps), -1 + float(info.epsneg), float(info.smallest_subnormal)]
    for side in (found.strict["out"], found.f64["out"]):
        assert side.point.astype(float).tolist() == wanted


def test_the_next_number_of_an_uncertain_one_is_open(enclosed):
    x = Value(np.array([1.0, 2.0]), np.array([1.0, 1.5]), np.array([1.0, 2.5]))
    found = enclosed(lambda x: jnp.nextafter(x, jnp.inf), x)
    assert found.undecided.tolist() == [False, True]
    assert np.isinf(found.hi).tolist() == [False, True]
