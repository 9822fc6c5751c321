"""JAX op by op: every primitive compiled and run on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from parity.paths import Path, PathProofError, Probe

if TYPE_CHECKING:
    import numpy as np

    from parity.program.build import Program


class Eager(Path):
    """The program called as Python, on concrete arrays."""

    name = "eager"
    runtimes: tuple[str, ...] = ("jax", "xla")

    def statements(self, options: Mapping[str, Any]) -> Sequence[str] | None:
        """See `Path.statements`."""
        return ["return program(*map(jnp.asarray, arrays))"]

    def run(
        self, program: Program, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Path.run`. Proof: the function itself was called, on concrete arrays."""
        import jax

        calls: list[int] = []

        def witnessed(*arrays: Any) -> Any:
            calls.append(sum(isinstance(array, jax.core.Tracer) for array in arrays))
            return program.function(*arrays)

        with probe.stage("run"):
            outputs = probe.fetched(witnessed(*map(jax.numpy.asarray, inputs)))
        arrays = [jax.numpy.asarray(array) for array in inputs]
        probe.again(lambda: jax.block_until_ready(program.function(*arrays)))
        if calls != [0]:
            raise PathProofError(f"the function was traced instead of executed: {calls}")
        probe.evidence["executed"] = "op by op on concrete arrays"
        return outputs


PATHS = (Eager,)
