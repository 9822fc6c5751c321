"""`jax.experimental.jax2tf.convert`, native and non-native serialization, called from TensorFlow.

With the mode `.tape` a gradient is taken by TensorFlow through the converted function, instead of
by JAX before it is converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from parity.errors import Unsupported
from parity.paths import Path, PathProofError, Probe, installed

if TYPE_CHECKING:
    import numpy as np

    from parity.program.build import Program

CALL_MODULE = "XlaCallModule"
_CARRIERS = frozenset(
    {"Identity", "IdentityN", "PreventGradient", "EnsureShape", "Placeholder", "NoOp"}
)


class Jax2tf(Path):
    """What the paths through jax2tf have in common.

    Attributes:
        native: whether the program travels as StableHLO in one `XlaCallModule`.
        xla_operations: whether a program that does not may use TensorFlow's operations of XLA.
    """

    native: bool
    xla_operations = True
    runtimes: tuple[str, ...] = ("jax", "xla", "tensorflow")
    options: Mapping[str, Sequence[Any]] = {"polymorphic_shapes": ()}

    def unsupported(self) -> str | None:
        """See `Path.unsupported`."""
        if installed("jax") is None:
            return "JAX is not installed"
        if not any(installed(name) for name in ("tensorflow", "tensorflow-cpu", "tf-nightly")):
            return "TensorFlow is not installed"
        return None

    def load(self) -> None:
        """See `Path.load`."""
        import tensorflow  # noqa: F401
        from jax.experimental import jax2tf  # noqa: F401

    def statements(self, options: Mapping[str, Any]) -> Sequence[str] | None:
        """See `Path.statements`."""
        if options:
            return None
        return [
            *self._conversion(),
            "return [x.numpy() for x in converted(*map(tf.constant, arrays))]",
        ]

    def _conversion(self) -> list[str]:
        """The statements that convert a program."""
        how = "" if self.xla_operations else ", enable_xla=False"
        given = f"native_serialization={self.native}, with_gradient=False{how}"
        return [
            "import tensorflow as tf",
            "from jax.experimental import jax2tf",
            f"converted = jax2tf.convert(program, {given})",
        ]

    def run(
        self, program: Program, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Path.run`. Proof: the operations that TensorFlow executed, seen while they ran."""
        import tensorflow as tf

        check_one_device(program)
        tensors = [tf.constant(array) for array in inputs]
        with probe.stage("convert"), _executed_operations() as operations:
            try:
                results = self._results(program, tensors, probe)
            except tf.errors.OpError:  # TensorFlow had the operations and could not execute them
                probe.current = "run"
                raise
        with probe.stage("run"):
            outputs = [result.numpy() for result in results]
        probe.again(lambda: [one.numpy() for one in self._results(program, tensors, probe)])
        self.prove(operations, probe)
        return outputs

    def _results(self, program: Program, tensors: list[Any], probe: Probe) -> Sequence[Any]:
        return self.converted(program, probe, with_gradient=False)(*tensors)  # type: ignore[no-any-return]

    def converted(
        self, program: Program, probe: Probe, *, with_gradient: bool
    ) -> Callable[..., Any]:
        """A program as a function of TensorFlow's tensors."""
        from jax.experimental import jax2tf

        how: dict[str, Any] = {} if self.xla_operations else {"enable_xla": False}
        if any(symbolic := probe.polymorphic_shapes(program)):
            how["polymorphic_shapes"] = symbolic
        converted: Callable[..., Any] = jax2tf.convert(
            program.function,
            native_serialization=self.native,
            with_gradient=with_gradient,
            **how,
        )
        return converted

    def prove(self, operations: Sequence[tuple[str, Mapping[str, Any]]], probe: Probe) -> None:
        """Leave what was executed as evidence.

        Args:
            operations: name and attributes of each.
            probe: takes it.

        Raises:
            PathProofError: it is another path's.
        """
        from parity.worker.evidence import canonical_graph, canonical_stablehlo

        names = [name for name, _ in operations]
        if (CALL_MODULE in names) is not self.native:
            raise PathProofError(
                f"{self.name} executed {', '.join(names)}: "
                f"{CALL_MODULE} {'is missing' if self.native else 'is the native path'}"
            )
        shown = [name for name in names if name not in _CARRIERS]
        probe.evidence["executed"] = ", ".join(dict.fromkeys(shown))
        if self.native:
            module = next(attrs["module"] for name, attrs in operations if name == CALL_MODULE)
            probe.compiled("stablehlo", canonical_stablehlo(_stablehlo(module)))
        else:
            probe.compiled("graph", canonical_graph(operations))


class Native(Jax2tf):
    """One `XlaCallModule` operation that carries the program's StableHLO."""

    name = "jax2tf-native"
    native = True


class Nonnative(Jax2tf):
    """One TensorFlow operation per primitive; JAX up to 0.7.1."""

    name = "jax2tf-nonnative"
    native = False

    def unsupported(self) -> str | None:
        """See `Path.unsupported`."""
        missing = super().unsupported()
        if missing is not None:
            return missing
        if tuple(int(part) for part in version("jax").split(".")[:3]) > (0, 7, 1):
            return "removed in JAX 0.7.2"
        return None


class NonnativeWithoutXla(Nonnative):
    """With TensorFlow's own operations only, none of XLA's (`enable_xla=False`).

    Such a program also runs where TensorFlow has no XLA: TFLite, TensorFlow.js. Proof: as for
    `jax2tf-nonnative`, and none of the operations is one of XLA's.
    """

    name = "jax2tf-nonnative.no-xla"
    xla_operations = False

    def prove(self, operations: Sequence[tuple[str, Mapping[str, Any]]], probe: Probe) -> None:
        """See `Jax2tf.prove`."""
        found = sorted({name for name, _ in operations if name.startswith("Xla")})
        if found:
            raise PathProofError(f"{self.name} executed {', '.join(found)}")
        super().prove(operations, probe)


class _Tape(Jax2tf):
    """The gradient taken by `tf.GradientTape` through the converted forward function."""

    def statements(self, options: Mapping[str, Any]) -> Sequence[str] | None:
        """See `Path.statements`: it takes the program without its transform."""
        return None

    def _results(self, program: Program, tensors: list[Any], probe: Probe) -> Sequence[Any]:
        check_vjp(program)
        given = dict(zip([i.name for i in program.inputs], tensors, strict=True))
        forward = program.forward()
        converted = self.converted(forward, probe, with_gradient=True)
        return gradients(
            converted,
            [given[i.name] for i in forward.inputs],
            [given[name] for name in program.differentiated],
            {
                forward.outputs.index(name): None if cotangent is None else given[cotangent]
                for name, cotangent in program.cotangents(forward).items()
            },
        )


def check_vjp(program: Program) -> None:
    """See that a program is one whose gradient TensorFlow can take itself.

    Raises:
        Unsupported: it takes none.
    """
    if program.spec.transform != "vjp":
        raise Unsupported("TensorFlow's tape takes gradients: transform vjp only")


class NativeTape(_Tape, Native):
    """TensorFlow's gradient of the native function."""

    name = "jax2tf-native.tape"


class NonnativeTape(_Tape, Nonnative):
    """TensorFlow's gradient of the non-native function; JAX up to 0.7.1."""

    name = "jax2tf-nonnative.tape"


@contextmanager
def _executed_operations() -> Iterator[list[tuple[str, Mapping[str, Any]]]]:
    """Collects name and attributes of every TensorFlow operation that is executed meanwhile."""
    from tensorflow.python.framework import op_callbacks

    seen: list[tuple[str, Mapping[str, Any]]] = []

    def record(
        op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        name = op_type.decode() if isinstance(op_type, bytes) else op_type
        pairs = attrs or ()
        seen.append((name, dict(zip(pairs[::2], pairs[1::2], strict=True))))

    op_callbacks.add_op_callback(record)
    try:
        yield seen
    finally:
        op_callbacks.remove_op_callback(record)


def _stablehlo(module: bytes) -> str:
    """The text of a serialized, portable StableHLO module."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    with ir.Context():
        return str(stablehlo.deserialize_portable_artifact(ir.Context.current, module))


def check_one_device(program: Program, whose: str = "TensorFlow") -> None:
    """See that a program lies on one device.

    Raises:
        Unsupported: it lies on several.
    """
    from parity.program.devices import devices

    if program.spec.devices > 1 and devices(program.jaxpr) > 1:
        raise Unsupported(f"{whose} runs a program on one device")


def gradients(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    wanted: Sequence[Any],
    cotangents: Mapping[Any, Any],
) -> list[Any]:
    """The gradients that `tf.GradientTape` takes of a function.

    Args:
        function: of tensors; its results have the keys of `cotangents`.
        arguments: which it is given.
        wanted: those of them that it is differentiated for.
        cotangents: by result, the tensor that is its cotangent; None stands for 1.
    """
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(wanted)
        results = function(*arguments)
    targets = [results[key] for key in cotangents]
    found = tape.gradient(
        targets,
        wanted,
        output_gradients=[
            tf.ones_like(target) if given is None else given
            for target, given in zip(targets, cotangents.values(), strict=True)
        ],
    )
    return [tf.convert_to_tensor(gradient) for gradient in found]


PATHS = (Native, Nonnative, NonnativeWithoutXla, NativeTape, NonnativeTape)
