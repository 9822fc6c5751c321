"""`jax.export`: written to a file, and read back by a process that never traced the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parity.paths import Exported, Probe

if TYPE_CHECKING:
    import pathlib

    import numpy as np

    from parity.program.build import Program

_FILE = "program.jax_export"


class Export(Exported):
    """What `jax.export.serialize` wrote for the CPU, called through `jax.jit`."""

    name = "export"
    reader = "export"

    def export(self, program: Program, folder: pathlib.Path, probe: Probe) -> None:
        """See `Exported.export`."""
        import jax
        from jax import export

        from parity.worker.evidence import canonical_stablehlo

        inputs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in program.jaxpr.in_avals]
        with probe.stage("lower"):
            exported = export.export(jax.jit(program.function), platforms=["cpu"])(*inputs)
        with probe.stage("save"):
            (folder / _FILE).write_bytes(exported.serialize())
        probe.compiled("stablehlo", canonical_stablehlo(exported.mlir_module()))

    def prepare(self) -> None:
        """See `Exported.prepare`."""
        from jax import export  # noqa: F401

    def execute(
        self, folder: pathlib.Path, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Exported.execute`. Proof: the module that was read, and what it was compiled to."""
        import jax
        from jax import export

        from parity.worker.evidence import leave

        with probe.stage("load"):
            exported = export.deserialize(bytearray((folder / _FILE).read_bytes()))
        called = jax.jit(exported.call)
        arrays = [jax.numpy.asarray(array) for array in inputs]
        with probe.stage("compile"):
            compiled = called.lower(*arrays).compile()
        with probe.stage("run"):
            outputs = probe.fetched(compiled(*arrays))
        probe.evidence["executed"] = "an artifact of jax.export"
        leave(probe, stablehlo=exported.mlir_module(), hlo=compiled.as_text())
        return outputs


PATHS = (Export,)
