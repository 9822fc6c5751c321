"""Control flow: the jaxprs that an equation holds are walked as often as they run.

What a loop carries from one step to the next stands in memory: it was rounded to its dtype, is no
constant to the compiler, and is not the program's input, unless the body passes it on unchanged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from parity.program import jax_versions
from parity.reference.value import Mask, Value, parts, stacked, union
from parity.reference.wide import widen

Walk = Callable[[Any, Sequence[Value]], list[Value]]
"""Evaluates a closed jaxpr on values."""


def _scan(walk: Walk, eqn: Any, values: list[Value]) -> list[Value]:
    """`lax.scan`: outputs are the last carry and, stacked, what each step gives."""
    params = eqn.params
    body, length = params["jaxpr"], params["length"]
    first, last = params["num_consts"], params["num_consts"] + params["num_carry"]
    consts, carry, xs = values[:first], values[first:last], values[last:]
    kept = _passed_on(body.jaxpr, first, len(carry))
    rows: list[list[Value]] = []
    for step in reversed(range(length)) if params["reverse"] else range(length):
        given = carry if length == 1 else _in_memory(carry, kept)
        row = [dataclasses.replace(x.at(step), given=x.given, constant=False) for x in xs]
        out = walk(body, [*consts, *given, *row])
        carry = out[: len(carry)]
        rows.append(out[len(carry) :])
    if params["reverse"]:
        rows.reverse()
    if not rows:
        return [*carry, *(_no_rows(var) for var in eqn.outvars[len(carry) :])]
    return [*_in_memory(carry, kept), *(stacked(column) for column in zip(*rows, strict=True))]


def _passed_on(body: Any, first: int, count: int) -> list[bool]:
    """For each carried value, whether the body gives it back as it got it."""
    pairs = zip(body.invars[first : first + count], body.outvars[:count], strict=True)
    return [before is after for before, after in pairs]


def _in_memory(carry: list[Value], kept: Sequence[bool]) -> list[Value]:
    return [
        value if same else dataclasses.replace(value, loose=None, constant=False, given=False)
        for value, same in zip(carry, kept, strict=True)
    ]


def _no_rows(var: Any) -> Value:
    if jax_versions.is_key(var.aval):
        return Value.exactly(np.zeros(var.aval.shape, object))
    return Value.exactly(widen(np.zeros(var.aval.shape, var.aval.dtype)))


def _while(walk: Walk, eqn: Any, values: list[Value]) -> list[Value]:
    """`lax.while_loop`: as often as the points say.

    Where the condition's interval leaves open whether to go on, everything that the body changes is
    undecided, and unspecified where the condition is. A batch of loops (the condition has an axis
    for each) goes on while any does, and each keeps what it has from its own end on.
    """
    params = eqn.params
    first = params["cond_nconsts"]
    last = first + params["body_nconsts"]
    cond_consts, body_consts, carry = values[:first], values[first:last], values[last:]
    kept = _passed_on(params["body_jaxpr"].jaxpr, len(body_consts), len(carry))
    unsure: Mask = None
    nobodys: Mask = None
    while True:
        carry = _in_memory(carry, kept)
        (going,) = walk(params["cond_jaxpr"], [*cond_consts, *carry])
        unsure = union([unsure, going.undecided])
        nobodys = union([nobodys, going.unspecified])
        if not going.point.any():
            break
        stepped = walk(params["body_jaxpr"], [*body_consts, *carry])
        if going.point.all():
            carry = stepped
        else:
            carry = [_where(going.point, *pair) for pair in zip(stepped, carry, strict=True)]
    return [
        value if same else _doubtful(_unspecified(value, nobodys), unsure)
        for value, same in zip(carry, kept, strict=True)
    ]


def _leading(mask: np.ndarray, like: np.ndarray) -> np.ndarray:
    """A mask of the leading axes for every element behind them."""
    return np.broadcast_to(mask.reshape(mask.shape + (1,) * (like.ndim - mask.ndim)), like.shape)


def _where(which: np.ndarray, new: Value, old: Value) -> Value:
    chosen = _leading(which, new.point)

    def of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(chosen, a, b)

    def masks(a: Mask, b: Mask) -> Mask:
        if a is None and b is None:
            return None
        nothing = np.zeros(chosen.shape, bool)
        return of(nothing if a is None else a, nothing if b is None else b)

    point = of(new.point, old.point)
    exact = new.exact and old.exact
    lo, hi = (point, point) if exact else (of(new.lo, old.lo), of(new.hi, old.hi))
    unspecified = masks(new.unspecified, old.unspecified)
    return Value(point, lo, hi, unspecified, masks(new.undecided, old.undecided))


def _unspecified(value: Value, mask: Mask) -> Value:
    """The value with marked elements unspecified; the mask may be of the leading axes alone."""
    if mask is None or not mask.any():
        return value
    marked = union([value.unspecified, _leading(mask, value.point)])
    return dataclasses.replace(value, unspecified=marked)


def _doubtful(value: Value, mask: Mask) -> Value:
    """The value with marked elements undecided, and nothing said of where they lie."""
    if mask is None or not mask.any():
        return value
    mask = _leading(mask, value.point)
    lo, hi = value.lo, value.hi
    if value.point.dtype.kind in "fc":
        lo = parts(lambda x: np.where(mask, -np.inf, x), lo)
        hi = parts(lambda x: np.where(mask, np.inf, x), hi)
    undecided = union([value.undecided, mask])
    return dataclasses.replace(value, lo=lo, hi=hi, undecided=undecided, loose=None)


def _cond(walk: Walk, eqn: Any, values: list[Value]) -> list[Value]:
    """`lax.cond`, `lax.switch`: the branch of the point; undecided where an undecided index counts.

    That is where the branches give something else. The ends hold what each of them gives.
    """
    index, *operands = values
    branches = eqn.params["branches"]
    number = min(max(int(index.point), 0), len(branches) - 1)
    if index.undecided is None or not index.undecided.any():
        found = walk(branches[number], operands)
    else:
        every = [walk(branch, operands) for branch in branches]
        found = [_any_of(outs[number], outs) for outs in zip(*every, strict=True)]
    return [_unspecified(value, index.unspecified) for value in found]


def _any_of(chosen: Value, values: Sequence[Value]) -> Value:
    apart = np.zeros(chosen.point.shape, bool)
    for value in values:
        for a, b in zip(_ends(chosen), _ends(value), strict=True):
            apart |= ~_same(a, b)
    undecided = union([*(value.undecided for value in values), apart if apart.any() else None])
    unspecified = union([value.unspecified for value in values])
    lo, hi = chosen.lo, chosen.hi
    if apart.any() and chosen.point.dtype.kind in "fc":
        lo = parts(lambda *x: _least(np.minimum, x, -np.inf), *(value.lo for value in values))
        hi = parts(lambda *x: _least(np.maximum, x, np.inf), *(value.hi for value in values))
    return Value(chosen.point, lo, hi, unspecified, undecided)


def _ends(value: Value) -> tuple[np.ndarray, ...]:
    return value.point, value.lo, value.hi


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    equal = a == b
    if a.dtype.kind not in "fc":
        return np.asarray(equal)
    signs = (np.signbit(a.real) == np.signbit(b.real)) & (np.signbit(a.imag) == np.signbit(b.imag))
    return np.asarray((equal & signs) | (np.isnan(a) & np.isnan(b)))


def _least(which: np.ufunc, ends: Sequence[np.ndarray], beyond: float) -> np.ndarray:
    found = np.asarray(which.reduce(ends))
    return np.where(np.isnan(found), beyond, found)


def _linear_solve(walk: Walk, eqn: Any, values: list[Value]) -> list[Value]:
    """`lax.custom_linear_solve`: what its own `solve` computes."""
    lengths, jaxprs = eqn.params["const_lengths"], eqn.params["jaxprs"]
    before = lengths.matvec + lengths.vecmat
    consts = values[before : before + lengths.solve]
    right = values[before + lengths.solve + lengths.transpose_solve :]
    return walk(jax_versions.closed(jaxprs.solve), [*consts, *right])


CONTROL: Mapping[str, Callable[[Walk, Any, list[Value]], list[Value]]] = {
    "cond": _cond,
    "custom_linear_solve": _linear_solve,
    "scan": _scan,
    "while": _while,
}
"""Primitives that run jaxprs of their own."""
