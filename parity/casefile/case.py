"""A case: one fully resolved point of a case file."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parity.errors import CaseFileError
from parity.program.spec import LICENCES, ProgramSpec

if TYPE_CHECKING:
    import numpy as np

GRADES = ("identical", "equivalent", "divergent", "inaccurate", "mismatched")
"""From best to worst; `--fail-on` and `fail_on` compare by this order."""

OUTCOMES = ("ok", "unsupported", "error", "crashed", "timeout", "out-of-memory")
STAGES = ("build", "trace", "lower", "convert", "compile", "save", "load", "run")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Limits that lift a row to `equivalent`; all that are given must hold.

    `rtol` and `atol` mean |got - want| <= atol + rtol * |want| (numpy.testing.assert_allclose).
    """

    rtol: float | None = None
    atol: float | None = None
    max_ulp: float | None = None
    against: str = "baseline"  # or "f64"


@dataclass(frozen=True, slots=True)
class Expectation:
    """One entry of `expect` that applies to a case (its `where` already holds).

    Attributes:
        paths: the paths it speaks of.
        outputs: the outputs it speaks of, None for all.
        grades: the grades any of which it expects, None if it expects an outcome.
        outcome: the outcome it expects, None if it expects grades.
        stage: the stage of an expected error, None for any.
        match: regular expression that the message must contain, None for any.
        because: why.
        link: where that is discussed.
        until: last day on which it holds.
        when: version specifiers by name: jax, tensorflow, platform, cpu.
        line: 1-based line of the entry in the case file.
        index: its position in `expect`, from 0.
    """

    paths: tuple[str, ...]
    outputs: tuple[str, ...] | None
    grades: tuple[str, ...] | None
    outcome: str | None
    stage: str | None
    match: str | None
    because: str
    link: str | None
    until: datetime.date | None
    when: Mapping[str, str]
    line: int
    index: int = 0


@dataclass(frozen=True, slots=True)
class Operand:
    """How an operand's bits come about: exactly one of values, file or draw.

    Under vmap the shape has the leading batch axis; `repeat` is then its length where values or a
    file give one example only, and 0 where the batch is drawn.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    values: Any = None
    file: Path | None = None
    key: str | None = None  # the array's name in an .npz or .safetensors file
    draw: str | None = None
    parameters: Mapping[str, float | str] = field(default_factory=dict)
    seed: int = 0
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class Variant:
    """A path under a name of its own, with flags.

    Attributes:
        name: as rows call it.
        path: which path it is.
        compiler_options: XLA options of this compilation alone.
        settings: what the path takes beside them, by name.
        polymorphic_shapes: by operand, as `jax.export.symbolic_shape` reads it; exported so.
        variables: environment variables of its worker.
    """

    name: str
    path: str
    compiler_options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    polymorphic_shapes: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """What the path itself is given."""
        found = {
            "compiler_options": dict(self.compiler_options),
            "polymorphic_shapes": dict(self.polymorphic_shapes),
            **self.settings,
        }
        return {name: of for name, of in found.items() if of != {}}


@dataclass(frozen=True, slots=True)
class Case:
    """One fully resolved point of a case file.

    Attributes:
        id: `cases/conv_bf16.yaml::conv_bf16:compute_dtype=bfloat16,transform=vjp` (DESIGN 1).
        file: the case file, absolute.
        line: 1-based line where the case file's mapping begins.
        name: the file's `name`.
        about: the sentence that says what it guards.
        links: where that is discussed.
        point: the value of each sweep axis (and `transform`, unless forward), as spelled in the id.
        program: what is computed.
        operands: how the bits of `program.inputs()` come about, in the same order.
        paths: the paths to run, in order; names of `variants` among them.
        variants: by name, the paths that are run with flags.
        baseline: the path that the others are compared with.
        tolerance: explicit limits, or None.
        expect: the entries of `expect` whose `where` holds here.
        licences: what a compiler may do beside reordering sums (`program.spec.LICENCES`).
        timeout: seconds per path, None for the default.
    """

    id: str
    file: Path
    line: int
    name: str
    about: str
    links: tuple[str, ...]
    point: Mapping[str, str]
    program: ProgramSpec
    operands: tuple[Operand, ...]
    paths: tuple[str, ...]
    baseline: str
    tolerance: Tolerance | None = None
    expect: tuple[Expectation, ...] = ()
    variants: Mapping[str, Variant] = field(default_factory=dict)
    licences: tuple[str, ...] = LICENCES
    timeout: float | None = None

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The concrete bits of `program.inputs()`, in order, each in its declared dtype.

        Generated anew at each call: a run holds no more arrays than it is working on.

        Raises:
            CaseFileError: an array file is missing, unreadable or of another shape or dtype; or the
                arrays do not fit into memory.
        """
        from parity.casefile.operands import generate

        try:
            return tuple(generate(operand, file=self.file) for operand in self.operands)
        except MemoryError as error:
            shapes = ", ".join(f"{o.name} {list(o.shape)} {o.dtype}" for o in self.operands)
            raise CaseFileError(
                f"the operands do not fit into memory (got {shapes})",
                file=self.file,
                line=self.line,
                hint="make them smaller",
            ) from error
