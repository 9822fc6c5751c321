"""Planted faults reach the same grades through workers as they do in process."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from parity.casefile.case import Case
from parity.compare.rows import compare_case
from parity.engine.workers import Limits, Workers

from .contraction import SCHEMES, draw
from .geometry import GEOMETRIES

GEOMETRY = {geometry.name: geometry for geometry in GEOMETRIES}
F32 = SCHEMES[0]

pytestmark = pytest.mark.usefixtures("fake_paths")


class Given(Case):
    """A case whose arrays a test gives; a class without slots has room for them."""


@pytest.fixture(scope="module")
def workers():
    with Workers(Limits(timeout=60)) as opened:
        yield opened


def grades(workers, contraction, *paths):
    """Grades and details by path; the baseline is what JAX computes."""
    paths = ("eager", "fake-honest", *paths)
    case = Given(
        "case", Path("case.yaml"), 1, "case", "", (), {}, contraction.spec, (), paths, "eager"
    )
    case.__dict__["arrays"] = lambda: contraction.inputs
    execution = workers.execute(case, paths)
    rows = compare_case(case, execution.outcomes, execution.references)
    found = {row.path: (row.grade, row.detail) for row in rows}
    assert found["eager"] == found["fake-honest"] == ("identical", "")
    return found


@pytest.mark.parametrize("geometry", ["dot K=1024", "dot K=4096", "conv 1x1 K=1024"])
def test_operands_of_a_long_contraction_are_not_what_was_declared(workers, geometry):
    found = grades(
        workers,
        draw(GEOMETRY[geometry], F32, "normal", 7),
        "fake-bf16-operands",
        "fake-tf32-operands",
        "fake-wrong-dtype",
    )
    assert found["fake-bf16-operands"][0] in ("divergent", "inaccurate")
    grade, detail = found["fake-tf32-operands"]
    assert grade == "divergent"
    assert detail.startswith("rms distance from strict")  # each element is inside
    assert found["fake-wrong-dtype"] == ("mismatched", "dtype float64, baseline float32")


@pytest.mark.parametrize("geometry", ["dot K=17", "conv groups, strided"])
def test_one_ulp_where_every_order_is_exact(workers, geometry):
    contraction = draw(GEOMETRY[geometry], F32, "integers", 7)
    grade, detail = grades(workers, contraction, "fake-one-ulp")["fake-one-ulp"]
    assert grade == "divergent"
    assert detail.startswith("outside the order interval in 1 of ")


def test_a_nan_that_became_zero(workers):
    contraction = draw(GEOMETRY["dot K=17"], F32, "normal", 7)
    lhs = contraction.inputs[0].copy()
    lhs[2, 5] = np.nan
    contraction = replace(contraction, inputs=(lhs, contraction.inputs[1]))
    grade, detail = grades(workers, contraction, "fake-nan-to-zero")["fake-nan-to-zero"]
    assert grade == "mismatched"
    assert detail == "numbers where the baseline has NaN: 5 elements"
