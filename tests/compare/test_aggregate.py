"""The aggregate test where the honest orders say little: rare roundings, and the luck of a few."""

import numpy as np
import pytest

from parity.compare.standing import standing
from parity.worker.protocol import Enclosure, References, Spread

F32 = np.float32
STEP = 2.0**-22
POINT = 1 + np.arange(64, dtype=F32) * F32(2.0**-7)
NONE = Spread(0.0, 0.0, 0.0)


def in_steps(one):
    return Spread(one.rms * STEP, one.mean * STEP, one.moved)


def aggregate(errors, *honest, jolted=None, erring=()):
    """What it finds of `POINT` with errors of so many steps, each element inside its interval."""
    got = (POINT + np.asarray(errors, float) * STEP).astype(F32)
    reach = F32(64 * STEP)
    strict = Enclosure(POINT, POINT - reach, POINT + reach)
    ideal = Enclosure(*(x.astype(float) for x in (strict.point, strict.lo, strict.hi)))
    orders, functions = (
        {str(i): in_steps(one) for i, one in enumerate(several)} for several in (honest, erring)
    )
    references = References(
        f64={"out": ideal},
        strict={"out": strict},
        honest={"out": orders},
        jolted={} if jolted is None else {"out": in_steps(jolted)},
        erring={"out": functions},
    )
    found = standing(got, "out", references)
    assert found.inside.all()
    return found.aggregate


def moved(count, size=1.0):
    """Errors of alternating sign in the first elements."""
    return size * np.where(np.arange(64) % 2, -1.0, 1.0) * (np.arange(64) < count)


@pytest.mark.parametrize("honest", [NONE, Spread(1 / 8, 1 / 64, 1 / 64)], ids=["none", "one"])
def test_up_to_four_elements_may_move_by_chance(honest):
    """Honest orders move no element or one of 64, by one step; these are farther."""
    assert aggregate(moved(4, size=30), honest) == ""
    assert aggregate(moved(5, size=30), honest).startswith("rms distance")


def test_nine_may_move_as_far_as_the_one_of_an_honest_order():
    """Three times the rms of one; four more are chance."""
    one = Spread(1 / 8, 1 / 64, 1 / 64)
    assert aggregate(moved(12), one) == ""
    assert aggregate(moved(16), one).startswith("rms distance")


def test_every_element_counts_where_honest_orders_move_most():
    """One of 60 steps: rms 7.5, of 3 allowed."""
    assert aggregate(moved(1, size=60), Spread(1.0, 0.0, 0.9)).startswith("rms distance")


def test_one_rounding_error_in_each_sum_is_no_fault_although_no_order_tried_had_any():
    errors = moved(20, size=0.5)
    assert aggregate(errors, NONE, NONE).startswith("rms distance")
    assert aggregate(errors, NONE, NONE, jolted=Spread(1.0, 0.0, 1.0)) == ""
    assert aggregate(moved(64, size=4), NONE, jolted=Spread(1.0, 0.0, 1.0)) != ""


def test_errors_with_a_mean_that_their_own_size_explains_are_no_bias():
    """40 errors of 2.5 steps one way, 24 the other: mean 0.625, standard error 2.5 / 8."""
    errors = np.where(np.arange(64) < 40, 2.5, -2.5)
    assert np.mean(errors) == 0.625 > 4 * 1.0 / 8
    assert aggregate(errors, Spread(1.0, 0.0, 0.9)) == ""
    assert aggregate(np.full(64, 2.5), Spread(1.0, 0.0, 0.9)).startswith("mean signed distance")


ALL = moved(64)


def test_stated_errors_of_functions_come_once_on_top_of_the_orders():
    """3 · 1 of the orders and 4: rms 7 may be, 8 may not."""
    orders, functions = Spread(1.0, 0.0, 0.9), (Spread(4.0, 0.5), Spread(2.0, -1.0))
    assert aggregate(7 * ALL, orders, erring=functions) == ""
    assert aggregate(8 * ALL, orders, erring=functions) == (
        "rms distance from strict 1.907e-06, honest orders at most 2.384e-07, "
        "functions as stated 9.537e-07"
    )


def test_so_does_their_bias():
    """All errors of one sign: 3 · 1 of the orders' mean and 2 of the functions'."""
    orders, functions = Spread(2.0, 1.0, 0.9), [Spread(2.0, -2.0)]
    assert aggregate(np.full(64, 5.0), orders, erring=functions) == ""
    assert aggregate(np.full(64, 6.0), orders, erring=functions).startswith("mean signed distance")


def test_functions_after_a_narrow_rounding_err_where_no_order_moves_anything():
    """Four ties that fall the other way are chance, the rest is what is stated."""
    errors = np.where(moved(4) != 0, 40.0 * ALL, 2.0 * ALL)
    assert aggregate(errors, NONE, erring=[Spread(2.0, 0.0)]) == ""
    assert aggregate(errors, NONE).startswith("rms distance")
    assert aggregate(errors, NONE, erring=[Spread(1.5, 0.0)]).startswith("rms distance")


def test_ties_that_stated_errors_tip_are_chance_or_explain_all_but_not_both():
    """Stated errors move four elements by 8 steps, rms 2."""
    few = [Spread(2.0, 0.0, 4 / 64)]
    assert aggregate(moved(4, size=8), NONE, erring=few) == ""
    assert aggregate(moved(4, size=30), NONE, erring=few) == ""
    assert aggregate(moved(6, size=6), NONE, erring=few) == ""
    assert aggregate(moved(8, size=8), NONE, erring=few).startswith("rms distance")
