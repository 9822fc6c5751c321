"""What the order of a sum may change, against random orders evaluated in exact rationals."""

from fractions import Fraction

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from parity.dtypes import DTYPES
from parity.program.build import build
from parity.program.spec import OperandSpec, ProgramSpec
from parity.reference.evaluate import evaluate

bf16 = ml_dtypes.bfloat16
F32 = np.float32
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def rounded(x, dtype):
    """A fraction rounded to nearest, ties to even, in exact arithmetic."""
    fmt = DTYPES[dtype].format
    if not x:
        return x
    exponent = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    exponent -= abs(x) < Fraction(2) ** exponent
    step = Fraction(2) ** (max(exponent, fmt.emin) - fmt.precision + 1)
    return round(x / step) * step


def exactly(array):
    return [Fraction(float(x)) for x in array.ravel()]


def in_some_order(rng, products, acc):
    """The sum of products in a random tree, each rounded first or, as by FMA, in an addition."""
    pool = [(p, False) if rng.integers(2) else (rounded(p, acc), True) for p in products]
    while len(pool) > 1:
        (a, done), (b, other_done) = (pool.pop(rng.integers(len(pool))) for _ in range(2))
        if not (done or other_done):
            a = rounded(a, acc)  # an FMA takes one product
        pool.append((rounded(a + b, acc), True))
    return rounded(pool[0][0], acc)


def dot(a, b):
    return lax.dot_general(a, b, (((0,), (0,)), ((), ())))


def convolution(a, b):
    return lax.conv_general_dilated(a[None, None], b[None, None], (1,), "VALID").reshape(())


def operands(rng, terms, dtype):
    """Two vectors: normal, of equal sign, repeated, of many magnitudes, or nearly cancelling."""
    a, b = rng.normal(size=(2, terms))
    kind = rng.integers(5)
    if kind == 1:
        a, b = abs(a), abs(b)
    elif kind == 2:
        a, b = np.full(terms, a[0]), np.full(terms, b[0])
    elif kind == 3:
        a *= 10.0 ** (rng.integers(-8, 8, terms) // (4 if dtype == np.float16 else 1))
    elif kind == 4:
        half = terms // 2
        a[half : 2 * half], b[half : 2 * half] = a[:half], -b[:half] * (1 + 1e-6)
    return a.astype(dtype), b.astype(dtype)


ACCUMULATORS = {"bfloat16": "float32", "float16": "float32", "float32": "float32"}
ACCUMULATORS["float64"] = "float64"


@pytest.mark.parametrize("function", [dot, convolution])
@pytest.mark.parametrize("dtype", ACCUMULATORS)
@given(rng=seeds, terms=st.integers(1, 24))
@settings(max_examples=12, deadline=None)
def test_every_order_of_a_contraction_is_inside(interpret, dtype, function, rng, terms):
    acc = ACCUMULATORS[dtype]
    a, b = operands(rng, terms, DTYPES[dtype].numpy())
    strict = interpret(function, a, b, x64=dtype == "float64").strict["out"]
    products = [x * y for x, y in zip(exactly(a), exactly(b), strict=True)]
    bound = terms * Fraction(DTYPES[acc].format.unit_roundoff) * sum(map(abs, products))
    for _ in range(8):
        got = in_some_order(rng, products, acc)
        assert abs(got - sum(products)) <= bound
        assert float(strict.lo) <= float(rounded(got, dtype)) <= float(strict.hi)
    widest = float(bound) * (1 + 2.0**-20) + terms * DTYPES[acc].format.smallest_subnormal
    for end in (float(strict.lo), float(strict.hi)):  # and no wider than that, but for roundings
        fmt = DTYPES[dtype].format
        steps = 3 * fmt.unit_roundoff * max(abs(end), abs(float(strict.point)))
        assert abs(end - float(strict.point)) <= widest + steps + fmt.smallest_subnormal


@given(rng=seeds, terms=st.integers(1, 12))
@settings(max_examples=12, deadline=None)
def test_every_order_of_a_complex_contraction_is_inside_by_parts(interpret, rng, terms):
    (ar, br), (ai, bi) = (operands(rng, terms, F32) for _ in range(2))
    strict = interpret(dot, ar + 1j * ai, br + 1j * bi).strict["out"]
    ar, ai, br, bi = map(exactly, (ar, ai, br, bi))
    pairs = {
        "real": [(ar, br), ([-x for x in ai], bi)],
        "imag": [(ar, bi), (ai, br)],
    }
    for part, both in pairs.items():
        products = [x * y for left, right in both for x, y in zip(left, right, strict=True)]
        for _ in range(8):
            got = float(in_some_order(rng, products, "float32"))
            assert getattr(strict.lo, part) <= got <= getattr(strict.hi, part)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@given(rng=seeds, terms=st.integers(1, 24))
@settings(max_examples=12, deadline=None)
def test_every_order_of_a_declared_sum_is_inside(interpret, dtype, rng, terms):
    """A `reduce_sum` that the program declares narrow may round every addition to that dtype."""
    x, _ = operands(rng, terms, DTYPES[dtype].numpy())
    found = interpret(lambda x: lax.reduce_sum(x, (0,)), x, x64=dtype == "float64")
    for _ in range(8):
        got = float(in_some_order(rng, exactly(x), dtype))
        assert float(found.strict["out"].lo) <= got <= float(found.strict["out"].hi)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_sums_of_windows_and_running_sums_are_inside_in_any_order(interpret, dtype):
    """Six windows of 3 x 4; a running sum of 12."""
    rng = np.random.default_rng(9)
    x = (rng.normal(size=(6, 3, 4)) * 10.0 ** rng.integers(-3, 3, (6, 3, 4))).astype(dtype)
    zero = np.zeros((), dtype)
    windows = interpret(
        lambda x: lax.reduce_window(x, zero, lax.add, (1, 3, 4), (1, 1, 1), "VALID"), x
    ).strict["out"]
    running = interpret(lambda x: lax.cumsum(x.reshape(6, 12), 1), x).strict["out"]
    for row in range(6):
        for _ in range(8):
            got = float(in_some_order(rng, exactly(x[row]), dtype))
            for enclosure, at in ((windows, (row, 0, 0)), (running, (row, -1))):
                assert float(enclosure.lo[at]) <= got <= float(enclosure.hi[at])


MILLION = 10**6


@pytest.mark.parametrize("first", [0.1, 1.0], ids=["0.1 repeated", "1 followed by 2**-25"])
def test_a_million_terms_one_after_the_other(interpret, first):
    """A float32 sum of 0.1 drifts by 1%, that of 1 and many 2**-25 never leaves 1."""
    rest = np.float32(0.1 if first == 0.1 else 2.0**-25)
    terms = np.full(MILLION, rest)
    terms[0] = first
    got = np.add.accumulate(terms)[-1]
    exact = Fraction(float(terms[0])) + (MILLION - 1) * Fraction(float(rest))
    error = abs(Fraction(float(got)) - exact)
    assert exact / 200 < error <= MILLION * Fraction(2) ** -24 * exact
    summed = interpret(lambda x: lax.reduce_sum(x, (0,)), terms).strict["out"]
    contracted = interpret(dot, terms, np.ones(MILLION, F32)).strict["out"]
    for strict in (summed, contracted):
        assert strict.lo <= got <= strict.hi
        assert abs(Fraction(float(strict.point)) - exact) <= Fraction(2) ** -24 * exact


def scaled(values, exponent=0, dtype=F32):
    return (np.array(values, float) * 2.0**exponent).astype(dtype)


@pytest.mark.parametrize("exponent", [-40, 0, 60])
@pytest.mark.parametrize("dtype", [F32, bf16, np.float16])
def test_integers_times_a_power_of_two_admit_no_slack(interpret, dtype, exponent):
    exponent = 0 if dtype == np.float16 else exponent
    rng = np.random.default_rng(2)
    a, b = rng.integers(-8, 9, (2, 1000))
    strict = interpret(dot, scaled(a, exponent, dtype), scaled(b, 0, dtype)).strict["out"]
    assert strict.exact
    exact = Fraction(int(a @ b)) * Fraction(2) ** exponent
    assert float(strict.point) == float(rounded(exact, DTYPES[np.dtype(dtype).name].name))


@pytest.mark.parametrize(
    ("a", "exact"),
    [
        ([2**23, 2**23], True),
        ([2**23, 2**23 - 1, 1], True),
        ([2**23, 2**23, 1], False),
        ([2**23, 2**23, -1], False),
        ([2**24, 0.5, -0.5], False),
        ([2**22, 2**22, 0.5, -0.5], False),
        ([2**22, 2**22 - 1, 0.5, -0.5], True),
    ],
)
@pytest.mark.parametrize("exponent", [-100, 0, 90])
def test_a_float32_sum_is_exact_up_to_the_limit_and_no_further(interpret, a, exact, exponent):
    """All multiples of 2**q and the magnitudes at most 2**(24 + q) in all."""
    strict = interpret(dot, scaled(a, exponent), np.ones(len(a), F32)).strict["out"]
    assert strict.exact == exact
    assert (strict.lo < strict.point < strict.hi) != exact


@pytest.mark.parametrize(("dtype", "bits"), [("bfloat16", 8), ("float16", 11), ("float32", 24)])
def test_a_sum_declared_narrow_is_exact_up_to_its_own_limit(interpret, dtype, bits):
    half = 2.0 ** (bits - 1)
    for terms, exact in (([half, half], True), ([half, half, 1], False), ([half, 1, 1], True)):
        x = np.array(terms).astype(DTYPES[dtype].numpy())
        assert interpret(lambda x: lax.reduce_sum(x, (0,)), x).strict["out"].exact == exact


def test_float64_sums_beyond_the_limit_have_slack_although_their_magnitudes_round_to_it(interpret):
    """2**53 + 1 + 1: one after the other the ones are lost, together they are not."""
    terms, ones = np.array([2.0**53, 1.0, 1.0]), np.ones(3)
    assert (2.0**53 + 1.0) + 1.0 == 2.0**53
    for found in (
        interpret(dot, terms, ones, x64=True),
        interpret(lambda x: lax.reduce_sum(x, (0,)), terms, x64=True),
    ):
        strict = found.strict["out"]
        assert strict.lo <= 2.0**53 < strict.point == 2.0**53 + 2 <= strict.hi
    assert interpret(dot, np.array([2.0**52, 1, 1]), ones, x64=True).strict["out"].exact


@given(rng=seeds, terms=st.integers(2, 20))
@settings(max_examples=40, deadline=None)
def test_what_is_called_exact_is_the_same_in_every_order(interpret, rng, terms):
    """Integers just below and above the limit of float32."""
    a = rng.integers(-(2**12), 2**12, terms) * 2 ** rng.integers(0, 12, terms)
    b = rng.integers(-2, 3, terms)
    strict = interpret(dot, a.astype(F32), b.astype(F32)).strict["out"]
    products = [Fraction(int(x)) for x in a * b]
    orders = {float(in_some_order(rng, products, "float32")) for _ in range(8)}
    if strict.exact:
        assert orders == {float(strict.point)}
    assert all(float(strict.lo) <= got <= float(strict.hi) for got in orders)


def test_products_below_the_smallest_number_may_vanish(interpret):
    """4096 times 2**-160 is 2**-148, which float32 holds; each product alone is nothing to it."""
    tiny = np.full(4096, 2.0**-80, F32)
    strict = interpret(dot, tiny, tiny).strict["out"]
    assert float(strict.point) == 2.0**-148
    assert strict.lo <= 0 < strict.point <= strict.hi


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_one_product_in_a_wider_accumulator_has_no_order(interpret, dtype):
    a, b = np.array([1.1]).astype(DTYPES[dtype].numpy()), np.array([0.7]).astype(dtype)
    assert interpret(dot, a, b).strict["out"].exact


def test_a_sum_of_zero_may_have_either_sign(interpret):
    """It depends on whether the accumulator begins at +0 or with the first term."""
    zeros = np.array([-0.0, -0.0], F32)
    mixed = np.array([[0.0, 0.0], [1.0, 2.0]], F32)
    for strict in (
        interpret(dot, zeros, np.ones(2, F32)).strict["out"],
        interpret(lambda x: lax.reduce_sum(x, (0,)), zeros).strict["out"],
        interpret(jnp.cumsum, zeros).strict["out"],
        interpret(lambda x, y: x @ y, mixed, np.array([0.3, 0.7], F32)).strict["out"],
    ):
        zero = strict.point == 0
        assert zero.any()
        assert np.signbit(strict.lo[zero]).all()
        assert not np.signbit(strict.hi[zero]).any()


def unit(dtype):
    return Fraction(DTYPES[dtype].format.unit_roundoff)


def least(dtype):
    """The flush threshold of the dtypes that XLA's CPU backend flushes, else the subnormal."""
    fmt = DTYPES[dtype].format
    return Fraction(2) ** fmt.emin if dtype != "float16" else Fraction(fmt.smallest_subnormal)


@pytest.mark.parametrize("terms", [1, 2, 3, 17, 256, 4096])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize(("preferred", "output"), [("float32", None), (None, "float32"),
                                                   ("float32", "bfloat16")])  # fmt: skip
def test_the_accuracy_bound_is_the_stated_formula(dtype, terms, preferred, output):
    """Operands of size 100 keep the subnormals' second-order terms below one part in 10**9."""
    rng = np.random.default_rng(terms)
    a, b = (rng.uniform(64, 128, terms) * rng.choice([-1, 1], terms) for _ in range(2))
    half = terms // 2
    a[half : 2 * half], b[half : 2 * half] = a[:half], -b[:half] * 1.001  # float16 holds the sum
    a, b = a.astype(F32), b.astype(F32)
    attributes = {"dimension_numbers": (((0,), (0,)), ((), ()))}
    if preferred is not None:
        attributes["preferred_element_type"] = preferred
    spec = ProgramSpec(
        "dot_general",
        (OperandSpec("lhs", a.shape, "float32"), OperandSpec("rhs", b.shape, "float32")),
        attributes,
        compute_dtype=dtype,
        output_dtype=output,
    )
    f64 = evaluate(build(spec), (a, b)).f64["out"]
    a, b = exactly(a), exactly(b)
    y = sum(x * z for x, z in zip(a, b, strict=True))
    magnitude = sum(abs(x * z) for x, z in zip(a, b, strict=True))
    u, eta = (0, 0) if dtype == "float32" else (unit(dtype), least(dtype))

    def bound(of_sum):
        found = ((1 + u) ** 2 * (1 + terms * of_sum) - 1) * magnitude + terms * least("float32")
        found += eta * sum(abs(x) + abs(z) for x, z in zip(a, b, strict=True))
        roundings = [preferred or dtype] + ["bfloat16"] * (output == "bfloat16")
        for declared in roundings:
            found = (1 + unit(declared)) * found + unit(declared) * abs(y) + least(declared)
        return found

    own = Fraction(2) ** -53  # unit roundoff of the reference, whose error is part of the bound
    point = Fraction(float(f64.point))
    assert abs(point - y) <= terms * own * magnitude
    for end in (Fraction(float(f64.lo)), Fraction(float(f64.hi))):
        assert bound(unit("float32")) <= abs(end - y)
        rounding = 2 * own * abs(end)
        assert (
            abs(end - point) <= bound(unit("float32") + own) * (1 + Fraction(10) ** -9) + rounding
        )
