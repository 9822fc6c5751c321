"""`parity doctor`: what an environment has, what it lacks, and which paths it can run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parity.errors import ParityFault, UserError
from parity.paths import names

OLDEST = {"jax": "0.4.38", "jaxlib": "0.4.38", "tensorflow": "2.17", "flax": "0.10.2"}
"""The oldest supported versions."""

_SECONDS = 60.0
_PROBE = """\
import json, sys, types
parity = sys.modules["parity"] = types.ModuleType("parity")
parity.__path__ = [sys.argv[1]]
from parity.worker.inventory import inventory
print(json.dumps(inventory()))
"""


@dataclass(frozen=True)
class Diagnosis:
    """What was found in an environment.

    Attributes:
        interpreter: the Python executable that was asked.
        versions: by package, "python" included; None where the package is not installed.
        notes: by package, what its version lacks.
        paths: by path, why it cannot run, None if it can.
        flags: environment variables that change what XLA, JAX or TensorFlow do.
    """

    interpreter: str
    versions: Mapping[str, str | None]
    notes: Mapping[str, str]
    paths: Mapping[str, str | None]
    flags: Mapping[str, str]

    @property
    def usable(self) -> bool:
        """Whether any path can run."""
        return any(reason is None for reason in self.paths.values())

    def lines(self) -> Iterator[str]:
        """The diagnosis as text, a line at a time."""
        yield f"interpreter  {self.interpreter}"
        width = max(map(len, self.versions))
        for package, found in self.versions.items():
            note = self.notes.get(package)
            line = f"{package:<{width}}  {found or 'not installed'}"
            yield f"{line}  ({note})" if note else line
        yield ""
        width = max(map(len, self.paths))
        for path, reason in self.paths.items():
            yield f"{path:<{width}}  {'available' if reason is None else f'unsupported: {reason}'}"
        if not self.usable:
            yield ""
            yield "no path can run here: pip install 'parity-harness[all-paths]' brings every one"
        if self.flags:
            yield ""
            yield from (f"{name}={value}" for name, value in self.flags.items())


def diagnose(python: str | None = None) -> Diagnosis:
    """Look at an environment without importing JAX or TensorFlow in it.

    Args:
        python: its interpreter; None for the one that runs parity.

    Raises:
        UserError: the interpreter cannot be run, or is too old for parity's workers.
    """
    interpreter = python or sys.executable
    found = _ask(interpreter)
    packages: Mapping[str, Mapping[str, str]] = found["packages"]
    versions: dict[str, str | None] = {"python": found["python"]}
    versions |= {name: next(iter(of.values()), None) for name, of in packages.items()}
    notes = dict(_notes(versions, found))
    paths = found["paths"] or dict.fromkeys(names(), "JAX is not installed")
    return Diagnosis(interpreter, versions, notes, paths, found["flags"])


def _ask(interpreter: str) -> dict[str, Any]:
    folder = str(Path(__file__).parent)
    try:
        done = subprocess.run(
            [interpreter, "-c", _PROBE, folder],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except OSError as error:
        raise UserError(
            f"cannot run the interpreter {interpreter} ({error.strerror})",
            hint="name the python of the environment under test, for example .venv/bin/python",
        ) from None
    except subprocess.TimeoutExpired:
        raise UserError(f"the interpreter {interpreter} gave no answer in {_SECONDS:g} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UserError(
            f"the interpreter {interpreter} cannot run parity's workers ({last[:200]})",
            hint="workers need Python 3.11 or newer",
        )
    try:
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        raise ParityFault(f"{interpreter} answered {done.stdout[:200]!r}") from None
    return answer


def _notes(
    versions: Mapping[str, str | None], found: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    from packaging.version import InvalidVersion, Version

    for package, oldest in OLDEST.items():
        have = versions[package]
        try:
            if have is not None and Version(have) < Version(oldest):
                yield package, f"too old: {oldest} or newer is supported"
        except InvalidVersion:
            yield package, f"not a version that can be compared with {oldest}"
    several = found["packages"]["tensorflow"]
    if len(several) > 1:
        yield "tensorflow", f"{' and '.join(several)} overwrite each other: keep one"
    if found["formats"]:
        yield "ml_dtypes", f"lacks {', '.join(found['formats'])}"
