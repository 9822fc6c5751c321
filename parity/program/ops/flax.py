"""A module of flax."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from parity.dtypes import dtype
from parity.errors import Unsupported
from parity.program.ops import EVERY
from parity.program.outputs import ProgramError, named, nested, spelt
from parity.program.parameters import draw
from parity.program.spec import PARAMETERS, ProgramSpec
from parity.program.spelling import NotWritten, arguments, data
from parity.program.transforms import LEARNT

if TYPE_CHECKING:
    from parity.program.models import Linen, Nnx

Arrays = Mapping[str, Any]

_INTERMEDIATE = "intermediate."


def build(attributes: Mapping[str, Any]) -> Callable[..., Any]:
    """The operands, in order, and the parameters by name -> the module's result.

    With `intermediates` a dict of all arrays by the names that they have as outputs.
    """
    module, wanted = _model(attributes), attributes.get("intermediates", False)

    def apply(*operands: Any, parameters: Arrays | None = None) -> Any:
        result, stored = module(parameters or {}, operands)
        if not wanted:
            return result
        chosen = stored if wanted is True else _chosen(stored, wanted)
        return named(result) | {f"{_INTERMEDIATE}{name}": of for name, of in chosen.items()}

    return apply


def arity(attributes: Mapping[str, Any]) -> int:
    """All operands."""
    return EVERY


def parameters(spec: ProgramSpec) -> dict[str, np.ndarray]:
    """The module's variables: parameters are drawn, others are what the module starts with.

    Raises:
        ProgramError: the host gives parameters, and not those of the module.
    """
    operands = []
    for operand in spec.operands:
        cast = spec.compute_dtype if dtype(operand.dtype).is_inexact else None
        declared = jax.ShapeDtypeStruct(operand.shape, dtype(cast or operand.dtype).numpy())
        operands.append(jax.eval_shape(jax.numpy.asarray, declared))
    needed = _model(spec.attributes).variables(operands)
    if spec.parameters:
        _check_given(spec, needed)
        return {}
    seed = spec.attributes.get(PARAMETERS, {}).get("seed", 0)
    return {name: _value(name, variable, seed) for name, variable in needed.items()}


def _model(attributes: Mapping[str, Any]) -> Linen | Nnx:
    if find_spec("flax") is None:
        raise Unsupported("flax is not installed")
    from parity.program.models import model

    return model(attributes)


def _value(name: str, variable: Any, seed: int) -> np.ndarray:
    if isinstance(variable, jax.ShapeDtypeStruct):
        return draw(name, tuple(variable.shape), dtype(variable.dtype), seed)
    return np.asarray(variable)


def _check_given(spec: ProgramSpec, needed: Arrays) -> None:
    given = {p.name: f"{p.dtype}[{','.join(map(str, p.shape))}]" for p in spec.parameters}
    wanted = {name: spelt(variable) for name, variable in needed.items()}
    bare = sorted(name for name in given if name not in wanted and LEARNT + name in wanted)
    if bare:
        raise ProgramError(
            f"the file's names lack '{LEARNT}' in front (got {bare[0]}; allowed {LEARNT}{bare[0]})"
        )
    differing = [
        f"{name}: {given.get(name, 'none')} in the file, {wanted.get(name, 'none')} in the module"
        for name in sorted({*given, *wanted})
        if given.get(name) != wanted.get(name)
    ]
    if differing:
        listed = "; ".join(differing)
        raise ProgramError(f"the file's parameters are not those of the module ({listed})")


def _chosen(stored: Arrays, patterns: Sequence[str]) -> dict[str, Any]:
    """The intermediates that match one of some patterns."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in stored):
            listed = ", ".join(stored) or "none"
            raise ProgramError(f"no intermediate matches '{pattern}' (there are: {listed})")
    return {n: of for n, of in stored.items() if any(fnmatchcase(n, p) for p in patterns)}


def statements(
    attributes: Mapping[str, Any], operands: Mapping[str, str], parameters: Mapping[str, str]
) -> list[str]:
    """See `program.ops.statements`."""
    if attributes.get("intermediates"):
        raise NotWritten("it gives the intermediates of a flax module")
    if not isinstance(_model(attributes), _linen()):
        raise NotWritten("it is a module of nnx, whose state parity splits off")
    made, imports = data({"callable": attributes["module"]})
    kwargs, more = arguments(attributes.get("kwargs", {}))
    how, most = arguments(attributes.get("arguments", {}))
    listed = ", ".join(operands.values())
    method = attributes.get("method", "__call__")
    return [
        *dict.fromkeys([*imports, *more, *most]),
        f"module = {made}({kwargs.removeprefix(', ')})",
        f"variables = {_tree(nested(parameters))}",
        f"out = module.apply(variables, {listed}, method={method!r}{how})",
    ]


def _linen() -> type[Linen]:
    from parity.program.models import Linen

    return Linen


def _tree(variables: Mapping[str, Any]) -> str:
    """Nested variables as the source of nested dicts."""
    inner = (f"{k!r}: {of if isinstance(of, str) else _tree(of)}" for k, of in variables.items())
    return "{" + ", ".join(inner) + "}"
