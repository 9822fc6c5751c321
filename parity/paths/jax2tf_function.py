"""`jax2tf.convert` inside `tf.function`: as a graph, and compiled by XLA as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from parity.dtypes import dtype
from parity.errors import Unsupported
from parity.paths import PathProofError, Probe
from parity.paths.jax2tf import Jax2tf, Native, Nonnative, is_spread

if TYPE_CHECKING:
    import numpy as np

    from parity.program.build import Program


class _Function(Jax2tf):
    """The converted program as a concrete function of TensorFlow."""

    compiled = False

    def run(
        self, program: Program, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Path.run`. Proof: the concrete function's operations, signature and HLO."""
        import tensorflow as tf

        from parity.worker.evidence import canonical_hlo

        if program.spec.devices > 1 and is_spread(program):
            raise Unsupported("TensorFlow runs a program on one device")
        with probe.stage("convert"):
            function = tf.function(
                self.converted(program, probe, with_gradient=False),
                input_signature=signature(program, probe),
                autograph=False,
                jit_compile=self.compiled,
            )
            concrete = function.get_concrete_function()
        self.prove([*operations(concrete.graph)], probe)
        tensors = [tf.constant(array) for array in inputs]
        if self.compiled:
            with probe.stage("compile"):
                hlo = function.experimental_get_compiler_ir(*tensors)(stage="optimized_hlo")
            probe.compiled("hlo", canonical_hlo(hlo))
        with probe.stage("run"):
            outputs = [result.numpy() for result in concrete(*tensors)]
        probe.evidence["executed"] += f" in a {'compiled ' * self.compiled}tf.function"
        return outputs


def signature(program: Program, probe: Probe) -> list[Any]:
    """The signature of the program as a TensorFlow function; polymorphic dimensions are None.

    Raises:
        PathProofError: shapes are to be polymorphic and none is.
    """
    import tensorflow as tf
    from jax import export

    symbolic = probe.polymorphic_shapes(program)
    found: list[Any] = []
    for operand, text in zip(program.inputs, symbolic, strict=True):
        shape: Sequence[Any] = operand.shape
        if text is not None:
            sizes = export.symbolic_shape(text, like=operand.shape)
            shape = [size if isinstance(size, int) else None for size in sizes]
        element = tf.as_dtype(dtype(operand.dtype).numpy())
        found.append(tf.TensorSpec(shape, element, name=f"x{len(found)}"))
    if any(symbolic) and all(spec.shape.is_fully_defined() for spec in found):
        raise PathProofError(f"no dimension is polymorphic in {', '.join(filter(None, symbolic))}")
    return found


def operations(graph: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and attributes of each operation of a graph and of the functions it calls."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    for node in nodes:
        attributes: dict[str, Any] = dict(node.attr)
        if "module" in attributes:
            attributes["module"] = attributes["module"].s
        yield node.op, attributes


class NativeGraph(_Function, Native):
    """The native program in a graph."""

    name = "jax2tf-native.graph"


class NonnativeGraph(_Function, Nonnative):
    """The non-native program in a graph; JAX up to 0.7.1."""

    name = "jax2tf-nonnative.graph"


class NativeXla(_Function, Native):
    """The native program compiled by XLA (`jit_compile=True`)."""

    name = "jax2tf-native.xla"
    compiled = True


class NonnativeXla(_Function, Nonnative):
    """The non-native program compiled by XLA (`jit_compile=True`); JAX up to 0.7.1."""

    name = "jax2tf-nonnative.xla"
    compiled = True


PATHS = (NativeGraph, NonnativeGraph, NativeXla, NonnativeXla)
