from __future__ import annotations

from itertools import pairwise

from parity.commands.codes import worst


def test_exit_codes_take_precedence_in_order() -> None:
    codes = [0, 5, 1, 2, 3, 130]
    for weaker, stronger in pairwise(codes):
        assert worst([weaker, stronger]) == worst([stronger, weaker]) == stronger
