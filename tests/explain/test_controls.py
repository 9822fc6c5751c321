"""Control runs on real paths: what restores parity, what has no effect, what fails."""

from dataclasses import replace
from pathlib import Path

import pytest

import parity
from parity.engine.workers import Workers
from parity.explain.controls import FAILED, NO_EFFECT, RESTORES, UNKNOWN, control_runs
from parity.explain.switches import SWITCHES, Switch

CASES = Path(__file__).parents[2] / "cases"
EXCESS = SWITCHES[0]
ISA = next(one for one in SWITCHES if one.name == "xla_cpu_max_isa")


@pytest.fixture(scope="module")
def workers():
    with Workers() as running:
        yield running


def case_named(file, *parts):
    return next(c for c in parity.load(CASES / file).cases if all(p in c.id for p in parts))


@pytest.fixture(scope="module")
def founding():
    return case_named("conv_bf16.yaml", "bfloat16")


@pytest.mark.parametrize("path", ["jit", "jax2tf-native"])
def test_the_founding_case_is_restored_by_keeping_roundings(workers, founding, path):
    """jax-ml/jax#25873: xla_allow_excess_precision=false, and no thread or instruction set."""
    found = control_runs(workers, founding, path, switches=[EXCESS, ISA])
    (restoring,) = found.restoring
    assert restoring.how == "XLA_FLAGS=--xla_allow_excess_precision=false"
    assert restoring.grades == {"out": "identical"}
    assert restoring.seconds > 0
    assert 0.1 < restoring.cost < 10
    other = next(run for run in found.runs if run.switch is ISA)
    assert (other.verdict, other.grades) == (NO_EFFECT, {"out": "divergent"})
    assert other.cost is None


def test_what_the_flip_does_to_the_compiled_program(workers, founding):
    (run,) = control_runs(workers, founding, "jit", switches=[EXCESS]).runs
    assert run.compiled
    text = {one.kind: one.lines for one in run.programs}
    assert text["stablehlo"] == ()
    added = [line for line in text["hlo"] if line.startswith("+")]
    assert any("bf16" in line and "convert" in line for line in added)


def test_a_path_that_agrees_needs_none(workers, founding):
    found = control_runs(workers, founding, "jax2tf-nonnative")
    assert (found.runs, found.missing) == ((), "its bits are those of the baseline")


def test_a_path_without_switches(workers, founding):
    found = control_runs(workers, founding, "stablehlo")
    assert found.missing == "no switch of stablehlo is known"


def test_a_flag_that_does_not_exist_and_one_that_cannot_be(workers, founding):
    never = Switch("xla", "xla_no_such_flag", True, "nothing")
    wrong = Switch("xla", "xla_backend_optimization_level", "high", "nothing")
    found = control_runs(workers, founding, "jax2tf-native", switches=[never, wrong, EXCESS])
    assert [run.verdict for run in found.runs] == [UNKNOWN, FAILED, RESTORES]
    assert "xla_no_such_flag" in found.runs[0].message
    (own,) = control_runs(workers, founding, "jit", switches=[never]).runs
    assert own.verdict == UNKNOWN


def test_a_flip_that_crashes_costs_that_run_alone(workers):
    """XLA of JAX 0.7.1 ends the process where the passes of `fma_residual` lack algsimp."""
    crashing = next(one for one in SWITCHES if one.value == "algsimp")
    found = control_runs(
        workers, case_named("fma_residual.yaml"), "jit", switches=[crashing, EXCESS]
    )
    assert [run.verdict for run in found.runs] == [FAILED, NO_EFFECT]
    assert found.runs[0].message.startswith("crashed: SIGSEGV")


def test_what_is_flipped_comes_on_top_of_what_a_variant_has(founding):
    variant = replace(
        next(iter(case_named("excess_precision.yaml", "roundings.product").variants.values())),
        variables={"XLA_FLAGS": "--xla_dump_max_hlo_modules=1"},
    )
    own = EXCESS.flipped(variant, ["compiler_options"], {})
    assert own.compiler_options == {**variant.compiler_options, EXCESS.name: False}
    process = ISA.flipped(variant, [], {"XLA_FLAGS": "--other"})
    assert process.variables["XLA_FLAGS"] == ("--xla_dump_max_hlo_modules=1 --xla_cpu_max_isa=AVX")


def test_no_time(workers, founding):
    found = control_runs(workers, founding, "jit", seconds=0)
    assert found.runs == ()
    assert EXCESS.how in found.left_out
