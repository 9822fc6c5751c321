"""Every fault that exact arithmetic can see is caught, and no honest evaluation is condemned."""

import pytest

from .campaign import examine, sample
from .contraction import SCHEMES
from .faults import FAULTS
from .table import report

FORMS = {"short": ((0,), 0.1), "full": ((1, 2, 3, 4), 0.35)}
"""Seeds, and the share of all contractions that each examines."""


@pytest.fixture(
    scope="module", params=["short", pytest.param("full", marks=pytest.mark.full)], ids=str
)
def form(request):
    return request.param


@pytest.fixture(scope="module")
def verdicts(form):
    seeds, share = FORMS[form]
    return [
        verdict
        for seed in seeds
        for contraction in sample(seed, share)
        for verdict in examine(contraction, seed)
    ]


def told(verdicts):
    return [f"{v.contraction}: {v.kind}: {v.grade}: {v.detail}" for v in verdicts]


def test_every_visible_fault_is_caught(verdicts, form, show):
    show(f"sensitivity, {form} form", report(verdicts))
    visible = [v for v in verdicts if v.planted and v.visible]
    assert {v.kind for v in visible} == set(FAULTS)
    assert told(v for v in visible if not v.caught) == []


def test_no_honest_evaluation_is_condemned(verdicts):
    """Graded `identical` or `equivalent`, and faithful, the baseline among them."""
    honest = [v for v in verdicts if not v.planted]
    assert {v.scheme for v in honest} == {scheme.name for scheme in SCHEMES}
    assert told(v for v in honest if v.condemned) == []


def test_an_honest_evaluation_is_never_visible(verdicts):
    """The yardstick itself condemns none."""
    assert told(v for v in verdicts if not v.planted and v.visible) == []


@pytest.mark.parametrize("terms", [1024, 4096])
@pytest.mark.parametrize("kind", ["bf16 operands", "TF32 operands"])
def test_narrow_operands_of_long_contractions_are_visible_and_caught(verdicts, kind, terms):
    found = [v for v in verdicts if v.planted and v.kind == kind and v.terms == terms]
    float32 = [v for v in found if v.scheme == "f32" and v.data == "normal"]
    assert len(float32) >= 2  # a dot and a conv
    assert all(v.visible for v in float32)
    assert told(v for v in found if v.visible and not v.caught) == []
