"""The effective mantissa bits of a dot, on errors that are worked out by hand."""

import numpy as np
import pytest

from parity.compare.delivered import (
    NAMED,
    breaks_in_ladder,
    delivered,
    is_on_ladder,
    magnitudes,
    named_bits,
    preset,
)
from parity.program.spec import OperandSpec, ProgramSpec

F32 = np.float32


def dot(precision="BF16_BF16_F32", dtype="float32", **changes):
    fields = {
        "op": "dot_general",
        "operands": (OperandSpec("lhs", (2, 3), dtype), OperandSpec("rhs", (3, 2), dtype)),
        "attributes": {"dimension_numbers": (((1,), (0,)), ((), ())), "precision": precision},
    }
    return ProgramSpec(**fields | changes)


def rounded(value, bits):
    """1 <= value < 2 rounded to so many mantissa bits, the implicit one included; ties down."""
    unit = 2.0 ** (1 - bits)
    return np.ceil(value / unit - 0.5) * unit


@pytest.mark.parametrize("bits", [8, 11, 16, 20])
def test_operands_that_lose_half_of_their_last_bit_deliver_so_many(bits):
    """(1 + 2^-p)^2 becomes 1: the error is 2·2^-p + 2^-2p of Σ|a||b|."""
    operand = np.array([[1 + 2.0**-bits]])
    low = rounded(operand, bits)
    np.testing.assert_array_equal(low, [[1.0]])
    ideal = operand @ operand
    found = delivered((low @ low).astype(F32), ideal, ideal)
    want = 1 - np.log2((2 * 2.0**-bits + 4.0**-bits) / ideal[0, 0])
    assert found == pytest.approx(want)
    assert abs(found - bits) < 0.02


def test_the_worst_element_decides():
    ideal = np.array([1.0, 1.0])
    got = np.array([1 + 2.0**-7, 1 + 2.0**-15], F32)
    assert delivered(got, ideal, np.ones(2)) == 8
    assert delivered(got[1:], ideal[1:], np.ones(1)) == 16


@pytest.mark.parametrize(("dtype", "bits"), [(F32, 24), (np.float64, 53), (np.float16, 11)])
def test_an_exact_result_delivers_the_bits_of_its_dtype(dtype, bits):
    assert delivered(np.array([2.0], dtype), np.array([2.0]), np.array([4.0])) == bits


def test_cancellation_is_no_loss():
    """An error of 2^-7 beside Σ|a||b| = 2^10 is 2·2^-18 of it, however small the result."""
    assert delivered(np.array([2.0**-7], F32), np.array([0.0]), np.array([1024.0])) == 18


def test_what_is_not_finite_delivers_nothing():
    assert delivered(np.array([np.inf], F32), np.array([1.0]), np.array([1.0])) == 0
    assert delivered(np.array([np.nan], F32), np.array([1.0]), np.array([1.0])) == 0


def test_an_error_as_large_as_the_operands_delivers_no_fewer_than_no_bits():
    assert delivered(np.array([9.0], F32), np.array([1.0]), np.array([1.0])) == 0


def test_there_may_be_nothing_to_measure():
    one = np.array([1.0])
    assert delivered(np.array([1]), one, one) is None
    assert delivered(np.array([1.0, 1.0], F32), one, one) is None
    assert delivered(one.astype(F32), one, np.zeros(1)) is None
    assert delivered(one.astype(F32), np.array([np.inf]), one) is None
    assert delivered(one.astype(F32), one, one, exclude=np.array([True])) is None


@pytest.mark.parametrize(
    ("dimensions", "lhs", "rhs", "letters"),
    [
        ((((1,), (0,)), ((), ())), (3, 2), (2, 4), "ik,kj->ij"),
        ((((0,), (1,)), ((), ())), (2, 3), (4, 2), "ki,jk->ij"),
        ((((2,), (1,)), ((0,), (0,))), (5, 3, 2), (5, 2, 4), "bik,bkj->bij"),
        ((((1,), (0,)), ((2,), (2,))), (3, 2, 5), (2, 4, 5), "ikb,kjb->bij"),
        ((((0, 1), (0, 1)), ((), ())), (1, 2), (1, 2), "ab,ab->"),
    ],
)
def test_magnitudes_are_those_of_the_dot(make_case, dimensions, lhs, rhs, letters):
    operands = (OperandSpec("lhs", lhs, "float32"), OperandSpec("rhs", rhs, "float32"))
    spec = dot(operands=operands, attributes={"dimension_numbers": dimensions, "precision": "high"})

    class Given(type(make_case())):
        def arrays(self):
            rng = np.random.default_rng(0)
            return tuple(rng.normal(size=s).astype(F32) for s in (lhs, rhs))

    plain = make_case(program=spec)
    fields = {name: getattr(plain, name) for name in plain.__dataclass_fields__}
    case = Given(**fields)
    a, b = (np.abs(x.astype(np.float64)) for x in case.arrays())
    np.testing.assert_allclose(magnitudes(case), np.einsum(letters, a, b), rtol=1e-14)


def test_a_sum_of_many_products_is_not_measured(make_case, monkeypatch):
    """Its errors cancel: with float16 operands and K = 1024, 15 bits would seem to arrive."""
    case = make_case(program=dot("F16_F16_F16"))
    rows = np.zeros((2, 3), F32)
    rows[0], rows[1, 0] = 1, 1
    monkeypatch.setattr(type(case), "arrays", lambda self: [rows, np.ones((3, 1), F32)])
    sizes = magnitudes(case)
    assert sizes.tolist() == [[0], [1]]
    assert delivered(np.zeros((2, 1), F32), np.ones((2, 1)), np.zeros((2, 1))) is None


def test_only_a_forward_dot_that_asks_for_a_precision_is_measured(make_case):
    for spec in (
        dot(precision=None),
        dot(transform="vjp"),
        dot(residual="lhs"),
        dot(op="einsum"),
    ):
        assert magnitudes(make_case(program=spec)) is None


def test_the_bits_of_a_name_are_no_more_than_the_operands_have(make_case):
    def named(*how):
        return named_bits(make_case(program=dot(*how)))

    names = ("BF16_BF16_F32", "TF32_TF32_F32", "F32_F32_F32")
    assert [named(name) for name in names] == [8, 11, 24]
    assert (named("F64_F64_F64"), named("F64_F64_F64", "float64")) == (24, 53)
    assert named("F32_F32_F32", "bfloat16") == 8
    assert (named("high"), named(None)) == (None, None)
    assert preset(make_case(program=dot("highest"))) is None


@pytest.mark.filterwarnings("error")
def test_operands_that_are_not_real_floats(make_case, monkeypatch):
    """JAX takes presets for integers and complex numbers as well; the latter are not measured."""
    assert named_bits(make_case(program=dot("F32_F32_F32", "int32"))) == 24
    case = make_case(program=dot("highest", "complex64"))
    monkeypatch.setattr(type(case), "arrays", lambda self: [np.full((1, 1), 1j, np.complex64)] * 2)
    assert magnitudes(case) is None


def test_splitting_into_parts_adds_their_bits():
    for one, bits in (("BF16_BF16_F32", 8), ("TF32_TF32_F32", 11)):
        assert (NAMED[one], NAMED[f"{one}_X3"]) == (bits, 2 * bits)
    assert NAMED["BF16_BF16_F32_X6"] == NAMED["BF16_BF16_F32_X9"] == 3 * 8


def test_sums_that_are_narrower_than_float32_are_no_rung(make_case):
    rungs = {name for name in NAMED if is_on_ladder(make_case(program=dot(name)))}
    assert set(NAMED) - rungs == {"BF16_BF16_BF16", "F16_F16_F16"}
    assert not is_on_ladder(make_case(program=dot("high")))


def test_a_ladder_that_is_not_monotone_is_noticed():
    honest = [("BF16", 8, 8.0), ("X3", 16, 16.4), ("X6", 24, 24.0), ("X9", 24, 23.7)]
    assert list(breaks_in_ladder(honest)) == []
    ignored = [("BF16", 8, 24.0), ("X3", 16, 24.0), ("F32", 24, 24.0)]
    assert list(breaks_in_ladder(ignored)) == []
    assert list(breaks_in_ladder([*honest, ("TF32", 11, 7.0)])) == [("BF16", "TF32")]
    assert list(breaks_in_ladder([("X3", 16, 8.0), ("BF16", 8, 24.0)])) == [("BF16", "X3")]
