"""Code that a case names: a module beside the case file, or an installed one.

Of the files beside a case file those are importable that its record names (`casefile.sources`), as
long as they are what they were when the case was loaded. Each program imports them anew, so that
nothing of an earlier program or path is found again; what they set in `jax.config` is undone when
the next program comes.
"""

from __future__ import annotations

import difflib
import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

from parity.program.outputs import ProgramError

CALLABLE = "callable"
"""The only key of a mapping that stands for what it names."""


class _Verified(SourceFileLoader):
    """Compiles a file if it has the content that is expected; reads and writes no bytecode."""

    def __init__(self, name: str, path: str, sha256: str) -> None:
        super().__init__(name, path)
        self._sha256 = sha256

    def get_code(self, fullname: str) -> Any:
        text = self.get_data(self.path)
        if hashlib.sha256(text).hexdigest() != self._sha256:
            name = Path(self.path).name
            raise ProgramError(f"{name} was changed after its case file was loaded: run it again")
        return self.source_to_code(text, self.path)


class _Beside(MetaPathFinder):
    """Finds the files of one program at a time."""

    def __init__(self) -> None:
        self.folder = Path()
        self.sources: Mapping[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = f"{fullname}.py"
        if path is not None or file not in self.sources:
            return None
        location = str(self.folder / file)
        loader = _Verified(fullname, location, self.sources[file])
        return spec_from_file_location(fullname, location, loader=loader)


_beside = _Beside()
_settings: dict[str, Any] = {}


def use(attributes: Mapping[str, Any]) -> None:
    """Make the files of a program importable, and forget those of the one before.

    Args:
        attributes: of its op: `folder` and `sources`, SHA-256 by file name, if it has any.
    """
    if _beside not in sys.meta_path:
        sys.meta_path.insert(0, _beside)
        _settings.update(jax.config.values)
    for file in _beside.sources:
        sys.modules.pop(file.removesuffix(".py"), None)
    _restore()
    _beside.folder = Path(attributes.get("folder", ""))
    _beside.sources = attributes.get("sources", {})


def named(name: str) -> Any:
    """What `module:name` names.

    Raises:
        ProgramError: there is no such module, or nothing of that name in it.
    """
    module, _, attribute = name.partition(":")
    top = module.partition(".")[0]
    try:
        found: Any = import_module(module)
    except SystemExit as error:
        raise ProgramError(f"importing {module} called sys.exit({error.code!r})") from error
    except ModuleNotFoundError as error:
        if error.name not in (top, module):
            raise
        where = f"neither is {top}.py beside the case file nor is it installed here"
        raise ProgramError(f"there is no module {error.name}: {where}") from error
    if bool(jax.config.values["jax_enable_x64"]) != bool(_settings["jax_enable_x64"]):
        _restore()
        raise ProgramError(f"{module} sets jax_enable_x64: write x64: true in the case file")
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ProgramError(_missing(found, part))
        found = getattr(found, part)
    return found


def function(name: str) -> Callable[..., Any]:
    """The callable that `module:name` names; if it calls sys.exit, that is an error like others.

    Raises:
        ProgramError: there is none.
    """
    found = named(name)
    if not callable(found):
        raise ProgramError(f"{name} is no function (got {type(found).__name__})")

    @wraps(found, updated=())
    def contained(*args: Any, **keywords: Any) -> Any:
        try:
            return found(*args, **keywords)
        except SystemExit as error:
            raise ProgramError(f"{name} called sys.exit({error.code!r})") from error

    return contained


def resolved(value: Any) -> Any:
    """Plain data in which each `{callable: module:name}` is what it names.

    Raises:
        ProgramError: there is no such thing.
    """
    if isinstance(value, Mapping):
        if set(value) == {CALLABLE}:
            return named(value[CALLABLE])
        return {key: resolved(of) for key, of in value.items()}
    return tuple(map(resolved, value)) if isinstance(value, list | tuple) else value


def changed_settings() -> dict[str, str]:
    """The settings of `jax.config` that the current program has changed, and their values."""
    values = jax.config.values
    return {k: str(values[k]) for k, before in _settings.items() if values[k] != before}


def _restore() -> None:
    for name, before in _settings.items():
        if jax.config.values[name] != before:
            jax.config.update(name, before)


def _missing(owner: Any, name: str) -> str:
    """That something has no such attribute, and what it has instead."""
    public = [n for n, of in vars(owner).items() if callable(of) and not n.startswith("_")]
    near = difflib.get_close_matches(name, public, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    file = f"{owner.__name__}.py"
    if file not in _beside.sources:
        return f"{owner.__name__} has no '{name}'{hint}"
    own = sorted(n for n in public if _home(vars(owner)[n]) == owner.__name__)
    return f"{file} has no '{name}' (it has {', '.join(own) or 'no functions'}){hint}"


def _home(thing: Any) -> str | None:
    """The module that something was defined in."""
    return getattr(thing, "__module__", None)
