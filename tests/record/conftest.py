"""Cases and their results made by hand; nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.casefile.case import Case, Operand
from parity.compare.metrics import measure
from parity.compare.result import CaseResult
from parity.compare.rows import Row
from parity.program.spec import OperandSpec, ProgramSpec
from parity.record.store import Outputs, Store
from parity.worker.protocol import digest

Made = tuple[CaseResult, Outputs]


@pytest.fixture
def make_case() -> Callable[..., Case]:
    def make(name: str = "dot", **changes: Any) -> Case:
        fields: dict[str, Any] = {
            "id": f"cases/{name}.yaml::{name}:k=2",
            "file": Path(f"/project/cases/{name}.yaml"),
            "line": 1,
            "name": name,
            "about": "What it guards.",
            "links": ("https://example.org/1",),
            "point": {"k": "2"},
            "program": ProgramSpec(
                "dot_general",
                (OperandSpec("lhs", (2,), "float32"), OperandSpec("rhs", (2,), "float32")),
                {"dimension_numbers": (((0,), (0,)), ((), ()))},
            ),
            "operands": (
                Operand("lhs", (2,), "float32", values=[1.0, "nan"]),
                Operand("rhs", (2,), "float32", draw="normal", parameters={"scale": 2.0}),
            ),
            "paths": ("eager", "jit"),
            "baseline": "eager",
        }
        return Case(**fields | changes)

    return make


@pytest.fixture
def make_result(make_case: Callable[..., Case]) -> Callable[..., Made]:
    """A result and its outputs: `eager` gives `base`, `jit` gives `other`."""

    def make(
        name: str = "dot",
        environment: str = "default",
        *,
        base: Sequence[float] = (1.0, 2.0),
        other: Sequence[float] = (1.0, 2.0),
        status: str = "ok",
        **changes: Any,
    ) -> Made:
        case = make_case(name, **changes)
        arrays = {"eager": np.float32(base), "jit": np.float32(other)}
        same = digest(arrays["eager"]) == digest(arrays["jit"])
        rows = tuple(
            Row(
                case=case.id,
                path=path,
                output="out",
                outcome="ok",
                grade="identical" if same or path == "eager" else "divergent",
                dtype="float32",
                shape=array.shape,
                count=array.size,
                baseline=measure(array, arrays["eager"]),
                evidence={"stablehlo": "5" * 64},
                timings={"run": 0.5, "compile": 0.25},
                sha256=digest(array),
                values=tuple(array.tolist()),
                status=status if path == "jit" else "ok",
                environment=environment,
            )
            for path, array in arrays.items()
        )
        strict = Row(
            case=case.id,
            path="strict",
            output="out",
            outcome="ok",
            dtype="float32",
            shape=arrays["eager"].shape,
            count=arrays["eager"].size,
            sha256=digest(arrays["eager"]),
            environment=environment,
        )
        result = CaseResult(
            case,
            environment,
            rows,
            (strict,),
            {"out": (("eager", "jit"),) if same else (("eager",), ("jit",))},
            () if same else ("jit differs from eager in 1 of 2 elements",),
            ("no wider than float64",),
        )
        return result, {(path, "out"): array for path, array in arrays.items()}

    return make


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "reports", version="1.0", options={"repeats": 1}, wanted=3)
