"""ONNX: the program converted by jax2onnx, executed by ONNX Runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from parity.dtypes import dtype
from parity.errors import Unsupported
from parity.paths import Exported, Probe, installed

if TYPE_CHECKING:
    import pathlib

    import numpy as np

    from parity.program.build import Program

_FILE = "program.onnx"
_INSTALL = "pip install 'parity-harness[onnx]'"
_LEVELS = {
    "disabled": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_DTYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
}
"""Names of `TensorProto.DataType` (onnx.proto)."""

_CODES = {name: code for code, name in _DTYPES.items()}


class Onnx(Exported):
    """A model of the standard operators, on the CPU.

    Settings: `optimization`, the level of graph optimizations (default `all`); `providers`, the
    execution providers in order of preference (default `CPUExecutionProvider`).

    Source: https://onnxruntime.ai/docs/performance/model-optimizations/graph-optimizations.html.
    """

    name = "onnx"
    runtimes: tuple[str, ...] = ("onnxruntime",)
    reader = "onnx"
    options: Mapping[str, Sequence[Any]] = {
        "optimization": tuple(_LEVELS),
        "providers": (),
    }

    def unsupported(self) -> str | None:
        """See `Path.unsupported`. What only reads an artifact needs ONNX Runtime alone."""
        if installed("onnxruntime") is None:
            return f"onnxruntime is not installed: {_INSTALL}"
        return None

    def load(self) -> None:
        """See `Path.load`."""
        found = installed("jax2onnx")
        if found is None:
            raise Unsupported(f"jax2onnx is not installed: {_INSTALL}")
        if tuple(map(int, found.split(".")[:2])) < (0, 9):
            raise Unsupported(f"jax2onnx {found} does not convert for JAX 0.7: {_INSTALL}")
        import jax2onnx  # noqa: F401

    def prepare(self) -> None:
        """See `Exported.prepare`."""
        import onnxruntime  # noqa: F401

    def export(self, program: Program, folder: pathlib.Path, probe: Probe) -> None:
        """See `Exported.export`. Proof: the operators of the model."""
        import onnx
        from jax2onnx import to_onnx

        from parity.worker.artifact import write_traced

        inputs = program.traced
        with probe.stage("convert"):
            try:
                model = to_onnx(program.function, inputs, enable_double_precision=program.spec.x64)
            except NotImplementedError as error:
                raise Unsupported(f"jax2onnx: {error}") from error
            onnx.checker.check_model(model)
        names = dict.fromkeys(node.op_type for node in model.graph.node)
        probe.evidence["operators"] = ", ".join(names)
        with probe.stage("save"):
            onnx.save(model, str(folder / _FILE))
            write_traced(program, folder)

    def execute(
        self, folder: pathlib.Path, inputs: Sequence[np.ndarray], probe: Probe
    ) -> Sequence[np.ndarray]:
        """See `Exported.execute`. Proof: the provider that the session uses."""
        import onnxruntime as ort

        from parity.worker.artifact import as_traced

        options = ort.SessionOptions()
        level = _LEVELS[probe.options.get("optimization", "all")]
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        options.log_severity_level = 3
        with probe.stage("load"):
            session = ort.InferenceSession(
                (folder / _FILE).read_bytes(),
                options,
                providers=_available(probe.options.get("providers", ["CPUExecutionProvider"])),
            )
        with probe.stage("run"):
            binding = session.io_binding()
            values = [_value(array) for array in as_traced(folder, inputs)]
            for taken, value in zip(session.get_inputs(), values, strict=True):
                binding.bind_ortvalue_input(taken.name, value)
            for given in session.get_outputs():
                binding.bind_output(given.name)
            session.run_with_iobinding(binding)
            outputs = [_array(value) for value in binding.get_outputs()]
        probe.again(lambda: session.run_with_iobinding(binding))
        used = session.get_providers()[0]
        probe.evidence["executed"] = f"a session of ONNX Runtime {ort.__version__}, {used}"
        return outputs


def _available(asked: Any) -> list[str]:
    """The providers that were asked for.

    Raises:
        Unsupported: this ONNX Runtime lacks one, which it would pass over.
    """
    import onnxruntime as ort

    wanted = [asked] if isinstance(asked, str) else list(asked)
    has = ort.get_available_providers()
    for provider in wanted:
        if provider not in has:
            raise Unsupported(f"this ONNX Runtime has no {provider} (it has {', '.join(has)})")
    return wanted


def _value(array: np.ndarray) -> Any:
    """An array as ONNX Runtime takes it, bit for bit."""
    import numpy as np
    import onnxruntime as ort

    name = array.dtype.name
    if name not in _CODES:
        raise Unsupported(f"ONNX has no {name}")
    array = np.ascontiguousarray(array)
    if array.dtype.kind != "V" and name != "bfloat16" and not name.startswith("float8"):
        return ort.OrtValue.ortvalue_from_numpy(array)
    bits = array.view(f"uint{8 * array.dtype.itemsize}")
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, _CODES[name])


def _array(value: Any) -> np.ndarray:
    """What ONNX Runtime gave, bit for bit."""
    import numpy as np

    element = dtype(_DTYPES[value.element_type()]).numpy()
    shape = value.shape()
    size = element.itemsize * int(np.prod(shape))
    bits = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(bits, element).reshape(shape)


PATHS = (Onnx,)
