"""References of whole programs, against values worked out by hand or in exact rationals."""

from fractions import Fraction

import jax
import ml_dtypes
import numpy as np
import pytest

from parity.program.build import build
from parity.program.spec import OperandSpec, ProgramSpec
from parity.reference.evaluate import evaluate

BF16 = ml_dtypes.bfloat16
MATMUL = {"dimension_numbers": (((1,), (0,)), ((), ()))}


def dot(lhs, rhs, *, attributes=None, **kwargs):
    operands = tuple(
        OperandSpec(name, x.shape, x.dtype.name) for name, x in (("lhs", lhs), ("rhs", rhs))
    )
    spec = ProgramSpec("dot_general", operands, attributes or MATMUL, **kwargs)
    return evaluate(build(spec), (lhs, rhs))


def test_the_founding_case_is_rounded_where_it_is_declared():
    """jax-ml/jax#25873, by hand: two products, each in exact rationals."""
    x = np.array([[[-1.0932409763336182, -1.2380176782608032]]], np.float32)
    k = np.array([[[0.25436434, 0.8453059]]], np.float32)
    spec = ProgramSpec(
        "conv_general_dilated",
        (OperandSpec("lhs", x.shape, "float32"), OperandSpec("rhs", k.shape, "float32")),
        {
            "window_strides": (1,),
            "padding": "VALID",
            "dimension_numbers": ("NWC", "WIO", "NWC"),
            "feature_group_count": 2,
        },
        compute_dtype="bfloat16",
        output_dtype="float32",
        residual="lhs",
    )
    found = evaluate(build(spec), (x, k))
    for i in range(2):
        a, b = Fraction(float(x[0, 0, i])), Fraction(float(k[0, 0, i]))
        assert found.f64["out"].point[0, 0, i] == pytest.approx(float(a * b + a), abs=2**-52)
        a16, b16 = (Fraction(float(np.float32(v).astype(BF16))) for v in (x[0, 0, i], k[0, 0, i]))
        product = Fraction(float(np.float32(float(a16 * b16)).astype(BF16)))  # exact in float32
        assert found.strict["out"].point[0, 0, i] == np.float32(float(product + a))
        kept = found.models["excess-precision"]["out"].point[0, 0, i]
        assert kept == np.float32(float(a16 * b16 + a))
    assert found.strict["out"].point.ravel().tolist() == [
        np.float32(-1.3705847).item(),
        np.float32(-2.27708).item(),
    ]
    assert set(found.models) == {"excess-precision", "wide"}


def test_a_cast_is_rounded_once():
    """1 + 2**-8 + 2**-30 is above the midpoint of two bfloat16 values; via float32 it is on it."""
    x = np.array([[1 + 2.0**-8 + 2.0**-30]])
    found = dot(x, np.ones((1, 1)), compute_dtype="bfloat16", x64=False)
    assert found.notes == ("x64 is off: JAX takes float64 as float32",)
    from parity.program.jax_versions import enable_x64

    with enable_x64(True):
        found = dot(x, np.ones((1, 1)), compute_dtype="bfloat16", x64=True)
    assert found.strict["out"].point.tolist() == [[1 + 2.0**-7]]


def test_the_ideal_of_float64_operands_is_not_narrowed_where_x64_is_off():
    x = np.array([[1 + 2.0**-40]])
    found = dot(x, np.ones((1, 1)))
    assert found.f64["out"].point.tolist() == [[1 + 2.0**-40]]
    assert found.strict["out"].point.dtype == np.float32
    assert found.strict["out"].point.tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("preferred", "strict", "ideal"),
    [(None, 16, 10000), ("int32", 10000, 10000), ("int16", 10000, 10000), ("float32", 1e4, 1e4)],
)
def test_integer_products_wrap_in_strict_and_never_in_the_ideal(preferred, strict, ideal):
    hundred = np.array([[100]], np.int8)
    attributes = MATMUL | ({} if preferred is None else {"preferred_element_type": preferred})
    found = dot(hundred, hundred, attributes=attributes)
    assert found.strict["out"].point.tolist() == [[strict]]
    assert found.strict["out"].point.dtype.name == (preferred or "int8")
    assert found.f64["out"].point.tolist() == [[ideal]]


def test_an_int32_accumulator_that_overflows():
    lhs = np.full((1, 200_000), 127, np.int8)
    attributes = MATMUL | {"preferred_element_type": "int32"}
    found = dot(lhs, lhs.T, attributes=attributes)
    exact = 200_000 * 127 * 127
    assert found.f64["out"].point.tolist() == [[exact]]
    assert found.strict["out"].point.tolist() == [[(exact + 2**31) % 2**32 - 2**31]]


def test_integers_of_64_bits_are_exact_beyond_int64():
    from parity.program.jax_versions import enable_x64

    big = np.array([[2**62, 2**62]], np.int64)
    with enable_x64(True):
        found = dot(big, np.array([[4], [4]], np.int64), x64=True)
    assert found.strict["out"].point.tolist() == [[0]]
    assert found.f64["out"].point.tolist() == [[float(2**65)]]


def test_operands_of_mixed_dtypes_are_widened_before_the_product():
    lhs = np.array([[200]], np.uint8)
    rhs = np.array([[0.1]], BF16)
    found = dot(lhs, rhs, attributes=MATMUL | {"preferred_element_type": "float32"})
    assert found.strict["out"].point.tolist() == [[np.float32(200 * float(rhs[0, 0])).item()]]


def test_bfloat16_is_never_summed_in_bfloat16():
    """10,000 values near 0.5: NumPy's own bfloat16 sum sticks at 256 (jax-ml/ml_dtypes#63)."""
    values = (np.arange(10_000) % 256 / 256).astype(BF16)
    found = dot(values.reshape(1, -1), np.ones((10_000, 1), BF16))
    exact = sum((Fraction(float(v)) for v in values), Fraction(0))
    assert found.f64["out"].point.tolist() == [[float(exact)]]
    assert found.strict["out"].point.tolist() == [[float(np.float32(float(exact)).astype(BF16))]]


def test_float8_overflow_is_nan_and_is_rounded_once():
    """465 in float8_e4m3fn: NaN; through bfloat16 it would be 464 and then 448."""
    x = np.array([[465.0]], np.float32)
    one = np.ones((1, 1), np.float32)
    found = dot(x, one, output_dtype="float8_e4m3fn")
    assert np.isnan(found.strict["out"].point.astype(np.float32)).all()
    assert found.f64["out"].point.tolist() == [[465.0]]
    assert found.notes[-1] == "a cast to float8_e4m3fn overflows in 1 of 1 elements"


def test_implicit_zeros_times_infinity_are_unspecified_and_counted():
    """A padded window meets an infinite weight: one element at each end is nobody's to decide."""
    x = np.ones((1, 1, 4), np.float32)
    k = np.array([[[np.inf, 1.0, np.inf]]], np.float32)
    spec = ProgramSpec(
        "conv_general_dilated",
        (OperandSpec("lhs", x.shape, "float32"), OperandSpec("rhs", k.shape, "float32")),
        {
            "window_strides": (1,),
            "padding": ((1, 1),),
            "dimension_numbers": ("NCW", "OIW", "NCW"),
        },
        output_dtype="bfloat16",
    )
    found = evaluate(build(spec), (x, k))
    assert found.unspecified["out"].ravel().tolist() == [True, False, False, True]
    assert np.isposinf(found.f64["out"].point.ravel()[1:3]).all()


def test_a_gradient_is_interpreted_through_the_transposed_convolutions():
    """d/dx and d/dw of sum(c * conv(x, w)), written out for a 1-d convolution."""
    rng = np.random.default_rng(3)
    x = rng.integers(-4, 5, (1, 6, 1)).astype(np.float32)
    w = rng.integers(-4, 5, (3, 1, 1)).astype(np.float32)
    c = rng.integers(-4, 5, (1, 2, 1)).astype(np.float32)
    spec = ProgramSpec(
        "conv_general_dilated",
        (OperandSpec("lhs", x.shape, "float32"), OperandSpec("rhs", w.shape, "float32")),
        {
            "window_strides": (2,),
            "padding": "VALID",
            "dimension_numbers": ("NWC", "WIO", "NWC"),
        },
        transform="vjp",
        extra=(OperandSpec("cotangent", c.shape, "float32"),),
    )
    found = evaluate(build(spec), (x, w, c))
    dx, dw = np.zeros(6), np.zeros(3)
    for out in range(2):
        for tap in range(3):
            dx[2 * out + tap] += c[0, out, 0] * w[tap, 0, 0]
            dw[tap] += c[0, out, 0] * x[0, 2 * out + tap, 0]
    for reference in (found.f64, found.strict):
        assert reference["vjp.lhs"].point.ravel().tolist() == dx.tolist()
        assert reference["vjp.rhs"].point.ravel().tolist() == dw.tolist()


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]),
        ("ii->i", [(3, 3)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("...ij,...jk", [(2, 2, 3), (2, 3, 2)]),
    ],
)
def test_einsum_equals_numpys_on_integers(subscripts, shapes):
    rng = np.random.default_rng(5)
    arrays = tuple(rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes)
    operands = tuple(OperandSpec(f"x{i}", a.shape, "float32") for i, a in enumerate(arrays))
    found = evaluate(build(ProgramSpec("einsum", operands, {"subscripts": subscripts})), arrays)
    exact = np.einsum(subscripts, *(a.astype(np.float64) for a in arrays))
    assert np.array_equal(found.f64["out"].point, exact)
    assert np.array_equal(found.strict["out"].point, exact)


def test_vmap_equals_each_example_alone():
    rng = np.random.default_rng(7)
    x = rng.integers(-4, 5, (3, 2, 4)).astype(np.float32)
    y = rng.integers(-4, 5, (3, 4, 2)).astype(np.float32)
    operands = (OperandSpec("lhs", (2, 4), "float32"), OperandSpec("rhs", (4, 2), "float32"))
    spec = ProgramSpec("dot_general", operands, MATMUL, transform="vmap", batch=3)
    found = evaluate(build(spec), (x, y))
    each = [(a @ b).tolist() for a, b in zip(x, y, strict=True)]
    assert found.f64["vmap.out"].point.tolist() == each


def test_implicit_zeros_times_what_only_the_declared_dtype_makes_infinite(interpret):
    """A kernel of 100·1000 in float16: the ideal is finite, and what meets padding is not said."""
    x, kernel = np.ones((1, 3, 1), np.float16), np.array([100, 1, 1], np.float16).reshape(3, 1, 1)

    def function(x, kernel):
        numbers = ("NWC", "WIO", "NWC")
        thousand = kernel * np.float16(1000)
        return jax.lax.conv_general_dilated(x, thousand, (1,), "SAME", dimension_numbers=numbers)

    found = interpret(function, x, kernel)
    assert found.f64["out"].point.ravel().tolist() == [2000, 102000, 101000]
    assert found.strict["out"].point.ravel().tolist() == [2000, np.inf, np.inf]
    assert found.unspecified["out"].ravel().tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("preferred", "want"),
    [(None, [True, True]), ("int32", [2, 1]), ("int8", [2, 1]), ("float32", [2.0, 1.0])],
)
def test_bools_are_counted_unless_the_result_is_bool(preferred, want):
    """By hand: [1, 1, 1] and [0, 1, 0] times [1, 1, 0]; as `jax.lax.dot_general` has it."""
    lhs = np.array([[1, 1, 1], [0, 1, 0]], bool)
    rhs = np.array([[1], [1], [0]], bool)
    attributes = MATMUL | ({} if preferred is None else {"preferred_element_type": preferred})
    found = dot(lhs, rhs, attributes=attributes)
    strict = found.strict["out"]
    for array in (found.f64["out"].point, strict.point, strict.lo, strict.hi):
        assert array.ravel().tolist() == want


def test_bools_are_counted_in_convolutions():
    x = np.ones((1, 2, 3), bool)
    operands = (OperandSpec("lhs", x.shape, "bool"), OperandSpec("rhs", x.shape, "bool"))
    attributes = {"window_strides": (1,), "padding": "VALID", "preferred_element_type": "int32"}
    found = evaluate(build(ProgramSpec("conv_general_dilated", operands, attributes)), (x, x))
    assert found.f64["out"].point.tolist() == found.strict["out"].point.tolist() == [[[6]]]
