"""What makes two results of one case answers to different questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parity.casefile.case import Case
from parity.compare.rows import Row
from parity.record.cache import NOT_IN_KEY
from parity.record.cases import case_as_dict
from parity.record.encoding import dumps
from parity.report.numbers import metric

CASE = "case changed"
OPERANDS = "operands changed"
FLAGS = "flags changed"
REFERENCE = "reference changed"
KINDS = (CASE, OPERANDS, FLAGS, REFERENCE)
"""Why rows are not compared.

case changed: something in its definition that can change bits or grades, which expectations, texts,
    links and the choice of paths cannot.
operands changed: how their bits come about. The contents of an array file are not part of a
    record: where they changed, the reference did.
flags changed: a path of the same name is run with others.
reference changed: the f64 outputs are farther apart than the sum of their own errors, or it cannot
    be told whether they are.
"""

_LONGEST = 60


@dataclass(frozen=True)
class Reason:
    """Why something is not compared: one of `KINDS`, and what changed."""

    kind: str
    text: str


def of_case(a: Case, b: Case) -> Reason | None:
    """Why two cases of one id are not the same question, None if they are."""
    old, new = _definition(a), _definition(b)
    changed = [name for name in sorted({*old, *new}) if _text(old, name) != _text(new, name)]
    if not changed:
        return None
    texts = (f"{name}: {_short(old, name)} became {_short(new, name)}" for name in changed)
    return Reason(OPERANDS if changed == ["operands"] else CASE, "; ".join(texts))


def of_path(a: Case, b: Case, path: str) -> Reason | None:
    """Why a path of two cases is not the same one, None if it is."""
    old, new = (case_as_dict(case)["variants"] for case in (a, b))
    if _text(old, path) == _text(new, path):
        return None
    return Reason(FLAGS, f"{path}: {_short(old, path)} became {_short(new, path)}")


def _definition(case: Case) -> dict[str, Any]:
    """What can change bits or grades of every path, the program a field at a time."""
    flat = case_as_dict(case)
    whole = {
        name: value
        for name, value in flat.items()
        if name not in NOT_IN_KEY and name not in ("variants", "program")
    }
    return whole | {f"program.{name}": value for name, value in flat["program"].items()}


def _text(flat: Mapping[str, Any], name: str) -> str:
    return dumps(flat[name]) if name in flat else "nothing"


def _short(flat: Mapping[str, Any], name: str) -> str:
    text = _text(flat, name)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


@dataclass(frozen=True)
class Reference:
    """The f64 reference of one output on one side.

    Attributes:
        row: of it.
        array: reads its bits, None where they are not at hand.
    """

    row: Row
    array: Callable[[], np.ndarray | None]


def of_references(
    a: Mapping[str, Reference], b: Mapping[str, Reference], missing: Sequence[str]
) -> Iterator[tuple[str, Reason]]:
    """The outputs whose references are not the same, each with the reason.

    Args:
        a: A's references by output, those that failed left out.
        b: B's, likewise.
        missing: what is said of a missing reference in A and in B, "" where nothing is.
    """
    for output in dict.fromkeys((*a, *b)):
        if output in a and output in b:
            text = _apart(a[output], b[output])
        else:
            lacking = "A" if output not in a else "B"
            text = ": ".join(filter(None, (f"no f64 in {lacking}", missing[lacking == "B"])))
        if text:
            yield output, Reason(REFERENCE, text)


def _apart(a: Reference, b: Reference) -> str:
    """How two references differ beyond their own errors, "" if they do not."""
    if a.row.sha256 == b.row.sha256:
        return ""
    forms = [f"{row.dtype}{list(row.shape or ())}" for row in (a.row, b.row)]
    if forms[0] != forms[1]:
        return f"f64 was {forms[0]} and is {forms[1]}"
    old, new = a.array(), b.array()
    if old is None or new is None:
        lacking = [name for name, array in (("A", old), ("B", new)) if array is None]
        return f"f64 differs, and its bits were not kept in {' and '.join(lacking)}"
    if a.row.own_error is None or b.row.own_error is None:
        return "f64 differs, and its own error is not known"
    own = a.row.own_error + b.row.own_error
    gap = largest_gap(old, new)
    if gap <= own:
        return ""
    return f"f64 differs by {metric(gap)}, of which its own error explains {metric(own)}"


def largest_gap(a: np.ndarray, b: np.ndarray) -> float:
    """The largest |a - b| over two arrays of one form; infinite where one side is not finite.

    Args:
        a: any shape; float64, complex128, int64, uint64 or bool.
        b: the same shape and dtype.
    """
    with np.errstate(all="ignore"):
        equal = (a == b) | ((a != a) & (b != b))
        left, right = a[~equal], b[~equal]
        if not left.size:
            return 0.0
        if a.dtype.kind == "b":
            return 1.0
        if a.dtype.kind in "iu":
            return float(max(abs(int(x) - int(y)) for x, y in zip(left, right, strict=True)))
        gap = np.abs(left - right)
    return float(np.where(np.isnan(gap), np.inf, gap).max())
