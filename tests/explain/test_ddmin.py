"""Delta debugging finds what planted tests need, and nothing more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.explain.ddmin import BudgetSpent, ddmin


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
def test_the_members_that_are_needed_are_found(planted):
    count, needed = planted
    tested = []

    def test(some):
        tested.append(tuple(some))
        return needed <= set(some)

    kept = ddmin(range(count), test)
    assert kept == sorted(needed) or (not needed and len(kept) == 1)
    assert all(list(some) == sorted(some) for some in tested)


@given(st.lists(st.sets(st.integers(0, 19), min_size=1), min_size=1, max_size=4))
def test_of_several_sufficient_sets_one_is_found_that_is_minimal(sufficient):
    def test(some):
        return any(one <= set(some) for one in sufficient)

    kept = ddmin(range(20), test)
    assert test(kept)
    assert not any(test([o for o in kept if o != one]) for one in kept)


def test_one_of_a_thousand_takes_about_twice_the_logarithm():
    count = 0

    def test(some):
        nonlocal count
        count += 1
        return 700 in some

    assert ddmin(range(1024), test) == [700]
    assert count <= 20


def test_a_budget_that_is_spent_comes_through():
    def test(some):
        raise BudgetSpent

    with pytest.raises(BudgetSpent):
        ddmin(range(4), test)
