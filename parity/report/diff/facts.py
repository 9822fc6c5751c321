"""The two sides of a comparison, and how their environments differ, a fact at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

LISTS = ("cpu", "XLA_FLAGS", "TF_XLA_FLAGS")
"""Facts whose value is a list of words: what was added and removed says more than both lists."""

_OF_RUN = ("parity", "commit")
"""What may differ between two runs beside their environments: parity itself, the case files."""


def no_program(sha256: str) -> str | None:
    """Where no texts are kept."""
    return None


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two that are compared.

    Attributes:
        record: the file, None for a run that no file keeps.
        environment: its name.
        facts: what paths ran in: versions, platform, CPU, flags.
        run: what is noted of the run: parity (its version), started, commit, …
        missing: how many of the results that the run was to have are not there, of all
            environments; it was interrupted, or goes on.
        program: the canonical text of what was compiled, by its SHA-256; None if it was not kept.
    """

    record: str | None
    environment: str
    facts: Mapping[str, str]
    run: Mapping[str, str]
    missing: int = 0
    program: Callable[[str], str | None] = field(default=no_program, repr=False, compare=False)

    @property
    def parity(self) -> str:
        """Version of the parity that wrote it, "" if that is not known."""
        return self.run.get("parity", "")


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact of the environments, or of the runs, that is not the same.

    Attributes:
        name: "jax", "cpu", "XLA_FLAGS", "parity", …
        a: its value in A, None where A lacks it.
        b: its value in B, likewise.
        removed: of a value that is a list (CPU features, flags) the entries that only A has.
        added: the entries that only B has.
    """

    name: str
    a: str | None
    b: str | None
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def compare_facts(a: Side, b: Side) -> tuple[FactChange, ...]:
    """What is not the same, in the order in which it is noted of A."""
    return (*_changes(a.facts, b.facts), *_changes(_of_run(a), _of_run(b)))


def _of_run(side: Side) -> dict[str, str]:
    return {name: side.run[name] for name in _OF_RUN if name in side.run}


def _changes(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[FactChange, ...]:
    names = (name for name in dict.fromkeys((*a, *b)) if a.get(name) != b.get(name))
    return tuple(_change(name, a.get(name), b.get(name)) for name in names)


def _change(name: str, a: str | None, b: str | None) -> FactChange:
    if name not in LISTS:
        return FactChange(name, a, b)
    old, new = (a or "").split(), (b or "").split()
    return FactChange(
        name,
        a,
        b,
        removed=tuple(word for word in old if word not in new),
        added=tuple(word for word in new if word not in old),
    )
