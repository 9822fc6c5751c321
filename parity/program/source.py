"""Code that a case names: a module beside the case file, or an installed one.

Of the files beside a case file those are importable that its record names (`casefile.sources`), as
long as they are what they were when the case was loaded, and no others, even if `sys.path` leads
there. Each program imports them anew, so that nothing of an earlier program or path is found again;
what they set in `jax.config` is undone when the next program comes.
"""

from __future__ import annotations

import difflib
import hashlib
import pkgutil
import sys
import traceback
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
            name = relative(self.path)
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
        file = _file(fullname)
        if file is None:
            return self._folder_in_package(fullname)
        location = self.folder / file
        loader = _Verified(fullname, str(location), self.sources[file])
        inner = [str(location.parent)] if location.name == "__init__.py" else None
        return spec_from_file_location(
            fullname, location, loader=loader, submodule_search_locations=inner
        )

    def _folder_in_package(self, fullname: str) -> ModuleSpec | None:
        """A folder without `__init__.py` in a package beside; None for what is not inside one."""
        if f"{fullname.partition('.')[0]}/__init__.py" not in self.sources:
            return None
        path = fullname.replace(".", "/")
        if not any(file.startswith(f"{path}/") for file in self.sources):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [str(self.folder / path)]
        return spec


_beside = _Beside()
_settings: dict[str, Any] = {}
_hidden: list[tuple[int, str]] = []


def use(attributes: Mapping[str, Any]) -> None:
    """Make the files of a program importable, and forget those of the one before.

    Args:
        attributes: of its op: `folder` and `sources`, SHA-256 by path from there, if it has any.
    """
    if _beside not in sys.meta_path:
        sys.meta_path.insert(0, _beside)
        _settings.update(jax.config.values)
    tops = {file.partition("/")[0].removesuffix(".py") for file in _beside.sources}
    for name in [name for name in sys.modules if name.partition(".")[0] in tops] if tops else ():
        del sys.modules[name]
    _restore()
    _beside.folder = Path(attributes.get("folder", ""))
    _beside.sources = attributes.get("sources", {})
    _hide(_beside.folder if "folder" in attributes else None)


def named(name: str) -> Any:
    """What `module:name` names.

    Raises:
        ProgramError: there is no such module, or nothing of that name in it.
    """
    module, _, attribute = name.partition(":")
    try:
        found: Any = import_module(module)
    except SystemExit as error:
        raise ProgramError(f"importing {module} called sys.exit({error.code!r})") from error
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ProgramError(_no_module(error.name)) from error
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


def raised_in(error: BaseException | None) -> str:
    """Where in the files beside the case file an exception was raised: `step.py:12 in step`.

    "" if that, and what caused it, was raised without them.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            file = relative(frame.filename)
            if file in _beside.sources:
                return f"{file}:{frame.lineno} in {frame.name}"
        before = None if error.__suppress_context__ else error.__context__
        error = error.__cause__ or before
    return ""


def changed_settings() -> dict[str, str]:
    """The settings of `jax.config` that the current program has changed, and their values."""
    values = jax.config.values
    return {k: str(values[k]) for k, before in _settings.items() if values[k] != before}


def relative(path: str) -> str:
    """The path of a file from the case file's folder; of one elsewhere, as it is."""
    try:
        return Path(path).relative_to(_beside.folder).as_posix()
    except ValueError:
        return path


def is_beside(path: str) -> bool:
    """Whether a file is one of those beside the case file that its record names."""
    return relative(path) in _beside.sources


def _restore() -> None:
    values = jax.config.values  # made anew whenever it is asked for
    for name, before in _settings.items():
        if values[name] != before:
            jax.config.update(name, before)


def _hide(folder: Path | None) -> None:
    """Take a folder out of `sys.path`, and put back what was taken out before."""
    for at, entry in _hidden:
        sys.path.insert(at, entry)
    _hidden.clear()
    if folder is None:
        return
    here = folder.resolve()
    _hidden.extend((at, e) for at, e in enumerate(sys.path) if Path(e).resolve() == here)
    for at, _ in reversed(_hidden):
        del sys.path[at]


def _file(module: str) -> str | None:
    """The file of a module beside the case file, if it is one."""
    path = module.replace(".", "/")
    candidates = f"{path}/__init__.py", f"{path}.py"
    return next((file for file in candidates if file in _beside.sources), None)


def _no_module(name: str) -> str:
    """That there is no such module, and what there is in its place."""
    owner, dot, last = name.rpartition(".")
    if not dot:
        where = f"neither {name}.py nor {name}/__init__.py is beside the case file"
        return f"there is no module {name}: {where}, nor is it installed here"
    inner = pkgutil.iter_modules(getattr(sys.modules[owner], "__path__", []))
    near = difflib.get_close_matches(last, [one.name for one in inner], n=1)
    hint = f"; did you mean '{owner}.{near[0]}'?" if near else ""
    return f"there is no module {name} in {owner}{hint}"


def _missing(owner: Any, name: str) -> str:
    """That something has no such attribute, and what it has instead."""
    public = [n for n, of in vars(owner).items() if callable(of) and not n.startswith("_")]
    near = difflib.get_close_matches(name, public, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    file = _file(owner.__name__)
    if file is None:
        return f"{owner.__name__} has no '{name}'{hint}"
    own = sorted(n for n in public if _home(vars(owner)[n]) == owner.__name__)
    return f"{file} has no '{name}' (it has {', '.join(own) or 'no functions'}){hint}"


def _home(thing: Any) -> str | None:
    """The module that something was defined in."""
    return getattr(thing, "__module__", None)
