"""The equations of a traced program, each with the line of code that it comes from."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from parity.program import jax_versions, source
from parity.program.build import Program
from parity.program.sites import OPAQUE, Address, Site, spelt

_SILENT = ("jax", "jaxlib", "numpy")
"""Packages, beside this one, whose lines say nothing of whose code an equation comes from."""

_TRACED = "_create_pjit_jaxpr"
"""Where JAX up to 0.9 begins to trace a function under `jax.jit`. What is farther out called it
when it was traced first: JAX traces it once and keeps it."""

_WRAPPED = re.compile(r"\b(?:jvp|transpose|vmap|pmap|linearize|jit|pjit|remat)\(([^()]*)\)")
_NO_MODULES = frozenset(
    ("checkpoint", "rematted_computation", "while", "body", "cond", "closed_call")
)


@dataclass(frozen=True)
class _Place:
    """A line of code, and whether it is the user's; no file where there is none."""

    file: str = ""
    line: int = 0
    function: str = ""
    own: bool = False


def sites(program: Program) -> Iterator[Site]:
    """Every equation of a program in the order of execution, those it runs after each."""
    yield from _sites(program.jaxpr, (), (), _Place(), "")


def _sites(
    closed: Any, above: Address, within: tuple[str, ...], caller: _Place, module: str
) -> Iterator[Site]:
    for number, eqn in enumerate(closed.jaxpr.eqns):
        here, name = (*above, number), eqn.primitive.name
        place = _placed(eqn, caller)
        scope = "/".join(filter(None, (module, _module(eqn))))
        bodies = jax_versions.bodies(eqn)
        results = [var.aval for var in eqn.outvars if hasattr(var.aval, "shape")]
        yield Site(
            address=spelt(here),
            primitive=name,
            dtypes=tuple(_dtype(aval) for aval in results),
            shapes=tuple(tuple(map(_size, aval.shape)) for aval in results),
            file=place.file,
            line=place.line,
            function=place.function,
            own=place.own,
            module=scope,
            within=within,
            runs=bool(bodies),
            observable=not set(OPAQUE) & set(within) and len(results) == len(eqn.outvars),
        )
        for at, body in enumerate(bodies):
            inner = jax_versions.closed(body)
            yield from _sites(inner, (*here, at), (*within, name), place, scope)


def _dtype(aval: Any) -> str:
    return str(aval.dtype) if jax_versions.is_key(aval) else np.dtype(aval.dtype).name


def _size(size: Any) -> int:
    return size if isinstance(size, int) else -1


def _module(eqn: Any) -> str:
    """The named scopes around an equation, without what transformations wrap them in."""
    text, before = str(eqn.source_info.name_stack), ""
    while text != before:
        before, text = text, _WRAPPED.sub(r"\1", text)
    return "/".join(part for part in text.split("/") if part and part not in _NO_MODULES)


def _placed(eqn: Any, caller: _Place) -> _Place:
    """Where an equation was written: the user's line, else its caller's, else a library's."""
    found = [place for place in map(_place, _frames(eqn)) if place.file]
    own = next((place for place in found if place.own), None)
    if own is not None or caller.own:
        return own or caller
    return found[0] if found else caller


def _frames(eqn: Any) -> Sequence[Any]:
    """The frames of the function that was being traced, innermost first."""
    traceback = eqn.source_info.traceback
    frames = list(traceback.frames) if traceback is not None else []
    names = [frame.function_name.rpartition(".")[2] for frame in frames]
    return frames[: names.index(_TRACED)] if _TRACED in names else frames


def _place(frame: Any) -> _Place:
    function = frame.function_name.replace("<locals>.", "")
    if source.is_beside(frame.file_name):
        return _Place(source.relative(frame.file_name), frame.line_num, function, own=True)
    path, own = _shown(frame.file_name)
    return _Place(path, frame.line_num, function, own) if path else _Place()


@cache
def _shown(file: str) -> tuple[str, bool]:
    """A file as it is named, and whether it is the user's; "" for one that says nothing."""
    path = Path(file)
    if file.startswith("<") or any(path.is_relative_to(folder) for folder in _silent()):
        return "", False
    paths = sysconfig.get_paths()
    for installed in (paths["purelib"], paths["platlib"]):
        if path.is_relative_to(installed):
            return path.relative_to(installed).as_posix(), False
    if path.is_relative_to(paths["stdlib"]):
        return "", False
    return file, True


@cache
def _silent() -> tuple[Path, ...]:
    """The folders of packages whose lines say nothing."""
    folders = [Path(__file__).parent.parent]
    for name in _SILENT:
        spec = find_spec(name)
        folders += map(Path, (spec.submodule_search_locations or ()) if spec else ())
    return tuple(folders)
