"""The named arithmetic models: what each makes of a program, against values from elsewhere."""

from fractions import Fraction

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from parity.dtypes import DTYPES
from parity.program.build import Program
from parity.program.jax_versions import enable_x64
from parity.program.spec import OperandSpec, ProgramSpec
from parity.reference.evaluate import evaluate
from parity.reference.models import MODELS, NAMES, model_named
from parity.reference.narrowing import narrow_sum, passes_through, whole_numbers
from parity.reference.value import Value
from parity.reference.wide import saturated
from parity.worker.protocol import pack_references, unpack_references

BF16, F16 = ml_dtypes.bfloat16, np.float16


def models_of(function, *arrays, models=NAMES, x64=False):
    operands = tuple(OperandSpec(f"x{i}", a.shape, a.dtype.name) for i, a in enumerate(arrays))
    spec = ProgramSpec("none", operands, x64=x64)
    with enable_x64(x64):
        program = Program(spec, lambda *xs: (function(*xs),), ("out",))
        return evaluate(program, arrays, models=models)


def out(references, name):
    return references.models[name]["out"]


def normal(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32).astype(dtype)


def inside(enclosure, got):
    low, high = (np.asarray(end, np.float64) for end in (enclosure.lo, enclosure.hi))
    return bool(((low <= got) & (got <= high)).all())


def test_the_table_is_complete():
    assert len(set(NAMES)) == len(NAMES) == 14
    for model in MODELS:
        assert model.meaning.endswith(".")
        assert model.source.startswith("https://")
        for policy in model.policies:
            assert model_named(policy.name) is model
            assert policy.name.startswith(model.name)
    with pytest.raises(KeyError):
        model_named("magic")


def test_only_what_is_asked_for_and_applies_is_evaluated():
    x = normal(4)
    usual = models_of(lambda a: (a.astype("bfloat16") * 2).astype("float32"), x, models=())
    assert set(usual.models) == {"excess-precision", "wide"}
    assert usual.latitudes == {}
    asked = models_of(lambda a, b: a @ b, normal(2, 3), normal(3, 2), models=("bf16x3", "wide"))
    assert set(asked.models) == {"bf16x3"}
    integers = models_of(lambda a: a + a, np.arange(3, dtype=np.int32))
    assert {name.split(" ")[0] for name in integers.models} == {"saturation", "integer-wrap"}


def parts(x, count):
    found = []
    for _ in range(count):
        found.append(x.astype(BF16).astype(np.float32))
        x = x - found[-1]
    return found


KEPT = {
    "bf16-operands": [(0, 0)],
    "bf16x3": [(0, 0), (0, 1), (1, 0)],
    "bf16x6": [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0)],
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize(
    ("groups", "batch_groups", "shapes"),
    [
        (1, 1, ((2, 9, 4), (3, 4, 6))),
        (2, 1, ((2, 9, 4), (3, 2, 6))),
        (1, 2, ((4, 9, 3), (2, 3, 4))),
    ],
)
def test_convolutions_split_their_operands_too(name, groups, batch_groups, shapes):
    """Each kept product of two parts is a convolution of its own: by JAX in float64, added up."""
    x, w = (normal(*shape, seed=i) for i, shape in enumerate(shapes))

    def convolve(a, b):
        return lax.conv_general_dilated(
            a, b, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"),
            feature_group_count=groups, batch_group_count=batch_groups,
        )  # fmt: skip

    found = out(models_of(convolve, x, w, models=(name,)), name)
    lhs, rhs = (parts(one, 3) for one in (x, w))
    with enable_x64(True):
        want = sum(
            np.asarray(convolve(lhs[i].astype(np.float64), rhs[j].astype(np.float64)))
            for i, j in KEPT[name]
        )
    assert inside(found, want)
    np.testing.assert_array_equal(found.point, want.astype(np.float32))
    widest = np.asarray(found.hi, np.float64) - np.asarray(found.lo, np.float64)
    assert (widest < 1e-4).all()


def test_tf32_keeps_eleven_bits():
    a = np.array([[1 + 2.0**-10 + 2.0**-12, 1 + 2.0**-11]], np.float32)
    found = out(models_of(lambda x, y: x @ y, a, np.eye(2, dtype=np.float32)), "tf32-operands")
    assert found.point.ravel().tolist() == [1 + 2.0**-10, 1.0]  # the tie goes to even


def test_operands_that_are_narrow_already_are_not_split():
    references = models_of(lambda x, y: x @ y, normal(3, 3, dtype=BF16), normal(3, 3, dtype=BF16))
    assert not {"bf16-operands", "tf32-operands", "bf16x3", "bf16x6"} & set(references.models)


def rounded(value, precision):
    """A rational rounded to so many bits, ties to even."""
    if not value:
        return Fraction(0)
    exponent = 0
    while abs(value) / Fraction(2) ** exponent >= 2:
        exponent += 1
    while abs(value) / Fraction(2) ** exponent < 1:
        exponent -= 1
    unit = Fraction(2) ** (exponent - precision + 1)
    return round(value / unit) * unit


@pytest.mark.parametrize(("dtype", "precision"), [(BF16, 8), (F16, 11)])
@pytest.mark.parametrize("order", ["forward", "backward", "pairs"])
def test_a_narrow_accumulator_rounds_every_product_and_sum(dtype, precision, order):
    """In exact rationals; any order is inside, and about as far off as the latitude says."""
    a, b = normal(5, 24, dtype=dtype), normal(24, 5, dtype=dtype, seed=1)

    def added(terms):
        if order == "pairs":
            while len(terms) > 1:
                pairs = zip(terms[::2], terms[1::2], strict=True) if len(terms) % 2 == 0 else None
                if pairs is None:
                    terms = [*terms, Fraction(0)]
                    continue
                terms = [rounded(x + y, precision) for x, y in pairs]
            return terms[0]
        total = Fraction(0)
        for term in terms if order == "forward" else reversed(terms):
            total = rounded(total + term, precision)
        return total

    got = np.zeros((5, 5))
    for i in range(5):
        for j in range(5):
            pairs = zip(a[i], b[:, j], strict=True)
            products = [Fraction(float(x)) * Fraction(float(y)) for x, y in pairs]
            got[i, j] = added([rounded(p, precision) for p in products])
    references = models_of(lambda x, y: lax.dot(x, y, preferred_element_type=jnp.float32), a, b)
    found = out(references, "narrow-accumulator")
    assert inside(found, got)
    strict = references.strict["out"]
    assert not inside(strict, got)
    latitude = references.latitudes["narrow-accumulator"]["out"]
    rms = np.sqrt(np.mean((got - found.point.astype(np.float64)) ** 2))
    assert rms < 3 * latitude.rms + latitude.reach
    assert latitude.rms > 20 * references.latitudes["strict"]["out"].rms


def test_a_sum_of_values_cast_up_is_narrow_in_what_they_were():
    x = np.full((1, 600), 1.0, BF16)
    references = models_of(lambda a: a.sum(axis=1), x)
    assert references.strict["out"].point.astype(float) == 600
    assert inside(out(references, "narrow-accumulator"), 256.0)  # 256 + 1 rounds to 256


def test_integers_wrap_where_they_came_from():
    a = np.array([100, -100, 7], np.int8)
    b = np.array([2, 3, 4], np.int8)
    references = models_of(lambda x, y: x.astype("int32") * y.astype("int32") + 1, a, b)
    want = (a.astype(int) * b + 1 + 128) % 256 - 128
    assert out(references, "integer-wrap (narrow)").point.tolist() == want.tolist()
    assert references.strict["out"].point.tolist() == [201, -299, 29]


def test_integers_of_64_bits_wrap_in_32():
    a = np.array([2**31, 2**33 + 5, -7], np.int64)
    references = models_of(lambda x: x + x, a, x64=True)
    assert out(references, "integer-wrap (int32)").point.tolist() == [0, 10, -14]


def test_an_integer_dot_with_a_floating_result_wraps_before_it_is_cast():
    a, b = np.full((1, 3), 100, np.int8), np.full((3, 1), 100, np.int8)
    references = models_of(lambda x, y: lax.dot(x, y, preferred_element_type=jnp.float32), a, b)
    assert out(references, "integer-wrap (narrow)").point.ravel().tolist() == [30000 - 117 * 256]


def test_integers_and_floats_stop_at_their_ends():
    wide = np.array([300, -300, 5], np.int32)
    references = models_of(lambda x: x.astype("int8"), wide)
    assert out(references, "saturation (casts)").point.tolist() == [127, -128, 5]
    floats = np.array([np.nan, 1e30, -3.7, -1e30], np.float32)
    references = models_of(lambda x: x.astype("uint8"), floats)
    assert out(references, "saturation (casts)").point.tolist() == [0, 255, 0, 0]
    halves = np.array([300.0, 2.0], F16)
    references = models_of(lambda x: x * x, halves)
    assert references.strict["out"].point.tolist() == [np.inf, 4.0]
    assert out(references, "saturation (casts)").point.tolist() == [np.inf, 4.0]
    assert out(references, "saturation (all)").point.tolist() == [65504.0, 4.0]


@pytest.mark.parametrize(
    ("value", "declared", "want"),
    [
        (300, "uint8", 255),
        (-1, "uint32", 0),
        (2**40, "int32", 2**31 - 1),
        (-(2**40), "int16", -(2**15)),
    ],
)
def test_saturated(value, declared, want):
    assert saturated(np.array([value]), DTYPES[declared]).tolist() == [want]
    assert saturated(np.array([value], object), DTYPES[declared]).tolist() == [want]


def test_whole_numbers_are_cut_toward_zero():
    assert whole_numbers(np.array([2.9, -2.9, np.nan])).tolist() == [2, -2, 0]
    assert abs(whole_numbers(np.array([1e30]))[0]) > 2**61


def test_a_cast_by_way_of_float16():
    """465 lies beside the midpoint of 448 and NaN: ml_dtypes#400; 0.53125 + 2^-13 on a tie."""
    value = np.array([0.53125 + 2.0**-13], np.float32)  # between 0.5 and 0.5625, in e4m3fn
    references = models_of(lambda x: x.astype("float8_e4m3fn"), value)
    assert references.strict["out"].point.astype(float) == 0.5625
    assert out(references, "double-rounding (float16)").point.astype(float) == 0.5
    assert "double-rounding (float32)" not in references.models or (
        out(references, "double-rounding (float32)").point.astype(float) == 0.5625
    )


def test_what_a_cast_may_pass_through():
    f = {name: DTYPES[name] for name in DTYPES}
    assert passes_through(f["float16"], f["float32"], f["float8_e4m3fn"])
    assert passes_through(f["bfloat16"], f["float32"], f["float8_e5m2"])
    assert passes_through(f["float32"], f["float64"], f["bfloat16"])
    assert passes_through(f["float32"], f["int32"], f["bfloat16"])
    assert not passes_through(f["float32"], f["float32"], f["bfloat16"])  # nothing is lost in it
    assert not passes_through(f["float16"], f["float32"], f["float16"])
    assert not passes_through(f["float32"], f["float64"], f["int8"])
    assert not passes_through(None, f["float64"], f["bfloat16"])


def test_what_a_sum_is_narrow_in():
    f, one = DTYPES, Value.exactly(np.zeros(1))
    pair = [one, one]
    assert narrow_sum([f["bfloat16"]] * 2, pair, f["float32"]) is f["bfloat16"]
    assert narrow_sum([f["float16"], f["bfloat16"]], pair, f["float32"]) is f["bfloat16"]
    assert narrow_sum([f["float8_e4m3fn"]] * 2, pair, f["float32"]) is None
    assert narrow_sum([f["float8_e4m3fn"]] * 2, pair, f["bfloat16"]) is f["bfloat16"]
    assert narrow_sum([f["float32"]] * 2, pair, f["float32"]) is None


def test_another_implementation_may_be_so_many_ulps_off():
    x = np.array([1.0], np.float32)
    found = out(models_of(jnp.exp, x), "other-implementation (64)")
    e, unit = np.exp(1.0), 2.0**-22
    assert inside(found, e + 60 * unit)
    assert not inside(found, e + 100 * unit)
    divided = models_of(lambda a, b: a / b, x, np.array([3.0], np.float32))
    assert inside(out(divided, "other-implementation (64)"), 1 / 3 + 40 * 2.0**-25)


def test_fast_math_rearranges_and_needs_not_overflow():
    a = np.array([2.0**24, 1.0], np.float32)
    b = np.array([1.0, 3.0], np.float32)
    found = out(models_of(lambda x, y: (x + y) - x, a, b), "fast-math")
    assert inside(found, b.astype(float))
    x = np.array([89.0], np.float32)
    found = out(models_of(lambda v: jnp.log(jnp.exp(v)), x), "fast-math")
    assert inside(found, 89.0)
    assert not inside(found, 88.0)
    zero = out(models_of(lambda v: v * 0, np.array([3.0], np.float32)), "fast-math")
    assert np.signbit(zero.lo)
    assert not np.signbit(zero.hi)


def test_models_and_latitudes_travel():
    references = models_of(
        lambda x, y: lax.dot(x, y), normal(4, 8, dtype=BF16), normal(8, 4, dtype=BF16)
    )
    again = unpack_references(pack_references(references))
    assert again.latitudes == references.latitudes
    assert set(again.models) == set(references.models)
    for name in references.models:
        np.testing.assert_array_equal(out(again, name).lo, out(references, name).lo)


def test_elements_that_a_model_leaves_undecided_are_marked():
    x = np.array([1.0, 2.0, 3.0], np.float32)
    references = models_of(lambda v: jnp.exp(v) > jnp.float32(np.exp(2.0)), x)
    assert references.open["other-implementation (64)"]["out"].tolist() == [False, True, False]
    again = unpack_references(pack_references(references))
    assert again.open["other-implementation (64)"]["out"].tolist() == [False, True, False]
