"""Reduction on real paths: what is left is smaller, runs, and differs for the same reason."""

from dataclasses import replace
from pathlib import Path

import pytest

import parity
from parity.engine.workers import Workers
from parity.explain.reduction import reduce
from parity.explain.signature import Signature
from parity.explain.simpler import simpler

CASES = Path(__file__).parents[2] / "cases"


@pytest.fixture(scope="module")
def workers():
    with Workers() as running:
        yield running


def case_named(file, *parts):
    return next(c for c in parity.load(CASES / file).cases if all(p in c.id for p in parts))


def rerun(found, folder):
    """The row of the path when the text that was written is run as a case file."""
    file = folder / "reduced.yaml"
    file.write_text(found.text)
    result = parity.run(file)
    assert result.verdict == "ok"
    return next(row for row in result.rows if row.path == found.path)


def test_the_founding_case_is_one_product(workers, tmp_path):
    """jax-ml/jax#25873 needs neither groups nor residual nor a window: one rounding is dropped."""
    found = reduce(workers, case_named("conv_bf16.yaml", "bfloat16"), "jit")
    assert found.finished
    assert found.signature == Signature("ok", "divergent", "excess-precision")
    assert found.elements == (4, 2)
    program = found.case.program
    assert {operand.shape for operand in program.operands} == {(1, 1)}
    assert program.residual is None
    assert set(program.attributes) == {"window_strides", "padding"}
    row = rerun(found, tmp_path)
    assert (row.grade, row.model) == ("divergent", "excess-precision")


def test_nan_of_an_integer_convolution(workers, tmp_path):
    """The non-native path reads the sums of integers as the bits of floats."""
    text = """
name: nan
about: an integer convolution with a floating result
op: conv_general_dilated
operands:
  lhs: {shape: [2, 3, 9, 10], dtype: int32, draw: integers, low: -9, high: 9}
  rhs: {shape: [3, 3, 4, 5], dtype: int32, draw: integers, low: -9, high: 9}
attributes: {window_strides: [2, 1], padding: [[1, 0], [0, 2]], preferred_element_type: float32}
"""
    (tmp_path / "nan.yaml").write_text(text)
    (case,) = parity.load(tmp_path / "nan.yaml").cases
    found = reduce(workers, case, "jax2tf-nonnative")
    assert found.signature.what == "mismatched"
    assert found.elements[1] <= 4
    assert found.case.program.attributes["preferred_element_type"] == "float32"
    assert rerun(found, tmp_path).grade == "mismatched"


def test_an_error_keeps_its_stage_and_type(workers, tmp_path):
    text = """
name: truth
about: a dot of bool
op: dot_general
operands:
  lhs: {shape: [4, 6], dtype: bool, draw: integers, low: 0, high: 1}
  rhs: {shape: [6, 3], dtype: bool, draw: integers, low: 0, high: 1}
attributes: {dimension_numbers: [[[1], [0]], [[], []]]}
"""
    (tmp_path / "truth.yaml").write_text(text)
    (case,) = parity.load(tmp_path / "truth.yaml").cases
    found = reduce(workers, case, "jax2tf-nonnative")
    assert found.signature.outcome == "error"
    assert "bool" in found.signature.why
    assert found.elements == (42, 2)
    (expected,) = found.case.expect
    assert (expected.outcome, expected.stage) == ("error", "run")
    assert rerun(found, tmp_path).outcome == "error"


def test_steps_that_are_not_needed_go(workers, tmp_path):
    found = reduce(workers, case_named("conv_steps.yaml", "0.cast=bfloat16,1.cast=bfloat16"), "jit")
    before = len(case_named("conv_steps.yaml").program.attributes["steps"])
    assert len(found.case.program.attributes["steps"]) < before
    assert rerun(found, tmp_path).grade == found.signature.what


def test_what_agrees_is_not_reduced(workers):
    found = reduce(workers, case_named("conv_bf16.yaml", "float32"), "jit")
    assert (found.text, found.missing) == ("", "jit gives the bits of eager")


def test_what_another_run_does_not_repeat_is_not_reduced(workers):
    case = case_named("conv_bf16.yaml", "bfloat16")
    found = reduce(workers, case, "jit", wanted=Signature("ok", "inaccurate", ""))
    assert (found.text, found.missing) == ("", "jit was inaccurate before, divergent now")


def test_no_time(workers):
    case = case_named("conv_bf16.yaml", "bfloat16")
    found = reduce(workers, case, "jit", seconds=0)
    assert not found.finished
    assert found.steps == ()
    assert found.elements == (4, 4)
    assert replace(found.case.program, residual=None) == replace(case.program, residual=None)


def test_simpler_leaves_the_original_as_it_is():
    fields = {
        "op": "dot_general",
        "operands": {
            "lhs": {"shape": [2, 2], "dtype": "float32", "values": [[1.5, 2.0], [0.0, 1.0]]}
        },
        "attributes": {"dimension_numbers": [[[1], [0]], [[], []]]},
        "residual": "lhs",
    }
    before = repr(fields)
    made = [what for what, _ in simpler(fields)]
    assert repr(fields) == before
    assert "without residual" in made
    assert "lhs all 0" in made
    assert len(made) == len(set(made))
