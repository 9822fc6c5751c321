"""`jax.export`: written to a file, and read back by a process that never traced the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from parity.dtypes import dtype
from parity.paths import Exported, Probe, check_polymorphic

if TYPE_CHECKING:
    import pathlib

    import numpy as np

    from parity.program.build import Program

_FILE = "program.jax_export"


class Export(Exported):
    """What `jax.export.serialize` wrote for the CPU, called through `jax.jit`."""

    name = "export"
    runtimes: tuple[str, ...] = ("jax", "xla")
    reader = "export"
    options: Mapping[str, Sequence[Any]] = {"polymorphic_shapes": ()}

    def statements(self, options: Mapping[str, Any]) -> Sequence[str] | None:
        """See `Path.statements`."""
        if options:
            return None
        return [
            "from jax import export",
            "arrays = [jnp.asarray(array) for array in arrays]",
            "exported = export.export(jax.jit(program), platforms=['cpu'])(*arrays)",
            "read = export.deserialize(bytearray(exported.serialize()))",
            "return jax.jit(read.call)(*arrays)",
        ]

    def export(self, program: Program, folder: pathlib.Path, probe: Probe) -> None:
        """See `Exported.export`."""
        import jax
        from jax import export

        with probe.stage("lower"):
            inputs = _specifications(program, probe.polymorphic_shapes(program))
            exported = export.export(jax.jit(program.function), platforms=["cpu"])(*inputs)
        with probe.stage("save"):
            (folder / _FILE).write_bytes(exported.serialize())

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
        probe.again(lambda: jax.block_until_ready(compiled(*arrays)))
        probe.evidence["executed"] = "an artifact of jax.export"
        leave(probe, stablehlo=exported.mlir_module(), hlo=compiled.as_text())
        return outputs


def _specifications(program: Program, symbolic: Sequence[str | None]) -> Sequence[Any]:
    """Shapes and dtypes of the inputs; a dimension of one name is the same in all of them.

    Raises:
        PathProofError: shapes are to be polymorphic and none is.
    """
    import jax
    from jax import export

    declared = [
        jax.ShapeDtypeStruct(one.shape, jax.dtypes.canonicalize_dtype(dtype(one.dtype).numpy()))
        for one in program.inputs
    ]
    if not any(symbolic):
        return declared
    found: Sequence[Any] = export.symbolic_args_specs(declared, symbolic)
    check_polymorphic(
        symbolic, fixed=all(isinstance(size, int) for one in found for size in one.shape)
    )
    return found


PATHS = (Export,)
