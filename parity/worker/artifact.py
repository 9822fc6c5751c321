"""What a path exported of a program, as a folder: files, and how to give them operands.

```
manifest.json   path, reader, options, names of the outputs, arrays that the program takes beside
                the operands
arrays/0 …      their raw bits
program/…       what the path wrote
control/…       the same program without its precisions, where it asks for any
```

It says all that is needed to execute it, in another process and years later, without the case.
Standard library, NumPy and ml_dtypes only: who reads an artifact need not have JAX.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parity.dtypes import dtype
from parity.paths import Exported, Probe
from parity.worker.protocol import digest

if TYPE_CHECKING:
    from parity.program.build import Program

_MANIFEST = "manifest.json"
_PROGRAM = "program"
_CONTROL = "control"
_ARRAYS = "arrays"
_TRACED = "traced.json"


@dataclass(frozen=True)
class Manifest:
    """What stands in `manifest.json`.

    Attributes:
        path: the path that wrote it.
        reader: the process that may read it (`Exported.reader`).
        options: what the case gave the path.
        outputs: their names, in order.
        arrays: dtype and shape of what the program takes after the operands.
        asked: the precisions that the program asks for.
    """

    path: str
    reader: str
    options: Mapping[str, Any]
    outputs: Sequence[str]
    arrays: Sequence[tuple[str, Sequence[int]]] = ()
    asked: Sequence[str] = ()

    @staticmethod
    def of(folder: str | Path) -> Manifest:
        """The manifest of an artifact."""
        return Manifest(**json.loads((Path(folder) / _MANIFEST).read_text()))

    def write(self, folder: Path) -> None:
        """Leave it in an artifact."""
        (folder / _MANIFEST).write_text(json.dumps(vars(self)))


def write(path: Exported, program: Program, into: str, probe: Probe) -> str:
    """The folder of a new artifact of a program.

    Args:
        path: writes the program.
        program: what to export.
        into: the folder in which the new one is made.
        probe: takes the stages and the evidence.
    """
    folder = Path(tempfile.mkdtemp(prefix="artifact-", dir=into))
    (folder / _PROGRAM).mkdir()
    path.export(program, folder / _PROGRAM, probe)
    (folder / _ARRAYS).mkdir()
    drawn = list(program.drawn.values())
    for number, array in enumerate(drawn):
        (folder / _ARRAYS / str(number)).write_bytes(array.tobytes())
    Manifest(
        path.name,
        path.reader,
        dict(probe.options),
        list(program.outputs),
        [(array.dtype.name, array.shape) for array in drawn],
    ).write(folder)
    return str(folder)


def write_control(
    path: Exported, program: Program, folder: str, probe: Probe, asked: Sequence[str]
) -> None:
    """Add the program without the precisions that it asks for."""
    control = Path(folder) / _CONTROL
    control.mkdir()
    path.export(program, control, Probe(options=probe.options))
    replace(Manifest.of(folder), asked=list(asked)).write(Path(folder))


def execute(
    path: Exported, folder: str, operands: Sequence[np.ndarray], probe: Probe
) -> dict[str, np.ndarray]:
    """The outputs of an artifact by name."""
    manifest = Manifest.of(folder)
    inputs = (*operands, *_arrays(manifest, Path(folder)))
    outputs = path.execute(Path(folder) / _PROGRAM, inputs, probe)
    control = Path(folder) / _CONTROL
    if control.exists():
        others = path.execute(control, inputs, Probe(options=probe.options))
        if [*map(digest, others)] == [*map(digest, outputs)]:
            probe.evidence["no_effect"] = no_effect(manifest.asked)
    found = dict(zip(manifest.outputs, outputs, strict=True))
    return {name: out for name, out in found.items() if out.dtype.name != "void"}


def write_traced(program: Program, folder: Path) -> None:
    """Note the dtypes that the program was traced with: of 64-bit operands others if x64 is off."""
    names = [np.dtype(one.dtype).name for one in program.traced]
    (folder / _TRACED).write_text(json.dumps(names))


def as_traced(folder: Path, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The inputs in those dtypes, for what is not given them by JAX, which narrows them itself."""
    names = json.loads((folder / _TRACED).read_text())
    return [a.astype(dtype(n).numpy(), copy=False) for a, n in zip(inputs, names, strict=True)]


def no_effect(asked: Sequence[str]) -> str:
    """What is said of precisions that changed no bit."""
    return f"precision {', '.join(asked)}: accepted, no effect here"


def _arrays(manifest: Manifest, folder: Path) -> tuple[np.ndarray, ...]:
    return tuple(
        np.frombuffer((folder / _ARRAYS / str(i)).read_bytes(), dtype(name).numpy()).reshape(shape)
        for i, (name, shape) in enumerate(manifest.arrays)
    )
