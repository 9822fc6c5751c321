"""Cases, expectations and outcomes built by hand."""

from pathlib import Path

import pytest

from parity.casefile.case import Case, Expectation
from parity.program.spec import OperandSpec, ProgramSpec
from parity.worker.protocol import Failure, PathOutcome


def _case(**changes):
    spec = ProgramSpec(
        op="dot_general",
        operands=(OperandSpec("lhs", (2,), "float32"), OperandSpec("rhs", (2,), "float32")),
        compute_dtype=changes.pop("compute_dtype", "bfloat16"),
    )
    fields = {
        "id": "cases/d.yaml::d",
        "file": Path("/nowhere/cases/d.yaml"),
        "line": 1,
        "name": "d",
        "about": "",
        "links": (),
        "point": {},
        "program": spec,
        "operands": (),
        "paths": ("eager", "jit", "native"),
        "baseline": "eager",
    }
    return Case(**fields | changes)


def _expectation(paths, **changes):
    fields = {
        "paths": (paths,) if isinstance(paths, str) else paths,
        "outputs": None,
        "grades": None,
        "outcome": None,
        "stage": None,
        "match": None,
        "because": "known",
        "link": "https://example.org/1",
        "until": None,
        "when": {},
        "line": 30,
    }
    return Expectation(**fields | changes)


def _outcome(path, outputs):
    """Outputs by name, one array named "out", or a `Failure`."""
    if isinstance(outputs, Failure):
        return PathOutcome(path, failure=outputs)
    return PathOutcome(path, outputs=outputs if isinstance(outputs, dict) else {"out": outputs})


@pytest.fixture(scope="session")
def make_case():
    return _case


@pytest.fixture(scope="session")
def make_expectation():
    return _expectation


@pytest.fixture(scope="session")
def make_outcome():
    return _outcome
