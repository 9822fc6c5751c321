"""Plants paths that are wrong in a known way and has parity say in which: a confusion matrix."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from parity.casefile.case import Case
from parity.explain.attribution import ASKED, attribute
from parity.explain.laboratory import Laboratory
from parity.program.build import Program
from parity.program.jax_versions import enable_x64
from parity.program.spec import OperandSpec, ProgramSpec
from parity.reference.evaluate import evaluate
from parity.worker.protocol import PathOutcome

from . import planted_layers  # noqa: F401 - which registers families
from .planted import FAMILIES


@dataclass(frozen=True)
class Answer:
    """What parity said of one planted path."""

    family: str
    seed: int
    planted: str
    attribution: object

    @property
    def given(self):
        return self.attribution.model or "(none)"


def case_of(arrays, *, x64=False, op="none", attributes=None):
    operands = tuple(OperandSpec(f"x{i}", a.shape, a.dtype.name) for i, a in enumerate(arrays))
    spec = ProgramSpec(op, operands, attributes or {}, x64=x64)
    return Case(
        "planted.yaml::planted", Path("planted.yaml"), 1, "planted", "", (), {}, spec, (),
        ("planted",), "planted",
    )  # fmt: skip


def interpreted(function, arrays, models=ASKED, *, x64=False):
    """The references of a JAX function with one output, "out"."""
    spec = case_of(arrays, x64=x64).program
    with enable_x64(x64):
        program = Program(spec, lambda *xs: (function(*xs),), ("out",))
        return evaluate(program, arrays, models=models)


def examine(family, seed, *, honest=False):
    """Parity's attribution of one planted path, or of JAX's own evaluation of its program."""
    rng = np.random.default_rng([seed, *family.name.encode()])
    arrays = family.draw(rng)

    def run(inputs):
        if honest:
            with enable_x64(family.x64):
                given = [jnp.asarray(x) for x in inputs]
                return PathOutcome("planted", {"out": np.asarray(family.program(*given))})
        return PathOutcome("planted", {"out": np.asarray(family.path(*inputs))})

    def references(spec, inputs, models):
        return interpreted(family.program, inputs, models, x64=family.x64)

    case, found = case_of(arrays, x64=family.x64), references(None, arrays, ASKED)
    (attribution,) = attribute(
        case, run(arrays), found, laboratory=Laboratory(run, references), inputs=arrays
    )
    return Answer(family.name, seed, family.model, attribution)


def campaign(count, seed=0):
    """So many planted paths: families in turn, in random order, operands of random seeds."""
    rng = np.random.default_rng(seed)
    turns = [FAMILIES[i] for _ in range(-(-count // len(FAMILIES)))
             for i in rng.permutation(len(FAMILIES))]  # fmt: skip
    return [examine(family, int(rng.integers(2**31))) for family in turns[:count]]


def confusion(answers):
    """The matrix as text: planted models down, answers across; and what was answered wrongly."""
    counts = Counter((a.planted, a.given) for a in answers)
    rows = sorted({a.planted for a in answers})
    columns = sorted({a.given for a in answers} | set(rows))
    width = max(map(len, rows)) + 1
    numbers = {name: str(i) for i, name in enumerate(columns)}
    lines = [f"{numbers[name]:>3} {name}" for name in columns]
    lines.append(" " * width + "".join(f"{numbers[c]:>4}" for c in columns))
    for row in rows:
        cells = "".join(f"{counts[row, c] or '.':>4}" for c in columns)
        lines.append(f"{row:<{width}}{cells}")
    right = sum(a.planted == a.given for a in answers)
    alike = sum(bool(a.attribution.alike) for a in answers)
    lines.append(f"{right} of {len(answers)} right; {alike} not told apart from another model")
    lines += [
        f"{a.family} (seed {a.seed}): {a.planted} taken for {a.given}"
        for a in answers
        if a.planted != a.given
    ]
    return "\n".join(lines)
