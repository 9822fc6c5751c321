from __future__ import annotations

import math

import numpy as np
import pytest

from parity.report.numbers import element, factor, index, metric, plural


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (0, "0"),
        (0.0, "0"),
        (10240.0, "10240"),
        (9_999_999, "9999999"),
        (10_000_000, "1e+07"),
        (2**63, "9.223e+18"),
        (0.0024414062, "0.002441"),
        (1.5e-8, "1.5e-08"),
        (0.49999, "0.5"),
        (-3.25, "-3.25"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
    ],
)
def test_metrics_keep_four_digits(value: float | None, text: str) -> None:
    assert metric(value) == text


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (float(np.float32(-2.27708)), "float32", "-2.27708"),
        (float(np.float16(0.1)), "float16", "0.1"),
        (1.0078125, "bfloat16", "1.00781"),
        (-1.3713224973767169, "float64", "-1.371322497"),
        (448.0, "float8_e4m3fn", "448"),
        (math.nan, "float32", "nan"),
        (-math.inf, "bfloat16", "-inf"),
        (-0.0, "float32", "-0.0"),
        (complex(0.1, -2.0), "complex128", "0.1-2j"),
        (complex(1.0, math.nan), "complex64", "1.0+nanj"),
        (2**63, "uint64", "9223372036854775808"),
        (True, "bool", "True"),
    ],
)
def test_elements_are_told_from_their_neighbours(value: object, dtype: str, text: str) -> None:
    assert element(value, dtype) == text


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (1557.0, 0.1279, "12,200 times less"),  # 12173.6
        (0.1279, 1557.0, "12,200 times"),
        (2.0, 4.0, "2 times"),
        (4.0, 2.0, "2 times less"),
        (3.0, 1.0, "3 times less"),
        (1000.0, 1001.0, ""),
        (1.0, 1e9, "1e+09 times"),
        (1.0, 250.0, "250 times"),
        (0.0, 1.0, ""),
        (None, 1.0, ""),
        (1.0, math.nan, ""),
        (math.inf, 1.0, ""),
    ],
)
def test_a_factor_is_never_below_one(old: float | None, new: float | None, text: str) -> None:
    assert factor(old, new) == text


def test_an_index_has_no_spaces() -> None:
    assert index((0, 12, 3)) == "[0,12,3]"
    assert index(()) == "[]"


def test_one_is_singular() -> None:
    assert [plural(n, "case") for n in (0, 1, 2)] == ["0 cases", "1 case", "2 cases"]
