"""What a program returns, as arrays by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from parity.dtypes import DTYPES

OUT = "out"


class ProgramError(Exception):
    """A program is not what one has to be: says what it did, and what it should do."""


class NotTaken(ProgramError):
    """A function does not take the operands that it is passed."""


def named(tree: Any) -> dict[str, Any]:
    """The arrays of a result, by name.

    One array is `out`, the members of a sequence `out.0`, `out.1`; those of a mapping or dataclass
    go by their keys. Nested keys are joined by a dot. None is no output.

    Args:
        tree: any pytree of arrays.

    Raises:
        ProgramError: it has a leaf that is no array, no array at all, or two of the same name.
    """
    found: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        name = joined(path)
        if name in found:
            raise ProgramError(f"the program returned two arrays under the name {name}")
        found[name] = _array(leaf, name)
    if not found:
        got = "None" if tree is None else f"an empty {type(tree).__name__}"
        raise ProgramError(f"the program returned no array (got {got})")
    return found


def joined(path: tuple[Any, ...]) -> str:
    """The name that a key path of a pytree spells."""
    keys = [_key(entry) for entry in path]
    if not keys or isinstance(keys[0], int):
        keys.insert(0, OUT)
    return ".".join(map(str, keys))


def _key(entry: Any) -> int | str:
    for attribute in ("idx", "name", "key"):
        if hasattr(entry, attribute):
            key = getattr(entry, attribute)
            return key if isinstance(key, int) else str(key)
    return str(entry)


def _array(leaf: Any, name: str) -> Any:
    if not isinstance(leaf, jax.Array | np.ndarray | np.generic):
        raise ProgramError(
            f"the program returned {_article(type(leaf).__name__)} as {name}; outputs are arrays, "
            "such as jax.numpy.asarray makes"
        )
    if str(leaf.dtype) not in DTYPES:
        raise ProgramError(f"the program returned {leaf.dtype} elements as {name}")
    return leaf if isinstance(leaf, jax.Array) else jax.numpy.asarray(leaf)


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def spelt(array: Any) -> str:
    """Dtype and shape of an array: `float32[2,3]`."""
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}]"


def nested(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Nested dicts from names with dots."""
    tree: dict[str, Any] = {}
    for name, array in arrays.items():
        *inner, last = name.split(".")
        branch = tree
        for key in inner:
            branch = branch.setdefault(key, {})
        branch[last] = array
    return tree
