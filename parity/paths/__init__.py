"""The ways to execute a program: one file per family, found here and through an entry point.

A file of this folder lists its paths in `PATHS`; another distribution offers one under the entry
point group `parity.paths`, by the path's name. Importing a path's module imports neither JAX nor
TensorFlow: the host asks for the names alone.
"""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pathlib

    import numpy as np

    from parity.program.build import Program
    from parity.worker.protocol import Shard

GROUP = "parity.paths"

WARM = "warm"
"""The timing of one call of what was compiled before."""

_FEWEST_CALLS = 3


class PathProofError(Exception):
    """What ran was not the path that was named."""


def installed(distribution: str) -> str | None:
    """The version of a distribution of this environment, None where it has none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def check_polymorphic(symbolic: Sequence[str | None], *, fixed: bool) -> None:
    """See that shapes which are to be polymorphic are.

    Args:
        symbolic: `Probe.polymorphic_shapes`.
        fixed: whether no dimension of any input is symbolic.

    Raises:
        PathProofError: they are not.
    """
    if any(symbolic) and fixed:
        raise PathProofError(f"no dimension is polymorphic in {', '.join(filter(None, symbolic))}")


class Probe:
    """Where a path says which stage it is in and leaves proof of what ran.

    Args:
        announce: called with the stage's name when it begins, so that a crash can be placed.
        options: what the case gives this path, by name: those of `Path.options`.
        warm: seconds for which a path calls what it has compiled once more and more, to time it.
    """

    def __init__(
        self,
        announce: Callable[[str], None] = lambda stage: None,
        options: Mapping[str, Any] | None = None,
        warm: float = 0.0,
    ) -> None:
        self._announce = announce
        self._warm = warm
        self.options = options or {}
        self.current = "build"
        self.timings: dict[str, float] = {}
        self.evidence: dict[str, str] = {}
        self.programs: dict[str, str] = {}
        self.shards: dict[int, tuple[Shard, ...]] = {}

    def polymorphic_shapes(self, program: Program) -> list[str | None]:
        """For each input of a program, in order, the symbolic shape it is to be exported with.

        That of an operand is its tangent's, too.
        """
        given = self.options.get("polymorphic_shapes", {})
        names = [operand.name for operand in program.inputs]
        return [given.get(name, given.get(name.removeprefix("tangent."))) for name in names]

    def fetched(self, outputs: Iterable[Any]) -> list[np.ndarray]:
        """The outputs of JAX as NumPy arrays, of what is replicated the first device's.

        Leaves in `shards`, by position, what each device holds of those that lie on several.
        """
        import numpy as np

        from parity.worker.shards import shards

        found = []
        for position, output in enumerate(outputs):
            found.append(np.asarray(output))
            self.shards[position] = shards(output, found[-1])
        return found

    def compiled(self, kind: str, text: str) -> None:
        """Leave the canonical text of what was compiled: in `programs` by its SHA-256, which
        becomes the evidence `{kind}_sha256`.

        Args:
            kind: "stablehlo", "hlo" or "graph".
            text: without what says nothing about the arithmetic (`worker.evidence`).
        """
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        self.evidence[f"{kind}_sha256"] = sha256
        self.programs[sha256] = text

    def again(self, call: Callable[[], Any]) -> None:
        """Time further calls of what was compiled, if that is asked for.

        `timings` gets the median of their seconds as `warm`: at least three calls.

        Args:
            call: executes it and waits for the result.
        """
        if not self._warm:
            return
        seconds: list[float] = []
        until = time.perf_counter() + self._warm
        while len(seconds) < _FEWEST_CALLS or time.perf_counter() < until:
            begin = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - begin)
        self.timings[WARM] = statistics.median(seconds)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """One of build, trace, lower, convert, compile, save, load, run; `timings` gets seconds."""
        self.current = name
        self._announce(name)
        begin = time.perf_counter()
        yield
        self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - begin


class Path:
    """A way to execute programs. Subclass it, set `name` and write `run`.

    Attributes:
        name: as case files spell it; an execution mode follows a dot.
        options: the options it takes ("compiler_options"), each with the values that it may have;
            none stands for any. A case that gives another one is refused, since an option that is
            ignored would be a lie.
        runtimes: whose switches it obeys (`explain.switches`): "jax", "xla", "tensorflow",
            "onnxruntime", "litert"; none if it has none that are known.
        reference: whether it is one, of another making than parity's own: its rows stand beside
            those of `strict`.
    """

    name: str
    options: Mapping[str, Sequence[Any]] = {}
    runtimes: tuple[str, ...] = ()
    reference = False

    def unsupported(self) -> str | None:
        """Why this environment lacks the path, with the version that removed it; None if it runs.

        Must not import anything heavy: versions come from `importlib.metadata`.
        """
        return None

    def load(self) -> None:
        """Import what the path needs, before the clock of its time limit starts."""

    def statements(self, options: Mapping[str, Any]) -> Sequence[str] | None:
        """What the path does, as Python source for somebody without parity.

        Args:
            options: as in `Probe.options`.

        Returns:
            The body of a function of `program`, which takes and returns a tuple of arrays, and
            `arrays`, which are NumPy's; it returns the outputs, in order. None if that cannot be
            said in a few lines.
        """
        return None

    def run(
        self, program: Program, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """Execute the program.

        Args:
            program: its `function` takes `inputs` and returns one array per `program.outputs`.
            inputs: the operands' bits, in their declared dtypes.
            probe: takes the stages and the evidence.

        Returns:
            The outputs as NumPy arrays, in whatever dtype the path gave them.

        Raises:
            Unsupported: the path cannot express this program.
            PathProofError: something else ran.
        """
        raise NotImplementedError


class Exported(Path):
    """A way that leads through a file: one process writes it, another one executes it.

    Subclass it, set `name` and `reader`, and write `export` and `execute`. The second process has
    never seen the program, and stays for the next one.

    Attributes:
        reader: names the process that executes; paths of the same name share one.
    """

    reader: str

    def prepare(self) -> None:
        """What `load` is to `export`, to `execute`: imports what it needs."""

    def export(self, program: Program, folder: pathlib.Path, probe: Probe) -> None:
        """Write the program.

        Args:
            program: what to write.
            folder: empty, takes the files.
            probe: takes the stages and the evidence.

        Raises:
            Unsupported: the path cannot express this program.
            PathProofError: what was written is something else.
        """
        raise NotImplementedError

    def execute(
        self, folder: pathlib.Path, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """Execute what `export` wrote, perhaps another release's: see `Path.run`.

        Args:
            folder: what `export` left there.
            inputs: the operands' bits and the arrays of `Program.drawn`, in order.
            probe: takes the stages, `load` first, and the evidence.

        Raises:
            PathProofError: something else ran.
        """
        raise NotImplementedError


@cache
def _registry() -> Mapping[str, type[Path] | EntryPoint]:
    found: dict[str, type[Path] | EntryPoint] = {}
    for module in iter_modules(__path__):
        for path in import_module(f"{__name__}.{module.name}").PATHS:
            found[path.name] = path
    for entry in entry_points(group=GROUP):
        found.setdefault(entry.name, entry)
    return found


def names() -> tuple[str, ...]:
    """Every path that can be named, built-in ones first."""
    return tuple(_registry())


def options() -> Mapping[str, Mapping[str, Sequence[Any]] | None]:
    """By path, the options that it takes; None for one of another distribution."""
    return {n: of.options if isinstance(of, type) else None for n, of in _registry().items()}


def references() -> frozenset[str]:
    """The paths that are references."""
    return frozenset(n for n, of in _registry().items() if isinstance(of, type) and of.reference)


@cache
def get(name: str) -> Path:
    """The path of that name.

    Raises:
        KeyError: there is none.
    """
    found: Any = _registry()[name]
    path: Path = (found.load() if isinstance(found, EntryPoint) else found)()
    return path
