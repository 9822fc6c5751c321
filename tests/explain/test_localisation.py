"""Localisation on real paths: where they leave what was declared, and how the error grows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import parity
from parity.engine.workers import Execution, Workers
from parity.explain import localisation
from parity.explain.localisation import localise
from parity.program.sites import Site
from parity.worker.protocol import Enclosure, PathOutcome, References

CASES = Path(__file__).parents[2] / "cases"


PLANTED = """\
import jax
import jax.numpy as jnp
from jax import lax


def model(x):
    y = jnp.abs(x) + 1
    with jax.named_scope("narrow"):
        y = y.astype(jnp.bfloat16)
        y = -y * y
    y = y.astype(jnp.float32)
    return jnp.maximum(y, x)


def looped(x):
    def step(carry, row):
        return carry, (row * row).astype(jnp.float32)

    return lax.scan(step, x[0], x.astype(jnp.bfloat16))[1]
"""


@pytest.fixture(scope="module")
def workers():
    with Workers() as running:
        yield running


def case_named(file, *parts):
    return next(c for c in parity.load(CASES / file).cases if all(p in c.id for p in parts))


@pytest.fixture(scope="module")
def founding():
    return case_named("conv_bf16.yaml", "bfloat16")


def test_the_founding_case_leaves_where_the_product_is_cast(workers, founding):
    found = localise(workers, founding, "jit")
    assert [step.site.primitive for step in found.steps] == [
        "convert_element_type",
        "convert_element_type",
        "conv_general_dilated",
        "convert_element_type",
        "add",
    ]
    assert found.first is found.steps[3]
    assert found.first.path.outside == 2
    (rounding,) = found.origin.roundings  # whoever observes the product gets it rounded
    assert rounding.site == found.steps[2].site
    assert rounding.place.startswith("the convolution (op of cases/conv_bf16.yaml:")
    assert found.origin.minimal
    assert found.disturbed == ()
    (total,) = found.totals
    exact = np.array(
        [-1.0932409763336182 * 1.25436434149742126, -1.2380176782608032 * 1.8453059196472168]
    )
    for error, values in (
        (total.against, [-1.3705847263336182, -2.2770800590515137]),
        (total.path, [-1.3709509372711182, -2.2795214653015137]),
    ):
        assert error.rms_rel == pytest.approx(
            np.linalg.norm(values - exact) / np.linalg.norm(exact), rel=1e-6
        )


def test_a_path_that_agrees_leaves_nowhere(workers, founding):
    found = localise(workers, founding, "jax2tf-nonnative")
    assert (found.first, found.origin) == (None, None)
    assert all(step.apart == 0 for step in found.steps)


def test_a_network_leaves_at_its_stem_and_the_blocks_add_to_it(workers):
    found = localise(workers, case_named("residual_cnn.yaml"), "jit")
    assert found.first.site.module == "ResidualCNN"
    line = (CASES / "residual_cnn.py").read_text().splitlines()[found.first.site.line - 1]
    assert "x.astype(jnp.float32)" in line
    assert found.first.place.startswith("cases/residual_cnn.py:")
    (rounding,) = found.origin.roundings
    assert (rounding.site.primitive, rounding.site.module) == (
        "conv_general_dilated",
        "ResidualCNN/Conv_0",
    )
    convolutions = [s for s in found.steps if s.site.primitive == "conv_general_dilated"]
    assert len(convolutions) == 7
    sums = [step for step in found.steps if step.site.primitive == "add"]
    assert [step.path.faithful for step in sums] == [False] * 3
    assert [step.against.faithful for step in sums] == [True] * 3
    assert sums[0].apart < sums[1].apart < sums[2].apart
    assert (found.left_out, found.failures) == ((), {})


def test_fewer_at_a_time_says_the_same(workers, founding):
    together = localise(workers, founding, "jit")
    apart = localise(workers, founding, "jit", together=1)
    assert apart.runs - together.runs == 4
    assert apart.steps == together.steps


def test_a_fused_product_leaves_nothing_declared(workers):
    """A licence to fuse a product with the sum after it is part of what is declared."""
    found = localise(workers, case_named("fma_residual.yaml"), "jit")
    assert found.totals[0].path.faithful
    assert found.steps
    assert found.first is None


@pytest.fixture
def planted(tmp_path):
    """Cases of the functions of `PLANTED`, of one operand x."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "planted.py").write_text(PLANTED)

    def case(function):
        file = tmp_path / f"{function}.yaml"
        file.write_text(
            f"about: A planted fault.\nprogram:\n  callable: planted:{function}\n"
            "operands:\n  x: {shape: [4, 16], dtype: float32, draw: normal}\n"
        )
        return parity.load(file).cases[0]

    return case


def line_of(part):
    (line,) = [n for n, one in enumerate(PLANTED.splitlines(), 1) if part in one]
    return line


def test_a_rounding_that_is_dropped_amid_a_program(workers, planted):
    found = localise(workers, planted("model"), "jit")
    (rounding,) = found.origin.roundings
    assert rounding.place == f"planted.py:{line_of('-y * y')} in model, in narrow"
    assert rounding.site.primitive == "mul"
    assert found.first.place == f"planted.py:{line_of('y.astype(jnp.float32)')} in model"
    before = found.steps[: found.steps.index(found.first)]
    assert len(before) >= 4
    assert all(step.path.faithful for step in before)


def test_a_loop_is_compiled_as_a_whole_op_by_op_too(workers, planted):
    """So both paths drop the rounding in it, and neither leaves what the other keeps."""
    found = localise(workers, planted("looped"), "jit")
    assert (found.first, found.origin) == (None, None)
    (cast,) = [s for s in found.steps if s.site.within == ("scan",) and s.dtype == "float32"]
    assert cast.place == f"planted.py:{line_of('row * row')} in looped.step"
    assert 0 < cast.path.outside == cast.against.outside <= 64  # of all steps of the loop
    assert not cast.against.faithful


@pytest.mark.usefixtures("fake_paths")
def test_operands_that_are_rounded_are_no_dropped_rounding():
    with Workers() as workers:
        found = localise(workers, case_named("dot_rows.yaml"), "fake-bf16-operands")
    assert found.first is found.steps[0]
    assert found.first.site.primitive == "dot_general"
    assert found.origin.roundings == ()
    assert found.origin.missing == "no result before it is narrower than float32"


@pytest.mark.usefixtures("fake_paths")
def test_where_every_observation_disturbs_the_output_alone_is_asked(founding):
    with Workers() as workers:
        found = localise(workers, founding, "fake-watched")
    assert found.disturbed == found.steps
    assert len(found.steps) == 5
    assert found.first is None  # what is observed is rounded
    (total,) = found.totals
    assert total.leaves
    assert [one.site.primitive for one in found.origin.roundings] == ["conv_general_dilated"]


def test_no_time_and_no_room(workers, founding):
    found = localise(workers, founding, "jit", seconds=0)
    assert (found.steps, found.left_out) == ((), ("0", "1", "2", "3", "4"))
    found = localise(workers, founding, "jit", elements=1)
    assert (found.steps, len(found.left_out)) == ((), 5)


def test_no_output(workers, founding):
    never = replace(founding, program=replace(founding.program, output_dtype="int2"))
    assert "eager has no output" in localise(workers, never, "jit").missing


class Shy:
    """Workers of a program 0, 1, 2 whose result changes as soon as equation 1 is observed."""

    def __init__(self):
        self.observed = []

    def execute(self, case, paths, environment=None, *, references=True):
        seen = case.program.observed
        outputs = {"out": np.float32([1.0 if "1" in seen else 2.0])}
        outputs |= {f"observed.{one}": np.float32([1.0]) for one in seen}
        if not references:
            self.observed.append(seen)
        baseline = {name: np.float32([1.0]) for name in outputs}
        outcomes = [PathOutcome(p, baseline if p == "eager" else outputs) for p in paths]
        exact = {name: Enclosure(array, array, array) for name, array in baseline.items()}
        wide = {n: Enclosure(*[a.astype(np.float64)] * 3) for n, a in baseline.items()}
        return Execution("default", tuple(outcomes), References(f64=wide, strict=exact))


def test_an_observation_that_changes_the_outputs(founding, monkeypatch):
    """What disturbs is found among those observed with it, which are then observed without it."""
    sites = tuple(Site(str(n), "mul", ("float32",), ((1,),)) for n in range(3))
    monkeypatch.setattr(localisation, "equations", lambda *args: sites)
    shy = Shy()
    found = localise(shy, founding, "jit")
    assert [step.disturbed for step in found.steps] == [False, True, False]
    assert [step.site.address for step in found.disturbed] == ["1"]
    assert shy.observed == [("0", "1", "2"), ("0",), ("1", "2"), ("1",), ("2",)]
    assert found.totals[0].path.outside == 1
