"""What the command line, the pytest plugin and Python callers do: select cases and run them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parity import paths as registry
from parity.casefile.case import GRADES, Case
from parity.casefile.discover import discover
from parity.casefile.load import CaseFile, check_unique
from parity.casefile.load import load as load_file
from parity.casefile.problem import did_you_mean
from parity.casefile.select import Item, match_ids
from parity.casefile.select import select as select_by_expression
from parity.config import Config, load_config, nearest_root
from parity.errors import NothingSelected, UserError

if TYPE_CHECKING:
    from parity.engine.run import Options, RunResult


@dataclass(frozen=True)
class Selection:
    """What targets and expressions selected.

    Attributes:
        items: a case and a path each, in order, each once.
        errors: what is wrong with files that were asked for.
        files: the files that could be loaded.
    """

    items: tuple[Item, ...]
    errors: tuple[UserError, ...]
    files: tuple[CaseFile, ...]

    def by_case(self) -> list[tuple[Case, tuple[str, ...]]]:
        """The selected paths of each case."""
        found: dict[str, tuple[Case, list[str]]] = {}
        for item in self.items:
            found.setdefault(item.case.id, (item.case, []))[1].append(item.path)
        return [(case, tuple(of)) for case, of in found.values()]


def load(path: Path | str) -> CaseFile:
    """Read a case file: its cases in the order of its sweep. Nothing in it is executed.

    Raises:
        CaseFileError: it is not a valid case file; file, line and column are in the message.
    """
    config = load_config(Path(path))
    return load_file(path, known_paths=registry.names(), max_cases=config.max_cases)


def run(
    *targets: str | Path,
    k: str | None = None,
    paths: Sequence[str] | None = None,
    timeout: float | None = None,
    fail_on: str | None = None,
    python: str | None = None,
    out: str | Path | None = None,
) -> RunResult:
    """Run cases on their paths and compare what comes out; `parity run` from Python.

    Args:
        targets: case files, folders, ids or globs over ids; none for `cases` in [tool.parity].
        k: an expression over ids, as pytest's -k.
        paths: run these instead of the paths that the cases name.
        timeout: seconds a path may take.
        fail_on: the mildest grade that is a finding.
        python: interpreter of the environment under test, this one if None.
        out: folder for the record.

    Returns:
        The judged rows; `table()` makes a pandas DataFrame of them.

    Raises:
        UserError: a case file or an argument is wrong; NothingSelected if nothing matched.
    """
    config = load_config(Path.cwd())
    chosen = options(config, timeout=timeout, fail_on=fail_on, python=python, out=out)
    selection = select(targets, k=k, paths=paths, config=config)
    if selection.errors:
        raise selection.errors[0]
    from parity.engine.run import run_cases

    return run_cases(selection.by_case(), chosen)


def options(
    config: Config,
    *,
    timeout: float | None = None,
    fail_on: str | None = None,
    python: str | None = None,
    out: str | Path | None = None,
) -> Options:
    """The options of a run, checked; what is None is taken from the configuration.

    Raises:
        UserError: a value is not allowed.
    """
    from parity.engine.run import Options

    timeout = config.timeout if timeout is None else timeout
    if not 0 < timeout < math.inf:
        raise UserError(f"wrong timeout (got {timeout:g}; allowed a positive number of seconds)")
    fail_on = config.fail_on if fail_on is None else fail_on
    if fail_on not in GRADES:
        raise UserError(
            f"unknown grade (got {fail_on}; allowed {', '.join(GRADES)})",
            hint=did_you_mean(fail_on, GRADES),
        )
    if out is None and config.reports is not None:
        out = config.root / config.reports
    folder = None if out is None else Path(out)
    return Options(timeout=timeout, fail_on=fail_on, python=python, out=folder)


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
    chosen: dict[str, Item] = {}
    for target in list(targets) or [config.root / folder for folder in config.cases]:
        for item in loader.items(str(target), wanted):
            chosen.setdefault(item.id, item)
    files = tuple(loader.files.values())
    check_unique(files)
    items = list(chosen.values())
    if k is not None:
        items = select_by_expression(items, k)
    if not items and not loader.errors:
        raise NothingSelected(f"-k {k!r} matches none of {len(chosen)} cases and paths")
    return Selection(tuple(items), tuple(loader.errors), files)


def _known(paths: Sequence[str]) -> tuple[str, ...]:
    names = registry.names()
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
        self._known_paths = registry.names()
        self._broken: set[Path] = set()
        self.files: dict[Path, CaseFile] = {}
        self.errors: list[UserError] = []

    def items(self, target: str, paths: tuple[str, ...] | None) -> list[Item]:
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


def _items(files: Iterable[CaseFile], paths: tuple[str, ...] | None) -> list[Item]:
    return [Item(case, p) for file in files for case in file.cases for p in paths or case.paths]


def _relative(file: Path) -> str:
    """A file as ids spell it."""
    absolute, root = file.absolute(), nearest_root(file)
    return (absolute.relative_to(root) if absolute.is_relative_to(root) else file).as_posix()
