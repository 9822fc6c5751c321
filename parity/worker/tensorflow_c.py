"""TensorFlow's C API, from the shared library of its wheel: what a server without Python calls.

Never imports the Python package. Source: `tensorflow/c/c_api.h`, and `meta_graph.proto`,
`graph.proto` and `function.proto` of TensorFlow for the few messages that are read.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from parity.dtypes import dtype

_DTYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
    24: "float8_e5m2",
    25: "float8_e4m3fn",
    26: "float8_e4m3fnuz",
    27: "float8_e4m3b11fnuz",
    28: "float8_e5m2fnuz",
    29: "int4",
    30: "uint4",
    31: "int2",
    32: "uint2",
}
"""Names of `TF_DataType` (`tf_datatype.h`)."""

_CODES = {name: code for code, name in _DTYPES.items()}
_LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")
_POINTER, _INT, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
_FUNCTIONS: Mapping[str, tuple[Any, Sequence[Any]]] = {
    "TF_Version": (ctypes.c_char_p, ()),
    "TF_NewStatus": (_POINTER, ()),
    "TF_DeleteStatus": (None, (_POINTER,)),
    "TF_GetCode": (_INT, (_POINTER,)),
    "TF_Message": (ctypes.c_char_p, (_POINTER,)),
    "TF_NewGraph": (_POINTER, ()),
    "TF_DeleteGraph": (None, (_POINTER,)),
    "TF_NewBuffer": (_POINTER, ()),
    "TF_DeleteBuffer": (None, (_POINTER,)),
    "TF_NewSessionOptions": (_POINTER, ()),
    "TF_DeleteSessionOptions": (None, (_POINTER,)),
    "TF_LoadSessionFromSavedModel": (
        _POINTER,
        (_POINTER, _POINTER, ctypes.c_char_p, _POINTER, _INT, _POINTER, _POINTER, _POINTER),
    ),
    "TF_CloseSession": (None, (_POINTER, _POINTER)),
    "TF_DeleteSession": (None, (_POINTER, _POINTER)),
    "TF_GraphOperationByName": (_POINTER, (_POINTER, ctypes.c_char_p)),
    "TF_AllocateTensor": (_POINTER, (_INT, _POINTER, _INT, _SIZE)),
    "TF_DeleteTensor": (None, (_POINTER,)),
    "TF_TensorType": (_INT, (_POINTER,)),
    "TF_NumDims": (_INT, (_POINTER,)),
    "TF_Dim": (ctypes.c_int64, (_POINTER, _INT)),
    "TF_TensorByteSize": (_SIZE, (_POINTER,)),
    "TF_TensorData": (_POINTER, (_POINTER,)),
    "TF_SessionRun": (
        None,
        (
            *(_POINTER, _POINTER, _POINTER, _POINTER, _INT),
            *(_POINTER, _POINTER, _INT, _POINTER, _INT, _POINTER, _POINTER),
        ),
    ),
}


class TensorFlowError(Exception):
    """What TensorFlow's status said."""


class _Buffer(ctypes.Structure):
    _fields_ = (("data", _POINTER), ("length", _SIZE), ("deallocator", _POINTER))


class _Output(ctypes.Structure):
    _fields_ = (("operation", _POINTER), ("index", _INT))


def libraries() -> list[Path]:
    """The shared libraries of the installed TensorFlow, in the order in which they are loaded.

    Empty where it is not installed, or its wheel has none. Does not import it.
    """
    spec = importlib.util.find_spec("tensorflow")
    for place in () if spec is None else spec.submodule_search_locations or ():
        found = [Path(place) / name for name in _LIBRARIES]
        if all(file.exists() for file in found):
            return found
    return []


@cache
def library() -> Any:
    """The C API; loaded once."""
    loaded = [ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL) for file in libraries()][-1]
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, list(arguments)
    return loaded


@dataclass(frozen=True)
class Signature:
    """A signature of a SavedModel: by key, the name of the tensor; and what it executes.

    Attributes:
        inputs: such as `{"x0": "serving_default_x0:0"}`.
        outputs: likewise.
        operations: the names of all operations of the graph and of its functions.
    """

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    operations: frozenset[str]


class Session:
    """A SavedModel that was loaded: a context manager.

    Args:
        folder: of the SavedModel.
        key: of the signature.
        tag: of the graph.

    Attributes:
        signature: what the SavedModel says of itself.

    Raises:
        TensorFlowError: it cannot be loaded.
    """

    def __init__(self, folder: Path, *, key: str, tag: str = "serve") -> None:
        c = self._c = library()
        self._graph = c.TF_NewGraph()
        options, meta = c.TF_NewSessionOptions(), c.TF_NewBuffer()
        tags = (ctypes.c_char_p * 1)(tag.encode())
        try:
            with _Status(c) as status:
                self._session = c.TF_LoadSessionFromSavedModel(
                    options, None, str(folder).encode(), tags, 1, self._graph, meta, status
                )
            buffer = _Buffer.from_address(meta)
            self.signature = _signature(ctypes.string_at(buffer.data, buffer.length), key)
        finally:
            c.TF_DeleteSessionOptions(options)
            c.TF_DeleteBuffer(meta)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        with _Status(self._c) as status:
            self._c.TF_CloseSession(self._session, status)
        with _Status(self._c) as status:
            self._c.TF_DeleteSession(self._session, status)
        self._c.TF_DeleteGraph(self._graph)

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> list[np.ndarray]:
        """The named outputs, bit for bit.

        Args:
            inputs: arrays by key of the signature; one that the signature lacks, since the program
                does not use it, is left out.
            outputs: keys of the signature.

        Raises:
            TensorFlowError: it cannot be executed.
        """
        c = self._c
        given = {key: array for key, array in inputs.items() if key in self.signature.inputs}
        places = self._places([self.signature.inputs[key] for key in given])
        wanted = self._places([self.signature.outputs[key] for key in outputs])
        tensors = (_POINTER * len(given))(*map(self._tensor, given.values()))
        results = (_POINTER * len(outputs))()
        try:
            with _Status(c) as status:
                c.TF_SessionRun(
                    *(self._session, None, places, tensors, len(given)),
                    *(wanted, results, len(outputs), None, 0, None, status),
                )
            return [self._array(tensor) for tensor in results if tensor is not None]
        finally:
            for tensor in (*tensors, *filter(None, results)):
                c.TF_DeleteTensor(tensor)

    def _places(self, names: Sequence[str]) -> Any:
        """`name:index` of tensors as the API takes them."""
        found = (_Output * len(names))()
        for place, name in zip(found, names, strict=True):
            operation, _, index = name.partition(":")
            place.operation = self._c.TF_GraphOperationByName(self._graph, operation.encode())
            place.index = int(index or 0)
            if not place.operation:
                raise TensorFlowError(f"the graph has no operation {operation}")
        return found

    def _tensor(self, array: np.ndarray) -> int:
        code = _CODES.get(array.dtype.name)
        if code is None:
            raise TensorFlowError(f"TensorFlow has no {array.dtype.name}")
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        tensor: int = self._c.TF_AllocateTensor(code, shape, array.ndim, array.nbytes)
        bits = np.ascontiguousarray(array).tobytes()
        if bits:
            ctypes.memmove(self._c.TF_TensorData(tensor), bits, len(bits))
        return tensor

    def _array(self, tensor: int) -> np.ndarray:
        c = self._c
        shape = [c.TF_Dim(tensor, axis) for axis in range(c.TF_NumDims(tensor))]
        size = c.TF_TensorByteSize(tensor)
        bits = ctypes.string_at(c.TF_TensorData(tensor), size) if size else b""
        element = dtype(_DTYPES[c.TF_TensorType(tensor)]).numpy()
        return np.frombuffer(bits, element).reshape(shape)


class _Status:
    """A `TF_Status`, raised if it is not OK; a context manager."""

    def __init__(self, c: Any) -> None:
        self._c = c
        self._status = c.TF_NewStatus()

    def __enter__(self) -> Any:
        return self._status

    def __exit__(self, kind: object, *exc: object) -> None:
        code, message = self._c.TF_GetCode(self._status), self._c.TF_Message(self._status)
        self._c.TF_DeleteStatus(self._status)
        if kind is None and code != 0:
            raise TensorFlowError(message.decode(errors="replace"))


def _signature(meta_graph: bytes, key: str) -> Signature:
    """What a serialized MetaGraphDef says of one of its signatures."""
    meta = _message("MetaGraphDef")()
    meta.ParseFromString(meta_graph)
    if key not in meta.signature_def:
        raise TensorFlowError(f"it has no signature {key} (got {', '.join(meta.signature_def)})")
    signature, graph = meta.signature_def[key], meta.graph_def
    nodes = [*graph.node, *(node for of in graph.library.function for node in of.node_def)]
    return Signature(
        {name: info.name for name, info in signature.inputs.items()},
        {name: info.name for name, info in signature.outputs.items()},
        frozenset(node.op for node in nodes),
    )


_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "NodeDef": {"name": (1, "string"), "op": (2, "string")},
    "FunctionDef": {"node_def": (3, "repeated NodeDef")},
    "FunctionDefLibrary": {"function": (1, "repeated FunctionDef")},
    "GraphDef": {"node": (1, "repeated NodeDef"), "library": (2, "FunctionDefLibrary")},
    "TensorInfo": {"name": (1, "string")},
    "SignatureDef": {"inputs": (1, "map TensorInfo"), "outputs": (2, "map TensorInfo")},
    "MetaGraphDef": {"graph_def": (2, "GraphDef"), "signature_def": (5, "map SignatureDef")},
}
"""The fields that are read, with their numbers; others are passed over."""


@cache
def _message(name: str) -> Any:
    """The class of one of `_MESSAGES`."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="parity.proto", package="parity", syntax="proto3"
    )
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for field, (number, kind) in fields.items():
            _describe(described, field, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"parity.{name}"))


def _describe(message: Any, name: str, number: int, kind: str) -> None:
    """Add a field to the description of a message; a map is a repeated entry of key and value."""
    how, _, of = kind.rpartition(" ")
    field = message.field.add(name=name, number=number)
    field.label = field.LABEL_REPEATED if how else field.LABEL_OPTIONAL
    if of == "string":
        field.type = field.TYPE_STRING
        return
    field.type, field.type_name = field.TYPE_MESSAGE, f".parity.{of}"
    if how == "map":
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _describe(entry, "key", 1, "string")
        _describe(entry, "value", 2, of)
        field.type_name = f".parity.{message.name}.{entry.name}"
