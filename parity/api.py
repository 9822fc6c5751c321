"""What the command line, the pytest plugin and Python callers do: select cases and run them."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from parity import paths as registry
from parity.casefile.case import GRADES, Case
from parity.casefile.discover import discover
from parity.casefile.load import CaseFile, check_unique
from parity.casefile.load import load as load_file
from parity.casefile.problem import did_you_mean
from parity.casefile.select import Item, match_ids
from parity.casefile.select import select as select_by_expression
from parity.config import KEEP, Config, load_config, nearest_root
from parity.errors import NothingSelected, UserError

if TYPE_CHECKING:
    from parity.engine.artifacts import Past
    from parity.engine.environment import Environment
    from parity.engine.run import Options
    from parity.record.result import RunResult


@dataclass(frozen=True)
class Selection:
    """What targets and expressions selected.

    Attributes:
        cases: each once, in order, with the paths of it that are selected.
        errors: what is wrong with files that were asked for.
        files: the files that could be loaded.
    """

    cases: tuple[tuple[Case, tuple[str, ...]], ...]
    errors: tuple[UserError, ...]
    files: tuple[CaseFile, ...]

    @property
    def items(self) -> Iterator[Item]:
        """A case and a path each, in order, each once."""
        return (Item(case, path) for case, paths in self.cases for path in paths)


def load(path: Path | str) -> CaseFile:
    """Read a case file: its cases in the order of its sweep. Nothing in it is executed.

    Raises:
        CaseFileError: it is not a valid case file; file, line and column are in the message.
    """
    config = load_config(Path(path))
    return load_file(path, known_paths=registry.options(), max_cases=config.max_cases)


class Choices(TypedDict, total=False):
    """How a run is done; what is left out or None is taken from the configuration.

    timeout: seconds a path may take.
    memory: bytes a path may take beside what its worker has in use.
    repeat: run each path so many times, each in a fresh process, and report bits that change.
    fail_on: the mildest grade that is a finding.
    python: interpreter of the environment under test, this one if None.
    env: environments by name, or NAME=path/to/python; each case runs in all of them.
    jobs: cases at a time, the number of cores if None.
    scheduler: address of a Dask scheduler whose workers run the cases.
    out: folder for the record.
    keep: which outputs the record keeps: all, non-identical, none.
    resume: the record of an earlier run to go on with.
    save_artifacts: keep in the record what paths export; such a run takes nothing from the cache.
    artifacts_from: a record whose artifacts are executed here, instead of exporting anew.
    artifacts_env: its environment, where it has several.
    explain: whether to explain each row that is not identical.
    explain_seconds: that this may take for each of them; 60 if None.
    cache: whether results of an earlier run may be taken, True if None.
    """

    timeout: float | None
    memory: int | None
    repeat: int | None
    fail_on: str | None
    python: str | None
    env: Sequence[str]
    jobs: int | None
    scheduler: str | None
    out: str | Path | None
    keep: str | None
    resume: str | Path | None
    save_artifacts: bool | None
    artifacts_from: str | Path | None
    artifacts_env: str | None
    explain: bool | None
    explain_seconds: float | None
    cache: bool | None


def run(
    *targets: str | Path,
    k: str | None = None,
    paths: Sequence[str] | None = None,
    **choices: Unpack[Choices],
) -> RunResult:
    """Run cases on their paths and compare what comes out; `parity run` from Python.

    Args:
        targets: case files, folders, ids or globs over ids; none for `cases` in [tool.parity].
        k: an expression over ids, as pytest's -k.
        paths: run these instead of the paths that the cases name; "all" for every one.
        choices: see `Choices`.

    Returns:
        The judged rows; `table()` makes a pandas DataFrame of them.

    Raises:
        UserError: a case file or an argument is wrong; NothingSelected if nothing matched.
    """
    config = load_config(Path.cwd())
    chosen = options(config, **choices)
    selection = select(targets or chosen.targets, k=k, paths=paths, config=config)
    if selection.errors:
        raise selection.errors[0]
    from parity.engine.run import run_cases

    return run_cases(selection.cases, chosen)


def options(
    config: Config, *, say: Callable[[str], None] = lambda line: None, **choices: Unpack[Choices]
) -> Options:
    """The options of a run, checked; what is None is taken from the configuration.

    Args:
        config: of the project.
        say: told what is being done while an environment is made.
        choices: see `Choices`.

    Raises:
        UserError: a value is not allowed.
    """
    from parity.engine.run import Options
    from parity.engine.workers import Limits

    given = {name: value for name, value in choices.items() if value is not None}
    timeout = float(given.get("timeout", config.timeout))  # type: ignore[arg-type]
    if not 0 < timeout < math.inf:
        raise UserError(f"wrong timeout (got {timeout:g}; allowed a positive number of seconds)")
    memory = _positive("memory", given.get("memory", config.memory), "bytes")
    repeats = _positive("repeat", given.get("repeat", 1), "times")
    jobs = _positive("jobs", given.get("jobs", os.cpu_count() or 1), "cases at a time")
    reports = None if config.reports is None else _from_here(config.root / config.reports)
    out = given.get("out", reports)
    explain = _explain(**choices)
    resume = given.get("resume")
    return Options(
        fail_on=_one_of("grade", given.get("fail_on", config.fail_on), GRADES),
        environments=_environments(config, say, **choices),
        limits=Limits(
            timeout=timeout,
            memory=memory,
            repeats=repeats or 1,
            artifacts=bool(given.get("save_artifacts", False)),
        ),
        jobs=jobs or 1,
        scheduler=choices.get("scheduler"),
        out=None if out is None else Path(str(out)),
        keep=_one_of("value of keep", given.get("keep", config.keep), KEEP),
        resume=None if resume is None else Path(str(resume)),
        artifacts=_artifacts(choices.get("artifacts_from"), choices.get("artifacts_env")),
        cache=bool(given.get("cache", True)),
        **({} if explain is None else _explaining(explain)),
    )


def _explain(**choices: Unpack[Choices]) -> float | None:
    """The seconds that explaining a row may take, None if that is not asked for."""
    seconds = choices.get("explain_seconds")
    if seconds is not None and not 0 < seconds < math.inf:
        allowed = "a positive number of seconds"
        raise UserError(f"wrong explain budget (got {seconds:g}; allowed {allowed})")
    if not choices.get("explain"):
        if seconds is not None:
            raise UserError("--explain-budget needs --explain")
        return None
    if choices.get("artifacts_from") is not None:
        raise UserError(
            "--explain and --artifacts-from exclude each other",
            hint="an artifact says nothing of the program that it was made of",
        )
    return 60.0 if seconds is None else seconds


def _explaining(seconds: float) -> dict[str, Any]:
    """What explanations change in the options of a run."""
    from parity.explain.during import explained

    return {"explain": seconds, "work": partial(explained, seconds=seconds)}


def _artifacts(record: str | Path | None, environment: str | None) -> Past | None:
    from parity.engine.artifacts import Past

    if record is not None:
        return Past(Path(record), environment)
    if environment is not None:
        raise UserError("--artifacts-env needs --artifacts-from, the record that it is of")
    return None


def _from_here(folder: Path) -> Path:
    """A folder as it is named from the current one, if it lies below."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _positive(name: str, value: Any, what: str) -> int | None:
    if value is not None and value <= 0:
        raise UserError(f"wrong {name} (got {value}; allowed a positive number of {what})")
    return None if value is None else int(value)


def _one_of(what: str, value: Any, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise UserError(
            f"unknown {what} (got {value}; allowed {', '.join(allowed)})",
            hint=did_you_mean(value, allowed),
        )
    return str(value)


def _environments(
    config: Config, say: Callable[[str], None], **choices: Unpack[Choices]
) -> tuple[Environment, ...]:
    from parity.engine.environment import Environment
    from parity.engine.provision import resolve

    python, names = choices.get("python"), choices.get("env") or ()
    if python is not None and names:
        raise UserError(
            "--python and --env exclude each other", hint=f"give --env NAME={python} as well"
        )
    if python is not None:
        return (Environment(python=python, arguments=("--python", python)),)
    found = [resolve(name, config, say=say) for name in names] or [Environment()]
    repeated = [e.name for i, e in enumerate(found) if e.name in [o.name for o in found[:i]]]
    if repeated:
        raise UserError(f"environment {repeated[0]} is named twice")
    return tuple(found)


def select(
    targets: Iterable[str | Path] = (),
    *,
    k: str | None = None,
    paths: Sequence[str] | None = None,
    config: Config,
) -> Selection:
    """Load what the targets name and choose from it. A broken file does not stop the others.

    Raises:
        UserError: a target does not exist, or `k` or `paths` cannot be understood.
        NothingSelected: all files are fine and nothing in them matches.
    """
    wanted = None if paths is None else _known(paths)
    loader = _Loader(config)
    chosen = _Chosen()
    for target in list(targets) or [config.root / folder for folder in config.cases]:
        chosen.add(loader.items(str(target), wanted))
    files = tuple(loader.files.values())
    check_unique(files)
    selection = Selection(chosen.cases(), tuple(loader.errors), files)
    if k is not None:
        chosen = _Chosen()
        chosen.add(select_by_expression(selection.items, k))
    if not chosen.cases() and not loader.errors:
        among = sum(1 for _ in selection.items)
        raise NothingSelected(f"-k {k!r} matches none of {among} cases and paths")
    return replace(selection, cases=chosen.cases())


class _Chosen:
    """Cases in the order in which they were first chosen, and the chosen paths of each."""

    def __init__(self) -> None:
        self._by_id: dict[str, tuple[Case, tuple[str, ...]]] = {}

    def add(self, items: Iterable[Item]) -> None:
        for id_, of in itertools.groupby(items, key=lambda item: item.case.id):
            found = list(of)
            case, before = self._by_id.get(id_, (found[0].case, ()))
            paths = tuple(dict.fromkeys((*before, *(item.path for item in found))))
            self._by_id[id_] = (case, case.paths if paths == case.paths else paths)

    def cases(self) -> tuple[tuple[Case, tuple[str, ...]], ...]:
        return tuple(self._by_id.values())


def _known(paths: Sequence[str]) -> tuple[str, ...]:
    names = registry.names()
    if tuple(paths) == ("all",):
        return names
    for path in paths:
        if path not in names:
            raise UserError(
                f"unknown path (got {path or 'nothing'}; allowed {', '.join(names)})",
                hint=did_you_mean(path, names),
            )
    if not paths:
        raise UserError(f"no path is named (allowed {', '.join(names)})")
    return tuple(dict.fromkeys(paths))


class _Loader:
    """Loads each file once and keeps what is wrong with the broken ones."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._known_paths = registry.options()
        self._broken: set[Path] = set()
        self.files: dict[Path, CaseFile] = {}
        self.errors: list[UserError] = []

    def items(self, target: str, paths: tuple[str, ...] | None) -> Iterable[Item]:
        """The items that a target names: those of a file or folder, or of an id or a glob."""
        file, separator, rest = target.partition("::")
        wild = any(sign in file for sign in "*?") and not Path(file).exists()
        if not separator and not wild:
            return _items(self._load([file]), paths)
        if wild:
            folders = [self._config.root / folder for folder in self._config.cases]
            pattern, loaded = target, self._load(folders)
        else:
            path = Path(file) if Path(file).exists() else self._config.root / file
            pattern, loaded = f"{_relative(path)}::{rest}", self._load([path])
            if not loaded:
                return []
        return match_ids(_items(loaded, paths), [pattern])

    def _load(self, targets: Sequence[str | Path]) -> list[CaseFile]:
        found = []
        for path in discover(targets):
            key = path.resolve()
            if key not in self.files and key not in self._broken:
                try:
                    self.files[key] = load_file(
                        path, known_paths=self._known_paths, max_cases=self._config.max_cases
                    )
                except UserError as error:
                    self._broken.add(key)
                    self.errors.append(error)
            if key in self.files:
                found.append(self.files[key])
        return found


def _items(files: Iterable[CaseFile], paths: tuple[str, ...] | None) -> Iterator[Item]:
    return (Item(case, p) for file in files for case in file.cases for p in paths or case.paths)


def _relative(file: Path) -> str:
    """A file as ids spell it."""
    absolute, root = file.absolute(), nearest_root(file)
    return (absolute.relative_to(root) if absolute.is_relative_to(root) else file).as_posix()
