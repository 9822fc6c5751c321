"""What is written loads again, bit for bit, and can be read by people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from parity.casefile import values
from parity.casefile.load import load
from parity.casefile.writing import Draft, safe_name, write
from parity.dtypes import DTYPES, dtype

ATTRIBUTES = {"contracting": [[0], [0]]}


def draft(name: str = "mine", **operands: np.ndarray) -> Draft:
    return Draft(name, "A case for tests.", (), "dot_general", operands, ATTRIBUTES)


def again(folder: Path, array: np.ndarray) -> np.ndarray:
    (case,) = load(write(draft(lhs=array, rhs=array), folder)).cases
    return case.arrays()[0]


def test_a_case_file_reads_as_one_that_a_person_wrote(tmp_path: Path) -> None:
    lhs = np.array([[0.1, -0.0], [1e-5, 3]], np.float32)
    rhs = np.array([1 + 2j, -0.5j], np.complex64)
    one = Draft(
        "mine", "Short.", ("https://x.y/1",), "dot_general", {"lhs": lhs, "rhs": rhs},
        {"contracting": [[1], [0]], "precision": "high"}, {"x64": False},
    )  # fmt: skip
    assert write(one, tmp_path).read_text() == (
        "name: mine\n"
        "about: Short.\n"
        "links: [https://x.y/1]\n"
        "op: dot_general\n"
        "operands:\n"
        "  lhs:\n"
        "    shape: [2, 2]\n"
        "    dtype: float32\n"
        "    values:\n"
        "    - [0.1, -0.0]\n"
        "    - [1e-05, 3.0]\n"
        "  rhs:\n"
        "    shape: [2]\n"
        "    dtype: complex64\n"
        "    values: [1+2j, -0-0.5j]\n"
        "attributes:\n"
        "  contracting: [[1], [0]]\n"
        "  precision: high\n"
        "x64: false\n"
    )


@pytest.mark.parametrize("name", DTYPES)
def test_short_arrays_of_every_dtype_come_back(name: str, tmp_path: Path) -> None:
    kind = DTYPES[name].numpy()
    array = np.array([1, 0, 1], kind) if name != "float8_e8m0fnu" else np.array([1, 2, 4], kind)
    assert again(tmp_path, array).tobytes() == array.tobytes()
    assert not [file for file in tmp_path.iterdir() if file.suffix != ".yaml"]


@pytest.mark.parametrize("name", DTYPES)
def test_long_arrays_of_every_dtype_come_back(name: str, tmp_path: Path) -> None:
    """Beside the case file; in it where no array file holds the dtype."""
    array = np.ones(200, DTYPES[name].numpy())
    back = again(tmp_path, array)
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    stored = {file.suffix for file in tmp_path.iterdir()} - {".yaml"}
    if name in ("float64", "complex128", "bool", "uint8"):
        assert stored == {".npz"}
    if name in ("bfloat16", "float8_e5m2"):
        assert stored == {".safetensors"}
    if name in ("int4", "float8_e3m4"):
        assert stored == set()


def test_two_kinds_of_array_file_stand_beside_one_case(tmp_path: Path) -> None:
    lhs, rhs = np.ones(200, DTYPES["bfloat16"].numpy()), np.ones(200, np.complex128)
    (case,) = load(write(draft(lhs=lhs, rhs=rhs), tmp_path)).cases
    assert [array.dtype for array in case.arrays()] == [lhs.dtype, rhs.dtype]
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "mine.npz", "mine.safetensors", "mine.yaml",
    ]  # fmt: skip


@given(
    array=npst.arrays(np.uint32, st.integers(1, 4)).map(lambda a: a.view(np.float32))
    | npst.arrays(np.uint16, st.integers(1, 4)).map(lambda a: a.view(DTYPES["bfloat16"].numpy()))
    | npst.arrays(np.uint64, st.integers(1, 4)).map(lambda a: a.view(np.float64))
)
def test_any_bits_come_back(array: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> None:
    """NaNs with a payload or a sign included: those go into an array file."""
    assert again(tmp_path_factory.mktemp("bits"), array).tobytes() == array.tobytes()


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float32_is_written_as_its_shortest_decimal(x: float) -> None:
    array = np.array(x, np.float32)
    listed = values.listing(array)
    assert len(repr(listed)) <= len(repr(float(array)))
    assert values.array(listed, (), dtype(array.dtype)).tobytes() == array.tobytes()


def test_a_name_that_ids_can_hold_is_kept() -> None:
    assert safe_name("dot_general-1.5") == "dot_general-1.5"
    assert safe_name("x" * 80) == "x" * 80


@given(st.text(), st.text())
def test_names_are_short_and_different_texts_get_different_ones(a: str, b: str) -> None:
    from re import fullmatch

    for text in (a, b, a * 40):
        assert fullmatch("[A-Za-z0-9_.-]{0,80}", safe_name(text))
    assert (safe_name(a) == safe_name(b)) == (a == b)
