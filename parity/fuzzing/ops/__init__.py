"""The ops that can be fuzzed: one file each, found by listing this package.

Each has a function `cases()`: a Hypothesis strategy of the fields of a case file, `op`, `operands`,
`attributes` and others. What does not fit together after all, the loader refuses.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


@cache
def names() -> tuple[str, ...]:
    """The ops that have a strategy, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def cases(op: str) -> SearchStrategy[dict[str, Any]]:
    """Random case files of an op.

    Raises:
        KeyError: it has no strategy.
    """
    if op not in names():
        raise KeyError(op)
    found: SearchStrategy[dict[str, Any]] = import_module(f"{__name__}.{op}").cases()
    return found
