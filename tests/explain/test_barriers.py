"""The barrier search on real paths: what is found, where it is, and what is said of it."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import parity
from parity.engine.environment import Environment
from parity.engine.equations import equations
from parity.engine.workers import Workers
from parity.explain.agreement import grades
from parity.explain.barriers import NOT_A_ROUNDING, search
from parity.explain.places import place

CASES = Path(__file__).parents[2] / "cases"
OLD = os.environ.get("PARITY_TEST_OLD_PYTHON")
KEPT = "lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)"


@pytest.fixture(scope="module")
def workers():
    with Workers() as running:
        yield running


def case_named(file, *parts):
    return next(c for c in parity.load(CASES / file).cases if all(p in c.id for p in parts))


@pytest.fixture(scope="module")
def founding():
    return case_named("conv_bf16.yaml", "bfloat16")


@pytest.mark.parametrize("path", ["jit", "jax2tf-native", "export"])
def test_the_founding_case_needs_its_convolution_rounded(workers, founding, path):
    """jax-ml/jax#25873: compiled as a whole, the product is not rounded."""
    found = search(workers, founding, path)
    lines = (CASES / "conv_bf16.yaml").read_text().splitlines()
    (line,) = [i for i, text in enumerate(lines, 1) if text.startswith("op:")]
    (barrier,) = found.barriers
    assert barrier.place == f"the convolution (op of cases/conv_bf16.yaml:{line})"
    assert barrier.edit == KEPT
    assert barrier.site.primitive == "conv_general_dilated"
    assert found.outputs == {"out": "identical"}
    assert found.minimal
    assert found.verified
    assert found.fewest == "each is needed"
    assert found.candidates == 3  # two casts and the convolution
    assert found.missing == ""


@pytest.mark.skipif(not OLD, reason="PARITY_TEST_OLD_PYTHON names no Python with TensorFlow 2.17")
def test_an_old_tensorflow_needs_the_casts_as_well(workers, founding):
    found = search(workers, founding, "jax2tf-native", Environment("old", OLD))
    assert [b.site.primitive for b in found.barriers] == [
        "convert_element_type",
        "convert_element_type",
        "conv_general_dilated",
    ]
    assert found.verified
    assert found.fewest == "each is needed"


def test_a_users_line(workers):
    case = case_named("excess_precision.yaml", "roundings.product")
    found = search(workers, case, "jit")
    (barrier,) = found.barriers
    text = (CASES / "roundings.py").read_text().splitlines()
    (line,) = [i for i, one in enumerate(text, 1) if "return (x * y)" in one]
    assert barrier.place == f"cases/roundings.py:{line} in product"


@pytest.fixture(scope="module")
def network():
    """Places of the convolutions whose results are cast to float32: the stem, ends of blocks."""
    text = (CASES / "residual_cnn.py").read_text().splitlines()
    (stem,) = [i for i, one in enumerate(text, 1) if "nn.Conv" in one and "(images)" in one]
    (last,) = [i for i, one in enumerate(text, 1) if "nn.Conv" in one and "(y)" in one]
    file, net = "cases/residual_cnn.py", "ResidualCNN"
    return [
        f"{file}:{stem} in {net}.__call__, in {net}/Conv_0",
        *(f"{file}:{last} in Block.__call__, in {net}/Block_{n}/Conv_1" for n in range(3)),
    ]


@pytest.mark.full
def test_a_residual_network_needs_a_barrier_for_each_result_that_is_added(workers, network):
    found = search(workers, case_named("residual_cnn.yaml"), "jit", seconds=600)
    assert [barrier.place for barrier in found.barriers] == network
    assert {barrier.site.primitive for barrier in found.barriers} == {"conv_general_dilated"}
    assert found.outputs == {"out": "identical"}
    assert found.fewest == "each is needed"
    assert found.minimal
    assert found.verified


def test_of_the_barriers_of_a_residual_network_none_can_be_left_out(workers, network):
    """The short form: with those four it agrees, without any one of them it does not."""
    case = case_named("residual_cnn.yaml")
    sites = equations(workers, case)
    convolutions = [site for site in sites if site.primitive == "conv_general_dilated"]
    barriers = [site.address for site in convolutions if place(case, site) in network]
    eager = workers.execute(case, ["eager"])

    def grade(some):
        changed = replace(case, program=replace(case.program, barriers=tuple(some)))
        (outcome,) = workers.execute(changed, ["jit"], references=False).outcomes
        return grades(case, outcome, eager.outcomes[0], eager.references)["out"]

    assert (len(convolutions), len(barriers)) == (7, 4)
    assert grade(barriers) == "identical"
    for one in barriers:
        rest = [other for other in barriers if other != one]
        assert grade(rest) == "divergent"


def test_a_path_that_agrees_needs_none(workers, founding):
    found = search(workers, founding, "jax2tf-nonnative")
    assert (found.barriers, found.runs) == ((), 0)
    assert found.missing == "its bits are those of the baseline"


def test_what_is_no_dropped_rounding(workers):
    """float32 contracted to a fused multiply-add; beside a bfloat16 cast that changes nothing."""
    case = case_named("fma_residual.yaml")
    found = search(workers, replace(case, baseline="eager"), "jit")
    assert found.barriers == ()
    assert found.missing in ("no result is narrower than float32", NOT_A_ROUNDING)


def test_a_budget_of_no_run_leaves_every_barrier(workers, founding):
    found = search(workers, founding, "jit", runs=1, verify=False)
    assert len(found.barriers) == found.candidates == 3
    assert not found.minimal
    assert found.verified is None


@pytest.mark.usefixtures("fake_paths")
def test_a_path_that_fails_has_no_barriers(workers, founding):
    found = search(workers, founding, "eager")
    assert found.missing == "a path agrees with itself"
    found = search(workers, replace(founding, paths=("eager", "fake-raises")), "fake-raises")
    assert found.missing.startswith("fake-raises has no output: ")


def test_the_program_is_what_it_was(founding):
    assert founding.program.barriers == ()
    assert all(np.isfinite(x).all() for x in founding.arrays())
