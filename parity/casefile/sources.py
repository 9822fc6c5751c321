"""The Python files that a case's program is made of, without running or importing them.

A module that is named stands beside the case file, as `NAME.py`, or is installed in the environment
under test, of which the host knows nothing. What a file beside imports from beside is found in its
text, so that the digests of all of them can be part of the case.
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

from parity.casefile.problem import Location, Problem, did_you_mean, show, spell

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
        """SHA-256 by file name of the files beside that some names need.

        Args:
            named: where, and `module:name`.

        Raises:
            Problem: a file is outside the folder or unreadable, or a name is a misspelt one.
        """
        found: dict[str, str] = {}
        for at, name in named:
            module = name.partition(":")[0]
            if self._is_beside(module, at):
                self._add(f"{module}.py", found, at)
        return dict(sorted(found.items()))

    def _is_beside(self, module: str, at: Location) -> bool:
        """Whether a module is a file of the folder."""
        top, dot, _ = module.partition(".")
        exists = (self.folder / f"{top}.py").is_file()
        if top in TAKEN:
            if exists and not dot:
                what = f"{top}.py has the name of a module that is there already"
                raise Problem(f"{spell(at)}: {what}", at, hint="rename the file")
            return False
        if exists and dot:
            what = f"{spell(at)}: {top}.py is no package (got {show(module)}; allowed {show(top)})"
            raise Problem(what, at)
        if not exists and importlib.util.find_spec(top) is None:
            near = did_you_mean(top, sorted(path.stem for path in self.folder.glob("*.py")))
            if near is not None:
                what = f"{spell(at)} names no module (got {show(module)}; {top}.py does not exist)"
                raise Problem(what, at, hint=near)
        return exists

    def _add(self, file: str, found: dict[str, str], at: Location) -> None:
        """Note a file and, in turn, those that it imports from beside."""
        if file in found:
            return
        found[file], imported = self._file(file, at)
        for name in imported:
            if name not in TAKEN and (self.folder / f"{name}.py").is_file():
                self._add(f"{name}.py", found, at)

    def _file(self, file: str, at: Location) -> tuple[str, tuple[str, ...]]:
        """SHA-256 of a file and the modules that it imports."""
        if file not in self._read:
            path = (self.folder / file).resolve()
            if path.parent != self.folder.resolve():
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
