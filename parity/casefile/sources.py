"""The Python files that a case's program is made of, without running or importing them.

A module that is named stands beside the case file, as `NAME.py` or in a package `NAME/`, or is
installed in the environment under test, of which the host knows nothing. What a file beside imports
from beside is found in its text; of a package every file counts. So the digests of all of them can
be part of the case.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parity.casefile.problem import Location, Problem, did_you_mean, listed, show, spell

TAKEN = frozenset(sys.stdlib_module_names) | {
    "flax",
    "jax",
    "jaxlib",
    "ml_dtypes",
    "numpy",
    "parity",
    "tensorflow",
}
"""Modules that a worker has anyway: a file beside a case file cannot go by their names."""


def nested_names(value: Any, at: Location) -> Iterator[tuple[Location, str]]:
    """Each `{callable: module:name}` in plain data: where, and what it names."""
    if isinstance(value, dict):
        if set(value) == {"callable"} and isinstance(value["callable"], str):
            yield (*at, "callable"), value["callable"]
        for key, item in value.items():
            yield from nested_names(item, (*at, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from nested_names(item, (*at, index))


class Sources:
    """The Python files beside one case file, each read once.

    Attributes:
        folder: the case file's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, tuple[str, tuple[str, ...]]] = {}

    def of(self, named: Iterator[tuple[Location, str]]) -> dict[str, str]:
        """SHA-256 of the files beside that some names need, by path from the folder.

        Args:
            named: where, and `module:name`.

        Raises:
            Problem: a file is outside the folder or unreadable, or a name is a misspelt one.
        """
        found: dict[str, str] = {}
        for at, name in named:
            module = name.partition(":")[0]
            if self._is_beside(module, at):
                self._add(module.partition(".")[0], found, at)
        return dict(sorted(found.items()))

    def _is_beside(self, module: str, at: Location) -> bool:
        """Whether a module is a file of the folder, or of a package in it."""
        top, dot, _ = module.partition(".")
        exists = (self.folder / f"{top}.py").is_file()
        if top in TAKEN:
            if exists and not dot:
                what = f"{top}.py has the name of a module that is there already"
                raise Problem(f"{spell(at)}: {what}", at, hint="rename the file")
            return False
        if self._is_package(top):
            self._check_inner(module, at)
            return True
        if exists and dot:
            what = f"{spell(at)}: {top}.py is no package (got {show(module)}; allowed {show(top)})"
            raise Problem(what, at)
        if not exists and not self._is_elsewhere(top):
            self._check_absent(module, at)
        return exists

    def _is_package(self, name: str) -> bool:
        return (self.folder / name / "__init__.py").is_file()

    def _is_elsewhere(self, name: str) -> bool:
        """Whether a module is installed here, rather than found because this folder is searched."""
        spec = importlib.util.find_spec(name)
        places = () if spec is None else spec.submodule_search_locations or ()
        here = (self.folder / name).resolve()
        return spec is not None and here not in {Path(place).resolve() for place in places}

    def _check_inner(self, module: str, at: Location) -> None:
        """Refuse a module that a package beside does not have."""
        path = self.folder.joinpath(*module.split("."))
        if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file():
            return
        package = module.partition(".")[0]
        inner = [file.removesuffix("/__init__.py") for file in self._files(package)[1:]]
        names = [file.removesuffix(".py").replace("/", ".") for file in inner]
        what = f"{spell(at)} names no module (got {show(module)}; "
        what += f"allowed {listed([package, *names])})"
        raise Problem(what, at, hint=did_you_mean(module, names))

    def _check_absent(self, module: str, at: Location) -> None:
        """Refuse what is found neither here nor beside, if something beside must be meant."""
        top = module.partition(".")[0]
        if self.folder.joinpath(*module.split(".")).with_suffix(".py").is_file():
            what = f"{spell(at)}: {top} is no package: it has no __init__.py (got {show(module)})"
            raise Problem(what, at, hint=f"add an empty {top}/__init__.py")
        names = {path.stem for path in self.folder.glob("*.py")}
        names |= {path.parent.name for path in self.folder.glob("*/__init__.py")}
        near = did_you_mean(top, sorted(names))
        if near is not None:
            what = f"{spell(at)} names no module (got {show(module)}; {top}.py does not exist)"
            raise Problem(what, at, hint=near)

    def _files(self, top: str) -> list[str]:
        """The files of a module beside; the first one is imported first."""
        if not self._is_package(top):
            return [f"{top}.py"] if (self.folder / f"{top}.py").is_file() else []
        files = (self.folder / top).rglob("*.py")
        first = f"{top}/__init__.py"
        rest = {path.relative_to(self.folder).as_posix() for path in files} - {first}
        return [first, *sorted(rest)]

    def _add(self, top: str, found: dict[str, str], at: Location) -> None:
        """Note the files of a module and, in turn, of those that they import from beside."""
        for file in self._files(top):
            if file in found:
                return
            found[file], imported = self._file(file, at)
            for name in imported:
                if name not in TAKEN and name != top:
                    self._add(name, found, at)

    def _file(self, file: str, at: Location) -> tuple[str, tuple[str, ...]]:
        """SHA-256 of a file and the modules that it imports."""
        if file not in self._read:
            path = self.folder / file
            if path.resolve() != self.folder.resolve() / file:
                what = f"{spell(at)}: {file} leads outside the case file's folder"
                raise Problem(what, at, hint="put the file itself beside the case file")
            try:
                text = path.read_bytes()
            except OSError as error:
                what = f"{spell(at)}: {file} cannot be read ({error.strerror})"
                raise Problem(what, at) from None
            self._read[file] = hashlib.sha256(text).hexdigest(), _imported(text)
        return self._read[file]


def _imported(text: bytes) -> tuple[str, ...]:
    """The top-level modules that a file imports, anywhere in it; none if it cannot be parsed.

    What is wrong with it is for the environment under test to say, whose Python may be another.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        else:
            continue
        found.update(dict.fromkeys(name.partition(".")[0] for name in names))
    return tuple(found)
