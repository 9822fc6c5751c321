"""A SavedModel executed through TensorFlow's C API, without Python: what a model server does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from parity.paths import PathProofError, Probe
from parity.paths.jax2tf import CALL_MODULE, Native, Nonnative
from parity.paths.saved_model import SIGNATURE, Saved, by_key

if TYPE_CHECKING:
    import pathlib

    import numpy as np


class Serving(Saved, Native):
    """The native program."""

    name = "serving"
    reader = "serving"

    def unsupported(self) -> str | None:
        """See `Path.unsupported`."""
        from parity.worker.tensorflow_c import libraries

        missing = super().unsupported()
        if missing is None and not libraries():
            return "this TensorFlow comes without libtensorflow_cc.so.2"
        return missing

    def prepare(self) -> None:
        """See `Exported.prepare`."""
        from parity.worker.tensorflow_c import library

        library()

    def execute(
        self, folder: pathlib.Path, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Exported.execute`.

        Proof: the operations of the graph that was loaded; Python's TensorFlow is not.
        """
        from parity.worker.tensorflow_c import Session, library

        with probe.stage("load"):
            session = Session(folder, key=SIGNATURE)
        with session:
            has_module = CALL_MODULE in session.signature.operations
            if has_module is not self.native:
                raise PathProofError(
                    f"{self.name} loaded {', '.join(sorted(session.signature.operations))}"
                )
            keys = [f"y{at}" for at in range(len(session.signature.outputs))]
            with probe.stage("run"):
                outputs = session.run(by_key(inputs), keys)
            probe.again(lambda: session.run(by_key(inputs), keys))
        if "tensorflow" in sys.modules:
            raise PathProofError("Python has imported TensorFlow")
        version = library().TF_Version().decode()
        probe.evidence["executed"] = f"a session of TensorFlow {version}'s C API"
        return outputs


class ServingNonnative(Serving, Nonnative):
    """The non-native program; JAX up to 0.7.1."""

    name = "serving.nonnative"
    native = False


class ServingGradients(Serving):
    """The native program saved with its gradients."""

    name = "serving.gradients"
    gradients = True


PATHS = (Serving, ServingNonnative, ServingGradients)
