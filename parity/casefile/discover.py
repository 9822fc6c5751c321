"""Finding case files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from parity.casefile.problem import nearest
from parity.errors import UserError

SUFFIXES = (".yaml", ".yml")


def discover(paths: Iterable[Path | str]) -> list[Path]:
    """The case files that files and folders name, each once.

    A file is taken whatever it is called; of a folder, all *.yaml and *.yml files in it and below,
    sorted, hidden folders left out and links followed.

    Raises:
        UserError: a path does not exist, or a folder has no case file.
    """
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        for file in _below(path) if path.is_dir() else [_existing(path)]:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def _existing(path: Path) -> Path:
    if not path.exists():
        beside = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
        name = nearest(path.name, (one for one in beside if one != path.name))
        hint = f"did you mean '{path.with_name(name)}'?" if name else "parity run cases/"
        raise UserError(f"{path}: no such file or folder", hint=hint)
    return path


def _below(folder: Path) -> list[Path]:
    files = sorted(_walk(folder))
    if not files:
        hint = f"a case file ends in {' or '.join(SUFFIXES)}; parity new prints a template"
        raise UserError(f"{folder}: no case file in this folder", hint=hint)
    return files


def _walk(folder: Path) -> Iterator[Path]:
    """Case files below a folder; a folder that links lead back to is visited once."""
    visited: set[str] = set()
    for here, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(here)
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(here, name) for name in files if name.endswith(SUFFIXES))
