"""Artifacts: what one process writes of a program and another one executes."""

import numpy as np
import pytest

from parity import paths
from parity.paths import Exported, Probe
from parity.program.build import build
from parity.program.spec import OperandSpec, ProgramSpec
from parity.worker import artifact

SPEC = ProgramSpec(
    "dot_general",
    (OperandSpec("lhs", (2,), "float32"), OperandSpec("rhs", (2,), "float32")),
    {"dimension_numbers": (((0,), (0,)), ((), ()))},
)
OPERANDS = np.float32([1, 2]), np.float32([3, 4])


class Noted(Exported):
    """Writes the program's precision down; what it gives depends on it if told to."""

    name = "noted"
    reader = "noted"

    def __init__(self, *, obeys):
        self.obeys = obeys

    def export(self, program, folder, probe):
        (folder / "precision").write_text(str(program.spec.attributes.get("precision")))

    def execute(self, folder, inputs, probe):
        asked = (folder / "precision").read_text()
        return [np.float32(len(inputs) + (self.obeys and asked == "highest"))]


def written(path, spec, folder):
    program = build(spec)
    found = artifact.write(path, program, str(folder), Probe())
    if asked := program.precisions():
        artifact.write_control(path, program.without_precisions(), found, Probe(), asked)
    return found


@pytest.mark.parametrize("obeys", [True, False])
def test_a_precision_without_effect_is_noted_where_it_is_executed(tmp_path, obeys):
    path = Noted(obeys=obeys)
    highest = ProgramSpec(SPEC.op, SPEC.operands, {**SPEC.attributes, "precision": "highest"})
    probe = Probe()
    outputs = artifact.execute(path, written(path, highest, tmp_path), OPERANDS, probe)
    assert outputs == {"out": 3 if obeys else 2}
    said = probe.evidence.get("no_effect")
    assert said == (None if obeys else "precision highest: accepted, no effect here")


def test_a_manifest_says_what_is_needed_to_execute_it(tmp_path):
    path = Noted(obeys=False)
    found = artifact.Manifest.of(written(path, SPEC, tmp_path))
    assert (found.path, found.reader, found.outputs, found.asked) == ("noted", "noted", ["out"], [])


def test_parameters_travel_with_the_program(tmp_path):
    spec = ProgramSpec(
        "flax",
        (OperandSpec("inputs", (1, 3), "float32"),),
        {
            "module": "flax.linen:Dense",
            "kwargs": {"features": 2},
            "parameters": {"seed": 0},
            "intermediates": False,
        },
    )
    program = build(spec)
    operand = np.float32([[1, 2, 3]])
    folder = artifact.write(paths.get("export"), program, str(tmp_path), Probe())
    (out,) = artifact.execute(paths.get("export"), folder, (operand,), Probe()).values()
    want = operand @ program.drawn["params.kernel"] + program.drawn["params.bias"]
    np.testing.assert_allclose(out, want, rtol=1e-6)
