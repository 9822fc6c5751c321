"""A program as one StableHLO module that brings its inputs and its expected outputs along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from parity.errors import Unsupported
from parity.program.build import Program
from parity.program.devices import devices

_DIGITS = frozenset({"bool", "int2", "int4", "uint2", "uint4"})
"""Of less than a byte, which MLIR packs."""

PROGRAM = "program"
"""The function that computes the outputs of the inputs."""


def self_contained(
    program: Program, arrays: Sequence[np.ndarray], expected: Sequence[np.ndarray]
) -> str:
    """A module whose `main` takes nothing and gives the outputs, then the expected ones.

    The inputs are constants behind an `optimization_barrier`, so that a compiler has to compute
    what it would otherwise fold.

    Args:
        program: of one device.
        arrays: what it takes, in order.
        expected: what it ought to give, in order.

    Raises:
        Unsupported: it is a program of several devices.
    """
    if program.spec.devices > 1 and devices(program.jaxpr) > 1:
        raise Unsupported("a self-contained module is a program of one device")
    taken = [array.astype(of.dtype) for array, of in zip(arrays, program.traced, strict=True)]
    lowered = jax.jit(program.function, keep_unused=True).lower(*program.traced)
    module = lowered.compiler_ir("stablehlo")
    with module.context:
        _complete(module, taken, expected)
        return str(module)


def _complete(module: Any, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    """Call what was `main` from a new one, on constants."""
    from jaxlib.mlir import ir

    table = ir.SymbolTable(module.operation)
    (main,) = (op for op in module.body.operations if op.name.value == "main")
    table.set_symbol_name(main, PROGRAM)
    main.attributes["sym_visibility"] = ir.StringAttr.get("private")
    for name in ("arg_attrs", "res_attrs"):
        if name in main.attributes:
            del main.attributes[name]
    takes, gives = main.type.inputs, main.type.results
    given = [f"c{at}" for at in range(len(inputs))]
    wanted = [f"e{at}" for at in range(len(expected))]
    called = _bound("i", len(inputs)), _bound("o", len(expected))
    constants = zip((*inputs, *expected), (*takes, *gives), strict=True)
    named = zip((*given, *wanted), constants, strict=True)
    lines = [_constant(name, *pair) for name, pair in named]
    if inputs:
        behind = ", ".join(f"%{name}" for name in given)
        lines.append(f"{called[0]} = stablehlo.optimization_barrier {behind} : {_types(takes)}")
    used = ", ".join(_uses("i", len(inputs)))
    lines.append(f"{called[1]} = call @{PROGRAM}({used}) : ({_types(takes)}) -> ({_types(gives)})")
    results = [*_uses("o", len(expected)), *(f"%{name}" for name in wanted)]
    both = f"{_types(gives)}, {_types(gives)}"
    lines.append(f"return {', '.join(results)} : {both}")
    body = "\n".join(f"    {line}" for line in lines)
    declared = f"  func.func private @{PROGRAM}({_types(takes)}) -> ({_types(gives)})"
    text = f"module {{\n{declared}\n  func.func public @main() -> ({both}) {{\n{body}\n  }}\n}}"
    added: Any = ir.Module.parse(text)
    new = next(op for op in added.body.operations if op.name.value == "main")
    module.body.append(new.operation.clone())


def _bound(name: str, count: int) -> str:
    return f"%{name}:{count}" if count != 1 else f"%{name}"


def _uses(name: str, count: int) -> list[str]:
    return [f"%{name}"] if count == 1 else [f"%{name}#{at}" for at in range(count)]


def _types(types: Sequence[Any]) -> str:
    return ", ".join(map(str, types))


def _constant(name: str, array: np.ndarray, type_: Any) -> str:
    """The definition of a constant: of the bits of what has a byte or more, else in digits."""
    if not array.size:
        value = "dense<>"
    elif array.dtype.name in _DIGITS:
        value = f"dense<{_digits(array)}>"
    else:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        value = f'dense<"0x{little.tobytes().hex().upper()}">'
    return f"%{name} = stablehlo.constant {value} : {type_}"


def _digits(array: np.ndarray) -> str:
    """The elements of integers as MLIR writes them."""
    whole = array.astype(np.int64)
    if array.dtype.name == "bool":
        return str(array.tolist()).lower()
    return str(whole.tolist())
