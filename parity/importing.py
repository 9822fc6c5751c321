"""`parity import`: cases that others have written, as case files of our own."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from parity.casefile.problem import did_you_mean, listed
from parity.casefile.writing import Draft, safe_name, write
from parity.engine.gateway import START_LIMIT, Gateway, Setting, WorkerLost
from parity.errors import UserError, WorkerStartError
from parity.worker.harnesses import Harness

_SOURCE = "https://github.com/jax-ml/jax/blob/jax-v{}/jax/_src/internal_test_util/test_harnesses.py"


@dataclass(frozen=True)
class Imported:
    """What became of the harnesses of an installed JAX.

    Attributes:
        jax: its version.
        files: the case files, in the order of the harnesses.
        left_out: why there is none, by the harness's name.
    """

    jax: str
    files: tuple[Path, ...]
    left_out: dict[str, str]

    def summary(self) -> str:
        """How many harnesses became case files, and why the others did not."""
        total = len(self.files) + len(self.left_out)
        text = f"{len(self.files)} of {total} harnesses of JAX {self.jax} written"
        reasons = Counter(self.left_out.values()).most_common()
        return "; ".join([text, *(f"{count} left out: {why}" for why, count in reasons)])


def import_jax_harnesses(
    groups: Sequence[str], folder: Path, *, python: str | None = None
) -> Imported:
    """Write a case file for each of JAX's own test harnesses.

    Args:
        groups: their groups: dot_general, conv_general_dilated, …
        folder: where to; new or empty.
        python: interpreter of the environment whose JAX is asked, this one if None.

    Raises:
        UserError: there is no such group, the folder cannot be used, or JAX has no harnesses.
        WorkerStartError: the environment cannot execute anything.
    """
    _check_empty(folder)
    version, found = _ask(groups, Setting() if python is None else Setting(python))
    drafts = [_draft(harness, version) for harness in found if not harness.reason]
    try:
        if drafts:
            folder.mkdir(parents=True, exist_ok=True)
        files = tuple(write(draft, folder) for draft in drafts)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror})") from None
    return Imported(version, files, {h.name: h.reason for h in found if h.reason})


def _check_empty(folder: Path) -> None:
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(f"{folder}: is not empty", hint="name a new folder with -o")


def _ask(groups: Sequence[str], setting: Setting) -> tuple[str, list[Harness]]:
    """The version of an environment's JAX and the harnesses of its groups."""
    with tempfile.TemporaryDirectory(prefix="parity-") as scratch:
        gateway = Gateway(setting, Path(scratch))
        try:
            gateway.start()
            gateway.send({"kind": "harnesses", "groups": list(groups)})
            answer = gateway.receive(START_LIMIT)
        except WorkerLost as lost:
            what = f"{setting.python} gave no harnesses: {lost}"
            raise WorkerStartError(what, hint=lost.failure.stderr or None) from None
        finally:
            gateway.kill()
    version = gateway.environment["jax"]
    if answer["failure"] is not None:
        what = f"JAX {version} has no harnesses to import ({answer['failure']['message']})"
        raise UserError(what, hint="they need the package absl-py")
    for group in groups:
        if group not in answer["groups"]:
            raise UserError(
                f"unknown group (got {group}; allowed {listed(answer['groups'])})",
                hint=did_you_mean(group, answer["groups"]),
            )
    return version, [Harness.from_wire(wire) for wire in answer["harnesses"]]


def _draft(harness: Harness, version: str) -> Draft:
    return Draft(
        name=safe_name(harness.name),
        about=f"JAX {version} test harness {harness.name}.",
        links=(_SOURCE.format(version),),
        op=harness.op,
        operands=harness.operands,
        attributes=harness.attributes,
        fields={"x64": False},
    )
