"""Which way a path's output changed, and which ways are worse."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from parity.casefile.case import GRADES
from parity.casefile.problem import did_you_mean
from parity.errors import UserError

if TYPE_CHECKING:
    from parity.compare.metrics import Metrics
    from parity.compare.rows import Row

NEW_ERROR = "new error"
MISMATCHED = "newly mismatched"
INACCURATE = "newly inaccurate"
DIVERGENT = "newly divergent"
UNSUPPORTED = "newly unsupported"
FARTHER = "farther from f64"
EQUIVALENT = "newly equivalent"
OTHER_FAILURE = "other failure"
OTHER_BITS = "same grade but other bits"
CLOSER = "closer to f64"
BETTER = "better grade"
FIXED = "fixed"
RECOVERED = "recovered"
GONE = "gone"
NEW = "new"

DIRECTIONS = (
    NEW_ERROR,
    MISMATCHED,
    INACCURATE,
    DIVERGENT,
    UNSUPPORTED,
    FARTHER,
    EQUIVALENT,
    OTHER_FAILURE,
    OTHER_BITS,
    CLOSER,
    BETTER,
    FIXED,
    RECOVERED,
    GONE,
    NEW,
)
"""Every way in which a row may change, the worst first.

new error: an error, a timeout, exhausted memory or a crash, where there was an output, or a failure
    that does less harm (in this order).
newly mismatched, newly inaccurate, newly divergent: the grade fell to that; also an output of
    another dtype or shape than before, and a failure that became a number of the first two.
newly unsupported: the path can no longer run this, and gave an output before.
farther from f64, closer to f64: the same grade, see `nearer`.
newly equivalent: no longer the baseline's bits, but what is declared.
other failure: no output before and none now, for another reason that does no more harm: an error
    at another stage, or what was an error is unsupported.
same grade but other bits: that, and no closer or farther.
better grade: better than before without being `fixed`.
fixed: was divergent or worse, is equivalent or identical.
recovered: a failure that became an output. An inaccurate or mismatched one is none: a wrong number
    in place of an error warns nobody.
gone, new: only one side has the row.
"""

WORSE = frozenset((NEW_ERROR, MISMATCHED, INACCURATE, DIVERGENT, UNSUPPORTED, FARTHER))
"""The directions that make the exit code 1 unless an expectation of B's case file accepts what the
row became. `gone` is none of them: what was not asked for did not get worse."""

GOOD = frozenset((CLOSER, BETTER, FIXED, RECOVERED))
"""The directions that are better."""

FAILING = GRADES.index("divergent")
TELLING = 0.01
"""Share by which two errors must differ before one of them is called closer, as in
`compare.words`: below it a rounding that flips here and there would count as news."""

_HARM = ("unsupported", "error", "timeout", "out-of-memory", "crashed")
_NEWLY = {"divergent": DIVERGENT, "inaccurate": INACCURATE, "mismatched": MISMATCHED}


def direction_of(a: Row | None, b: Row | None, *, same: bool) -> str | None:
    """Which way a row changed, None if it did not.

    Args:
        a: A's row, None if A has none.
        b: B's row, likewise.
        same: whether both have the same bits.
    """
    if a is None or b is None:
        return NEW if a is None else GONE
    if b.outcome != "ok":
        return _failing(a, b)
    if a.outcome != "ok":
        return _NEWLY[b.grade] if b.grade in ("inaccurate", "mismatched") else RECOVERED
    if a.grade is None or b.grade is None:
        return None if a.grade == b.grade else (NEW if a.grade is None else GONE)
    if None not in (a.dtype, b.dtype) and (a.dtype, a.shape) != (b.dtype, b.shape):
        return MISMATCHED
    was, now = GRADES.index(a.grade), GRADES.index(b.grade)
    if now > was:
        return _NEWLY.get(b.grade, EQUIVALENT)
    if now < was:
        return FIXED if was >= FAILING > now else BETTER
    if same:
        return OTHER_BITS if b.nondeterministic and not a.nondeterministic else None
    return nearer(a, b)


def nearer(a: Row, b: Row) -> str:
    """Whether other bits of the same grade are closer to f64 or farther from it.

    That is asked only where A's or B's output is not faithful. Where both lie inside the order
    interval of `strict`, the declared program allows either: which of two correct evaluations has
    the smaller rounding error is chance, changes with the order of a sum, and is no quality of a
    release. The numbers are shown all the same.

    What counts is first how many elements are NaN or infinite on one side only, then the rms
    relative error, then the largest ulp error; of bool how many elements differ. A NaN is farther
    than an infinity, and that is farther than every number; two errors whose difference is below
    the share `TELLING` are a tie, two counts only if they are equal.
    """
    if (a.faithful and b.faithful) or a.f64 is None or b.f64 is None:
        return OTHER_BITS
    for before, after, margin in _errors(a.f64, b.f64):
        if sign := _compared(before, after, margin):
            return FARTHER if sign > 0 else CLOSER
    return OTHER_BITS


def rank(value: float | None) -> tuple[int, float]:
    """Orders errors: none, numbers, infinity, NaN."""
    if value is None:
        return 0, 0.0
    if math.isnan(value):
        return 3, 0.0
    return (2, 0.0) if math.isinf(value) else (1, abs(float(value)))


def _errors(a: Metrics, b: Metrics) -> Iterator[tuple[float | None, float | None, float]]:
    """Errors of both sides in the order in which they count, with the margin of a tie."""
    yield a.pattern, b.pattern, 0.0
    yield a.rms_rel, b.rms_rel, TELLING
    yield a.max_ulp, b.max_ulp, TELLING
    if a.rms_rel is None and b.rms_rel is None:  # bool
        yield a.differing, b.differing, 0.0


def _compared(before: float | None, after: float | None, margin: float) -> int:
    """The sign of a change of an error, 0 where it does not tell."""
    (kind, a), (other, b) = rank(before), rank(after)
    if kind != other:
        return 1 if other > kind else -1
    if abs(a - b) <= margin * max(a, b):
        return 0
    return 1 if b > a else -1


def _failing(a: Row, b: Row) -> str | None:
    """Which way a row changed that has no output in B.

    Exception types and messages are not compared: versions rename the ones and reword the others.
    """
    if a.outcome == "ok":
        return UNSUPPORTED if b.outcome == "unsupported" else NEW_ERROR
    if _HARM.index(b.outcome) > _HARM.index(a.outcome):
        return NEW_ERROR
    if a.outcome != b.outcome or (a.outcome == "error" and a.stage != b.stage):
        return OTHER_FAILURE
    return None


def as_option(direction: str) -> str:
    """A direction as `--fail-on` and JSON write it: `newly-divergent`."""
    return direction.replace(" ", "-")


def parse(named: str | Iterable[str]) -> frozenset[str]:
    """The directions that names stand for.

    Args:
        named: directions, with spaces or hyphens, or "worse" (all of `WORSE`), "any", "none"; as
            text separated by commas.

    Raises:
        UserError: one is not known.
    """
    names = named.split(",") if isinstance(named, str) else list(named)
    known = {direction: frozenset((direction,)) for direction in DIRECTIONS}
    known |= {"worse": WORSE, "any": frozenset(DIRECTIONS), "none": frozenset()}
    found: set[str] = set()
    for name in names:
        wanted = " ".join(name.replace("-", " ").lower().split())
        if wanted not in known:
            allowed = list(map(as_option, known))
            raise UserError(
                f"unknown direction (got {name.strip() or 'nothing'}; "
                f"allowed {', '.join(allowed)})",
                hint=did_you_mean(wanted.replace(" ", "-"), allowed),
            )
        found |= known[wanted]
    if "none" in (name.strip().lower() for name in names) and len(names) > 1:
        raise UserError("'none' stands alone among the directions to fail on")
    return frozenset(found)
