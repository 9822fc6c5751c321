"""Attributions of real paths and of fakes: the answer, its certainty, and what it is made of."""

import os
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import parity
from parity.engine.environment import Environment
from parity.engine.workers import Workers
from parity.explain.attribution import ASKED, attribute, choose
from parity.explain.laboratory import Asking, Laboratory, Spent, laboratory
from parity.explain.standings import ModelStanding
from parity.worker.protocol import Failure, PathOutcome, References

from .arithmetic import to_bf16, to_tf32
from .campaign import case_of, interpreted

CASES = Path(__file__).parents[2] / "cases"
OLD = os.environ.get("PARITY_TEST_OLD_PYTHON")


@pytest.fixture(scope="module")
def workers():
    with Workers() as running:
        yield running


def founding(workers, paths, environment=None):
    """The attributions of the founding case by path, and the case."""
    (case,) = (
        case
        for case in parity.load(CASES / "conv_bf16.yaml").cases
        if case.program.compute_dtype == "bfloat16" and case.program.transform == "forward"
    )
    execution = workers.execute(case, paths, environment, models=ASKED)
    found = {}
    for outcome in execution.outcomes:
        where = laboratory(workers, case, outcome.path, environment)
        (found[outcome.path],) = attribute(case, outcome, execution.references, laboratory=where)
    return found, case


def test_the_founding_case_keeps_excess_precision(workers):
    """jax-ml/jax#25873: compiled as a whole, the product of two bfloat16 numbers is not rounded."""
    found, _ = founding(workers, ["eager", "jit", "jax2tf-native", "jax2tf-nonnative"])
    assert {path: one.model for path, one in found.items()} == {
        "eager": "strict",
        "jit": "excess-precision",
        "jax2tf-native": "excess-precision",
        "jax2tf-nonnative": "strict",
    }
    one = found["jit"]
    assert one.alike == one.wider == ()
    assert one.certainty == 2  # both elements are outside of every other model
    assert one.meaning.startswith("Narrowing casts between fused operations are dropped")
    assert one.source == "https://github.com/jax-ml/jax/issues/25873"
    assert {s.name: s.outside for s in one.rivals}["wide"] == 2


@pytest.mark.skipif(not OLD, reason="PARITY_TEST_OLD_PYTHON names no Python with TensorFlow 2.17")
def test_the_founding_case_is_computed_wide_by_an_old_tensorflow(workers):
    found, _ = founding(workers, ["jit", "jax2tf-native"], Environment("old", OLD))
    assert {path: one.model for path, one in found.items()} == {
        "jit": "excess-precision",
        "jax2tf-native": "wide",
    }


def test_a_laboratory_asks_a_path_and_its_references_about_other_operands(workers):
    (case, *_) = parity.load(CASES / "conv_bf16.yaml").cases
    where = laboratory(workers, case, "eager")
    arrays = tuple(2 * x for x in case.arrays())
    outcome = where.run(arrays)
    references = where.references(case.program, arrays, ["wide"])
    assert outcome.failure is None
    np.testing.assert_array_equal(outcome.outputs["out"], references.strict["out"].point)
    other = replace(case.program, compute_dtype=None)
    assert where.references(other, arrays, []).failure is None
    assert not (where.run(case.arrays()).outputs["out"] == outcome.outputs["out"]).any()


def dot(a, b):
    return a @ b


def in_memory(function, path, **options):
    """A laboratory without workers."""
    return Laboratory(
        lambda inputs: PathOutcome("fake", {"out": np.asarray(path(*inputs))}),
        lambda spec, inputs, models: interpreted(function, inputs, models, **options),
    )


def test_operands_that_cannot_tell_are_replaced_by_some_that_can():
    """Whole numbers of eight bits are the same in bfloat16 and TF32, and so are their products."""
    rng = np.random.default_rng(0)
    a = (rng.integers(2, 200, (6, 4)) + 2.0**-10).astype(np.float32)
    b = np.eye(4, dtype=np.float32)
    path = lambda x, y: np.float32(to_bf16(x) @ to_bf16(y))  # noqa: E731
    references = interpreted(dot, (a, b))
    outcome = PathOutcome("fake", {"out": path(a, b)})
    case = case_of((a, b))
    (alone,) = attribute(case, outcome, references, inputs=(a, b))
    assert alone.model == "tf32-operands"  # the simpler one: both round 2**-10 off
    assert alone.alike == ("bf16-operands",)
    assert alone.certainty == 0
    where = in_memory(dot, path)
    (told,) = attribute(case, outcome, references, laboratory=where, inputs=(a, b))
    assert told.model == "bf16-operands"
    assert told.alike == ()
    (one, *_) = told.distinctions
    assert one.decided
    assert "tf32-operands" in one.refuted
    assert one.outside["bf16-operands"] == 0 < one.outside["tf32-operands"] <= one.total == 24
    np.testing.assert_array_equal(path(*one.inputs), where.run(one.inputs).outputs["out"])
    assert told.certainty > 0


def test_the_other_way_round():
    rng = np.random.default_rng(0)
    a = (rng.integers(2, 200, (6, 4)) + 2.0**-10).astype(np.float32)
    b = np.eye(4, dtype=np.float32)
    path = lambda x, y: np.float32(to_tf32(x) @ to_tf32(y))  # noqa: E731
    outcome, case = PathOutcome("fake", {"out": path(a, b)}), case_of((a, b))
    (told,) = attribute(
        case, outcome, interpreted(dot, (a, b)), laboratory=in_memory(dot, path), inputs=(a, b)
    )
    assert told.model == "tf32-operands"
    assert told.alike == ()


def test_a_laboratory_is_not_asked_for_longer_than_that_nor_twice():
    a, b = np.full((2, 3, 3), 2, np.float32)
    asked = []

    def references(spec, inputs, models):
        asked.append(models)
        return interpreted(dot, inputs, models)

    def run(inputs):
        return PathOutcome("fake", {"out": inputs[0]})

    spec = case_of((a, b)).program
    open_, over = (Asking(Laboratory(run, references), s).laboratory for s in (60, -1))
    first = open_.references(spec, (a, b), ("wide",))
    assert open_.references(spec, (a, b), ("wide",)) is first
    assert open_.references(spec, (a, b), ()) is not first
    assert len(asked) == 2
    with pytest.raises(Spent):
        over.references(spec, (a, b), ())
    with pytest.raises(Spent):
        over.run((a, b))
    told = attribute(
        case_of((a, b)),
        PathOutcome("fake", {"out": (a @ b).T * 1.5}),
        first,
        laboratory=Laboratory(run, references),
        inputs=(a, b),
        seconds=-1,
    )
    assert len(asked) == 2
    assert told[0].distinctions == ()


def test_what_no_model_explains_has_its_nearest_rivals():
    a, b = np.random.default_rng(0).standard_normal((2, 5, 5)).astype(np.float32)
    got = (a @ b) * np.float32(1.01)
    outcome = PathOutcome("fake", {"out": got})
    (found,) = attribute(case_of((a, b)), outcome, interpreted(dot, (a, b)), inputs=(a, b))
    assert found.model == found.name == ""
    assert found.rivals[0].outside <= found.rivals[-1].outside
    assert found.structure == ()  # one percent is no structure
    assert found.certainty is None
    assert found.meaning == "No model that applies explains every element."


def test_a_path_that_failed_and_settings_without_effect():
    case, references = case_of(()), References()
    failed = PathOutcome("fake", failure=Failure("crashed", "run"), evidence={"no_effect": "idle"})
    (found,) = attribute(case, failed, references)
    assert (found.missing, found.no_effect, found.model) == ("crashed", "idle", "")
    ran = PathOutcome("fake", {"out": np.zeros(2)})
    none = References(failure=Failure("error", "reference", message="a callback"))
    (found,) = attribute(case, ran, none)
    assert found.missing == "no reference: a callback"


def standing(model, openness, **changes):
    fields = {"variant": "", "outside": 0, "total": 8, "apart": None, "vacuous": False}
    return ModelStanding(model=model, openness=openness, **fields | changes)


def test_the_simplest_of_the_tightest_is_chosen():
    wide, tight = standing("excess-precision", 12.0), standing("fast-math", 2.0)
    assert choose([wide, tight]) is tight  # an interval that holds everything says nothing
    near = standing("excess-precision", 3.9)
    assert choose([tight, near]) is near  # as tight, and simpler
    licence = standing("reciprocal", 2.5)
    assert choose([tight, near, licence]) is licence
    assert not standing("wide", 1.0, apart=1.5).holds
    assert standing("wide", 1.0, apart=1.5).refutes == (
        "rms distance 1.5 times what honest orders reach"
    )
    assert standing("wide", 1.0, outside=3).refutes == "3 of 8 elements outside"


def test_a_float16_overflow_that_stops_is_saturation():
    a = np.array([60000.0, 5.0, -7e4], np.float32)
    got = np.array([60000, 5, -65504], np.float16)
    references = interpreted(lambda x: x.astype("float16"), (a,))
    outcome = PathOutcome("fake", {"out": got})
    (found,) = attribute(case_of((a,)), outcome, references, inputs=(a,))
    assert (found.model, found.variant) == ("saturation", "casts")


def test_an_output_of_no_elements_and_one_of_bools():
    a = np.zeros((0, 3), np.float32)
    references = interpreted(lambda x: x + 1, (a,))
    (found,) = attribute(case_of((a,)), PathOutcome("fake", {"out": a}), references, inputs=(a,))
    assert found.model == "strict"
    a = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    references = interpreted(lambda x: x > 1, (a,))
    got = np.array([True, True])
    (found,) = attribute(case_of((a,)), PathOutcome("fake", {"out": got}), references, inputs=(a,))
    assert found.model == ""
    assert found.standings[0].outside == 1
