"""Operands made to tell models apart, and what a path's answers to them decide."""

import ml_dtypes
import numpy as np
import pytest

from parity.explain.laboratory import Laboratory
from parity.explain.standings import standings
from parity.explain.telling import candidates, distinguish
from parity.worker.protocol import Failure, PathOutcome, References

from .arithmetic import to_bf16
from .campaign import case_of, interpreted


def dot(a, b):
    return a @ b


OPERANDS = [
    np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6),
    np.linspace(0.1, 1, 6).astype(ml_dtypes.bfloat16),
    np.linspace(-400, 400, 5).astype(ml_dtypes.float8_e4m3fn),
    np.array([[0, 1], [2, 3]], np.int32),
    np.array([-120, 90, 30], np.int8),
    np.array([True, False]),
    np.array([1 + 2j, 3 - 1j], np.complex64),
    np.zeros((0, 3), np.float32),
    np.float32(2.5),
]


@pytest.mark.parametrize("operand", OPERANDS, ids=lambda x: f"{x.dtype}{np.shape(x)}")
def test_candidates_keep_shape_dtype_and_meaning(operand):
    x = np.asarray(operand)
    found = list(candidates((x, x)))
    assert len({how for how, _ in found}) == len(found) >= 8
    again = list(candidates((x, x)))
    for (_, pair), (_, same) in zip(found, again, strict=True):
        for one, other in zip(pair, same, strict=True):
            assert one.shape == x.shape
            assert one.dtype == x.dtype
            np.testing.assert_array_equal(one, other)
    if x.dtype == np.int32:  # small whole numbers may be indices
        assert all(set(one.ravel()) <= {0, 1, 2, 3} for _, pair in found for one in pair)


def test_slices_with_one_element_left():
    x = np.linspace(0.5, 3, 24, dtype=np.float32).reshape(4, 6)
    found = dict(candidates((x,)))
    (rows,) = found["operand 0 zero but for one element of each slice of axis 0"]
    assert (np.count_nonzero(rows, axis=1) == 1).all()
    (columns,) = found["operand 0 zero but for one element of each slice of axis 1"]
    assert (np.count_nonzero(columns, axis=0) == 1).all()


def holding(got, references):
    return [s for s in standings(got, "out", references) if s.holds and s.model != "strict"]


@pytest.fixture
def alike():
    """Operands on which bfloat16 and TF32 operands give the same, and the standings there."""
    a = (np.random.default_rng(0).integers(2, 200, (6, 4)) + 2.0**-10).astype(np.float32)
    arrays = a, np.eye(4, dtype=np.float32)
    got = to_bf16(a) @ arrays[1]
    return arrays, holding(got, interpreted(dot, arrays))


def interpret(spec, inputs, models):
    return interpreted(dot, inputs, models)


def told(alike, run, references=interpret):
    arrays, models = alike
    best = next(s for s in models if s.model == "tf32-operands")
    spec = case_of(arrays).program
    return distinguish(Laboratory(run, references), spec, arrays, "out", models, best)


def test_a_path_refutes_the_answer_itself(alike):
    runs = []

    def run(inputs):
        runs.append(inputs)
        return PathOutcome("fake", {"out": to_bf16(inputs[0]) @ to_bf16(inputs[1])})

    (one,) = told(alike, run)
    assert one.refuted == ("tf32-operands",)
    assert one.outside["bf16-operands"] == 0
    assert one.separated["bf16-operands"] >= 12
    assert len(runs) == 1  # on the best operands only


def test_a_path_that_fails_on_the_operands_decides_nothing(alike):
    assert told(alike, lambda inputs: PathOutcome("fake", failure=Failure("error", "run"))) == ()


def test_a_reference_that_fails_on_every_candidate_asks_no_path(alike):
    def references(spec, inputs, models):
        return References(failure=Failure("error", "reference"))

    assert told(alike, lambda inputs: pytest.fail("no path"), references) == ()


def test_a_path_that_is_neither_decides_nothing(alike):
    assert told(alike, lambda inputs: PathOutcome("fake", {"out": inputs[0] * 0})) == ()
