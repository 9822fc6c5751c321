"""TensorFlow Lite: the non-native program without XLA's operations, as a flatbuffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from parity.errors import Unsupported
from parity.paths import Exported, PathProofError, Probe
from parity.paths.jax2tf import NonnativeWithoutXla, check_one_device
from parity.paths.jax2tf_function import operations, traced
from parity.paths.saved_model import SIGNATURE, by_key, in_order, named

if TYPE_CHECKING:
    import pathlib

    import numpy as np

    from parity.program.build import Program

_FILE = "program.tflite"


class Tflite(NonnativeWithoutXla, Exported):
    """TensorFlow Lite's own operators, executed by LiteRT where that is installed.

    Settings: `delegate`, `none` for the built-in kernels alone (default `default`: with XNNPACK).

    Source: https://ai.google.dev/edge/litert/models/convert_tf.
    """

    name = "tflite"
    reader = "tflite"
    options: Mapping[str, Sequence[Any]] = {"delegate": ("default", "none")}
    runtimes: tuple[str, ...] = ("litert",)
    flex = False

    def statements(self, options: Mapping[str, Any]) -> Sequence[str] | None:
        """See `Path.statements`."""
        return None

    def export(self, program: Program, folder: pathlib.Path, probe: Probe) -> None:
        """See `Exported.export`. Proof: the operations that were converted."""
        import tensorflow as tf

        check_one_device(program, "TensorFlow Lite")
        with probe.stage("lower"):
            converted = self.converted(program, probe, with_gradient=False)
            function, concrete = traced(named(converted), program, probe)
        self.prove([*operations(concrete.graph)], probe)
        with probe.stage("convert"):
            module = tf.Module()
            module.function = function
            converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], module)
            if self.flex:
                sets = tf.lite.OpsSet
                converter.target_spec.supported_ops = [sets.TFLITE_BUILTINS, sets.SELECT_TF_OPS]
            flatbuffer = converter.convert()
        with probe.stage("save"):
            (folder / _FILE).write_bytes(flatbuffer)

    def prepare(self) -> None:
        """See `Exported.prepare`."""
        self._interpreter()

    def execute(
        self, folder: pathlib.Path, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Exported.execute`. Proof: the interpreter, and the operators it executes."""
        interpreter, resolvers, whose = self._interpreter()
        without = probe.options.get("delegate") == "none"
        with probe.stage("load"):
            loaded = interpreter(
                model_path=str(folder / _FILE),
                experimental_op_resolver_type=(
                    resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES if without else resolvers.AUTO
                ),
            )
            runner = loaded.get_signature_runner(SIGNATURE)
        executed = sorted({one["op_name"] for one in loaded._get_ops_details()})
        has_flex = any(name.startswith("Flex") for name in executed)
        if has_flex and not self.flex:
            raise PathProofError(f"{self.name} executed {', '.join(executed)}")
        taken = runner.get_input_details()
        with probe.stage("run"):
            try:
                results = runner(**{k: of for k, of in by_key(inputs).items() if k in taken})
            except RuntimeError as error:
                if has_flex and "Flex delegate" in str(error):
                    raise Unsupported(f"{whose} comes without the Flex delegate") from error
                raise
            outputs = in_order(results)
        probe.again(lambda: runner(**{k: of for k, of in by_key(inputs).items() if k in taken}))
        probe.evidence["executed"] = f"{', '.join(executed)} by {whose}"
        return outputs

    def _interpreter(self) -> tuple[Any, Any, str]:
        """The class of the interpreter and its kinds of resolvers, and what it is called."""
        if find_spec("ai_edge_litert") is not None and not self.flex:
            from ai_edge_litert import interpreter

            return interpreter.Interpreter, interpreter.OpResolverType, "LiteRT"
        import tensorflow as tf

        return (
            tf.lite.Interpreter,
            tf.lite.experimental.OpResolverType,
            f"TensorFlow {tf.__version__}",
        )


class TfliteFlex(Tflite):
    """With TensorFlow's own operations where TensorFlow Lite has none (the Flex delegate)."""

    name = "tflite.flex"
    reader = "tflite.flex"
    flex = True


PATHS = (Tflite, TfliteFlex)
