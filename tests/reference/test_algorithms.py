"""Dot algorithms against their definition: parts by bit manipulation, products in fractions."""

from fractions import Fraction

import jax
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from parity.dtypes import DTYPES
from parity.reference.policies import EXCESS_PRECISION, F64, STRICT, WIDE
from parity.reference.rounding import round_to
from parity.reference.value import Value

F32 = np.float32
KEPT = {
    1: [(0, 0)],
    3: [(0, 0), (0, 1), (1, 0)],
    6: [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0)],
    9: [(i, j) for i in range(3) for j in range(3)],
}


def to_bf16(x):
    return x.astype(ml_dtypes.bfloat16).astype(F32)


def to_f16(x):
    return x.astype(np.float16).astype(F32)


def to_tf32(x):
    """To nearest, ties to even, by adding half of the last of 11 bits to the float32 bits."""
    bits = np.ascontiguousarray(x, F32).view(np.uint32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)).view(F32)


ALGORITHMS = {
    "BF16_BF16_BF16": (to_bf16, 1, "bfloat16"),
    "BF16_BF16_F32": (to_bf16, 1, "float32"),
    "BF16_BF16_F32_X3": (to_bf16, 3, "float32"),
    "BF16_BF16_F32_X6": (to_bf16, 6, "float32"),
    "BF16_BF16_F32_X9": (to_bf16, 9, "float32"),
    "F16_F16_F16": (to_f16, 1, "float16"),
    "F16_F16_F32": (to_f16, 1, "float32"),
    "TF32_TF32_F32": (to_tf32, 1, "float32"),
    "TF32_TF32_F32_X3": (to_tf32, 3, "float32"),
    "F32_F32_F32": (lambda x: x, 1, "float32"),
    "F64_F64_F64": (lambda x: x, 1, "float64"),
}
PRESETS = [name for name in ALGORITHMS if hasattr(lax.DotAlgorithmPreset, name)]


def dot(name):
    preset = getattr(lax.DotAlgorithmPreset, name)
    return lambda x, y: lax.dot(x, y, precision=preset)


def split(x, narrow):
    found = []
    for _ in range(3):
        found.append(narrow(x))
        x = x - found[-1]  # exact: what is left has fewer bits than x
    return found


def defined(name, x, y):
    """What the algorithm adds up for each element, in fractions."""
    narrow, count, _ = ALGORITHMS[name]
    left, right = split(x, narrow), split(y, narrow)
    rows = [
        [
            [
                Fraction(float(left[i][m, k])) * Fraction(float(right[j][k, n]))
                for i, j in KEPT[count]
                for k in range(x.shape[1])
            ]
            for n in range(y.shape[1])
        ]
        for m in range(x.shape[0])
    ]
    return rows


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(F32)


def exactly(x):
    return Value.exactly(x.astype(np.float64))


def inside(value, got):
    return (value.lo <= got) & (got <= value.hi)


@pytest.mark.parametrize("name", PRESETS)
def test_strict_is_the_sum_of_the_kept_products_rounded_once(enclosed, name):
    x, y = drawn(0, 3, 5), drawn(1, 5, 4)
    found = enclosed(dot(name), exactly(x), exactly(y))
    sums = np.array([[float(sum(terms)) for terms in row] for row in defined(name, x, y)])
    held = round_to(sums, DTYPES[ALGORITHMS[name][2]])
    assert np.array_equal(found.point, round_to(held, DTYPES["float32"]))


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("reverse", [False, True])
def test_sums_in_the_accumulator_lie_inside(enclosed, name, reverse):
    x, y = drawn(2, 3, 7), drawn(3, 7, 4)
    accumulator = DTYPES[ALGORITHMS[name][2]]
    got = np.zeros((3, 4))
    for m, row in enumerate(defined(name, x, y)):
        for n, terms in enumerate(row):
            total = np.zeros(1)
            for term in reversed(terms) if reverse else terms:
                product = round_to(np.array([float(term)]), accumulator)
                total = round_to(total + product, accumulator)
            got[m, n] = round_to(total, DTYPES["float32"])[0]
    assert inside(enclosed(dot(name), exactly(x), exactly(y)), got).all()
    assert inside(enclosed(dot(name), exactly(x), exactly(y), policy=F64), got).all()


TELLING = {
    "BF16_BF16_F32": "0x1.01p0",
    "TF32_TF32_F32": "0x1.002p0",
    "BF16_BF16_F32_X3": "0x1.00FE8p0",
    "TF32_TF32_F32_X3": "0x1.001FFAp0",
}
"""Operands of which one part, or two with their last product left out, lose what float32 keeps."""


@pytest.mark.parametrize("name", [name for name in TELLING if name in PRESETS])
def test_a_float32_dot_is_not_what_such_a_name_declares_but_accurate(enclosed, name):
    x = np.full((1, 1), float.fromhex(TELLING[name]))
    got = round_to(x * x, DTYPES["float32"])
    assert not inside(enclosed(dot(name), exactly(x), exactly(x)), got).any()
    for policy in (F64, WIDE):
        assert inside(enclosed(dot(name), exactly(x), exactly(x), policy=policy), got).all()


@pytest.mark.parametrize("name", PRESETS)
def test_the_accuracy_bound_is_that_of_rounding_the_operands(enclosed, name):
    """Two roundings of u^parts of each product, those left out, and those of the sum."""
    x, y = drawn(4, 3, 4), drawn(5, 4, 2)
    narrow, count, accumulator = ALGORITHMS[name]
    total = np.abs(x).astype(float) @ np.abs(y).astype(float)
    found = enclosed(dot(name), exactly(x), exactly(y), policy=F64)
    exact = x.astype(float) @ y.astype(float)
    assert np.abs(found.point - exact).max() <= 1e-14
    u = {to_bf16: 2.0**-8, to_f16: 2.0**-11, to_tf32: 2.0**-11}.get(narrow, 2.0**-24)
    operands = {1: 2 * u, 3: 3 * u**2, 6: 4 * u**3, 9: 2 * u**3}[count]
    adds = (count * 4 + 1) * DTYPES[accumulator].format.unit_roundoff
    allowed = 1.05 * (operands + adds + 2 * 2.0**-24) * total + 1e-4 * (narrow is to_f16)
    for radius in (found.hi - exact, exact - found.lo):
        assert (radius <= allowed).all()
        assert (radius >= 0.9 * operands * total * (count <= 3 and u > 2.0**-24)).all()


@pytest.mark.parametrize("name", PRESETS)
def test_small_whole_numbers_are_exact_under_every_algorithm(enclosed, name):
    rng = np.random.default_rng(6)
    x, y = (rng.integers(-4, 5, size=shape).astype(F32) for shape in ((3, 6), (6, 2)))
    found = enclosed(dot(name), exactly(x), exactly(y))
    assert np.array_equal(found.point, x @ y)
    assert np.array_equal(found.lo, found.hi)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("seed", range(4))
def test_intervals_of_operands_hold_what_is_split_inside_of_them(enclosed, name, seed):
    rng = np.random.default_rng(seed)
    x, y = drawn(seed, 3, 4).astype(float), drawn(seed + 9, 4, 2).astype(float)
    reach = 10.0 ** -rng.uniform(1, 7)
    values = [Value(a, a - reach * np.abs(a), a + reach * np.abs(a)) for a in (x, y)]
    others = [(v.lo + rng.uniform(size=v.lo.shape) * (v.hi - v.lo)).astype(F32) for v in values]
    others = [np.clip(o, v.lo, v.hi) for o, v in zip(others, values, strict=True)]
    terms = defined(name, *(o.astype(F32) for o in others))
    sums = np.array([[float(sum(one)) for one in row] for row in terms])
    held = round_to(round_to(sums, DTYPES[ALGORITHMS[name][2]]), DTYPES["float32"])
    for policy in (STRICT, F64, EXCESS_PRECISION):
        assert inside(enclosed(dot(name), *values, policy=policy), held).all()


def test_an_operand_beyond_float16_is_infinite_and_allowed_to_be(enclosed):
    x, y = np.array([[1e6, 1.0]], F32), np.array([[1.0], [1.0]], F32)
    for name in ("F16_F16_F16", "F16_F16_F32"):
        assert enclosed(dot(name), exactly(x), exactly(y)).point[0, 0] == np.inf
        ideal = enclosed(dot(name), exactly(x), exactly(y), policy=F64)
        assert (ideal.point[0, 0], ideal.hi[0, 0]) == (1000001.0, np.inf)


def test_a_dot_algorithm_that_is_spelled_out_is_that_of_the_name(enclosed):
    bf16, f32 = ml_dtypes.bfloat16, F32
    spelled = lax.DotAlgorithm(bf16, bf16, f32, 2, 2, 3)
    x, y = exactly(drawn(7, 3, 5)), exactly(drawn(8, 5, 4))
    found = enclosed(lambda x, y: lax.dot(x, y, precision=spelled), x, y)
    named = enclosed(dot("BF16_BF16_F32_X3"), x, y)
    assert np.array_equal(found.point, named.point)
    assert np.array_equal(found.hi, named.hi)


def test_batches_and_several_contracted_axes(enclosed):
    """Against the same numbers under einsum in float64, operands rounded to bfloat16 before."""
    x, y = drawn(9, 2, 3, 4, 5), drawn(10, 2, 5, 4, 6)
    preset = lax.DotAlgorithmPreset.BF16_BF16_F32

    def function(x, y):
        return lax.dot_general(x, y, (((2, 3), (2, 1)), ((0,), (0,))), precision=preset)

    wanted = np.einsum("bmij,bjin->bmn", to_bf16(x).astype(float), to_bf16(y).astype(float))
    found = enclosed(function, exactly(x), exactly(y))
    assert np.array_equal(found.point, round_to(wanted, DTYPES["float32"]))


def test_the_gradient_asks_for_the_algorithm_too(enclosed):
    """The cotangent of ones is exact; the other operand is rounded to bfloat16."""
    x, y = drawn(11, 3, 4), drawn(12, 4, 2)
    function = jax.grad(lambda x, y: dot("BF16_BF16_F32")(x, y).sum())
    found = enclosed(function, exactly(x), exactly(y))
    wanted = np.tile(to_bf16(y).astype(float).sum(1), (3, 1))
    assert np.array_equal(found.point, round_to(wanted, DTYPES["float32"]))


def test_the_models_of_a_program_hold_what_ignores_its_algorithm(interpret):
    x, y = drawn(13, 4, 8), drawn(14, 8, 4)
    found = interpret(dot("BF16_BF16_F32_X3"), x, y)
    got = (x.astype(float) @ y.astype(float)).astype(F32)
    strict = found.strict["out"]
    assert not ((strict.lo <= got) & (got <= strict.hi)).all()
    wide = found.models["wide"]["out"]
    assert ((wide.lo <= got) & (got <= wide.hi)).all()
    assert interpret(dot("F32_F32_F32"), x, y).models == {}


SPLITTING = [name for name in PRESETS if "_X" in name]


@pytest.mark.parametrize("name", SPLITTING)
@pytest.mark.parametrize("other", [1.0, 1.1, 1.005])
def test_an_infinite_operand_has_no_further_parts(enclosed, name, other):
    """What is left of it, inf - inf, is no number: without it inf times a number is infinite."""
    x = np.array([[np.inf, 2.0]], F32)
    found = enclosed(dot(name), exactly(x), exactly(np.array([[other], [1.1]], F32)))
    assert found.point.tolist() == [[np.inf]]
    nan = enclosed(dot(name), exactly(x), exactly(np.array([[0.0], [1.1]], F32)))
    assert np.isnan(nan.point).all()


@pytest.mark.parametrize("name", ["BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6"])
def test_operands_that_the_format_holds_are_allowed_no_rounding(enclosed, name):
    """bfloat16 operands: the bound is that of the additions alone, K·2^-24·Σ|a||b|."""
    x, y = to_bf16(drawn(15, 3, 8)), to_bf16(drawn(16, 8, 2))
    preset = getattr(lax.DotAlgorithmPreset, name)
    found = enclosed(
        lambda x, y: lax.dot(x, y, precision=preset, preferred_element_type=F32),
        exactly(x), exactly(y), dtype="bfloat16", policy=F64,
    )  # fmt: skip
    total = np.abs(x).astype(float) @ np.abs(y).astype(float)
    adds = 8 * ALGORITHMS[name][1] * 2.0**-24 * total
    assert (found.hi - found.point <= 1.01 * (adds + 2.0**-24 * total)).all()
    assert (found.hi - found.point >= 0.99 * adds).all()


def test_float64_operands_keep_their_bound_near_zero(enclosed):
    x, y = drawn(17, 2, 4).astype(float) * 1e-300, drawn(18, 4, 2).astype(float)
    found = enclosed(
        dot("F64_F64_F64"), exactly(x), exactly(y), dtype="float64", policy=F64, x64=True
    )
    total = np.abs(x) @ np.abs(y)
    assert (found.hi - found.point <= 10 * 2.0**-53 * total).all()


def test_complex_operands_are_split_in_both_parts(enclosed):
    """(1 + i u) (1 + i u), u a number that bfloat16 does not hold."""
    x = np.array([[1 + 1.01j]], np.complex64).astype(complex)
    held = complex(1, to_bf16(np.array(1.01, F32)))
    name = "BF16_BF16_F32"
    strict = enclosed(dot(name), Value.exactly(x), Value.exactly(x), dtype="complex64")
    assert strict.point[0, 0] == held * held
    ideal = enclosed(dot(name), Value.exactly(x), Value.exactly(x), dtype="complex64", policy=F64)
    for part in (np.real, np.imag):
        assert part(ideal.lo) <= part(held * held) <= part(ideal.hi)
