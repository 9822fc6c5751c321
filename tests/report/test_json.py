from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from parity.engine.run import CaseResult
from parity.report.json import dumps, run_as_dict


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


def test_a_run_is_one_object(maker: Any, founding: CaseResult) -> None:
    found = strict(dumps(run_as_dict(maker.run(founding))))
    assert found["format"] == "parity-run/1"
    assert found["verdict"] == "ok"
    assert found["environment"] == {"jax": "0.7.1"}
    assert (found["wanted"], found["done"], found["record"]) == (1, 1, None)
    assert [row["path"] for row in found["rows"]] == ["eager", "jit", "native", "nonnative"]
    assert {row["path"] for row in found["references"]} == {"f64", "strict"}
    assert found["groups"] == {
        "cases/conv.yaml::conv:compute_dtype=bfloat16": {
            "out": [["eager", "nonnative"], ["jit", "native"]]
        }
    }
    assert found["notes"] == {}
    jit = found["rows"][1]
    assert (jit["grade"], jit["status"], jit["because"]) == (
        "divergent",
        "expected",
        "excess-precision",
    )
    assert jit["max_abs_baseline"] == float(np.float32(-2.27708)) - float(np.float32(-2.2795215))
    assert jit["values"] == [float(np.float32(v)) for v in (-1.3709509, -2.2795215)]
    assert found["rows"][0]["sqnr_db_baseline"] == "Infinity"


def test_what_must_be_known_of_the_references_is_told(maker: Any, founding: CaseResult) -> None:
    noted = replace(founding, notes=("x64 is off: JAX takes float64 as float32",))
    assert run_as_dict(maker.run(noted))["notes"] == {founding.case.id: noted.notes}
