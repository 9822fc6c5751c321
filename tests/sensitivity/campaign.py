"""Plants every fault in a contraction beside honest evaluations of it and has parity grade them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parity.casefile.case import Case
from parity.compare.rows import compare_case
from parity.program.build import build
from parity.reference.evaluate import evaluate
from parity.worker.protocol import PathOutcome, digest

from .contraction import DRAWS, SCHEMES, Contraction, draw
from .faults import FAULTS
from .geometry import GEOMETRIES
from .honest import HONEST
from .visible import judge

HARMLESS = ("identical", "equivalent")


@dataclass(frozen=True)
class Verdict:
    """What became of one evaluation.

    Attributes:
        contraction: the name of what was evaluated.
        seed: of its operands.
        scheme: its dtypes.
        data: how its operands were drawn.
        terms: its K.
        kind: the fault's name or the honest evaluation's.
        planted: whether it is a fault.
        changed: whether it has other bits than the honest evaluation that it was planted in.
        visible: whether the fault is visible in exact arithmetic.
        grade: parity's.
        detail: parity's.
        faithful: parity's.
    """

    contraction: str
    seed: int
    scheme: str
    data: str
    terms: int
    kind: str
    planted: bool
    changed: bool
    visible: bool
    grade: str
    detail: str
    faithful: bool

    @property
    def caught(self) -> bool:
        """Whether it was graded as something other than what was declared."""
        return self.grade not in HARMLESS

    @property
    def condemned(self) -> bool:
        """Whether it was not found to be what was declared, by grade or by standing."""
        return self.caught or not self.faithful


def examine(contraction: Contraction, seed: int) -> Iterator[Verdict]:
    """The verdicts on one contraction: every honest evaluation, every fault that can be planted."""
    rng = np.random.default_rng([seed, *contraction.name.encode()])
    exact = judge(contraction)
    names = list(HONEST)
    baseline, underlying = (names[rng.integers(len(names))] for _ in range(2))
    outputs = {"baseline": exact.honest[baseline], **exact.honest}
    with np.errstate(over="ignore"):  # some draws overflow a narrow dtype
        planted = {
            name: plant(contraction, HONEST[underlying], rng) for name, plant in FAULTS.items()
        }
    outputs |= {f"fault: {name}": out for name, out in planted.items() if out is not None}
    spec = contraction.spec
    case = Case(
        contraction.name, Path("sensitivity.yaml"), 1, "sensitivity", "", (), {}, spec, (),
        tuple(outputs), "baseline",
    )  # fmt: skip
    references = evaluate(build(spec), contraction.inputs)
    outcomes = [PathOutcome(path, {"out": out}) for path, out in outputs.items()]
    unaltered = digest(exact.honest[underlying])
    for row, out in zip(compare_case(case, outcomes, references), outputs.values(), strict=True):
        kind = row.path.removeprefix("fault: ")
        assert row.grade is not None
        yield Verdict(
            contraction=contraction.name,
            seed=seed,
            scheme=contraction.scheme.name,
            data=contraction.data,
            terms=contraction.geometry.terms,
            kind=kind,
            planted=kind != row.path,
            changed=row.sha256 != unaltered,
            visible=exact.visible(out),
            grade=row.grade,
            detail=row.detail,
            faithful=bool(row.faithful),
        )


def sample(seed: int, share: float) -> Iterable[Contraction]:
    """A share of all contractions; those of 1024 or 4096 normal float32 products always."""
    rng = np.random.default_rng(seed)
    for geometry in GEOMETRIES:
        for scheme in SCHEMES:
            for data in DRAWS:
                always = geometry.terms >= 1024 and data == "normal" and scheme.name == "f32"
                if rng.random() < share or always:
                    yield draw(geometry, scheme, data, seed)
