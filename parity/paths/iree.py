"""IREE: the program's StableHLO compiled for the CPU by LLVM, executed by IREE's runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parity.paths import Exported, Probe, installed

if TYPE_CHECKING:
    import pathlib

    import numpy as np

    from parity.program.build import Program

_FILE = "program.vmfb"
_FLAGS = [
    "--iree-llvmcpu-target-cpu=host",
    # By default it narrows 64-bit types, which is not what the program declares.
    "--iree-input-demote-f64-to-f32=false",
    "--iree-input-demote-i64-to-i32=false",
]


class Iree(Exported):
    """`llvm-cpu`, for the processor it is compiled on; executed in the calling thread.

    Source: https://iree.dev/guides/deployment-configurations/cpu/.
    """

    name = "iree"
    reader = "iree"

    def unsupported(self) -> str | None:
        """See `Path.unsupported`."""
        for distribution in ("iree-base-compiler", "iree-base-runtime"):
            if installed(distribution) is None:
                return f"{distribution} is not installed: pip install 'parity-harness[iree]'"
        return None

    def load(self) -> None:
        """See `Path.load`."""
        import iree.compiler  # noqa: F401

    def prepare(self) -> None:
        """See `Exported.prepare`."""
        import iree.runtime  # noqa: F401

    def export(self, program: Program, folder: pathlib.Path, probe: Probe) -> None:
        """See `Exported.export`. Proof: the StableHLO that was compiled."""
        import iree.compiler
        import jax

        from parity.worker.artifact import write_traced
        from parity.worker.evidence import canonical_stablehlo

        inputs = program.traced
        with probe.stage("lower"):
            lowered = jax.jit(program.function, keep_unused=True).lower(*inputs)
        text = lowered.as_text()
        probe.compiled("stablehlo", canonical_stablehlo(text))
        with probe.stage("compile"):
            try:
                compiled = iree.compiler.compile_str(
                    text, input_type="stablehlo", target_backends=["llvm-cpu"], extra_args=_FLAGS
                )
            except iree.compiler.CompilerToolError as error:
                raise RuntimeError(_told(str(error))) from error
        with probe.stage("save"):
            (folder / _FILE).write_bytes(compiled)
            write_traced(program, folder)

    def execute(
        self, folder: pathlib.Path, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Exported.execute`. Proof: the function of the compiled module was called."""
        import iree.runtime
        import numpy as np

        from parity.worker.artifact import as_traced

        with probe.stage("load"):
            compiled = (folder / _FILE).read_bytes()
            module = iree.runtime.load_vm_flatbuffer(compiled, driver="local-sync")
        with probe.stage("run"):
            results = module.main(*as_traced(folder, inputs))
            outputs = [
                np.asarray(result.to_host())
                for result in (results if isinstance(results, list | tuple) else [results])
            ]
        probe.evidence["executed"] = f"a module of IREE {installed('iree-base-runtime')}"
        return outputs


def _told(message: str) -> str:
    """What the compiler's message says is wrong, which stands amid its command line and IR."""
    said = [line.partition("error: ")[2] for line in message.splitlines() if "error: " in line]
    return f"iree-compile: {said[0]}\n{message}" if said else message


PATHS = (Iree,)
