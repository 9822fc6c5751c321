"""Results made by hand: what workers would have answered, compared and judged as in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.casefile.case import Case, Expectation
from parity.compare.expect import judge
from parity.compare.groups import groups
from parity.compare.reference_rows import reference_rows
from parity.compare.result import CaseResult
from parity.compare.rows import compare_case
from parity.compare.words import words
from parity.program.spec import ProgramSpec
from parity.record.result import RunResult
from parity.worker.protocol import Enclosure, Failure, PathOutcome, References, Shard

Made = Mapping[str, Any] | Failure


class Maker:
    """Makes cases and their results."""

    @staticmethod
    def expectation(path: str, grade: str, because: str, **more: Any) -> Expectation:
        fields: dict[str, Any] = {
            "paths": (path,),
            "outputs": None,
            "grades": (grade,),
            "outcome": None,
            "stage": None,
            "match": None,
            "because": because,
            "link": None,
            "until": None,
            "when": {},
            "line": 12,
        }
        return Expectation(**fields | more)

    def case(
        self,
        id: str,
        paths: Sequence[str],
        *,
        expect: Sequence[Expectation] = (),
        about: str = "What it guards.",
    ) -> Case:
        file, _, name = id.partition("::")
        return Case(
            id=id,
            file=Path(file).absolute(),
            line=2,
            name=name.partition(":")[0],
            about=about,
            links=(),
            point={},
            program=ProgramSpec("dot_general", ()),
            operands=(),
            paths=tuple(paths),
            baseline="eager",
            expect=tuple(expect),
        )

    def result(
        self,
        id: str,
        made: Mapping[str, Made],
        *,
        f64: Mapping[str, Any] | None = None,
        strict: Mapping[str, Any] | None = None,
        references: References | None = None,
        shards: Mapping[str, tuple[Shard, ...]] | None = None,
        expect: Sequence[Expectation] = (),
        about: str = "What it guards.",
    ) -> CaseResult:
        case = self.case(id, list(made), expect=expect, about=about)
        outcomes = tuple(
            PathOutcome(path, failure=of)
            if isinstance(of, Failure)
            else PathOutcome(
                path, outputs={k: np.asarray(v) for k, v in of.items()}, shards=shards or {}
            )
            for path, of in made.items()
        )
        if references is None:
            references = References(f64=enclosed(f64, 1 / 8), strict=enclosed(strict, 0))
        compared = compare_case(case, outcomes, references)
        rows = judge(case, compared, environment={}, fail_on="divergent")
        outputs = dict.fromkeys(name for outcome in outcomes for name in outcome.outputs)
        return CaseResult(
            case,
            "default",
            tuple(replace(row, environment="default") for row in rows),
            tuple(replace(row, environment="default") for row in reference_rows(case, references)),
            {name: groups(outcomes, name) for name in outputs},
            words(case, rows, outcomes, references),
            references.notes,
        )

    def run(self, *results: CaseResult, wanted: int | None = None, **more: Any) -> RunResult:
        return RunResult({"default": {"jax": "0.7.1"}}, results, wanted or len(results), **more)


def enclosed(of: Mapping[str, Any] | None, slack: float) -> dict[str, Enclosure]:
    """Points and the intervals `slack` times their size around them, none if that is 0."""
    points = {name: np.asarray(value) for name, value in (of or {}).items()}
    if not slack:
        return {name: Enclosure(point, point, point) for name, point in points.items()}
    return {
        name: Enclosure(point, point - slack * abs(point), point + slack * abs(point))
        for name, point in points.items()
    }


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture
def founding(maker: Maker) -> CaseResult:
    """The founding report: bfloat16 product, float32 residual; two paths keep the product."""
    as_declared = np.array([[[-1.3705847, -2.27708]]], np.float32)
    kept = np.array([[[-1.3709509, -2.2795215]]], np.float32)
    expect = [
        maker.expectation("jit", "divergent", "excess-precision", link="https://example.org/1"),
        maker.expectation("native", "divergent", "excess-precision", link="https://example.org/1"),
    ]
    return maker.result(
        "cases/conv.yaml::conv:compute_dtype=bfloat16",
        {
            "eager": {"out": as_declared},
            "jit": {"out": kept},
            "native": {"out": kept},
            "nonnative": {"out": as_declared},
        },
        f64={"out": np.array([[[-1.3713224973767169, -2.2845213503225636]]])},
        strict={"out": as_declared},
        expect=expect,
    )


@pytest.fixture
def divided(maker: Maker) -> CaseResult:
    """Two devices with a half each, the second's zero; and one copy of another number."""
    want = np.float32([1, 2, 3, 4])
    return maker.result(
        "cases/s.yaml::s",
        {"eager": {"half": np.float32([1, 2, 0, 0]), "same": np.float32(1)}},
        f64={"half": want.astype(float), "same": np.array(1.0)},
        strict={"half": want, "same": np.float32(1)},
        shards={
            "half": (Shard(0, (0,), (2,)), Shard(1, (2,), (2,))),
            "same": (Shard(0, (), ()), Shard(1, (), (), 1, np.asarray(np.float32(1.5)))),
        },
    )


@pytest.fixture
def hundred(maker: Maker) -> RunResult:
    """A hundred cases: three that differ, two that fail alike, one without a path."""
    rng = np.random.default_rng(0)
    results = []
    for number in range(100):
        exact = rng.standard_normal(1000)
        good = exact.astype(np.float32)
        off = good.copy()
        made: dict[str, Made] = {"eager": {"out": good}, "jit": {"out": good}}
        if number in (7, 40, 41):
            off[number] = np.nextafter(off[number], np.float32(9), dtype=np.float32)
            off[number] += np.float32(number) / 4096
            made["jit"] = {"out": off}
        if number in (50, 60):
            made["jit"] = Failure("error", "trace", "TypeError", f"cannot do {number} dots")
        if number == 70:
            made["jit"] = Failure("unsupported", "build", "Unsupported", "removed in JAX 0.7.2")
        results.append(
            maker.result(
                f"cases/dot.yaml::dot:k={number}", made, f64={"out": exact}, strict={"out": good}
            )
        )
    return maker.run(*results)
