"""A SavedModel of the converted program, loaded and called by another Python process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from parity.paths import Exported, Probe
from parity.paths.jax2tf import (
    Jax2tf,
    Native,
    Nonnative,
    check_one_device,
    check_vjp,
    gradients,
)
from parity.paths.jax2tf_function import operations, traced

if TYPE_CHECKING:
    import pathlib

    import numpy as np

    from parity.program.build import Program

SIGNATURE = "serving_default"
_TAPE = "tape.json"


class Saved(Jax2tf, Exported):
    """What the paths through a SavedModel have in common: how it is written.

    The signature takes `x0`, `x1`, … and gives `y0`, `y1`, …: the inputs and outputs in order.

    Attributes:
        gradients: whether the gradients that JAX takes are saved with the program.
    """

    gradients = False

    def statements(self, options: Mapping[str, Any]) -> Sequence[str] | None:
        """See `Path.statements`."""
        return None

    def export(self, program: Program, folder: pathlib.Path, probe: Probe) -> None:
        """See `Exported.export`. Proof: the operations of what was saved."""
        import tensorflow as tf

        check_one_device(program)
        with probe.stage("convert"):
            converted = self.converted(program, probe, with_gradient=self.gradients)
            function, concrete = traced(named(converted), program, probe)
        self.prove([*operations(concrete.graph)], probe)
        with probe.stage("save"):
            module = tf.Module()
            module.function = function
            options = tf.saved_model.SaveOptions(experimental_custom_gradients=self.gradients)
            tf.saved_model.save(module, str(folder), signatures=concrete, options=options)


def named(converted: Callable[..., Sequence[Any]]) -> Callable[..., dict[str, Any]]:
    """The function with its outputs under the names of the signature."""

    def under_names(*tensors: Any) -> dict[str, Any]:
        return {f"y{at}": output for at, output in enumerate(converted(*tensors))}

    return under_names


def by_key(inputs: Sequence[Any]) -> dict[str, Any]:
    """The inputs of a program under the names of the signature."""
    return {f"x{at}": one for at, one in enumerate(inputs)}


def in_order(results: Mapping[str, Any]) -> list[Any]:
    """The outputs of a program, which the signature gives by name."""
    return [results[f"y{at}"] for at in range(len(results))]


class SavedModel(Saved, Native):
    """The native program."""

    name = "saved-model"
    reader = "saved-model"

    def statements(self, options: Mapping[str, Any]) -> Sequence[str] | None:
        """See `Path.statements`."""
        if options:
            return None
        return [
            "import tempfile",
            *self._conversion(),
            "specs = [tf.TensorSpec(a.shape, a.dtype, name=f'x{i}') for i, a in enumerate(arrays)]",
            "def named(*xs):",
            "    return {f'y{i}': y for i, y in enumerate(converted(*xs))}",
            "module = tf.Module()",
            "module.function = tf.function(named, input_signature=specs, autograph=False)",
            "with tempfile.TemporaryDirectory() as folder:",
            "    signature = module.function.get_concrete_function()",
            "    tf.saved_model.save(module, folder, signatures=signature)",
            "    called = tf.saved_model.load(folder).signatures['serving_default']",
            "    given = {f'x{i}': tf.constant(array) for i, array in enumerate(arrays)}",
            "    found = called(**given)",
            "return [found[f'y{i}'].numpy() for i in range(len(found))]",
        ]

    def prepare(self) -> None:
        """See `Exported.prepare`."""
        import tensorflow  # noqa: F401

    def execute(
        self, folder: pathlib.Path, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Exported.execute`. Proof: the operations of what was loaded."""
        import tensorflow as tf

        with probe.stage("load"):
            loaded = tf.saved_model.load(str(folder))
            called = loaded.signatures[SIGNATURE]
        self.prove([*operations(called.graph)], probe)
        given = by_key([tf.constant(array) for array in inputs])
        with probe.stage("run"):
            outputs = [result.numpy() for result in in_order(called(**given))]
        probe.again(lambda: [result.numpy() for result in called(**given).values()])
        probe.evidence["executed"] += " of a SavedModel"
        return outputs


class SavedModelNonnative(SavedModel, Nonnative):
    """The non-native program; JAX up to 0.7.1."""

    name = "saved-model.nonnative"
    native = False


class SavedModelTape(SavedModel):
    """The forward program saved with its gradients, which TensorFlow takes after loading it."""

    name = "saved-model.tape"
    gradients = True

    def statements(self, options: Mapping[str, Any]) -> Sequence[str] | None:
        """See `Path.statements`: it takes the program without its transform."""
        return None

    def export(self, program: Program, folder: pathlib.Path, probe: Probe) -> None:
        """See `Exported.export`."""
        check_vjp(program)
        forward = program.forward()
        super().export(forward, folder, probe)
        at = {operand.name: number for number, operand in enumerate(program.inputs)}
        cotangents = program.cotangents(forward)
        how = {
            "forward": [at[operand.name] for operand in forward.inputs],
            "wanted": [at[name] for name in program.differentiated],
            "cotangents": {
                forward.outputs.index(name): None if given is None else at[given]
                for name, given in cotangents.items()
            },
        }
        (folder / _TAPE).write_text(json.dumps(how))

    def execute(
        self, folder: pathlib.Path, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Exported.execute`. Proof: as for `saved-model`."""
        import tensorflow as tf

        how = json.loads((folder / _TAPE).read_text())
        cotangents: Mapping[str, int | None] = how["cotangents"]
        with probe.stage("load"):
            loaded = tf.saved_model.load(str(folder))
            called = loaded.function
        self.prove([*operations(called.concrete_functions[0].graph)], probe)
        tensors = [tf.constant(array) for array in inputs]
        with probe.stage("run"):
            found = gradients(
                called,
                [tensors[at] for at in how["forward"]],
                [tensors[at] for at in how["wanted"]],
                {f"y{n}": None if at is None else tensors[at] for n, at in cotangents.items()},
            )
            outputs = [gradient.numpy() for gradient in found]
        probe.evidence["executed"] += " of a SavedModel"
        return outputs


PATHS = (SavedModel, SavedModelNonnative, SavedModelTape)
