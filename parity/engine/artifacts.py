"""Artifacts of an earlier run, each for the case and path that it was exported of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from parity.casefile.case import Case
from parity.compare.rows import Row
from parity.engine.case_run import Artifacts
from parity.errors import UserError
from parity.record.artifacts import SHA256
from parity.record.cases import case_as_dict
from parity.record.encoding import dumps, loads
from parity.record.reader import Recorded
from parity.record.result import open_record

_SAVE = "parity run --save-artifacts --out DIR keeps them"
NAMED = 3
"""Cases that an error message names."""

_KEPT = (SHA256, "stablehlo_sha256", "graph_sha256")
_PACKAGES = ("jax", "jaxlib", "tensorflow")


class Past:
    """The artifacts of a record that were exported in one environment.

    Args:
        record: the file.
        environment: its name, None where the record has one only.

    Attributes:
        source: who wrote them, in words.

    Raises:
        UserError: it is no record, has no artifacts, or several environments.
    """

    def __init__(self, record: Path, environment: str | None = None) -> None:
        result = open_record(record)
        assert isinstance(result.cases, Recorded)
        self._record, self._cases = record, result.cases
        names = list(result.environments)
        if environment is None and len(names) > 1:
            raise UserError(
                f"{record}: has several environments ({', '.join(names)})",
                hint="name one with --artifacts-env",
            )
        if environment is not None and environment not in names:
            raise UserError(
                f"{record}: has no such environment (got {environment}; allowed {', '.join(names)})"
            )
        self._environment = environment or (names or [""])[0]
        facts = result.environments.get(self._environment, {})
        written = ", ".join(f"{name} {facts[name]}" for name in _PACKAGES if name in facts)
        self.source = f"written by {written} ({record.name})"
        found = {
            case: (at, _evidence(self._cases[at].rows))
            for at, (case, of) in enumerate(self._cases.keys)
            if of == self._environment
        }
        self._found = {case: one for case, one in found.items() if one[1]}
        if not self._found:
            raise UserError(f"{record}: has no artifacts", hint=_SAVE)

    @property
    def ids(self) -> tuple[str, ...]:
        """The cases that have an artifact."""
        return tuple(self._found)

    def of(self, case: Case) -> Artifacts:
        """The artifacts of a case, none if the record has none of it.

        Raises:
            UserError: it is another case by now.
        """
        if case.id not in self._found:
            return Artifacts(self.source, self._record)
        at, evidence = self._found[case.id]
        self._check_same(case, self._cases[at].case)
        return Artifacts(self.source, self._record, evidence)

    def check_any(self, selected: Iterable[tuple[Case, Sequence[str]]]) -> None:
        """Refuse a run that would execute no artifact at all.

        Args:
            selected: cases with the paths to run of each.

        Raises:
            UserError: the record has an artifact of none of them.
        """
        listed = list(selected)
        kept = {case.id: self._found[case.id][1] for case, _ in listed if case.id in self._found}
        if any(path in kept.get(case.id, ()) for case, paths in listed for path in paths):
            return
        if not kept:
            got, allowed = _first(case.id for case, _ in listed), _first(self._found)
            raise UserError(
                f"{self._record}: has artifacts of other cases (got {got}; allowed {allowed})"
            )
        got = _listed(path for case, paths in listed if case.id in kept for path in paths)
        allowed = _listed(path for paths in kept.values() for path in paths)
        raise UserError(
            f"{self._record}: has artifacts of other paths (got {got}; allowed {allowed})",
            hint=f"--paths {allowed.replace(', ', ',')}",
        )

    def _check_same(self, case: Case, then: Case) -> None:
        now, before = _computed(case), _computed(then)
        for what, value in now.items():
            if value != before[what]:
                raise UserError(
                    f"{case.id}: is another case than in {self._record}: its {what} differs "
                    f"(got {dumps(value)}; allowed {dumps(before[what])})",
                    hint="run the case as it was, or save its artifacts anew",
                )


def _first(ids: Iterable[str]) -> str:
    """Some ids of what may be thousands."""
    ids = list(ids)
    return ", ".join(ids[:NAMED]) + (", …" if len(ids) > NAMED else "")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _evidence(rows: Iterable[Row]) -> dict[str, dict[str, str]]:
    """By path, which artifact it exported, and of what program."""
    return {
        row.path: {name: row.evidence[name] for name in _KEPT if name in row.evidence}
        for row in rows
        if SHA256 in row.evidence
    }


def _computed(case: Case) -> dict[str, Any]:
    """What is computed, and of what, as JSON gives it back."""
    flat: dict[str, Any] = loads(dumps(case_as_dict(case)))
    for operand in flat["operands"]:
        operand["file"] = operand["file"] and Path(operand["file"]).name
    return {**flat["program"], "operands": flat["operands"]}
