"""What rows are accepted from: a record, or a comparison of two as `parity diff` writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parity.errors import UserError
from parity.record.encoding import loads
from parity.record.opening import see_that_it_is_there
from parity.report.diff.json import FORMAT

Place = tuple[str, str, str, str]
"""A case's id, an environment, a path and an output."""

_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Source:
    """A record, and what of it may be accepted.

    Attributes:
        record: the file.
        worse: of a comparison, the rows of B that changed, and whether they got worse; None where
            the record itself is the source.
    """

    record: Path
    worse: Mapping[Place, bool] | None = None


def opened(file: Path | str) -> Source:
    """The source that a file is.

    Raises:
        UserError: it is neither a record nor a comparison, or the record of its side B is gone.
    """
    file = Path(file)
    see_that_it_is_there(file)
    try:
        with file.open("rb") as stream:
            if stream.read(len(_SQLITE)) == _SQLITE:
                return Source(file)
        found = loads(file.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, json.JSONDecodeError):
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise UserError(
            f"{file}: is neither a record nor a comparison of two",
            hint="parity run --out DIR writes the one, parity diff A B --format json the other",
        )
    changes = (change for change in found["changes"] if change["outcome_b"] is not None)
    return Source(_record(file, found), {_place(change): change["worse"] for change in changes})


def _place(change: Mapping[str, Any]) -> Place:
    """Where B's row is: one that failed has no output, whatever A's had."""
    output = change["output"] if change["outcome_b"] == "ok" else ""
    return change["case"], change["environment_b"], change["path"], output


def _record(file: Path, found: Mapping[str, Any]) -> Path:
    """The record of side B: where the comparison names it, seen from here or from its file."""
    name = found["b"]["record"]
    if name is None:
        raise UserError(f"{file}: side B has no record")
    for place in (Path(name), file.parent / name):
        if place.is_file():
            return place
    raise UserError(
        f"{file}: the record of side B is not there (got {name})",
        hint="accept the record itself, or compare again",
    )
