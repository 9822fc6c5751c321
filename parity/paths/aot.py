"""`jax.jit` compiled ahead of time: the compiled object itself is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from parity.paths import Path, PathProofError, Probe

if TYPE_CHECKING:
    import numpy as np

    from parity.program.build import Program


class Aot(Path):
    """The program lowered, compiled and called, each by itself."""

    name = "aot"
    runtimes: tuple[str, ...] = ("jax", "xla")
    options: Mapping[str, Sequence[Any]] = {"compiler_options": ()}

    def statements(self, options: Mapping[str, Any]) -> Sequence[str] | None:
        """See `Path.statements`."""
        given = ""
        if "compiler_options" in options:
            given = f"compiler_options={options['compiler_options']!r}"
        return [
            "arrays = [jnp.asarray(array) for array in arrays]",
            f"return jax.jit(program).lower(*arrays).compile({given})(*arrays)",
        ]

    def run(
        self, program: Program, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Path.run`. Proof: what was called is an executable; its StableHLO and HLO."""
        import jax

        from parity.worker.evidence import leave

        arrays = [jax.numpy.asarray(array) for array in inputs]
        with probe.stage("lower"):
            lowered = jax.jit(program.function).lower(*arrays)
        with probe.stage("compile"):
            compiled = lowered.compile(compiler_options=probe.options.get("compiler_options"))
        if not isinstance(compiled, jax.stages.Compiled):
            raise PathProofError(f"{type(compiled).__name__} is not compiled ahead of time")
        with probe.stage("run"):
            outputs = probe.fetched(compiled(*arrays))
        probe.again(lambda: jax.block_until_ready(compiled(*arrays)))
        probe.evidence["executed"] = "an executable compiled ahead of time"
        leave(probe, stablehlo=lowered.as_text(), hlo=compiled.as_text())
        return outputs


PATHS = (Aot,)
