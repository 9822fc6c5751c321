"""`jax2tf.convert` inside `tf.function`: as a graph, and compiled by XLA as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from parity.dtypes import dtype
from parity.paths import Probe, check_polymorphic
from parity.paths.jax2tf import Jax2tf, Native, Nonnative, check_one_device

if TYPE_CHECKING:
    import numpy as np

    from parity.program.build import Program


class _Function(Jax2tf):
    """The converted program as a concrete function of TensorFlow."""

    compiled = False

    def statements(self, options: Mapping[str, Any]) -> Sequence[str] | None:
        """See `Path.statements`."""
        if options:
            return None
        how = f"autograph=False, jit_compile={self.compiled or None}"
        return [
            *self._conversion(),
            f"called = tf.function(converted, {how})",
            "return [x.numpy() for x in called(*map(tf.constant, arrays))]",
        ]

    def run(
        self, program: Program, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Path.run`. Proof: the concrete function's operations, signature and HLO."""
        import tensorflow as tf

        from parity.worker.evidence import canonical_hlo

        check_one_device(program)
        with probe.stage("convert"):
            converted = self.converted(program, probe, with_gradient=False)
            function, concrete = traced(converted, program, probe, jit_compile=self.compiled)
        self.prove([*operations(concrete.graph)], probe)
        tensors = [tf.constant(array) for array in inputs]
        if self.compiled:
            with probe.stage("compile"):
                hlo = function.experimental_get_compiler_ir(*tensors)(stage="optimized_hlo")
            probe.compiled("hlo", canonical_hlo(hlo))
        with probe.stage("run"):
            outputs = [result.numpy() for result in concrete(*tensors)]
        probe.again(lambda: [result.numpy() for result in concrete(*tensors)])
        probe.evidence["executed"] += f" in a {'compiled ' * self.compiled}tf.function"
        return outputs


def traced(
    function: Callable[..., Any], program: Program, probe: Probe, *, jit_compile: bool | None = None
) -> tuple[Any, Any]:
    """A program's function under `tf.function`, and the only concrete function that it has.

    Raises:
        PathProofError: shapes are to be polymorphic and none is.
    """
    import tensorflow as tf

    found = tf.function(
        function,
        input_signature=_signature(program, probe),
        autograph=False,
        jit_compile=jit_compile,
    )
    return found, found.get_concrete_function()


def _signature(program: Program, probe: Probe) -> list[Any]:
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
    check_polymorphic(symbolic, fixed=all(spec.shape.is_fully_defined() for spec in found))
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
