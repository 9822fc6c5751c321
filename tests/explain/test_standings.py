"""How an output stands under each model: elements, rms distance, tightness."""

import numpy as np
import pytest

from parity.explain.standings import enclosure_of, includes, order, split, standings
from parity.reference.models import NAMES
from parity.worker.protocol import Enclosure, Latitude, References

from .campaign import interpreted


def exactly(*values, dtype=np.float32):
    point = np.array(values, dtype)
    return Enclosure(point, point, point)


def between(low, high):
    low, high = np.asarray(low, np.float32), np.asarray(high, np.float32)
    return Enclosure(((low + high) / 2).astype(np.float32), low, high)


def references(strict, models, **fields):
    return References(
        f64={"out": strict},
        strict={"out": strict},
        models={name: {"out": one} for name, one in models.items()},
        **fields,
    )


def stands(got, of):
    found = standings(np.asarray(got, np.float32), "out", of)
    return {one.name: one for one in found}


def test_elements_outside_and_bits_left_open():
    models = {"wide": exactly(1, 2, 4), "excess-precision": between([1, 1, 1], [1.5, 2, 5])}
    found = stands([1, 2, 3], references(exactly(0, 0, 3), models))
    assert (found["strict"].outside, found["strict"].total) == (2, 3)
    assert found["wide"].outside == 1
    assert found["excess-precision"].outside == 0
    assert found["wide"].openness == 0
    # widths of 0.5, 1 and 4 in ulps of 1.5, 2 and 5: 2**-23, 2**-22 and 2**-21
    want = np.mean([np.log2(1 + 2.0**22), np.log2(1 + 2.0**22), np.log2(1 + 2.0**23)])
    assert found["excess-precision"].openness == pytest.approx(want)


def test_a_model_that_says_what_strict_says_is_no_rival():
    assert set(stands([1, 2], references(exactly(1, 2), {"wide": exactly(1, 2)}))) == {"strict"}


def test_intervals_that_leave_the_sign_open_are_vacuous():
    strict = exactly(1, 2)
    assert stands([5, 5], references(strict, {"wide": between([-6, -6], [6, 6])}))["wide"].vacuous
    assert not stands([5, 5], references(strict, {"wide": between([0, 0], [6, 6])}))["wide"].vacuous
    endless = Enclosure(strict.point, np.float32([1, -np.inf]), np.float32([1, np.inf]))
    assert stands([1, 7], references(strict, {"fast-math": endless}))["fast-math"].vacuous
    assert not stands([7, 2], references(strict, {"fast-math": endless}))["fast-math"].vacuous


def test_all_elements_together():
    """The interval is 1 wide, honest orders reach 0.001: 0.01 off everywhere is too far."""
    point = np.linspace(1, 2, 32).astype(np.float32)
    loose = Enclosure(point, point - 0.5, point + 0.5)
    strict = Enclosure(-point, -point, -point)
    of = references(
        strict, {"wide": loose}, latitudes={"wide": {"out": Latitude(0.001, 1.0, 0.002)}}
    )
    near, far = (stands(point + np.float32(d), of)["wide"] for d in (0.004, 0.01))
    assert near.outside == far.outside == 0
    assert near.apart == pytest.approx(0.004 / 0.005, rel=1e-3)
    assert far.apart == pytest.approx(2, rel=1e-3)
    assert near.holds
    assert not far.holds
    # in effect the interval is as wide as that: 2 · 0.005 and not 1
    spacing = np.where(point + 0.5 < 2, 2.0**-23, 2.0**-22)
    assert near.openness == pytest.approx(np.mean(np.log2(1 + 0.01 / spacing)), rel=1e-3)


def test_few_elements_are_not_asked_together():
    of = references(
        exactly(0, 0),
        {"wide": between([0, 0], [2, 2])},
        latitudes={"wide": {"out": Latitude(1e-9, 1.0, 0.0)}},
    )
    assert stands([1.5, 1], of)["wide"].apart is None


def test_undecided_elements_are_left_out():
    mask = np.array([True, False])
    of = references(exactly(0, 0), {"wide": exactly(1, 2)}, open={"wide": {"out": mask}})
    found = stands([9, 2], of)["wide"]
    assert (found.outside, found.total) == (0, 1)


def test_licences_stand_under_their_own_names():
    x = np.random.default_rng(0).standard_normal((3, 40)).astype(np.float32)
    of = interpreted(lambda a, b, c: a * b + c / 3, tuple(x))
    names = set(stands(x[0], of))
    assert {"fma-contraction", "reciprocal", "fma+reciprocal"} <= names
    fused, granted = enclosure_of(of, "out", "fma-contraction"), of.licensed["fma"]["out"]
    np.testing.assert_array_equal(fused.lo, granted.lo)
    assert enclosure_of(of, "out", "nothing of it") is of.strict["out"]


def test_names_and_their_order():
    assert split("double-rounding (float16)") == ("double-rounding", "float16")
    assert split("excess-precision") == ("excess-precision", "")
    assert split("fma+reciprocal") == ("fma+reciprocal", "")
    places = [order(name) for name in NAMES]
    assert places == sorted(places)
    assert order("reciprocal") < order(NAMES[0])


def test_what_is_included():
    assert includes(between([0], [2]), exactly(1))
    assert not includes(exactly(1), between([0], [2]))
    assert includes(exactly(1), exactly(1))
    nan = exactly(np.nan)
    assert includes(nan, nan)
