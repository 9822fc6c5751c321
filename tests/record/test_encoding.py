from __future__ import annotations

import json
import math
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.record.encoding import NONFINITE, dumps


def refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} is not JSON")


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=refuse)


def test_values_that_are_not_finite_are_spelled_out_at_any_depth() -> None:
    value = {"a": math.nan, "b": [math.inf, (-math.inf, 1.5)], "c": {"d": np.float32("nan")}}
    assert strict(dumps(value)) == {
        "a": "NaN",
        "b": ["Infinity", ["-Infinity", 1.5]],
        "c": {"d": "NaN"},
    }


def test_numpy_and_complex_become_plain() -> None:
    value = [np.int64(3), np.array([1.0, np.inf]), complex(1.0, math.nan), np.True_, None, True]
    assert strict(dumps(value)) == [3, [1.0, "Infinity"], [1.0, "NaN"], True, None, True]


def test_floats_survive_to_the_last_bit() -> None:
    value = 0.1 + 2**-56
    assert strict(dumps([value, 5e-324])) == [value, 5e-324]


def test_text_is_ascii() -> None:
    assert dumps("ulp ≤ ½ 🙂").isascii()
    assert strict(dumps("ulp ≤ ½ 🙂")) == "ulp ≤ ½ 🙂"


def test_what_is_not_data_is_refused() -> None:
    with pytest.raises(TypeError, match="object is not JSON serializable"):
        dumps({"a": object()})


def test_mappings_and_iterables_of_any_kind_are_taken() -> None:
    value = MappingProxyType({"a": (n for n in (1, 2)), "b": range(2)})
    assert strict(dumps(value)) == {"a": [1, 2], "b": [0, 1]}


@given(st.floats())
def test_every_float_comes_back_through_float(value: float) -> None:
    found = strict(dumps([value]))[0]
    assert (found in NONFINITE) == (not math.isfinite(value))
    back = float(found)
    assert math.isnan(back) if math.isnan(value) else back.hex() == value.hex()
