"""Cases, expectations and outcomes built by hand."""

from pathlib import Path

import pytest

from parity.casefile.case import Case, Expectation
from parity.program.spec import OperandSpec, ProgramSpec
from parity.worker.protocol import Enclosure, Failure, PathOutcome, References


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


def _enclosed(value):
    """An `Enclosure` itself, (point, lo, hi), or an array about which nothing is uncertain."""
    if isinstance(value, Enclosure):
        return value
    return Enclosure(*value) if isinstance(value, tuple) else Enclosure(value, value, value)


def _references(*, f64=None, strict=None, licensed=None, models=None, **fields):
    """References of one output named "out"; every one as in `_enclosed`, masks as arrays."""
    made = {
        name: {"out": _enclosed(value)}
        for name, value in (("f64", f64), ("strict", strict))
        if value is not None
    }
    for kind, several in (("licensed", licensed), ("models", models)):
        made[kind] = {name: {"out": _enclosed(value)} for name, value in (several or {}).items()}
    per_output = {name: {"out": value} for name, value in fields.items()}
    return References(**made, **per_output)


@pytest.fixture(scope="session")
def make_references():
    return _references


@pytest.fixture(scope="session")
def make_case():
    return _case


@pytest.fixture(scope="session")
def make_expectation():
    return _expectation


@pytest.fixture(scope="session")
def make_outcome():
    return _outcome
