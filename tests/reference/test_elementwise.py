"""Intervals of elementwise results hold the function of every point of the operands' intervals."""

from fractions import Fraction

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from parity.dtypes import DTYPES
from parity.reference.bounds import BOUNDS
from parity.reference.elementwise import estimate
from parity.reference.policies import F64, STRICT
from parity.reference.rounding import round_to
from parity.reference.value import Value

bf16 = ml_dtypes.bfloat16
F32 = np.float32
COUNT = 6
"""Intervals in an example: one shape, so that JAX compiles each primitive once."""

REAL, POSITIVE, UNIT = (-30.0, 30.0), (1e-6, 1e4), (-1.0, 1.0)
UNARY = {
    "abs": (lax.abs, np.abs, REAL),
    "acos": (lax.acos, np.arccos, UNIT),
    "acosh": (lax.acosh, np.arccosh, (1.0, 1e4)),
    "asin": (lax.asin, np.arcsin, UNIT),
    "asinh": (lax.asinh, np.arcsinh, REAL),
    "atan": (lax.atan, np.arctan, REAL),
    "atanh": (lax.atanh, np.arctanh, (-0.99, 0.99)),
    "cbrt": (lax.cbrt, np.cbrt, REAL),
    "ceil": (lax.ceil, np.ceil, REAL),
    "cos": (lax.cos, np.cos, REAL),
    "cosh": (lax.cosh, np.cosh, REAL),
    "erf": (lax.erf, scipy.special.erf, (-5.0, 5.0)),
    "erf_inv": (lax.erf_inv, scipy.special.erfinv, (-0.99, 0.99)),
    "erfc": (lax.erfc, scipy.special.erfc, (-5.0, 5.0)),
    "exp": (lax.exp, np.exp, REAL),
    "exp2": (lax.exp2, np.exp2, REAL),
    "expm1": (lax.expm1, np.expm1, REAL),
    "floor": (lax.floor, np.floor, REAL),
    "log": (lax.log, np.log, POSITIVE),
    "log1p": (lax.log1p, np.log1p, (-0.99, 1e4)),
    "logistic": (lax.logistic, scipy.special.expit, REAL),
    "neg": (lax.neg, np.negative, REAL),
    "round": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), np.rint, REAL),
    "rsqrt": (lax.rsqrt, lambda x: 1 / np.sqrt(x), POSITIVE),
    "sign": (lax.sign, np.sign, REAL),
    "sin": (lax.sin, np.sin, REAL),
    "sinh": (lax.sinh, np.sinh, REAL),
    "sqrt": (lax.sqrt, np.sqrt, POSITIVE),
    "square": (lax.square, np.square, REAL),
    "tanh": (lax.tanh, np.tanh, REAL),
}
UNARY |= {
    f"integer_pow {n}": (lambda x, n=n: lax.integer_pow(x, n), lambda x, n=n: x**n, REAL)
    for n in (-3, -2, -1, 2, 3, 4, 5)
}
SEVERAL = {
    "add": (lax.add, np.add, [REAL, REAL]),
    "sub": (lax.sub, np.subtract, [REAL, REAL]),
    "mul": (lax.mul, np.multiply, [REAL, REAL]),
    "div": (lax.div, np.divide, [REAL, REAL]),
    "div positive": (lax.div, np.divide, [REAL, POSITIVE]),
    "max": (lax.max, np.maximum, [REAL, REAL]),
    "min": (lax.min, np.minimum, [REAL, REAL]),
    "pow": (lax.pow, np.power, [POSITIVE, (-5.0, 5.0)]),
    "clamp": (lax.clamp, lambda a, x, b: np.minimum(np.maximum(x, a), b), [UNIT, REAL, UNIT]),
}


@st.composite
def intervals(draw, domain, dtype):
    """COUNT intervals in a domain with a point and another value in each; some are points."""
    low, high = domain
    values = []
    for _ in range(COUNT):
        ends = draw(st.tuples(*[st.floats(low, high)] * 2))
        if draw(st.booleans()):  # a few roundings wide, as after one sum
            ends = ends[0], ends[0] * (1 + draw(st.floats(-0.05, 0.05)))
        shares = draw(st.tuples(*[st.floats(0, 1)] * 2))
        lo, hi = sorted(np.clip(ends, low, high))
        values.append([lo, *(lo + share * (hi - lo) for share in shares), hi])
    held = round_to(np.array(values).T, DTYPES[dtype])
    held = round_to(np.clip(held, low, high), DTYPES[dtype])
    lo, point, other, hi = np.where(abs(held) < 1e-30, 0.0, held)  # JAX flushes subnormal values
    point, other = (np.clip(x, lo, hi) for x in (point, other))
    return Value(point, lo, hi), other


def check(enclosed, function, exact, dtype, values, others, slack=0.0):
    """`exact` at `others`, rounded or not and off by `slack` or not, is in the intervals."""
    with np.errstate(all="ignore"):
        wanted = exact(*others)
        reached = [wanted * (1 + error) for error in (-slack, 0.0, slack)]
    strict = enclosed(function, *values, dtype=dtype)
    f64 = enclosed(function, *values, dtype=dtype, policy=F64)
    known = np.isfinite(wanted) & np.isfinite(strict.point)
    for one in reached:
        got = round_to(one, DTYPES[dtype])
        assert ((strict.lo <= got) & (got <= strict.hi))[known].all()
        assert ((f64.lo <= got) & (got <= f64.hi))[known].all()
    assert ((f64.lo <= wanted) & (wanted <= f64.hi))[known].all()


@pytest.mark.parametrize("name", UNARY)
@given(data=st.data(), dtype=st.sampled_from(["float32", "bfloat16"]))
@settings(max_examples=8, deadline=None)
def test_a_function_of_an_interval(enclosed, name, data, dtype):
    function, exact, domain = UNARY[name]
    value, other = data.draw(intervals(domain, dtype))
    slack = BOUNDS[name.split()[0]].ulps * 2.0**-23  # of float32, in which both compute
    check(enclosed, function, exact, dtype, [value], [other], slack)


@pytest.mark.parametrize("name", SEVERAL)
@given(data=st.data(), dtype=st.sampled_from(["float32", "bfloat16"]))
@settings(max_examples=15, deadline=None)
def test_a_function_of_several_intervals(enclosed, name, data, dtype):
    function, exact, domains = SEVERAL[name]
    pairs = [data.draw(intervals(domain, dtype)) for domain in domains]
    values, others = zip(*pairs, strict=True)
    check(enclosed, function, exact, dtype, values, others)


def test_every_elementwise_entry_that_is_not_an_estimate_is_tried():
    tried = {name.split()[0] for name in (*UNARY, *SEVERAL)}
    elsewhere = {
        # comparisons, conversions and choices, below; sums and contractions, in test_bounds
        "eq", "ge", "gt", "is_finite", "le", "lt", "ne", "convert_element_type", "select_n",
        "conv_general_dilated", "cumsum", "dot_general", "reduce_sum", "reduce_window_sum",
        "add_any",
        # parts of complex values, below
        "complex", "conj", "imag", "real",
        # what moves elements, below
        "cummax", "cummin", "dynamic_slice", "dynamic_update_slice", "gather", "reduce_max",
        "reduce_min", "reduce_precision", "scatter", "sort", "split", "stop_gradient",
        # in test_reductions
        "and", "or", "xor", "iota", "reduce_and", "reduce_or", "reduce_xor", "reduce_prod",
        "cumprod", "cumlogsumexp", "reduce_window_max", "reduce_window_min", "scatter-add",
        "scatter-max", "scatter-min", "scatter-mul", "select_and_scatter_add",
    }  # fmt: skip
    named = {name for name, bound in BOUNDS.items() if bound.enclose is not estimate}
    assert named - tried - elsewhere == set()


MOVING = {
    "cummax": lax.cummax,
    "cummin": lax.cummin,
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (2,), (3,)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:2], (3,)),
    "gather": lambda x: x[jnp.array([4, 0, 4])],
    "reduce_max": lambda x: lax.reduce_max(x, (0,)),
    "reduce_min": lambda x: lax.reduce_min(x, (0,)),
    "reduce_precision": lambda x: lax.reduce_precision(x, 8, 7),
    "scatter": lambda x: x.at[jnp.array([1, 3])].set(x[4:]),
    "sort": lax.sort,
    "split": lambda x: lax.split(x, (2, 4))[1],
    "stop_gradient": lax.stop_gradient,
}


@pytest.mark.parametrize("name", MOVING)
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_what_moves_elements_moves_their_ends(enclosed, name, data):
    value, other = data.draw(intervals(REAL, "float32"))
    got = np.asarray(MOVING[name](jnp.asarray(other, F32)), float)
    for policy in (STRICT, F64):
        out = enclosed(MOVING[name], value, policy=policy)
        assert ((out.lo <= got) & (got <= out.hi)).all()


def around(point, *radius):
    """An interval about a point, in one direction each where two radii are given."""
    point = np.asarray(point, float)
    return Value(point, point - radius[0], point + radius[-1])


def test_exact_operations_of_exact_values_stay_exact(enclosed):
    x, y = Value.exactly(np.array([1.5, -2.0])), Value.exactly(np.array([0.0, 3.0]))
    for function in (lax.neg, lax.abs, lax.floor, lax.sign):
        for policy in (STRICT, F64):
            assert enclosed(function, x, policy=policy).exact
    for function in (lax.max, lax.min):
        assert enclosed(function, x, y, policy=F64).exact
    widened = enclosed(lambda x: x.astype(jnp.float32), x, dtype="bfloat16", policy=F64)
    assert widened.exact
    narrowed = enclosed(lambda x: x.astype(jnp.bfloat16), x, policy=F64)
    assert not narrowed.exact


@pytest.mark.parametrize(
    ("function", "undecided"),
    [
        (lambda x: x > 1, [False, True, False]),
        (lambda x: x <= 1, [False, True, False]),
        (lambda x: x == 1, [False, True, False]),
        (lambda x: x != x, [False, False, False]),
        (jnp.isnan, [False, False, False]),
        (lax.floor, [False, True, False]),
        (lax.ceil, [False, True, False]),
        (lambda x: lax.round(x + 0.5), [False, True, False]),
        (lambda x: lax.sign(x - 1), [False, True, False]),
        (lambda x: x.astype(jnp.int32), [False, True, False]),
        (lambda x: (x - 1).astype(bool), [False, True, False]),
        (lambda x: jnp.isfinite(x * np.float32(2.9e38)), [False, True, True]),
        (lambda x: jnp.broadcast_to(lax.argmax(x, 0, jnp.int32), (3,)), [True, True, True]),
    ],
)
def test_what_jumps_inside_an_interval_is_undecided(enclosed, function, undecided):
    """0.8 ± 0.1, 1.05 ± 0.2, 1.2 ± 0.05; the largest of them is anybody's guess."""
    value = around([0.8, 1.05, 1.2], np.array([0.1, 0.2, 0.05]))
    found = enclosed(function, value).undecided
    assert (np.zeros(3, bool) if found is None else found).tolist() == undecided
    exact = enclosed(function, Value.exactly(value.point)).undecided
    assert exact is None


def test_finiteness_is_undecided_where_only_the_ends_are_infinite(enclosed):
    value = Value(*(np.array([x, 1.0, np.inf]) for x in (1.0, -np.inf, np.inf)))
    value = Value(value.point, value.lo, np.array([np.inf, 2.0, np.inf]))
    assert enclosed(lax.is_finite, value).undecided.tolist() == [True, False, False]


@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_an_estimate_holds_both_ends_of_what_is_monotone(enclosed, data):
    """Whatever else it misses; `rem` within one period, `atan2` in the right half plane."""
    value, other = data.draw(intervals((0.01, 0.99), "float32"))
    for function, exact in (
        (lambda x: lax.rem(x, np.ones(COUNT, F32)), lambda x: np.fmod(x, 1.0)),
        (lambda x: lax.atan2(x, np.ones(COUNT, F32)), lambda x: np.arctan2(x, 1.0)),
        (lax.tan, np.tan),
    ):
        check(enclosed, function, exact, "float32", [value], [other])


def test_a_nan_jumps_nowhere(enclosed):
    value = Value(*(np.array([np.nan, x]) for x in (1.0, 0.9, 1.1)))
    for function in (lax.floor, lambda x: x > 1, lambda x: x == 1, lax.sign):
        found = enclosed(function, value).undecided
        assert found is None or not found[0]


def test_only_what_depends_on_an_undecided_element_is_undecided(enclosed):
    value = around([[0.5, 1.0], [2.5, 2.5]], 0.25)  # only [0, 1] crosses 1
    chosen = lambda x: jnp.where(x > 1, x, -x)  # noqa: E731
    for function, undecided in (
        (chosen, [[False, True], [False, False]]),
        (lambda x: lax.erf(chosen(x)), [[False, True], [False, False]]),
        (lambda x: chosen(x).T, [[False, False], [True, False]]),
        (lambda x: chosen(x).sum(0), [False, True]),
        (lambda x: chosen(x).max(1), [True, False]),
        (lambda x: chosen(x) @ jnp.ones(2), [True, False]),
        # What is sorted along an axis stays in its line of that axis.
        (lambda x: lax.sort(chosen(x), dimension=0), [[False, True], [False, True]]),
    ):
        assert enclosed(function, value).undecided.tolist() == undecided


def test_an_undecided_choice_holds_both_cases(enclosed):
    """x > 1 at 1 ± 0.25: 2x or 10; complex cases are held by their parts."""
    value = around([1.0, 3.0], 0.25)
    real = enclosed(lambda x: jnp.where(x > 1, 10.0, 2 * x), value)
    assert (real.lo.tolist(), real.hi.tolist()) == ([1.5, 10], [10, 10])
    assert real.undecided.tolist() == [True, False]
    parts = enclosed(
        lambda x: jnp.where(x > 1, lax.complex(x * 0 + 4, x * 0 - 3), lax.complex(2 * x, x)), value
    )
    assert parts.lo[0] == 1.5 - 3j
    assert parts.hi[0] == 4 + 1.25j


def fma(a, b, c):
    return round_to(np.array([float(a * b + c)]), DTYPES["float32"])


def inside(enclosure, got):
    return bool(((enclosure.lo <= got) & (got <= enclosure.hi)).all())


@pytest.mark.parametrize(("dtype", "k"), [(F32, 13), (np.float16, 6)])
def test_the_licence_fma_holds_an_addition_of_an_unrounded_product(interpret, dtype, k):
    """x·y = 1 + 2**(1-k) + 2**-2k: rounded, the last bit is lost; subtract what is left."""
    x = np.array([1 + 2.0**-k, 3.1], dtype)
    y, z = x.copy(), np.array([-1 - 2.0 ** (1 - k), 1.7], dtype)
    found = interpret(lambda x, y, z: x * y + z, x, y, z)
    fused = [Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
             for a, b, c in zip(x, y, z, strict=True)]  # fmt: skip
    fused = round_to(np.array([float(f) for f in fused]), DTYPES[np.dtype(dtype).name])
    assert fused[0] == 2.0 ** (-2 * k)
    assert set(found.licensed) == {"fma"}
    assert found.strict["out"].exact
    assert not inside(found.strict["out"], fused)
    assert inside(found.licensed["fma"]["out"], fused)
    assert inside(found.licensed["fma"]["out"], x * y + z)


@pytest.mark.parametrize("dtype", [np.float16, F32])
def test_the_licence_reciprocal_holds_a_multiplication_by_the_inverse(interpret, dtype):
    x = np.arange(1, 200).astype(dtype)
    found = interpret(lambda x: x / np.asarray(3, dtype), x)
    inverse = (np.ones(1, dtype) / np.asarray(3, dtype)).astype(dtype)
    assert inside(found.strict["out"], x / dtype(3))
    assert not inside(found.strict["out"], x * inverse)
    assert inside(found.licensed["reciprocal"]["out"], x * inverse)
    computed = interpret(lambda x: x / jnp.sqrt(np.asarray(3, dtype)), x)
    assert set(computed.licensed) == {"reciprocal"}
    assert not interpret(lambda x: x / x[::-1], x).licensed
    assert not interpret(lambda x: x // 3, np.arange(9, dtype=np.int32)).licensed


def test_the_licence_expansion_holds_every_step_rounded(interpret):
    """x**3 as (x·x)·x and the logistic function as 1/(1 + exp(-x)), in bfloat16."""
    x = np.linspace(-3, 3, 301).astype(bf16)
    rd = lambda v: v.astype(F32).astype(bf16)  # noqa: E731
    wide = x.astype(F32)
    cube = rd(rd(wide * wide).astype(F32) * wide)
    sigmoid = rd(1 / rd(1 + rd(np.exp(-wide.astype(float))).astype(F32)).astype(F32))
    for function, expanded in ((lambda x: x**3, cube), (lax.logistic, sigmoid)):
        found = interpret(function, x)
        assert set(found.licensed) == {"expansion"}
        assert not inside(found.strict["out"], expanded)
        assert inside(found.licensed["expansion"]["out"], expanded)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_complex_parts_are_held_apart(enclosed, seed):
    rng = np.random.default_rng(seed)

    def complex_interval():
        point = rng.normal(size=8) + 1j * rng.normal(size=8)
        reach = rng.uniform(0, 0.3, 8) + 1j * rng.uniform(0, 0.3, 8)
        share = rng.uniform(-1, 1, 8), rng.uniform(-1, 1, 8)
        other = point + share[0] * reach.real + 1j * share[1] * reach.imag
        return Value(point, point - reach, point + reach), other

    (a, x), (b, y) = complex_interval(), complex_interval()
    for function, exact in (
        (lax.add, x + y), (lax.sub, x - y), (lax.mul, x * y),
        (lambda a, b: lax.conj(a), x.conj()), (lambda a, b: lax.neg(b), -y),
        (lambda a, b: lax.real(a), x.real), (lambda a, b: lax.imag(a), x.imag),
        (lambda a, b: lax.complex(lax.real(a), lax.imag(b)), x.real + 1j * y.imag),
        (lambda a, b: lax.dot(a, b), x @ y),
    ):  # fmt: skip
        out = enclosed(function, a, b, dtype="complex64")
        for part in (np.real, np.imag):
            assert (part(out.lo) <= part(exact)).all()
            assert (part(exact) <= part(out.hi)).all()


def test_other_functions_of_complex_values_are_estimates_and_said_to_be(interpret):
    z = np.array([0.3 + 2.1j, -1.2 + 0.4j], np.complex64)
    found = interpret(lambda z: jnp.exp(z @ jnp.ones(2, jnp.complex64)), z)
    assert found.estimated == ("exp",)
    one = found.strict["out"]
    assert one.lo.real < one.point.real < one.hi.real
    assert one.lo.imag < one.point.imag < one.hi.imag
