from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from parity.api import load
from parity.casefile.case import Case, Expectation, Operand, Tolerance, Variant
from parity.program.spec import ProgramSpec
from parity.record.cases import case_as_dict, case_from_dict
from parity.record.encoding import dumps, loads

CASES = Path(__file__).parents[2] / "cases"


def through_json(case: Case) -> Case:
    return case_from_dict(loads(dumps(case_as_dict(case))))


@pytest.mark.parametrize("file", sorted(CASES.rglob("*.yaml")), ids=lambda file: file.stem)
def test_every_case_of_this_project_comes_back(file: Path) -> None:
    for case in load(file).cases:
        assert through_json(case) == case


def test_every_field_comes_back(make_case: Callable[..., Case]) -> None:
    expectation = Expectation(
        paths=("jit",),
        outputs=("out",),
        grades=None,
        outcome="error",
        stage="trace",
        match="NaN",
        because="known",
        link=None,
        until=datetime.date(2031, 2, 3),
        when={"jax": ">=0.7"},
        line=7,
    )
    case = make_case(
        operands=(
            Operand("lhs", (2, 1), "complex64", values=[[1.0], ["1+2j"]]),
            Operand("rhs", (0,), "int64", file=Path("a/b.npz"), key="x", repeat=3),
            Operand("w", (1,), "int64", values=[2**60 + 1]),
        ),
        tolerance=Tolerance(rtol=1e-3, atol=math.inf, against="f64"),
        expect=(expectation,),
        variants={"jit-strict": Variant("jit-strict", "jit", {"o": False}, {"XLA_FLAGS": "--a"})},
        licences=("fma",),
        timeout=2.5,
        links=(),
    )
    default = {f.name for f in dataclasses.fields(Case) if getattr(case, f.name) == f.default}
    assert default == set(), "a field is not tested"
    assert through_json(case) == case


def test_values_that_are_not_finite_come_back_as_floats(make_case: Callable[..., Case]) -> None:
    values = [math.inf, -math.inf, "nan", -0.0]
    back = through_json(make_case(operands=(Operand("x", (4,), "float32", values=values),)))
    assert back.operands[0].values == values
    assert math.copysign(1, back.operands[0].values[3]) == -1


def test_a_rewritten_program_comes_back_and_an_ordinary_one_names_no_rewriting(
    make_case: Callable[..., Case],
) -> None:
    spec = ProgramSpec("add", (), barriers=("3", "5.0.2"), observed=("0",))
    case = make_case(program=spec)
    assert through_json(case).program == spec
    ordinary = make_case(program=ProgramSpec("add", ()))
    assert not {"barriers", "observed"} & set(case_as_dict(ordinary)["program"])
    assert through_json(ordinary).program == ordinary.program
