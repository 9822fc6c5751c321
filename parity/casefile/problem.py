"""What is wrong with a case file, before the place in the file is known."""

from __future__ import annotations

import datetime
import difflib
import json
from collections.abc import Iterable

Location = tuple[str | int, ...]
"""Keys and indices from the root of the file: ("operands", "lhs", "shape", 0)."""

_LONGEST = 60


class Problem(Exception):
    """Something wrong at a location of the document.

    Attributes:
        what: what is wrong, "(got X; allowed …)" included.
        at: where; the deepest part of it that the file has is shown.
        instead: where, if the file lacks `at` (the other spelling of a field).
        hint: how to mend it.
        key: whether the key is meant rather than its value.
    """

    def __init__(
        self,
        what: str,
        at: Location = (),
        *,
        instead: Location | None = None,
        hint: str | None = None,
        key: bool = False,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.at = at
        self.instead = instead
        self.hint = hint
        self.key = key


def spell(at: Location) -> str:
    """A location as people write it: `operands.lhs.shape[0]`."""
    text = ""
    for part in at:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text or "the file"


def show(value: object) -> str:
    """A value as YAML spells it on one line, shortened to 60 characters."""
    if isinstance(value, datetime.date):
        text = value.isoformat()
    elif isinstance(value, str):
        text = f"'{value}'"
    else:
        text = json.dumps(value, default=str, ensure_ascii=False)
    text = text.replace("\n", "\\n")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def listed(names: Iterable[object]) -> str:
    """Names for "allowed …", in their order."""
    return ", ".join(str(name) for name in names)


def did_you_mean(name: object, allowed: Iterable[str]) -> str | None:
    """The hint for a name that is close to an allowed one, None if none is."""
    near = nearest(name, allowed)
    return None if near is None else f"did you mean '{near}'?"


def nearest(name: object, allowed: Iterable[str]) -> str | None:
    """The allowed name that is close to a name, None if none is."""
    known = list(allowed)
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.6)
    if near:
        return near[0]
    return {one.casefold(): one for one in known}.get(str(name).casefold())
