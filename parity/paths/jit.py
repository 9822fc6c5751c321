"""`jax.jit` of the whole program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from parity.paths import Path, PathProofError, Probe

if TYPE_CHECKING:
    import numpy as np

    from parity.program.build import Program


class Jit(Path):
    """The program compiled as one XLA computation and called through `jax.jit`."""

    name = "jit"
    runtimes: tuple[str, ...] = ("jax", "xla")
    options: Mapping[str, Sequence[Any]] = {"compiler_options": ()}

    def statements(self, options: Mapping[str, Any]) -> Sequence[str] | None:
        """See `Path.statements`."""
        given = ""
        if "compiler_options" in options:
            given = f", compiler_options={options['compiler_options']!r}"
        return [f"return jax.jit(program{given})(*map(jnp.asarray, arrays))"]

    def run(
        self, program: Program, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Path.run`. Proof: the function was only traced; the StableHLO and HLO it became.

        Tracing, lowering and compiling ahead fill the caches that the call then uses, so the
        stages can be told apart at no cost.
        """
        import jax

        from parity.worker.evidence import leave

        concrete: list[bool] = []

        def witnessed(*arrays: Any) -> Any:
            concrete.append(not all(isinstance(array, jax.core.Tracer) for array in arrays))
            return program.function(*arrays)

        arrays = [jax.numpy.asarray(array) for array in inputs]
        jitted = jax.jit(witnessed, compiler_options=probe.options.get("compiler_options"))
        with probe.stage("trace"):
            traced = jitted.trace(*arrays)
        with probe.stage("lower"):
            lowered = traced.lower()
        with probe.stage("compile"):
            compiled = lowered.compile()
        with probe.stage("run"):
            outputs = probe.fetched(jitted(*arrays))
        probe.again(lambda: jax.block_until_ready(jitted(*arrays)))
        if not concrete or any(concrete):
            raise PathProofError("the function ran on concrete arrays: jit is disabled")
        probe.evidence["executed"] = "one XLA computation"
        leave(probe, stablehlo=lowered.as_text(), hlo=compiled.as_text())
        return outputs


PATHS = (Jit,)
