from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from parity.compare.result import CaseResult
from parity.record.result import RunResult
from parity.report.json import run_json


def refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} is not JSON")


def read(result: RunResult) -> Any:
    return json.loads("".join(run_json(result)), parse_constant=refuse)


def test_a_run_is_one_object(maker: Any, founding: CaseResult) -> None:
    found = read(maker.run(founding))
    assert found["format"] == "parity-run/1"
    assert found["verdict"] == "ok"
    assert found["environment"] == {"jax": "0.7.1"}
    assert found["environments"] == {"default": {"jax": "0.7.1"}}
    assert {row["environment"] for row in found["rows"]} == {"default"}
    assert (found["wanted"], found["done"], found["record"]) == (1, 1, None)
    assert [row["path"] for row in found["rows"]] == ["eager", "jit", "native", "nonnative"]
    assert {row["path"] for row in found["references"]} == {"f64", "strict"}
    assert found["groups"] == [
        {
            "case": "cases/conv.yaml::conv:compute_dtype=bfloat16",
            "environment": "default",
            "output": "out",
            "paths": [["eager", "nonnative"], ["jit", "native"]],
        }
    ]
    assert found["notes"] == []
    jit = found["rows"][1]
    assert (jit["grade"], jit["status"], jit["because"]) == (
        "divergent",
        "expected",
        "excess-precision",
    )
    assert jit["max_abs_baseline"] == float(np.float32(-2.27708)) - float(np.float32(-2.2795215))
    assert jit["values"] == [float(np.float32(v)) for v in (-1.3709509, -2.2795215)]
    assert found["rows"][0]["sqnr_db_baseline"] == "Infinity"


def test_a_run_without_any_finished_case_is_an_object_too(maker: Any) -> None:
    found = read(maker.run(wanted=3, interrupted=True))
    assert (found["verdict"], found["wanted"], found["done"]) == ("interrupted", 3, 0)
    assert found["rows"] == found["references"] == found["groups"] == []


def test_what_must_be_known_of_the_references_is_told(maker: Any, founding: CaseResult) -> None:
    noted = replace(founding, notes=("x64 is off: JAX takes float64 as float32",))
    assert read(maker.run(noted))["notes"] == [
        {"case": founding.case.id, "environment": "default", "notes": list(noted.notes)}
    ]
