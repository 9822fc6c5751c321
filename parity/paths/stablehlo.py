"""The StableHLO specification's own interpreter, which comes with jaxlib: a third reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from parity.errors import Unsupported
from parity.paths import Path, Probe

if TYPE_CHECKING:
    import numpy as np

    from parity.program.build import Program

_EXCHANGED = frozenset(
    ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
)
"""What NumPy and MLIR exchange as it is."""

_SMALL = {"bool": "uint8", "int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8"}
"""What crosses as another integer type that holds its values."""

_DIALECTS = ("builtin.", "func.", "stablehlo.")
_NOT_INTERPRETED = frozenset({"stablehlo.custom_call", "stablehlo.composite"})
_CONTRACTIONS = frozenset({"stablehlo.convolution", "stablehlo.dot_general"})


class StableHLO(Path):
    """Each operation as the specification defines it, its result rounded to its dtype.

    Narrow floats cross into and out of the interpreter as the integers of their bits, complex
    numbers as two parts: that adds conversions at the edges of the program which change no value.

    Source: https://openxla.org/stablehlo/spec; `stablehlo.eval_module` of jaxlib.
    """

    name = "stablehlo"
    reference = True

    def run(
        self, program: Program, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Path.run`. Proof: the StableHLO that was interpreted."""
        import jax
        import numpy as np
        from jaxlib.mlir import ir

        from parity.worker.evidence import canonical_stablehlo

        taken = [np.dtype(aval.dtype) for aval in program.jaxpr.in_avals]
        given = [np.dtype(aval.dtype) for aval in program.jaxpr.out_avals]

        def crossed(*pieces: Any) -> list[Any]:
            rest = iter(pieces)
            outputs = program.function(*(_entered(dtype, rest) for dtype in taken))
            return [piece for out in outputs for piece in _left(out)]

        sent = [
            piece
            for array, dtype in zip(inputs, taken, strict=True)
            for piece in _sent(array.astype(dtype, copy=False))
        ]
        with probe.stage("lower"):
            lowered = jax.jit(crossed, keep_unused=True).lower(*sent)
            module = lowered.compiler_ir("stablehlo")
        probe.compiled("stablehlo", canonical_stablehlo(lowered.as_text()))
        with module.context:
            with probe.stage("compile"):
                _legalize(module)
            with probe.stage("run"):
                found = _interpreted(module, sent)
            pieces = iter([np.array(ir.DenseElementsAttr(one)) for one in found])
        probe.evidence["executed"] = "the StableHLO interpreter"
        return [_received(dtype, pieces) for dtype in given]


def _sent(array: np.ndarray) -> list[np.ndarray]:
    """An array in pieces that MLIR takes."""
    import numpy as np

    name = array.dtype.name
    if array.dtype.kind == "c":
        pieces = [array.real, array.imag]
    elif name in _SMALL:
        pieces = [array.astype(_SMALL[name])]
    elif name in _EXCHANGED:
        pieces = [array]
    else:
        pieces = [array.view(f"uint{8 * array.dtype.itemsize}")]
    return [np.ascontiguousarray(piece) for piece in pieces]


def _entered(dtype: np.dtype[Any], pieces: Iterator[Any]) -> Any:
    """The array that the program is given, of the next pieces; traced."""
    from jax import lax

    if dtype.kind == "c":
        return lax.complex(*islice(pieces, 2))
    piece = next(pieces)
    if dtype.name == "bool":
        return piece != 0
    if dtype.name in _SMALL:
        return lax.convert_element_type(piece, dtype)
    return piece if dtype.name in _EXCHANGED else lax.bitcast_convert_type(piece, dtype)


def _left(out: Any) -> list[Any]:
    """An output of the program in pieces that NumPy takes; traced."""
    import numpy as np
    from jax import lax

    dtype = np.dtype(out.dtype)
    if dtype.kind == "c":
        return [lax.real(out), lax.imag(out)]
    if dtype.name in _SMALL:
        return [lax.convert_element_type(out, np.dtype(_SMALL[dtype.name]))]
    if dtype.name in _EXCHANGED:
        return [out]
    return [lax.bitcast_convert_type(out, np.dtype(f"uint{8 * dtype.itemsize}"))]


def _received(dtype: np.dtype[Any], pieces: Iterator[np.ndarray]) -> np.ndarray:
    """The output of the next pieces."""
    import numpy as np

    if dtype.kind == "c":
        real, imaginary = islice(pieces, 2)
        found = np.empty(real.shape, dtype)
        found.real, found.imag = real, imaginary
        return found
    piece = next(pieces)
    return piece.astype(dtype) if dtype.name in _SMALL else piece.view(dtype)


def _interpreted(module: Any, inputs: Sequence[np.ndarray]) -> Sequence[Any]:
    """The attributes that a module makes of its inputs.

    Raises:
        RuntimeError: the interpreter failed; with what it said.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    (main,) = (op for op in module.body.operations if op.name.value == "main")
    types = [ir.RankedTensorType(one) for one in main.type.inputs]
    attributes = [
        ir.DenseElementsAttr.get(array, type=of.element_type, shape=list(array.shape))
        for array, of in zip(inputs, types, strict=True)
    ]
    said: list[str] = []

    def heard(diagnostic: Any) -> bool:
        said.append(str(diagnostic))
        return True

    handler = module.context.attach_diagnostic_handler(heard)
    try:
        found: Sequence[Any] = stablehlo.eval_module(module, attributes)
    except ValueError as error:
        raise RuntimeError("; ".join([str(error), *said])) from error
    finally:
        handler.detach()
    return found


def _legalize(module: Any) -> None:
    """Write the functions of CHLO out in StableHLO's own.

    Raises:
        Unsupported: something is left on which the interpreter would end the process.
    """
    from jaxlib.mlir import passmanager
    from jaxlib.mlir.dialects import stablehlo

    stablehlo.register_stablehlo_passes()
    pipeline = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
    passmanager.PassManager.parse(pipeline).run(module.operation)
    lacking = {name for op in _operations(module.operation) if (name := _lacking(op))}
    if lacking:
        raise Unsupported(f"the StableHLO interpreter has no {', '.join(sorted(lacking))}")


def _lacking(operation: Any) -> str:
    """What the interpreter lacks for an operation, "" if nothing."""
    name: str = operation.name
    if not name.startswith(_DIALECTS) or name in _NOT_INTERPRETED:
        return name
    if name in _CONTRACTIONS:
        of = [_element(value) for value in (*operation.operands, *operation.results)]
        if _is_integer(of[0]) and not _is_integer(of[-1]):
            return f"{name} of {of[0]} that gives {of[-1]}"
    return ""


def _element(value: Any) -> Any:
    from jaxlib.mlir import ir

    return ir.ShapedType(value.type).element_type


def _is_integer(element: Any) -> bool:
    from jaxlib.mlir import ir

    return isinstance(element, ir.IntegerType)


def _operations(operation: Any) -> Iterator[Any]:
    """An operation and all those in it."""
    yield operation
    for region in operation.regions:
        for block in region:
            for inner in block:
                yield from _operations(inner.operation)


PATHS = (StableHLO,)
