"""Why a path's output changed, read from the evidence that rows carry and from nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from parity.compare.message import first_line
from parity.compare.rows import Row
from parity.explain.evidence import KINDS

LOWERING = "lowering changed"
COMPILER = "compiler changed"
RUNTIME = "runtime, kernel or host changed"
COMPILER_OR_RUNTIME = "compiler or runtime changed"
NOT_KNOWN = "cause not known"
SAME_BITS = "same bits"
CHANGES = "bits change from run to run"
OUTCOME = "outcome changed"
ONE_SIDE = "on one side only"

CAUSES = (
    LOWERING,
    COMPILER,
    RUNTIME,
    COMPILER_OR_RUNTIME,
    NOT_KNOWN,
    SAME_BITS,
    CHANGES,
    OUTCOME,
    ONE_SIDE,
)
"""What a change is classed by (DESIGN section 6).

lowering changed: another StableHLO or, of a path that has none, other TensorFlow operations.
compiler changed: the same StableHLO, another optimized HLO.
runtime, kernel or host changed: the same optimized HLO, other bits.
compiler or runtime changed: the same StableHLO or operations, and no optimized HLO to be had.
cause not known: not even the program that was compiled is known of both sides.
same bits: the path's output did not change, only what it is compared with.
bits change from run to run: so `--repeat` found; evidence of a single run says nothing.
outcome changed: one side failed, and says why; of A what its case file says, if it was expected.
on one side only: the row is gone, or new.
"""


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause and what it was read from.

    Attributes:
        cause: one of `CAUSES`.
        why: which evidence is missing, what a failure said, or why A's was expected; "" where the
            cause says it all.
    """

    cause: str
    why: str = ""


def programs(row: Row) -> dict[str, str]:
    """By kind, SHA-256 of what was compiled, as far as there is evidence."""
    found = {kind: row.evidence.get(f"{kind}_sha256") for kind in KINDS}
    return {kind: sha256 for kind, sha256 in found.items() if sha256}


def said(row: Row) -> str:
    """What a failure said, in a line: exception type and message, or why it is unsupported."""
    if row.outcome == "ok":
        return ""
    kind = row.error_type if row.outcome != "unsupported" else ""
    return ": ".join(filter(None, (kind, first_line(row.message))))


def cause_of(a: Row | None, b: Row | None, *, same: bool) -> Cause:
    """The cause of a change.

    Args:
        a: A's row, None if it has none.
        b: B's row, likewise.
        same: whether both have the same bits.
    """
    if a is None or b is None:
        return Cause(ONE_SIDE)
    if b.outcome != "ok":
        return Cause(OUTCOME, said(b))
    if a.outcome != "ok":
        known = a.because if a.status == "expected" else ""
        return Cause(OUTCOME, f"expected in A, because {known}" if known else said(a))
    unstable = [name for name, row in (("A", a), ("B", b)) if row.nondeterministic]
    if unstable:
        return Cause(CHANGES, f"in {' and '.join(unstable)}")
    if same:
        return Cause(SAME_BITS)
    return _read(programs(a), programs(b))


def _read(a: Mapping[str, str], b: Mapping[str, str]) -> Cause:
    """The cause of other bits, by the evidence of each side."""
    source = next((kind for kind in ("stablehlo", "graph") if kind in a and kind in b), None)
    if source is None:
        return Cause(NOT_KNOWN, _missing(("stablehlo", "graph"), a, b))
    if a[source] != b[source]:
        return Cause(LOWERING)
    if "hlo" not in a or "hlo" not in b:
        return Cause(COMPILER_OR_RUNTIME, _missing(("hlo",), a, b))
    return Cause(COMPILER if a["hlo"] != b["hlo"] else RUNTIME)


def _missing(kinds: tuple[str, ...], a: Mapping[str, str], b: Mapping[str, str]) -> str:
    """Which side has no evidence of any of some kinds."""
    lacking = [name for name, of in (("A", a), ("B", b)) if not any(kind in of for kind in kinds)]
    what = " or ".join(KINDS[kind] for kind in kinds)
    if not lacking:
        return f"A and B have evidence of different kinds ({what})"
    where = "" if len(lacking) == 2 else f" in {lacking[0]}"
    return f"no {what} to compare{where}"
