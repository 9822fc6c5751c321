"""Programs and operands that a path may have taken for the given ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parity.explain.laboratory import Arrays
from parity.program.spec import ProgramSpec

_AXES = 5
"""Axes of an operand of which every subset is tried."""

Change = tuple[str, str, ProgramSpec, tuple[np.ndarray, ...]]
"""Name, meaning, the program and its operands."""


def changes(program: ProgramSpec, arrays: Arrays) -> Iterator[Change]:
    """Every change that is tried, cheap and common ones first.

    Operands flipped along every subset of their axes, with two axes exchanged where their sizes
    agree, both at once, two operands of one shape exchanged; another padding.

    Args:
        program: what should have been computed.
        arrays: its operands.
    """
    names = [operand.name for operand in program.inputs()]
    kept = tuple(arrays)
    for index in reversed(range(len(arrays))):
        x, name = arrays[index], names[index]
        for text, meaning, changed in _rearranged(x, name):
            yield text, meaning, program, (*kept[:index], changed, *kept[index + 1 :])
    for i, j in itertools.combinations(range(len(arrays)), 2):
        if arrays[i].shape == arrays[j].shape and arrays[i].dtype == arrays[j].dtype:
            exchanged = list(kept)
            exchanged[i], exchanged[j] = exchanged[j], exchanged[i]
            what = f"{names[i]} and {names[j]} exchanged"
            yield what, f"It takes {names[i]} for {names[j]}.", program, tuple(exchanged)
    for padding in _paddings(program.attributes.get("padding")):
        attributes = {**program.attributes, "padding": padding}
        shown = padding if isinstance(padding, str) else [list(pair) for pair in padding]
        meaning = f"It pads with {shown} instead of {program.attributes['padding']}."
        yield f"padding {shown}", meaning, replace(program, attributes=attributes), kept


def _rearranged(x: np.ndarray, name: str) -> Iterator[tuple[str, str, np.ndarray]]:
    axes = [axis for axis, size in enumerate(x.shape) if size > 1]
    if not axes or len(axes) > _AXES:
        return
    for count in range(1, len(axes) + 1):
        for flipped in itertools.combinations(axes, count):
            yield _text(name, flipped, None), _meaning(name, flipped, None), np.flip(x, flipped)
    for pair in itertools.combinations(axes, 2):
        if x.shape[pair[0]] != x.shape[pair[1]]:
            continue
        swapped = np.swapaxes(x, *pair)
        yield _text(name, (), pair), _meaning(name, (), pair), swapped
        others = tuple(axis for axis in axes if axis not in pair)
        if others:
            both = np.flip(swapped, others)
            yield _text(name, others, pair), _meaning(name, others, pair), both


def _text(name: str, flipped: Sequence[int], swapped: Sequence[int] | None) -> str:
    parts = []
    if swapped:
        parts.append(f"axes {swapped[0]} and {swapped[1]} exchanged")
    if flipped:
        parts.append(f"flipped along {_axes(flipped)}")
    return f"{name} {' and '.join(parts)}"


def _meaning(name: str, flipped: Sequence[int], swapped: Sequence[int] | None) -> str:
    return f"It computes the right thing of another operand: {_text(name, flipped, swapped)}."


def _axes(axes: Sequence[int]) -> str:
    word = "axis" if len(axes) == 1 else "axes"
    return f"{word} {', '.join(map(str, axes))}"


def _paddings(padding: Any) -> Iterator[Any]:
    """Other paddings than a given one: the named ones, or explicit ones moved by one."""
    if isinstance(padding, str):
        yield from (p for p in ("SAME", "SAME_LOWER", "VALID") if p != padding.upper())
        return
    if not isinstance(padding, tuple) or not all(
        isinstance(pair, tuple) and len(pair) == 2 for pair in padding
    ):
        return
    yield from ("SAME", "SAME_LOWER", "VALID")
    for step in (1, -1):
        for count in range(1, len(padding) + 1):
            for axes in itertools.combinations(range(len(padding)), count):
                yield tuple(
                    (low + step, high - step) if axis in axes else (low, high)
                    for axis, (low, high) in enumerate(padding)
                )
