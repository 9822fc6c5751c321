"""Array files beside a case file: .npy, .npz and .safetensors, never unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from parity.casefile.problem import did_you_mean, listed, nearest, show
from parity.dtypes import DTYPES, DType, dtype

if TYPE_CHECKING:
    import numpy as np

_WRITERS = {
    ".npy": "numpy.save",
    ".npz": "numpy.savez",
    ".safetensors": "safetensors.numpy.save_file",
}
SUFFIXES = tuple(_WRITERS)

_SAFETENSORS = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "C64": "complex64",
    "BOOL": "bool",
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


class ArrayFileError(ValueError):
    """An array file is missing, outside the folder, unreadable, or holds no such array.

    Attributes:
        hint: how to mend it.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Stored:
    """What a file says about one of its arrays."""

    shape: tuple[int, ...]
    dtype: str


def locate(folder: Path, name: str) -> Path:
    """The file that a case file in `folder` names.

    Raises:
        ArrayFileError: it is outside the folder, missing, or of an unknown kind.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        hint = "array files stand beside the case file or below"
        raise ArrayFileError(f"is outside the case file's folder (got {show(name)})", hint=hint)
    if path.suffix not in SUFFIXES:
        got = f"got {show(name)}; allowed {listed(SUFFIXES)}"
        raise ArrayFileError(f"is not an array file ({got})")
    if not path.is_file():
        raise ArrayFileError(f"does not exist (got {show(name)})", hint=_beside(folder, path))
    return path


def _beside(folder: Path, path: Path) -> str | None:
    """The hint that an array file beside a missing one has almost its name."""
    files = sorted(file for file in path.parent.glob("*") if file.suffix in SUFFIXES)
    named = {file.stem: file for file in files}
    near = nearest(path.stem, named)
    if near is None:
        return None
    return f"did you mean '{named[near].relative_to(folder.resolve()).as_posix()}'?"


def inspect(path: Path, key: str | None) -> Stored:
    """Shape and dtype of an array, from the file's header.

    Args:
        path: as `locate` gives it.
        key: the array's name; may be None in a .npy file or where there is one array only.

    Raises:
        ArrayFileError: unreadable, pickled, or without such an array.
    """
    try:
        if path.suffix == ".safetensors":
            return _inspect_safetensors(path, key)
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
                with archive.open(f"{_chosen(names, key)}.npy") as stream:
                    return _header(stream)
        if key is not None:
            raise ArrayFileError(f"holds one array without a name (got key {show(key)})")
        with path.open("rb") as stream:
            return _header(stream)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise _unreadable(error, path) from None


def keys(path: Path) -> list[str]:
    """The names of the arrays in an archive.

    Raises:
        ArrayFileError: it is unreadable, or no archive.
    """
    if path.suffix == ".npy":
        raise ArrayFileError("has no names (got a .npy file; allowed .npz, .safetensors)")
    try:
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return [name.removesuffix(".npy") for name in archive.namelist()]
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="np") as tensors:
                return list(tensors.keys())
        except SafetensorError as error:
            raise _unreadable(error, path) from None
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise _unreadable(error, path) from None


def read(path: Path, key: str | None) -> np.ndarray:
    """An array, bit for bit, in the dtype that `inspect` names.

    Raises:
        ArrayFileError: unreadable, pickled, or without such an array.
        UnsupportedDType: the installed ml_dtypes is too old for its dtype.
    """
    import numpy as np

    stored = inspect(path, key)
    try:
        if path.suffix == ".safetensors":
            return _read_safetensors(path, key, stored)
        loaded = np.load(path, allow_pickle=False)
        if path.suffix == ".npz":
            with loaded:
                loaded = loaded[_chosen(loaded.files, key)]
        array: np.ndarray = loaded.astype(dtype(stored.dtype).numpy(), copy=False)
        return array
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise _unreadable(error, path) from None


def suffix(kind: DType) -> str | None:
    """The kind of file that holds a dtype bit for bit, None where neither does."""
    if kind.numpy().isbuiltin == 1:
        return ".npz"
    return ".safetensors" if kind.name in _SAFETENSORS.values() else None


def write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays of dtypes that the file's `suffix` holds, each under its name."""
    if path.suffix == ".npz":
        import numpy as np

        np.savez(path, **dict(arrays))  # type: ignore[arg-type]  # numpy's stub takes them for flags
    else:
        from safetensors.numpy import save_file

        save_file(dict(arrays), path)


def _unreadable(error: Exception, path: Path) -> ArrayFileError:
    if isinstance(error, ArrayFileError):
        return error
    hint = f"write it again with {_WRITERS[path.suffix]}"
    return ArrayFileError(f"cannot be read ({error})", hint=hint)


def _chosen(names: list[str], key: str | None) -> str:
    if key is None and len(names) == 1:
        return names[0]
    if key is None:
        raise ArrayFileError(f"holds several arrays (got no key; allowed {listed(names)})")
    if key not in names:
        got = f"got {show(key)}; allowed {listed(names)}"
        raise ArrayFileError(f"has no such array ({got})", hint=did_you_mean(key, names))
    return key


def _header(stream: IO[bytes]) -> Stored:
    """Shape and dtype from the header of a .npy stream.

    Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
    """
    from numpy.lib import format as npy

    if stream.read(1) != npy.MAGIC_PREFIX[:1]:
        hint = "save the array with numpy.save(…, allow_pickle=False)"
        raise ArrayFileError("is not a .npy file; pickles are refused", hint=hint)
    stream.seek(0)
    version = npy.read_magic(stream)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, found = read_header(stream)
    if found.hasobject:
        hint = "save numbers: numpy.save(…, allow_pickle=False)"
        raise ArrayFileError("holds pickled objects, which are refused", hint=hint)
    if found.name not in DTYPES:
        hint = "bfloat16 and other narrow formats need .safetensors"
        raise ArrayFileError(f"has a dtype that parity does not know (got {found})", hint=hint)
    return Stored(tuple(shape), found.name)


def _inspect_safetensors(path: Path, key: str | None) -> Stored:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as archive:
            found = archive.get_slice(_chosen(list(archive.keys()), key))
            shape, name = tuple(found.get_shape()), found.get_dtype()
    except SafetensorError as error:
        raise _unreadable(error, path) from None
    if name not in _SAFETENSORS:
        raise ArrayFileError(f"has a dtype that parity does not know (got {name})")
    return Stored(shape, _SAFETENSORS[name])


def _read_safetensors(path: Path, key: str | None, stored: Stored) -> np.ndarray:
    """Raw bits: safetensors' own numpy loader raises on bfloat16 and 8-bit floats."""
    import numpy as np
    from safetensors import deserialize

    arrays: dict[str, Any] = dict(deserialize(path.read_bytes()))  # type: ignore[no-untyped-call]  # has no stub
    bits = arrays[_chosen(list(arrays), key)]["data"]
    return np.frombuffer(bytes(bits), dtype(stored.dtype).numpy()).reshape(stored.shape)
