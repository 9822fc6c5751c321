"""A chain of steps without Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from parity.casefile.fields import DType, OneOf
from parity.casefile.op import Attributes as BaseAttributes
from parity.casefile.op import Keywords, Result, broadcast, promoted
from parity.casefile.ops import conv_general_dilated, dot_general
from parity.casefile.problem import Location, Problem, did_you_mean, listed, spell
from parity.dtypes import DTYPES
from parity.program.spec import OperandSpec

EXAMPLE = """\
operands:
  lhs: {shape: [1, 8, 4], dtype: float32, draw: normal}  # N W C
  rhs: {shape: [3, 1, 4], dtype: float32, draw: normal}  # W I O
steps:  # the first starts from the first operand, each other from the result before
  - {cast: bfloat16, from: rhs, as: kernel}
  - {cast: bfloat16, from: lhs}
  - conv: {window_strides: [1], padding: SAME, dimension_numbers: [NWC, WIO, NWC],
           feature_group_count: 4}
    with: kernel
  - {cast: float32}
  - {add: lhs}  # or sub, mul; an operand or a name given by `as`
  - {activation: gelu}
"""
AXES = ("steps.0.cast", "steps.1.cast")

ACTIVATIONS = (
    "elu",
    "gelu",
    "log_softmax",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
)
"""Functions of `jax.nn`; the softmaxes are over the last axis."""

_BINARY = ("add", "sub", "mul")
_KINDS = ("cast", "conv", "dot", *_BINARY, "activation")
_INFER: Mapping[str, Callable[[Sequence[OperandSpec], Keywords], Result]] = {
    "conv": conv_general_dilated.infer,
    "dot": dot_general.infer,
}

Name = Annotated[str, Field(min_length=1)]


class Step(BaseAttributes):
    """One step: exactly one of cast, conv, dot, add, sub, mul and activation."""

    cast: DType | None = Field(default=None, description="the dtype the array is cast to")
    conv: conv_general_dilated.Attributes | None = Field(
        default=None, description="attributes of the convolution with the array of `with`"
    )
    dot: dot_general.Attributes | None = Field(
        default=None, description="attributes of the contraction with the array of `with`"
    )
    add: Name | None = Field(default=None, description="the array that is added")
    sub: Name | None = Field(default=None, description="the array that is subtracted")
    mul: Name | None = Field(default=None, description="the array that is multiplied with")
    activation: Annotated[str, OneOf("activation", ACTIVATIONS)] | None = Field(
        default=None, description="a function of jax.nn"
    )
    with_: Name | None = Field(default=None, alias="with", description="rhs of conv and dot")
    from_: Name | None = Field(
        default=None, alias="from", description="what it starts from; default: the result before"
    )
    as_: Name | None = Field(default=None, alias="as", description="a name for its result")

    def at(self, at: Location) -> dict[str, Any]:
        """What is given, under the names that the file uses.

        Args:
            at: where the step stands.

        Raises:
            Problem: it is no step, or more than one.
        """
        given = [name for name in _KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            what = f"{spell(at)} needs exactly one of {listed(_KINDS)}"
            raise Problem(f"{what} (got {listed(given) or 'none'})", at)
        kind = given[0]
        if (self.with_ is not None) != (kind in _INFER):
            if self.with_ is None:
                hint = "with: an operand, or a name given by `as`, which is rhs"
                raise Problem(f"missing key 'with' in {spell(at)}", at, hint=hint)
            what = f"{spell(at)}.with stands beside conv and dot only"
            raise Problem(what, (*at, "with"), key=True)
        value = getattr(self, kind)
        if kind in _INFER:
            try:
                value = value.keywords()
            except Problem as problem:
                raise _moved(problem, (*at, kind)) from None
        named = {"with": self.with_, "from": self.from_, "as": self.as_}
        return {kind: value} | {key: name for key, name in named.items() if name is not None}


class Attributes(BaseAttributes):
    """The steps, in order."""

    steps: Annotated[list[Step], Field(min_length=1)] = Field(description="in order")

    def keywords(self) -> dict[str, Any]:
        """The steps as plain data.

        Raises:
            Problem: one of them is none.
        """
        steps = (step.at(("steps", index)) for index, step in enumerate(self.steps))
        return {"steps": tuple(steps)}


def takes(names: Sequence[str], keywords: Keywords, residual: str | None) -> tuple[str, ...]:
    """All operands, in file order.

    Raises:
        Problem: an operand is not used, or a step names what does not exist.
    """
    known = list(names)
    used = {residual or "", *(names[:1] if "from" not in keywords["steps"][0] else ())}
    for index, step in enumerate(keywords["steps"]):
        for key in ("from", "with", *_BINARY):
            if key in step:
                _check_known(step[key], known, ("steps", index, key))
                used.add(step[key])
        if "as" in step:
            if step["as"] in known:
                at: Location = ("steps", index, "as")
                raise Problem(f"{spell(at)} is taken (got {step['as']})", at)
            known.append(step["as"])
    for name in names:
        if name not in used:
            uses = listed(sorted(used - {""}))
            what = f"operand '{name}' is not used (got {listed(names)}; the steps use {uses})"
            raise Problem(what, ("operands", name), key=True)
    return tuple(names)


def infer(operands: Sequence[OperandSpec], keywords: Keywords) -> Result | None:
    """Shape and dtype of the last step's result.

    Raises:
        Problem: a step cannot take what it is given.
    """
    known = {o.name: Result(o.shape, o.dtype, 1) for o in operands}
    result = known[operands[0].name]
    for index, step in enumerate(keywords["steps"]):
        start = known[step["from"]] if "from" in step else result
        result = _after(step, start, known, ("steps", index))
        if "as" in step:
            known[step["as"]] = result
    return result


def _after(
    step: Mapping[str, Any], start: Result, known: Mapping[str, Result], at: Location
) -> Result:
    if "cast" in step:
        return replace(start, dtype=step["cast"])
    if "activation" in step:
        inexact = start.dtype is not None and DTYPES[start.dtype].is_inexact
        return replace(start, dtype=start.dtype if inexact else None)
    for kind, infer_op in _INFER.items():
        if kind in step:
            sides = ("lhs", start), ("rhs", known[step["with"]])
            _check_dtypes(kind, [of.dtype for _, of in sides], (*at, kind))
            specs = [OperandSpec(name, of.shape, of.dtype or "") for name, of in sides]
            try:
                found = infer_op(specs, step[kind])
            except Problem as problem:
                raise _moved(problem, (*at, kind)) from None
            return replace(found, dtype=found.dtype or None)
    kind = next(name for name in _BINARY if name in step)
    other = known[step[kind]]
    shape = broadcast(start.shape, other.shape)
    if shape is None:
        what = f"{spell((*at, kind))} does not fit (got {list(other.shape)}; allowed "
        what += f"{list(start.shape)} or what broadcasts with it)"
        raise Problem(what, (*at, kind))
    both = (start.dtype, other.dtype)
    dtype = None if None in both else promoted([name for name in both if name is not None])
    return Result(shape, dtype, start.terms)


def _check_dtypes(kind: str, dtypes: Sequence[str | None], at: Location) -> None:
    """Refuse a convolution of two dtypes, as JAX does; a dot may have them."""
    if kind == "conv" and None not in dtypes and len(set(dtypes)) > 1:
        what = f"{spell(at)}: lhs and rhs differ in dtype (got {listed(dtypes)}; allowed one dtype)"
        raise Problem(what, at, hint="cast one of them in a step before")


def _check_known(name: str, known: Sequence[str], at: Location) -> None:
    if name not in known:
        what = f"{spell(at)} names nothing (got {name}; allowed {listed(known)})"
        raise Problem(what, at, hint=did_you_mean(name, known))


def _moved(problem: Problem, at: Location) -> Problem:
    """A problem of an op's attributes or operands at the step that they belong to."""
    what = problem.what.replace("attributes.", f"{spell(at)}.")
    inner = problem.at[1:] if problem.at[:1] == ("attributes",) else ()
    instead = (problem.instead or ())[1:] if inner else ()
    if not what.startswith(spell(at)):
        what = f"{spell(at)}: {what}"
    return Problem(what, (*at, *inner), instead=(*at, *instead), hint=problem.hint, key=problem.key)
