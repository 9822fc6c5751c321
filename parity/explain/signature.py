"""In what way a path differs, so that two cases of one kind say the same."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from parity.casefile.case import GRADES, Case
from parity.compare.rows import Row, compare_case
from parity.explain.attribution import Attribution, attribute
from parity.explain.structure import BITS
from parity.worker.protocol import PathOutcome, References, digest

UNEXPLAINED = "unexplained"
"""How `Signature.why` begins where nothing explains an output."""

_NO_CHANCE = 1e-6
_FEWEST = 8
"""A relation to the right result counts if it holds so exactly, in so many elements."""

_NODE = re.compile(r"\{\{.*?\}\}\s*")
"""Where TensorFlow says that something happened."""

_PLACES = re.compile(r"0x[0-9a-fA-F]+|(?<![A-Za-z_\d])\d+|(?<!\w)'[^']*'|\"[^\"]*\"")
"""What errors of one kind do not share: numbers, but for those in names such as `int4`."""

_INSTRUCTION = re.compile(r"%\w.*")
"""The instruction of a module that XLA complains of."""

_LISTS = re.compile(r"…(, ?…)+")
_SIZES = re.compile(r"b?(float)\d+|\d+")
"""What structural hypotheses of one kind do not share."""


@dataclass(frozen=True)
class Signature:
    """In what way a path differs.

    Attributes:
        outcome: of the path.
        what: its grade; where it has no output the stage and the type of the error.
        why: the attribution of the worst output, "unexplained" with the operands' dtypes where
            there is none; what the error says, without its numbers.
    """

    outcome: str
    what: str
    why: str

    @property
    def said(self) -> str:
        """The grade, or what happened instead."""
        return self.what if self.outcome == "ok" else f"{self.outcome} at {self.what}"


def signature(
    case: Case, baseline: PathOutcome, outcome: PathOutcome, references: References
) -> Signature:
    """In what way a path differs from another one.

    Args:
        case: whose paths they are.
        baseline: what the other one made of it.
        outcome: what the path did.
        references: of the case, with `attribution.ASKED`.
    """
    if baseline.failure is not None:
        return Signature("no baseline", "", "")
    if outcome.failure is not None:
        failure = outcome.failure
        said = _NODE.sub("", failure.message.split("\n")[0])
        said = _LISTS.sub("…", _PLACES.sub("…", _INSTRUCTION.sub("…", said)))
        return Signature(failure.outcome, f"{failure.stage} {failure.type}".strip(), said)
    judged = replace(case, baseline=baseline.path, tolerance=None)
    rows = compare_case(judged, [baseline, outcome], references)
    own = [row for row in rows if row.path == outcome.path]
    worst = max(own, key=_badness, default=None)
    if worst is None or worst.grade in (None, "identical"):
        return Signature("ok", "identical", "")
    outputs = {name: of for name, of in outcome.outputs.items() if name == worst.output}
    told = attribute(case, replace(outcome, outputs=outputs), references)
    return Signature("ok", worst.grade or "", _why(told[0]) or _unexplained(case))


def _why(told: Attribution) -> str:
    """The model, or what relates an output to the right one, if that is no chance.

    Of a few elements much can be said that is true of them by chance, but for their bits.
    """
    if told.model or not told.structure:
        return told.model
    best = told.structure[0]
    exact = best.covers == 1 and best.residual <= _NO_CHANCE
    enough = told.elements >= _FEWEST or best.name.startswith(BITS)
    return _SIZES.sub(r"\1…", best.name) if exact and enough else ""


def _unexplained(case: Case) -> str:
    return f"{UNEXPLAINED} ({', '.join(dict.fromkeys(one.dtype for one in case.operands))})"


def differ(outcome: PathOutcome, baseline: PathOutcome) -> bool:
    """Whether two paths gave outputs that have not the same bits."""
    if outcome.failure is not None or baseline.failure is not None:
        return False
    ours, theirs = outcome.outputs, baseline.outputs
    return {k: digest(of) for k, of in ours.items()} != {k: digest(of) for k, of in theirs.items()}


def _badness(row: Row) -> int:
    return -1 if row.grade is None else GRADES.index(row.grade)
