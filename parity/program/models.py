"""Modules of flax, linen or nnx, as functions of their variables."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from flax import linen, nnx

from parity.program import source
from parity.program.outputs import ProgramError, nested

Arrays = Mapping[str, Any]

_STORED = "intermediates"


class Linen:
    """A module of linen; its variables are `COLLECTION.PATH`: `params.Dense_0.kernel`.

    Args:
        module: which.
        method: that is called.
        arguments: keywords of the call.
        capture: whether what is sown, and the results of submodules, are wanted.
    """

    def __init__(self, module: Any, method: str, arguments: Arrays, *, capture: bool) -> None:
        self._module = module
        self._how = {"method": method, **arguments}
        self._capture = capture

    def variables(self, operands: Sequence[jax.ShapeDtypeStruct]) -> dict[str, Any]:
        """Shapes and dtypes of the parameters, the first values of all other variables."""
        rngs = {name: jax.random.key(0) for name in ("params", "dropout")}

        def init(*xs: Any) -> Any:
            return self._module.init(rngs, *xs, **self._how)

        found = dict(jax.eval_shape(init, *operands))
        if set(found) - {"params"}:
            zeros = [jax.numpy.zeros(x.shape, x.dtype) for x in operands]
            found = {**init(*zeros), "params": found.get("params", {})}
        return flat(found)

    def __call__(self, variables: Arrays, operands: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
        """The result, and what is stored on the way by name."""
        tree = nested(variables)
        if not self._capture:
            return self._module.apply(tree, *operands, **self._how), {}
        result, state = self._module.apply(
            tree, *operands, **self._how, capture_intermediates=True, mutable=[_STORED]
        )
        stored = dict(state.get(_STORED, {}))
        stored.pop("__call__", None)  # the result itself
        return result, sown(stored)


class Nnx:
    """A module of nnx; its parameters are `params.PATH`, its other variables `state.PATH`.

    Random keys are constants of the program.

    Args:
        new: makes the module.
        method: that is called.
        arguments: keywords of the call.
    """

    def __init__(self, new: Callable[[], Any], method: str, arguments: Arrays) -> None:
        self._method, self._arguments = method, arguments
        kinds = (nnx.Param, nnx.RngState, ...)
        self._graph, learnt, keys, rest = nnx.split(nnx.eval_shape(new), *kinds)
        if jax.tree_util.tree_leaves((keys, rest)):
            keys, rest = nnx.split(new(), *kinds)[2:]
        self._states = {"params.": learnt, "keys.": keys, "state.": rest}

    def variables(self, operands: Sequence[jax.ShapeDtypeStruct]) -> dict[str, Any]:
        """Shapes and dtypes of the parameters, the first values of all other variables."""
        return {
            prefix + name: leaf
            for prefix in ("params.", "state.")
            for name, leaf in flat(self._states[prefix]).items()
        }

    def __call__(self, variables: Arrays, operands: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
        """The result, and what is stored on the way by name."""
        states = (_filled(state, prefix, variables) for prefix, state in self._states.items())
        module = nnx.merge(self._graph, *states)
        result = getattr(module, self._method)(*operands, **self._arguments)
        return result, sown(nnx.pop(module, nnx.Intermediate))


def model(attributes: Mapping[str, Any]) -> Linen | Nnx:
    """The module that a case names.

    Args:
        attributes: `module` (a class, or a function that makes one), `kwargs`, `method`,
            `arguments`, `intermediates`.

    Raises:
        ProgramError: it names no module.
    """
    made = source.function(attributes["module"])
    keywords = source.resolved(attributes.get("kwargs", {}))
    _check_keywords(attributes["module"], made, keywords)
    how = attributes.get("method", "__call__"), source.resolved(attributes.get("arguments", {}))

    def new() -> Any:
        return made(**keywords, **({"rngs": nnx.Rngs(0)} if _takes_rngs(made) else {}))

    module = new()
    if isinstance(module, linen.Module):
        return Linen(module, *how, capture=bool(attributes.get("intermediates")))
    if isinstance(module, nnx.Module):
        return Nnx(new, *how)
    got = type(module).__name__
    raise ProgramError(f"{attributes['module']} makes no module of linen or nnx (got {got})")


def _takes_rngs(made: Callable[..., Any]) -> bool:
    return "rngs" in _parameters(made)


def _parameters(made: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """What a class or function is made of or takes, by name."""
    made = inspect.unwrap(made)
    return inspect.signature(made.__init__ if inspect.isclass(made) else made).parameters


def _check_keywords(name: str, made: Callable[..., Any], keywords: Mapping[str, Any]) -> None:
    known = dict(_parameters(made))
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        return
    allowed = [one for one in known if one not in ("self", "rngs", "parent")]
    for keyword in keywords:
        if keyword not in known:
            near = difflib.get_close_matches(keyword, allowed, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            what = f"{name} takes no '{keyword}' (it takes {', '.join(allowed)}){hint}"
            raise ProgramError(what)


def flat(tree: Any) -> dict[str, Any]:
    """The leaves of nested variables by name."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {".".join(map(str, _keys(path))): leaf for path, leaf in leaves}


def sown(tree: Any) -> dict[str, Any]:
    """Stored values by name. Sowing makes tuples; a lone value has no index."""
    several: set[str] = set()
    found = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        keys, stored = _keys(path), _is_index(path)
        at = stored.index(True)
        name = ".".join(map(str, keys[:at]))
        if keys[at] > 0:
            several.add(name)
        found[name, keys[at], tuple(keys[at + 1 :])] = leaf
    return {
        ".".join([name, *([str(index)] if name in several else []), *map(str, rest)]): leaf
        for (name, index, rest), leaf in found.items()
    }


def _is_index(path: tuple[Any, ...]) -> list[bool]:
    kept = [entry for entry in path if not _is_value(entry)]
    return [isinstance(entry, jax.tree_util.SequenceKey) for entry in kept]


def _keys(path: tuple[Any, ...]) -> list[Any]:
    """The keys of a path, without that of the value in a variable of nnx."""
    return [
        next(getattr(entry, a) for a in ("idx", "name", "key") if hasattr(entry, a))
        for entry in path
        if not _is_value(entry)
    ]


def _is_value(entry: Any) -> bool:
    return isinstance(entry, jax.tree_util.GetAttrKey) and entry.name == "value"


def _filled(state: Any, prefix: str, variables: Arrays) -> Any:
    """A state of nnx with the given arrays in place of its own."""
    leaves, tree = jax.tree_util.tree_flatten_with_path(state)
    names = flat(state)
    values = [
        variables.get(prefix + name, leaf) for name, (_, leaf) in zip(names, leaves, strict=True)
    ]
    return jax.tree_util.tree_unflatten(tree, values)
