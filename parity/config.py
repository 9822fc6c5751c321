"""`[tool.parity]` of the nearest pyproject.toml, read strictly."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parity.casefile.case import GRADES
from parity.errors import CaseFileError

MARKER = "pyproject.toml"


@dataclass(frozen=True)
class EnvironmentConfig:
    """What `[tool.parity.environments.NAME]` says: either requirements or an interpreter.

    Attributes:
        requirements: what pip installs into a virtual environment of its own.
        python: an interpreter, relative to `root`.
        variables: environment variables of its workers.
    """

    requirements: tuple[str, ...] = ()
    python: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Config:
    """What `[tool.parity]` says; every key may be left out.

    Attributes:
        root: the folder that ids and the paths below are relative to.
        cases: folders or files that hold the case files.
        fail_on: a run fails on this grade and worse ones.
        timeout: seconds per path.
        reports: folder for records, None to keep none.
        max_cases: largest number of cases that one sweep may give.
        memory: bytes that a path may take beside what its worker has in use, None for no limit.
        keep: which outputs a record keeps: all, non-identical or none.
        environments: by name.
        is_configured: whether there is such a table.
    """

    root: Path
    cases: tuple[str, ...] = ("cases",)
    fail_on: str = "divergent"
    timeout: float = 300.0
    reports: str | None = None
    max_cases: int = 10_000
    memory: int | None = None
    keep: str = "non-identical"
    environments: Mapping[str, EnvironmentConfig] = field(default_factory=dict)
    is_configured: bool = False


KEEP = ("all", "non-identical", "none")
KEYS = (
    "cases",
    "fail_on",
    "timeout",
    "reports",
    "max_cases",
    "memory",
    "keep",
    "environments",
)
_ENVIRONMENT_KEYS = ("requirements", "python", "variables")


def nearest_root(path: Path) -> Path:
    """The folder of the nearest pyproject.toml at or above `path` (a file or a folder).

    Where there is none: the current folder if `path` lies below it, else the folder of `path`.
    """
    start = path.absolute()
    folder = start if start.is_dir() else start.parent
    for candidate in (folder, *folder.parents):
        if (candidate / MARKER).is_file():
            return candidate
    return Path.cwd() if start.is_relative_to(Path.cwd()) else folder


def load_config(start: Path) -> Config:
    """The configuration that holds at `start`; the defaults where no file says anything.

    Raises:
        CaseFileError: pyproject.toml is not TOML, or `[tool.parity]` has an unknown key or a wrong
            value.
    """
    root = nearest_root(start)
    file = root / MARKER
    if not file.is_file():
        return Config(root=root)
    try:
        text = file.read_bytes().decode("utf-8")
        table = tomllib.loads(text).get("tool", {}).get("parity")
    except UnicodeDecodeError as error:
        raise CaseFileError(f"is not UTF-8 ({error.reason})", file=file) from None
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(error, file) from None
    except OSError as error:
        raise CaseFileError(f"cannot be read ({error.strerror})", file=file) from None
    return Config(root=root) if table is None else _checked(table, text, root)


def _syntax_error(error: tomllib.TOMLDecodeError, file: Path) -> CaseFileError:
    place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
    line, col = (int(place[1]), int(place[2])) if place else (0, 0)
    what = str(error).split(" (at ")[0]
    return CaseFileError(f"is not valid TOML: {what}", file=file, line=line, col=col)


def _checked(table: object, text: str, root: Path) -> Config:
    file = root / MARKER
    if not isinstance(table, Mapping):
        raise CaseFileError(f"tool.parity is not a table (got {table!r})", file=file)
    for key, value in table.items():
        line, col = _place(text, key)
        if key not in KEYS:
            close = difflib.get_close_matches(key, KEYS, n=1)
            raise CaseFileError(
                f"unknown key in [tool.parity] (got {key}; allowed {', '.join(KEYS)})",
                file=file,
                line=line,
                col=col,
                hint=f"did you mean {close[0]}?" if close else None,
            )
        allowed = _wrong(key, value)
        if allowed is not None:
            raise CaseFileError(
                f"wrong value for {key} in [tool.parity] (got {value!r}; allowed {allowed})",
                file=file,
                line=line,
                col=col,
            )
    values: dict[str, Any] = dict(table)
    if "cases" in values:
        values["cases"] = tuple(values["cases"])
    if "timeout" in values:
        values["timeout"] = float(values["timeout"])
    if "environments" in values:
        values["environments"] = {
            name: _environment(name, one, text, file)
            for name, one in values["environments"].items()
        }
    return Config(root=root, is_configured=True, **values)


def _environment(name: str, table: object, text: str, file: Path) -> EnvironmentConfig:
    """One `[tool.parity.environments.NAME]`, checked."""
    header = f"tool.parity.environments.{name}"
    line = _header_line(text, header)

    def wrong(what: str) -> CaseFileError:
        return CaseFileError(f"[{header}]: {what}", file=file, line=line, col=1)

    if not isinstance(table, Mapping):
        raise wrong(f"not a table (got {table!r})")
    for key in table:
        if key not in _ENVIRONMENT_KEYS:
            allowed = ", ".join(_ENVIRONMENT_KEYS)
            raise wrong(f"unknown key (got {key}; allowed {allowed})")
    requirements, python = table.get("requirements", []), table.get("python")
    variables = table.get("variables", {})
    if not (isinstance(requirements, list) and all(isinstance(r, str) for r in requirements)):
        raise wrong(f"wrong requirements (got {requirements!r}; allowed a list of strings)")
    if python is not None and not isinstance(python, str):
        raise wrong(f"wrong python (got {python!r}; allowed the path of an interpreter)")
    if bool(requirements) == (python is not None):
        raise wrong("needs either requirements or python")
    good = isinstance(variables, Mapping) and all(isinstance(v, str) for v in variables.values())
    if not good:
        raise wrong(f"wrong variables (got {variables!r}; allowed a table of strings)")
    return EnvironmentConfig(tuple(requirements), python, dict(variables))


def _header_line(text: str, header: str) -> int:
    for number, line in enumerate(text.splitlines(), start=1):
        found = re.match(r"\s*\[([^\[\]]+)\]", line)
        if found and found[1].replace(" ", "").replace('"', "") == header:
            return number
    return 0


def _wrong(key: str, value: object) -> str | None:
    """What would be allowed for `key`, or None if `value` is."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if key == "cases":
        good = isinstance(value, list) and value and all(isinstance(v, str) and v for v in value)
        return None if good else "a list of folders or files"
    if key == "fail_on":
        return None if value in GRADES else ", ".join(GRADES)
    if key == "timeout":
        good = number and 0 < float(value) < math.inf  # type: ignore[arg-type]
        return None if good else "a positive number of seconds"
    if key == "keep":
        return None if value in KEEP else ", ".join(KEEP)
    if key == "environments":
        return None if isinstance(value, Mapping) else "a table of environments"
    if key == "memory":
        return None if isinstance(value, int) and number and value > 0 else "a number of bytes"
    if key == "reports":
        return None if isinstance(value, str) and value else "a folder"
    good = isinstance(value, int) and number and value > 0
    return None if good else "a positive integer"


def _place(text: str, key: str) -> tuple[int, int]:
    """1-based line and column of `key` in `[tool.parity]`, (0, 0) where it is written otherwise.

    tomllib tells no positions.
    """
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            inside = header[1].replace(" ", "") == "tool.parity"
        elif inside and (found := re.match(rf"\s*[\"']?({re.escape(key)})[\"']?\s*=", line)):
            return number, found.start(1) + 1
    return 0, 0
