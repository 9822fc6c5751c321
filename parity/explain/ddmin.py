"""Delta debugging: a smallest set that still does something."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
Test = Callable[[Sequence[T]], bool]
"""Whether a subset, in the given order, still does it."""


class BudgetSpent(Exception):
    """No more tests may be made."""


def ddmin(members: Sequence[T], test: Test[T]) -> list[T]:
    """A subset that still passes the test and does not without any one of its members.

    Args:
        members: pass the test together.
        test: may raise `BudgetSpent`, which comes through.

    Source: A. Zeller, R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE
    Transactions on Software Engineering 28 (2002), figure 2.
    """
    kept, parts = list(members), 2
    while len(kept) >= 2:
        subsets = _split(kept, parts)
        smaller = next((subset for subset in subsets if test(subset)), None)
        if smaller is not None:
            kept, parts = smaller, 2
            continue
        complements = _complements(subsets) if parts > 2 else []
        smaller = next((rest for rest in complements if test(rest)), None)
        if smaller is not None:
            kept, parts = smaller, max(parts - 1, 2)
        elif parts < len(kept):
            parts = min(len(kept), 2 * parts)
        else:
            break
    return kept


def _split(members: Sequence[T], parts: int) -> list[list[T]]:
    """Consecutive parts of sizes as equal as can be, none empty."""
    bounds = [round(len(members) * i / parts) for i in range(parts + 1)]
    return [list(members[a:b]) for a, b in itertools.pairwise(bounds)]


def _complements(subsets: Sequence[Sequence[T]]) -> list[list[T]]:
    return [
        [one for j, other in enumerate(subsets) if j != i for one in other]
        for i in range(len(subsets))
    ]
