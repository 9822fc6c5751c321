"""`jax.numpy.einsum`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from parity.casefile.fields import DType, Precision
from parity.casefile.op import Attributes as BaseAttributes
from parity.casefile.op import Keywords, Result, contracted, refuse, refuse_unused
from parity.casefile.problem import Location, Problem, listed
from parity.program.spec import OperandSpec

_AT: Location = ("attributes", "subscripts")
_TERM = re.compile(r"[A-Za-z]*(\.\.\.[A-Za-z]*)?")
_ELLIPSIS = "..."


EXAMPLE = """\
operands:  # any names, in the order of the subscripts
  a: {shape: [2, 8, 64], dtype: float32, draw: normal}
  b: {shape: [2, 64, 16], dtype: float32, draw: normal}
attributes:
  subscripts: bij,bjk->bik
"""


class Attributes(BaseAttributes):
    """Keyword arguments of `jax.numpy.einsum`."""

    subscripts: str = Field(description="such as bij,bjk->bik")
    precision: Precision | None = Field(
        default=None, description="a name, a pair of names, or a preset"
    )
    preferred_element_type: DType | None = Field(default=None, description="the result's dtype")


def takes(names: Sequence[str], keywords: Keywords, residual: str | None) -> tuple[str, ...]:
    """As many operands as `subscripts` has terms, in file order; the residual may come on top.

    Raises:
        Problem: there are more or fewer operands.
    """
    count = len(_terms(keywords["subscripts"])[0])
    used = list(names)
    if len(used) == count + 1 and residual in used:
        used.remove(residual)
    if len(used) < count:
        what = f"takes {count} operands"
        raise refuse(_AT, what, keywords["subscripts"], f"{len(used)} terms: {listed(used)}")
    refuse_unused(used, used[:count], residual)
    return tuple(used[:count])


def infer(operands: Sequence[OperandSpec], keywords: Keywords) -> Result:
    """Shape, dtype and K of an einsum; dimensions of size 1 broadcast, `...` included.

    A label repeated within one operand takes its diagonal, which only equal sizes have: NumPy
    refuses others, where `jax.numpy.einsum` returns the first element.

    Source: https://numpy.org/doc/stable/reference/generated/numpy.einsum.html

    Raises:
        Problem: the subscripts and shapes contradict each other.
    """
    terms, output = _terms(keywords["subscripts"])
    axes = [_axes(term, operand) for term, operand in zip(terms, operands, strict=True)]
    sizes: dict[str, int] = {}
    for letters, operand in zip(axes, operands, strict=True):
        own: dict[str, int] = {}
        for letter, size in zip(letters, operand.shape, strict=True):
            if own.setdefault(letter, size) != size:
                what = (
                    f"label '{letter}' has two sizes in one operand (got {own[letter]} and {size} "
                    f"in {operand.name} {list(operand.shape)}; allowed equal sizes)"
                )
                raise Problem(what, _AT)
            if sizes.setdefault(letter, size) == 1:
                sizes[letter] = size
            elif size not in (1, sizes[letter]):
                what = (
                    f"label '{letter}' has two sizes (got {sizes[letter]} and "
                    f"{size} in {operand.name} {list(operand.shape)}; allowed equal sizes, or 1)"
                )
                raise Problem(what, _AT)
    kept = _kept(output, axes, sizes)
    terms_summed = math.prod(size for letter, size in sizes.items() if letter not in kept)
    dtype = contracted([o.dtype for o in operands], keywords.get("preferred_element_type"))
    return Result(tuple(sizes[letter] for letter in kept), dtype, terms_summed)


def _terms(subscripts: str) -> tuple[list[str], str | None]:
    """The terms of the operands and of the output (None if it is implicit)."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    for term in [*terms, right]:
        if not _TERM.fullmatch(term):
            raise refuse(_AT, "has a bad term", term, "letters and one '...', such as bij,bjk->bik")
    return terms, right if arrow else None


def _axes(term: str, operand: OperandSpec) -> list[str]:
    """One label per dimension; those of `...` are numbered from the right."""
    rank = len(operand.shape)
    before, dots, after = term.partition(_ELLIPSIS)
    spare = rank - len(before) - len(after)
    if spare < 0 or (spare and not dots):
        allowed = f"{rank} labels for {operand.name} {list(operand.shape)}"
        raise refuse(_AT, f"does not label each dimension of {operand.name}", term, allowed)
    return [*before, *(f"{_ELLIPSIS}{index}" for index in range(spare, 0, -1)), *after]


def _kept(output: str | None, axes: list[list[str]], sizes: dict[str, int]) -> list[str]:
    """The labels of the output."""
    count = Counter(letter for letters in axes for letter in letters)
    dotted = sum(letter.startswith(_ELLIPSIS) for letter in count)
    broadcast = [f"{_ELLIPSIS}{index}" for index in range(dotted, 0, -1)]
    if output is None:
        once = [letter for letter, times in count.items() if times == 1]
        letters = sorted(letter for letter in once if not letter.startswith(_ELLIPSIS))
        return [*broadcast, *letters]
    before, dots, after = output.partition(_ELLIPSIS)
    kept = [*before, *(broadcast if dots else ()), *after]
    for letter in kept:
        if letter not in sizes:
            raise refuse(_AT, "has a label of no operand in its output", letter, listed(sizes))
    if len(set(kept)) != len(kept):
        raise refuse(_AT, "repeats a label in its output", output, "each label once")
    return kept
