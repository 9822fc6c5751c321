"""Explicit values: what they become, and what no dtype holds."""

import math

import numpy as np
import pytest

from parity.casefile import values
from parity.casefile.problem import Problem
from parity.dtypes import dtype


def array(data, name):
    kind, shape = dtype(name), values.shape_of(data)
    values.check(data, shape, kind, ("values",))
    made = values.array(data, shape, kind)
    assert made.dtype == kind.numpy()
    return made


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        ([[1, 2.5], ["-inf", "0x1.8p3"]], "float32", [[1.0, 2.5], [-math.inf, 12.0]]),
        (3, "float16", 3.0),
        ([1, -128], "int8", [1, -128]),
        ([2**64 - 1, 2**53 + 1], "uint64", [2**64 - 1, 2**53 + 1]),
        ([-(2**63), 2**63 - 1], "int64", [-(2**63), 2**63 - 1]),
        ([-8, 7], "int4", [-8, 7]),
        ([True, False], "bool", [True, False]),
        (["1+2j", 3, "-infj", "nan"], "complex64", [1 + 2j, 3, complex(0, -math.inf), math.nan]),
        ([1 + 2**-8 + 2**-30], "bfloat16", [1 + 2**-7]),  # ml_dtypes alone rounds twice, to 1
        ([[], []], "float32", np.zeros((2, 0))),
    ],
)
def test_values_become_arrays_rounded_once(data, name, expected):
    made = array(data, name)
    assert made.shape == np.shape(expected)
    if dtype(name).is_integer:
        assert [int(element) for element in made] == expected
    else:
        wide = made.astype(complex if dtype(name).kind == "complex" else float)
        np.testing.assert_array_equal(wide, np.asarray(expected))


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e5m2"])
def test_negative_zero_keeps_its_sign(name):
    assert np.signbit(array([-0.0], name).astype(float))[0]


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (300, "int8", "is out of range of int8 (got 300; allowed -128 to 127)"),
        (-1, "uint4", "is out of range of uint4 (got -1; allowed 0 to 15)"),
        (1.0, "int32", "is not an integer (got 1.0; allowed integers for int32)"),
        (True, "int32", "is not an integer (got true; allowed integers for int32)"),
        (1, "bool", "is not a bool (got 1; allowed true, false)"),
        (65520.0, "float16", "is out of range of float16 (got 65520.0; allowed up to 65504.0)"),
        (
            2**53 + 1,
            "float64",
            "is not exact in float64 (got 9007199254740993; allowed up to 2**53)",
        ),
        (
            "inf",
            "float8_e4m3fn",
            "does not exist in float8_e4m3fn, which has no infinity (got 'inf')",
        ),
        ("nan", "float4_e2m1fn", "does not exist in float4_e2m1fn, which has no NaN (got 'nan')"),
        (0, "float8_e8m0fnu", "does not exist in float8_e8m0fnu, which has no zero (got 0)"),
        (
            -1,
            "float8_e8m0fnu",
            "does not exist in float8_e8m0fnu, which has no negative numbers (got -1)",
        ),
        (
            "1+2i",
            "complex64",
            "is not a number (got '1+2i'; allowed a number, 'nan', 'inf', '-inf' or a "
            "hexadecimal float such as '0x1.8p3')",
        ),
        (
            "1++2j",
            "complex64",
            "is not complex (got '1++2j'; allowed a number or a string such as '1+2j')",
        ),
        (
            "0xg",
            "float32",
            "is not a number (got '0xg'; allowed a number, 'nan', 'inf', '-inf' or a "
            "hexadecimal float such as '0x1.8p3')",
        ),
        (
            None,
            "float32",
            "is not a number (got null; allowed a number, 'nan', 'inf', '-inf' or a "
            "hexadecimal float such as '0x1.8p3')",
        ),
    ],
)
def test_what_a_dtype_does_not_hold_is_refused(data, name, message):
    with pytest.raises(Problem) as caught:
        values.check(data, (), dtype(name), ("v",))
    assert caught.value.what == f"v {message}"


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (
            "{dtype: int8, values: [[1, 2, 3], [4, 5, 300]]}",
            "5:49: operands.lhs.values[1][2] is out of range of int8 (got 300; allowed "
            "-128 to 127)",
        ),
        (
            "{dtype: float32, values: [[1, 2, 3], [4, 5]]}",
            "5:45: operands.lhs.values[1] does not fill the shape (got 2 entries; allowed "
            "a list of 3)",
        ),
        (
            "{shape: [2, 3], dtype: float32, values: [[1, 2, 3]]}",
            "5:48: operands.lhs.values does not fill the shape (got 1 entries; allowed a "
            "list of 2)",
        ),
        (
            "{shape: [2, 3], dtype: float32, values: [[1, 2, 3], 4]}",
            "5:60: operands.lhs.values[1] does not fill the shape (got 4; allowed a list of 3)",
        ),
        (
            "{shape: [2, 3], dtype: float32, values: [[1, 2, 3], [4, [5], 6]]}",
            "5:64: operands.lhs.values[1][1] is a list (got [5]; allowed a number)",
        ),
    ],
)
def test_values_that_do_not_fit_are_refused_at_their_place(folder, dot, new, message):
    text = dot.replace("{shape: [2, 3], dtype: float32, draw: normal}", new)
    assert folder.error(text) == message
