"""What a worker does with requests, without a process around it."""

import numpy as np
import pytest

from parity.paths import Path
from parity.program.spec import OperandSpec, ProgramSpec
from parity.worker import process, serve
from parity.worker.protocol import pack

SPEC = ProgramSpec(
    "dot_general",
    (OperandSpec("lhs", (2,), "float32"), OperandSpec("rhs", (2,), "float32")),
    {"dimension_numbers": (((0,), (0,)), ((), ()))},
)
HIGH = ProgramSpec(SPEC.op, SPEC.operands, {**SPEC.attributes, "precision": "high"})
HIGHEST = ProgramSpec(SPEC.op, SPEC.operands, {**SPEC.attributes, "precision": "highest"})


class Place:
    """Stands for `process.Post`, which would take over this process's stderr."""

    def __init__(self, folder):
        self.folder = folder

    def announce(self, stage):
        pass


class Counting(Path):
    """Gives 11, or 12 where the program asks for the highest precision."""

    name = "counting"

    def __init__(self):
        self.ran = []

    def run(self, program, inputs, probe):
        setting = program.spec.attributes.get("precision")
        self.ran.append(setting)
        return [np.float32(12 if setting == "highest" else 11)]


@pytest.fixture
def path(monkeypatch):
    counting = Counting()
    for module in (serve, process):
        monkeypatch.setattr(module, "path_named", lambda name: counting)
    process.unsupported.cache_clear()
    yield counting
    process.unsupported.cache_clear()


@pytest.fixture
def server(tmp_path):
    return serve.Server(Place(str(tmp_path)))


def evidence(server, spec, lhs=(1, 2)):
    inputs = {"0": pack(np.float32(lhs)), "1": pack(np.float32([3, 4]))}
    server.case({"spec": spec.to_wire(), "inputs": inputs})
    answer = server.path({"path": "counting", "options": {}, "memory": None})
    assert answer["failure"] is None
    return answer["evidence"]


def test_a_precision_without_effect_is_noted(server, path):
    assert evidence(server, HIGH) == {"no_effect": "precision high: accepted, no effect here"}
    assert path.ran == ["high", None]


def test_a_precision_with_an_effect_is_not(server, path):
    assert evidence(server, HIGHEST) == {}


def test_without_a_precision_there_is_nothing_to_note(server, path):
    assert evidence(server, SPEC) == {}
    assert path.ran == [None]


def test_the_control_run_is_made_once_for_a_program_and_its_operands(server, path):
    for spec in (SPEC, HIGH, HIGHEST, HIGH):
        evidence(server, spec)
    assert path.ran == [None, "high", "highest", "high"]
    evidence(server, HIGH, lhs=(5, 6))
    assert path.ran[4:] == ["high", None]
