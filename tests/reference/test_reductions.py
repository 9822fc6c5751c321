"""Products, logical sums, scattered and windowed values, against the same worked out in fractions.

Each case has the primitive, shapes of its operands and a function of Python numbers that says what
it computes; whatever lies inside the operands' intervals must come out inside the result's.
"""

import functools
import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from parity.dtypes import DTYPES
from parity.reference.policies import F64, STRICT
from parity.reference.rounding import round_to
from parity.reference.value import Value

F32 = np.float32
INTO = np.array([2, 0, 2, 2, 3])
"""Where five updates go in an operand of four rows; row 1 gets none, row 2 gets three."""


def folded(x, combine):
    """Down the first axis of an object array, in that order."""
    return np.array(functools.reduce(combine, list(x)), object)


def running(x, combine):
    return np.array(list(itertools.accumulate(list(x), combine)), object)


def scattered(combine):
    def exact(operand, updates):
        out = operand.copy()
        for row, update in zip(INTO, updates, strict=True):
            out[row] = combine(out[row], update)
        return out

    return exact


def window(x, combine, size=2):
    return np.array([functools.reduce(combine, list(x[i : i + size]))
                     for i in range(len(x) - size + 1)], object)  # fmt: skip


def into(operation):
    return lambda x, updates: getattr(x.at[INTO], operation)(updates)


def windowed(neutral, combine):
    return lambda x: lax.reduce_window(x, np.float32(neutral), combine, (2, 1), (1, 1), "VALID")


times, plus = (lambda a, b: a * b), (lambda a, b: a + b)
CASES = {
    "reduce_prod": (lambda x: lax.reduce(x, F32(1), lax.mul, (0,)), [(4, 3)],
                    lambda x: folded(x, times)),
    "cumprod": (lax.cumprod, [(4, 3)], lambda x: running(x, times)),
    "cumprod reversed": (lambda x: lax.cumprod(x, reverse=True), [(4, 3)],
                         lambda x: running(x[::-1], times)[::-1]),
    "cumsum": (lax.cumsum, [(4, 3)], lambda x: running(x, plus)),
    "cumsum reversed": (lambda x: lax.cumsum(x, reverse=True), [(4, 3)],
                        lambda x: running(x[::-1], plus)[::-1]),
    "scatter-add": (into("add"), [(4, 2), (5, 2)], scattered(plus)),
    "scatter-mul": (into("multiply"), [(4, 2), (5, 2)], scattered(times)),
    "scatter-max": (into("max"), [(4, 2), (5, 2)], scattered(np.maximum)),
    "scatter-min": (into("min"), [(4, 2), (5, 2)], scattered(np.minimum)),
    "reduce_window_max": (windowed(-np.inf, lax.max), [(5, 2)], lambda x: window(x, np.maximum)),
    "reduce_window_min": (windowed(np.inf, lax.min), [(5, 2)], lambda x: window(x, np.minimum)),
    "reduce_window_sum": (windowed(0, lax.add), [(5, 2)], lambda x: window(x, plus)),
}  # fmt: skip


def fractions(x):
    return np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(x)


def floats(x):
    return np.vectorize(float, otypes=[float])(x)


def inside(value, got):
    return (value.lo <= got) & (got <= value.hi)


def names_of(function, *arrays):
    return {eqn.primitive.name for eqn in jax.make_jaxpr(function)(*arrays).jaxpr.eqns}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_what_lies_inside_the_operands_comes_out_inside(enclosed, name, seed, dtype):
    function, shapes, exact = CASES[name]
    rng = np.random.default_rng(seed)
    form = DTYPES[dtype]
    points = [round_to(rng.normal(size=shape), form) for shape in shapes]
    reach = [0.0, 0.01, 0.5][seed]
    values = [Value(p, p - reach, p + reach) if reach else Value.exactly(p) for p in points]
    others = [p + reach * rng.uniform(-1, 1, size=p.shape) for p in points]
    assert name.split()[0] in names_of(function, *(p.astype(form.numpy()) for p in points))
    strict = enclosed(function, *values, dtype=dtype)
    ideal = enclosed(function, *values, dtype=dtype, policy=F64)
    at_points = floats(exact(*map(fractions, points)))
    assert np.abs(ideal.point - at_points).max() <= 1e-14
    assert np.array_equal(strict.point, round_to(ideal.point, form))
    for operands in (points, others):
        wanted = floats(exact(*map(fractions, operands)))
        assert inside(ideal, wanted).all()
        for value in (strict, ideal):
            assert inside(value, round_to(wanted, form)).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_each_step_rounded_lies_inside(enclosed, name, dtype):
    """Steps in the declared dtype, in the order of the elements."""
    function, shapes, exact = CASES[name]
    form = DTYPES[dtype]
    rng = np.random.default_rng(9)
    points = [round_to(rng.normal(size=shape), form) for shape in shapes]

    class Rounded:
        """A number whose every operation rounds."""

        def __init__(self, x):
            self.x = float(round_to(np.array([float(x)]), form)[0])

        def __mul__(self, other):
            return Rounded(self.x * other.x)

        def __add__(self, other):
            return Rounded(self.x + other.x)

        def __float__(self):
            return self.x

        def __ge__(self, other):
            return self.x >= other.x

        def __le__(self, other):
            return self.x <= other.x

        def __lt__(self, other):
            return self.x < other.x

        def __gt__(self, other):
            return self.x > other.x

    wrap = np.vectorize(Rounded, otypes=[object])
    got = floats(exact(*map(wrap, points)))
    values = [Value.exactly(p) for p in points]
    for policy in (STRICT, F64):
        assert inside(enclosed(function, *values, dtype=dtype, policy=policy), got).all()


@pytest.mark.parametrize("name", ["scatter-add", "scatter-mul", "cumprod", "reduce_prod"])
def test_whole_numbers_and_what_no_step_touches(enclosed, name):
    """Sums of integers are exact; a row without updates keeps its value in any case."""
    function, shapes, exact = CASES[name]
    rng = np.random.default_rng(1)
    points = [rng.integers(-3, 4, size=shape).astype(float) for shape in shapes]
    found = enclosed(function, *map(Value.exactly, points))
    assert np.array_equal(found.point, floats(exact(*map(fractions, points))))
    assert inside(found, found.point).all()
    if name == "scatter-add":
        assert np.array_equal(found.lo, found.hi)
        points[0][1] = 0.1
        again = enclosed(function, *map(Value.exactly, points))
        assert np.array_equal(again.lo[1], again.hi[1])


def test_a_sum_of_exact_sums_is_exact_though_one_of_them_is_a_zero_of_either_sign(enclosed):
    x = Value.exactly(np.array([[1.0, -1.0], [2.0, 3.0]]))
    for function in (lambda x: x.sum(1).sum(), lambda x: (x @ jnp.ones((2, 1))).sum()):
        found = enclosed(function, x)
        assert found.point == found.lo == found.hi == 5


def test_a_product_that_overflows_on_the_way_may_be_infinite(enclosed):
    """1e30 · 1e30 · 1e-30: in one order beyond float32, in the other not."""
    x = Value.exactly(np.array([1e30, 1e30, 1e-30]).astype(F32).astype(float))
    found = enclosed(lambda x: lax.reduce(x, F32(1), lax.mul, (0,)), x)
    assert found.point == pytest.approx(1e30, rel=1e-6)
    assert found.hi == np.inf


@pytest.mark.parametrize("policy", [STRICT, F64], ids=lambda p: p.name)
def test_cumlogsumexp_holds_the_logarithm_of_exact_sums(enclosed, policy):
    rng = np.random.default_rng(2)
    for scale in (1.0, 30.0):
        x = (scale * rng.normal(size=(12,))).astype(F32).astype(float)
        value = Value(x, x - 1e-3, x + 1e-3)
        found = enclosed(lax.cumlogsumexp, value, policy=policy)
        for shift in (-1e-3, 0.0, 1e-3):
            wanted = [math.log(math.fsum(map(math.exp, x[: i + 1] + shift))) for i in range(12)]
            assert inside(found, np.array(wanted)).all()
        assert np.max(found.hi - found.lo) < 0.01 + 1e-4 * scale
        got = np.asarray(lax.cumlogsumexp(jnp.asarray(x, F32)), float)
        assert inside(enclosed(lax.cumlogsumexp, Value.exactly(x), policy=policy), got).all()


BITS = {
    "and": (lax.bitwise_and, np.bitwise_and),
    "or": (lax.bitwise_or, np.bitwise_or),
    "xor": (lax.bitwise_xor, np.bitwise_xor),
}


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("name", BITS)
def test_bits_are_numpys(enclosed, name, dtype):
    combine, exact = BITS[name]
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 2 if dtype is np.bool_ else 200, size=(3, 4)).astype(dtype)
            for _ in range(2))  # fmt: skip
    pairs = [(Value.exactly(x if dtype is np.bool_ else x.astype(np.int64)), x.dtype.name)
             for x in (a, b)]  # fmt: skip
    assert np.array_equal(enclosed(combine, *pairs).point, exact(a, b))
    neutral = {"and": ~dtype(0) if dtype is not np.bool_ else True, "or": 0, "xor": 0}[name]
    reduced = lambda x: lax.reduce(x, np.asarray(neutral, dtype), combine, (0,))  # noqa: E731
    assert f"reduce_{name}" in names_of(reduced, a)
    assert np.array_equal(enclosed(reduced, pairs[0]).point, exact.reduce(a, axis=0))


def test_an_undecided_condition_counts_only_where_nothing_settles_it(enclosed):
    """x > 1 at 1 ± 0.25 and at 3 ± 0.25, with y > 1 decided either way."""
    point = np.array([1.0, 3.0, 1.0, 3.0])
    x = Value(point, point - 0.25, point + 0.25)
    y = Value.exactly(np.array([2.0, 2.0, 0.0, 0.0]))

    def undecided(function):
        found = enclosed(function, x, y).undecided
        return [False] * 4 if found is None else found.tolist()

    assert undecided(lambda x, y: (x > 1) & (y > 1)) == [True, False, False, False]
    assert undecided(lambda x, y: (x > 1) | (y > 1)) == [False, False, True, False]
    assert undecided(lambda x, y: (x > 1) ^ (y > 1)) == [True, False, True, False]
    every = lambda x, y: jnp.all((x > 1).reshape(2, 2), axis=0)  # noqa: E731
    assert undecided(every) == [True, False]
    some = lambda x, y: jnp.any(jnp.stack([x > 1, y > 1]), axis=0)  # noqa: E731
    assert undecided(some) == [False, False, True, False]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "int32"])
def test_iota_counts_and_rounds(enclosed, dtype):
    """257 is no bfloat16: it is 256; 2049 is no float16."""
    kind = DTYPES[dtype].numpy()
    function = lambda x: lax.iota(kind, 2051) + x  # noqa: E731
    zero = np.zeros(2051) if DTYPES[dtype].is_inexact else np.zeros(2051, np.int64)
    found = enclosed(function, Value.exactly(zero), dtype=dtype)
    assert np.array_equal(found.point, np.arange(2051).astype(F32).astype(kind).astype(float))
    if dtype == "bfloat16":
        assert found.point[257] == float(ml_dtypes.bfloat16(257)) == 256


def pooled(x):
    """The sum of the maxima of windows of two, weighted by their number + 1."""
    return (windowed(-np.inf, lax.max)(x) * jnp.arange(1.0, len(x))[:, None]).sum()


def test_the_gradient_of_pooling_goes_to_each_windows_largest(enclosed):
    """By hand: windows (3, 7), (7, 5), (5, 5), (5, 1); of equal elements the first is chosen."""
    x = np.array([[3.0], [7.0], [5.0], [5.0], [1.0]])
    function = jax.grad(pooled)
    assert "select_and_scatter_add" in names_of(function, x.astype(F32))
    found = enclosed(function, Value.exactly(x))
    assert found.point.ravel().tolist() == [0, 1 + 2, 3, 4, 0]
    assert np.array_equal(found.lo, found.hi)
    assert found.undecided is None


def test_a_contested_window_may_choose_either(enclosed):
    """7 and 6.9 overlap, 3 does not reach them."""
    x = np.array([[3.0], [7.0], [6.9], [1.0]])
    found = enclosed(jax.grad(pooled), Value(x, x - 0.1, x + 0.1))
    assert found.point.ravel().tolist() == [0, 1 + 2, 3, 0]
    assert found.lo.ravel().tolist() == [0, 1, 3, 0]
    assert found.hi.ravel().tolist() == [0, 3, 5, 0]
    assert found.undecided.ravel().tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.sum(x, axis=1),
        lambda x: jnp.cumsum(x, axis=1),
        lambda x: lax.reduce_window(x, np.float32(0), lax.add, (1, 1), (1, 1), "VALID"),
    ],
)
def test_a_sum_of_one_term_is_that_term(enclosed, function):
    x = np.random.default_rng(0).normal(size=(5, 1)).astype(F32).astype(float)
    found = enclosed(function, Value.exactly(x))
    for end in (found.point, found.lo, found.hi):
        assert end.ravel().tolist() == x.ravel().tolist()
