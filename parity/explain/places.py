"""Where an equation of a program was written, as a reader would look it up."""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath

from parity.casefile.case import Case
from parity.casefile.document import read
from parity.casefile.ops import FIELDS
from parity.errors import CaseFileError
from parity.program.sites import Site

_NOUNS = {"conv_general_dilated": "the convolution", "dot_general": "the dot"}


def place(case: Case, site: Site) -> str:
    """The line of an equation.

    Of the user's code `cases/model.py:12 in __call__`; of a library's its line and that of the case
    file which asks for it; of an op that the case file names that line alone. The flax module or
    named scope stands behind it.
    """
    file = PurePosixPath(case.id.partition("::")[0])
    field = _field(case)
    asked = f"{field} of {file}:{_line(case.file, field) or case.line}"
    if site.own:
        beside = not Path(site.file).is_absolute()
        shown = f"{file.parent / site.place}" if beside else site.place
    elif site.file:
        shown = f"{site.place}, {asked}"
    else:
        shown = f"{_noun(site)} ({asked})"
    return f"{shown}, in {site.module}" if site.module else shown


def _noun(site: Site) -> str:
    if site.primitive == "convert_element_type":
        return f"the cast to {site.dtypes[0]}, equation {site.address}"
    return _NOUNS.get(site.primitive, f"{site.primitive}, equation {site.address}")


def _field(case: Case) -> str:
    """The field of a case file that says what is computed."""
    return next((field for field, name in FIELDS.items() if name == case.program.op), "op")


@cache
def _line(file: Path, field: str) -> int | None:
    """The line of a field of a case file, None where that cannot be read."""
    try:
        return read(file).place((field,), key=True)[0]
    except (CaseFileError, OSError):
        return None
