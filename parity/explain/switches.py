"""The switches of what executes a path: each changes how it computes, none what is declared.

A path says whose switches it obeys (`Path.runtimes`). A switch that a path takes as an option is
given to it alone; any other one is an environment variable of a process of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from parity.casefile.case import Variant

FLAGS = {"xla": "XLA_FLAGS"}
"""By runtime, the environment variable that holds its flags."""


@dataclass(frozen=True)
class Switch:
    """One switch, flipped.

    Attributes:
        runtime: whose it is.
        name: as its documentation calls it.
        value: what it is set to.
        meaning: what that does, in a few words.
        option: the option of a path that says the same, with its value, "" for none.
        variable: the environment variable, "" for a flag of the runtime's own.
    """

    runtime: str
    name: str
    value: Any
    meaning: str
    option: str = ""
    variable: str = ""

    @property
    def flag(self) -> str:
        """How a flag is spelled: `--xla_allow_excess_precision=false`."""
        value = str(self.value).lower() if isinstance(self.value, bool) else self.value
        return f"--{self.name}={value}"

    @property
    def how(self) -> str:
        """What a user types: `XLA_FLAGS=--xla_allow_excess_precision=false`."""
        if self.variable:
            return f"{self.variable}={self.value}"
        if self.runtime in FLAGS:
            return f"{FLAGS[self.runtime]}={self.flag}"
        return f"{self.name}: {self.value}"

    def flipped(
        self, variant: Variant, options: Sequence[str], variables: Mapping[str, str]
    ) -> Variant | None:
        """A variant of a path with the switch flipped; None where it has no such switch.

        Args:
            variant: the path, with what it has already.
            options: that the path takes.
            variables: environment variables of where it runs, beside the inherited ones.
        """
        name = f"{variant.name} under {self.name}"
        if self.runtime == "xla" and "compiler_options" in options:
            given = {**variant.compiler_options, self.name: self.value}
            return replace(variant, name=name, compiler_options=given)
        if self.option:
            if self.option not in options:
                return None
            given = {**variant.settings, self.option: self.value}
            return replace(variant, name=name, settings=given)
        variable = self.variable or FLAGS[self.runtime]
        value = str(self.value)
        if not self.variable:
            before = (variant.variables, variables, os.environ)
            had = next((of[variable] for of in before if variable in of), "")
            value = f"{had} {self.flag}".strip()
        return replace(variant, name=name, variables={**variant.variables, variable: value})

    def is_own_process(self, options: Sequence[str]) -> bool:
        """Whether it needs a process of its own."""
        return not (self.option or (self.runtime == "xla" and "compiler_options" in options))


def _xla(name: str, value: Any, meaning: str) -> Switch:
    return Switch("xla", name, value, meaning)


SWITCHES: tuple[Switch, ...] = (
    _xla("xla_allow_excess_precision", False, "keep each rounding that the program declares"),
    Switch("onnxruntime", "optimization", "disabled", "no graph optimizations", "optimization"),
    Switch("onnxruntime", "optimization", "basic", "no fusions of operators", "optimization"),
    Switch("litert", "delegate", "none", "the built-in kernels, without XNNPACK", "delegate"),
    _xla("xla_disable_hlo_passes", "fusion", "no fusions"),
    _xla("xla_disable_hlo_passes", "algsimp", "no algebraic simplifications"),
    _xla("xla_cpu_max_isa", "AVX", "no fused multiply-add, no 16-bit arithmetic of the processor"),
    _xla("xla_backend_optimization_level", 0, "LLVM does not optimize"),
    Switch(
        "jax", "jax_default_matmul_precision", "highest", "the most precise dots and convolutions",
        variable="JAX_DEFAULT_MATMUL_PRECISION",
    ),
    Switch(
        "tensorflow", "TF_ENABLE_ONEDNN_OPTS", "0", "TensorFlow's own kernels, not oneDNN's",
        variable="TF_ENABLE_ONEDNN_OPTS",
    ),
    Switch(
        "tensorflow", "ONEDNN_MAX_CPU_ISA", "AVX2", "oneDNN without AVX-512 and bfloat16 units",
        variable="ONEDNN_MAX_CPU_ISA",
    ),
    _xla("xla_cpu_use_xnnpack", False, "XLA's own kernels, not XNNPACK's"),
    _xla("xla_cpu_use_onednn", False, "XLA's own kernels, not oneDNN's"),
    _xla("xla_cpu_multi_thread_eigen", False, "contractions on one thread"),
    _xla("xla_cpu_enable_fast_min_max", False, "minimum and maximum that pass NaN on"),
)  # fmt: skip
"""Every switch, the more telling ones first.

Sources: https://openxla.org/xla/flags_guidance and xla.proto of OpenXLA; the configuration options
of JAX; https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html; ONNX Runtime's
graph optimization levels; LiteRT's delegates.
"""
