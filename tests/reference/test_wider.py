"""Functions of float64 programs against mpmath at 100 digits, and their IEEE special values."""

import math
import sys
from pathlib import Path

import jax
import mpmath
import numpy as np
import pytest
from jax import lax

from parity.program.jax_versions import enable_x64
from parity.reference import wider

INF, NAN = math.inf, math.nan

FUNCTIONS = {
    "acos": (lax.acos, mpmath.acos),
    "acosh": (lax.acosh, mpmath.acosh),
    "asin": (lax.asin, mpmath.asin),
    "asinh": (lax.asinh, mpmath.asinh),
    "atan": (lax.atan, mpmath.atan),
    "atanh": (lax.atanh, mpmath.atanh),
    "cbrt": (lax.cbrt, lambda x: mpmath.sign(x) * mpmath.root(abs(x), 3)),
    "cos": (lax.cos, mpmath.cos),
    "cosh": (lax.cosh, mpmath.cosh),
    "digamma": (lax.digamma, lambda x: mpmath.psi(0, x)),
    "erf": (lax.erf, mpmath.erf),
    "erf_inv": (lax.erf_inv, mpmath.erfinv),
    "erfc": (lax.erfc, mpmath.erfc),
    "exp": (lax.exp, mpmath.exp),
    "exp2": (lax.exp2, lambda x: mpmath.exp(x * mpmath.log(2))),
    "expm1": (lax.expm1, lambda x: mpmath.expm1(x)),
    "integer_pow": (lambda x: lax.integer_pow(x, -3), lambda x: 1 / (x * x * x)),
    "lgamma": (lax.lgamma, lambda x: mpmath.log(abs(mpmath.gamma(x)))),
    "log": (lax.log, mpmath.log),
    "log1p": (lax.log1p, lambda x: mpmath.log(1 + x)),
    "logistic": (lax.logistic, lambda x: (1 + mpmath.tanh(x / 2)) / 2),
    "rsqrt": (lax.rsqrt, lambda x: mpmath.power(x, mpmath.mpf(-1) / 2)),
    "sin": (lax.sin, mpmath.sin),
    "sinh": (lax.sinh, mpmath.sinh),
    "tan": (lax.tan, mpmath.tan),
    "tanh": (lax.tanh, mpmath.tanh),
}
DOMAINS = {"acos": (-1, 1), "asin": (-1, 1), "atanh": (-1, 1), "erf_inv": (-1, 1),
           "acosh": (1, INF), "log": (0, INF), "rsqrt": (0, INF), "log1p": (-1, INF),
           "digamma": (0, INF), "lgamma": (0, INF), "erf": (-6, 6), "erfc": (-6, 27),
           "exp": (-745, 709),
           "exp2": (-1074, 1023), "expm1": (-50, 709), "cosh": (-710, 710), "sinh": (-710, 710),
           "tanh": (-25, 25), "logistic": (-700, 40)}  # fmt: skip


def samples(name):
    """Arguments inside a function's domain, near its ends, near zero, near 1, and large."""
    rng = np.random.default_rng(0)
    near = np.array([0.5, 1 - 2.0**-53, 1 + 2.0**-52, 1.5, 3.141592653589793, 1e-8, 1e-300, 1e300])
    spread = rng.uniform(0.1, 1, 30) * 10.0 ** rng.uniform(-9, 3, 30)
    unit = rng.uniform(0, 1, 20)
    x = np.concatenate([near, spread, unit, 1 + rng.normal(size=10) * 1e-10])
    x = np.concatenate([x, -x])
    low, high = DOMAINS.get(name, (-INF, INF))
    return x[(x > low) & (x < high)]


def equation(function, x):
    with enable_x64(True):
        return jax.make_jaxpr(function)(x).eqns[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_rounded_once(name):
    function, exact = FUNCTIONS[name]
    x = samples(name)
    assert len(x) >= 16
    eqn = equation(function, x)
    assert eqn.primitive.name == name
    found = wider.evaluate(eqn, [x])
    digits = 700 if name in ("log1p", "logistic") else 100  # 1 + 1e-300, as these are written here
    with mpmath.workdps(digits):
        wanted = [float(exact(mpmath.mpf(value))) for value in x.tolist()]
    assert found.tolist() == wanted


def test_the_table_of_functions_is_the_one_that_is_tried():
    assert set(wider._ELEMENTARY) == set(FUNCTIONS)
    assert all(wider.needed(name) for name in FUNCTIONS)
    assert not any(wider.needed(name) for name in ("add", "mul", "div", "sqrt", "neg", "reshape"))


# The value at -inf, -2, -0, +0, 2, +inf and NaN, by IEEE 754-2019, section 9.2 and C11, annex F.
SPECIAL = {
    lax.asin: (NAN, NAN, -0.0, 0.0, NAN, NAN, NAN),
    lax.asinh: (-INF, -math.asinh(2), -0.0, 0.0, math.asinh(2), INF, NAN),
    lax.acosh: (NAN, NAN, NAN, NAN, math.acosh(2), INF, NAN),
    lax.atan: (-math.pi / 2, -math.atan(2), -0.0, 0.0, math.atan(2), math.pi / 2, NAN),
    lax.atanh: (NAN, NAN, -0.0, 0.0, NAN, NAN, NAN),
    lax.cbrt: (-INF, -(2 ** (1 / 3)), -0.0, 0.0, 2 ** (1 / 3), INF, NAN),
    lax.cos: (NAN, math.cos(2), 1.0, 1.0, math.cos(2), NAN, NAN),
    lax.erf: (-1.0, math.erf(-2), -0.0, 0.0, math.erf(2), 1.0, NAN),
    lax.erfc: (2.0, math.erfc(-2), 1.0, 1.0, math.erfc(2), 0.0, NAN),
    lax.exp: (0.0, math.exp(-2), 1.0, 1.0, math.exp(2), INF, NAN),
    lax.expm1: (-1.0, math.expm1(-2), -0.0, 0.0, math.expm1(2), INF, NAN),
    lax.log: (NAN, NAN, -INF, -INF, math.log(2), INF, NAN),
    lax.log1p: (NAN, NAN, -0.0, 0.0, math.log1p(2), INF, NAN),
    lax.logistic: (0.0, 1 / (1 + math.exp(2)), 0.5, 0.5, 1 / (1 + math.exp(-2)), 1.0, NAN),
    lax.rsqrt: (NAN, NAN, -INF, INF, 1 / math.sqrt(2), 0.0, NAN),
    lax.sin: (NAN, math.sin(-2), -0.0, 0.0, math.sin(2), NAN, NAN),
    lax.sinh: (-INF, math.sinh(-2), -0.0, 0.0, math.sinh(2), INF, NAN),
    lax.tan: (NAN, math.tan(-2), -0.0, 0.0, math.tan(2), NAN, NAN),
    lax.tanh: (-1.0, math.tanh(-2), -0.0, 0.0, math.tanh(2), 1.0, NAN),
}


@pytest.mark.parametrize("function", SPECIAL, ids=lambda f: f.__name__)
def test_special_values_and_signs_of_zero(interpret, function):
    x = np.array([-INF, -2.0, -0.0, 0.0, 2.0, INF, NAN])
    found = interpret(function, x, x64=True)
    wanted = np.array(SPECIAL[function])
    for point in (found.strict["out"].point, found.f64["out"].point):
        assert np.allclose(point, wanted, rtol=2.0**-51, atol=0, equal_nan=True)
        number = ~np.isnan(wanted)
        assert np.array_equal(np.signbit(point)[number], np.signbit(wanted)[number])
    assert found.notes == ()


def test_results_beyond_the_range_overflow_and_vanish(interpret):
    found = interpret(lax.exp, np.array([709.0, 710.0, -745.0, -746.0]), x64=True)
    point = found.strict["out"].point.tolist()
    assert point == [float(mpmath.exp(709)), INF, 2.0**-1074, 0.0]


@pytest.fixture
def without_mpmath(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "mpmath"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(wider, "_mpmath_folder", None)


def test_without_mpmath_the_reference_is_no_wider_and_says_so(interpret, without_mpmath):
    found = interpret(lambda x: lax.exp(lax.sin(x)), np.array([0.3]), x64=True)
    assert found.notes == ("reference no wider than float64 in exp, sin",)
    assert found.strict["out"].point[0] == pytest.approx(math.exp(math.sin(0.3)), rel=1e-15)
    assert not interpret(lambda x: lax.exp(x), np.array([0.3], np.float32)).notes


def test_mpmath_is_loaded_alone_from_its_folder(interpret, without_mpmath):
    folder = Path(mpmath.__file__).parent
    wider.use_mpmath(str(folder))
    before = list(sys.path)
    found = interpret(lax.exp, np.array([0.3]), x64=True)
    assert found.notes == ()
    assert sys.path == before
    assert found.strict["out"].point[0] == float(mpmath.exp(mpmath.mpf(0.3)))


def test_too_many_elements_stay_plain_and_say_so(interpret, monkeypatch):
    monkeypatch.setattr(wider, "_MOST_ELEMENTS", 3)
    monkeypatch.setattr(wider, "_MOST_PRODUCTS", 3)
    assert interpret(lax.exp, np.ones(3), x64=True).notes == ()
    assert interpret(lax.exp, np.ones(4), x64=True).notes == (
        "reference no wider than float64 in exp",
    )
    assert interpret(lax.dot, np.ones(4), np.ones(4), x64=True).notes == (
        "reference no wider than float64 in dot_general",
    )


def test_what_is_no_wider_takes_its_own_error_into_the_interval(interpret, monkeypatch):
    """Reference and path may then be off by as much, in opposite directions."""
    x = np.random.default_rng(1).normal(size=100)
    wide = interpret(lax.dot, x, x[::-1].copy(), x64=True).strict["out"]
    monkeypatch.setattr(wider, "_MOST_PRODUCTS", 0)
    plain = interpret(lax.dot, x, x[::-1].copy(), x64=True).strict["out"]
    assert plain.hi - plain.lo == pytest.approx(2 * (wide.hi - wide.lo), rel=0.02)
    assert plain.lo < wide.lo < wide.hi < plain.hi


def test_complex_functions_are_no_wider_and_say_so(interpret):
    z = np.array([0.3 + 0.4j])
    assert interpret(lax.exp, z, x64=True).notes == ("reference no wider than float64 in exp",)
