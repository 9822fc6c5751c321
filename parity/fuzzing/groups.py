"""What a campaign finds: cases on which paths disagree, by path, grade and cause."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from parity.explain.signature import Signature


@dataclass
class Group:
    """Cases on which a path differs in the same way, for the same reason.

    Attributes:
        path: which differs.
        signature: in what way.
        file: the smallest case of it that was found.
        elements: of all of its operands.
        finished: whether nothing smaller was left to try.
        count: how many cases showed it.
    """

    path: str
    signature: Signature
    file: Path
    elements: int
    finished: bool
    count: int = 1


@dataclass
class Campaign:
    """What a campaign has found so far.

    Attributes:
        op: which was fuzzed.
        paths: on which paths; the first one is what the others are compared with.
        seed: of the random cases.
        groups: in the order in which they were found.
        cases: that were run.
        invalid: that the loader refused.
        refused: that gave nothing on the first path.
        seconds: that it took.
        interrupted: whether Ctrl-C ended it.
    """

    op: str
    paths: tuple[str, ...]
    seed: int
    groups: list[Group] = field(default_factory=list)
    cases: int = 0
    invalid: int = 0
    refused: int = 0
    seconds: float = 0.0
    interrupted: bool = False
