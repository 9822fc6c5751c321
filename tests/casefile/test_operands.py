"""The bits of operands: draws, repeated examples, and array files."""

import pickle

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from parity.casefile.case import Operand
from parity.casefile.distributions import PARAMETERS
from parity.casefile.operands import generate
from parity.errors import CaseFileError


def made(folder, name="lhs", shape=(2, 3), dtype="float32", **how):
    return generate(Operand(name, shape, dtype, **how), file=folder.path / "dot.yaml")


def drawn(folder, draw="normal", **options):
    return made(folder, draw=draw, parameters=PARAMETERS[draw], **options)


def test_a_draw_depends_on_name_shape_distribution_and_seed_only(folder, dot):
    plain = drawn(folder, shape=(40,))
    others = [
        drawn(folder, name="rhs", shape=(40,)),
        drawn(folder, draw="uniform", shape=(40,)),
        drawn(folder, shape=(40,), seed=1),
        made(folder, shape=(40,), draw="uniform", parameters={"low": -1.0, "high": 2.0}),
        drawn(folder, shape=(40, 1)).ravel(),
    ]
    assert (drawn(folder, shape=(40,)) == plain).all()
    assert all(np.mean(other == plain) < 0.1 for other in others)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "complex64"])
def test_every_dtype_gets_the_same_data_rounded_once(folder, dtype):
    exact = drawn(folder, shape=(500,), dtype="float64")
    got = drawn(folder, shape=(500,), dtype=dtype)
    assert got.dtype.name == dtype
    wide = got.real.astype(float)
    spacing = {"bfloat16": 2**-8, "float16": 2**-11, "float8_e4m3fn": 2**-4, "complex64": 2**-24}
    assert (abs(wide - exact) <= abs(exact) * spacing[dtype] + 2**-10).all()


def test_parts_of_complex_numbers_differ(folder):
    got = drawn(folder, shape=(50,), dtype="complex128")
    assert (got.real == drawn(folder, shape=(50,), dtype="float64")).all()
    assert (got.real != got.imag).all()


@pytest.mark.parametrize("dtype", ["int8", "int4", "int64", "float8_e4m3fn", "float32"])
def test_integers_are_the_same_in_every_dtype(folder, dtype):
    got = drawn(folder, draw="integers", shape=(300,), dtype=dtype)
    assert got.dtype.name == dtype
    assert (got.astype(float) == drawn(folder, draw="integers", shape=(300,))).all()
    assert set(got.astype(int)) == set(range(-4, 5))


def test_a_drawn_bool_says_which_integers_are_not_zero(folder):
    got = drawn(folder, draw="integers", shape=(300,), dtype="bool")
    assert (got == (drawn(folder, draw="integers", shape=(300,)) != 0)).all()
    assert set(got) == {False, True}


def test_values_are_repeated_along_the_batch_and_draws_are_not(folder, dot):
    text = dot.replace("draw: normal}\n  rhs", "values: [[1, 2, 3], [4, 5, 6]]}\n  rhs")
    (case,) = folder.cases(text + "transforms: [vmap]\nbatch: 4\n")
    lhs, rhs = case.arrays()
    assert (lhs == np.broadcast_to([[1, 2, 3], [4, 5, 6]], (4, 2, 3))).all()
    assert rhs.shape == (4, 3, 4)
    assert len({example.tobytes() for example in rhs}) == 4


@pytest.fixture
def files(folder):
    half = np.arange(6, dtype=np.float16).reshape(2, 3) / 7
    np.save(folder.path / "a.npy", half)
    np.save(folder.path / "swapped.npy", half.astype(">f2"))
    np.save(folder.path / "empty.npy", np.zeros((0, 3), np.float16))
    np.savez(folder.path / "a.npz", first=half, second=half * 2)
    brain = half.astype(ml_dtypes.bfloat16)
    np.save(folder.path / "brain.npy", brain)
    tiny = half.astype(ml_dtypes.float8_e5m2)
    save_file({"half": half, "brain": brain, "tiny": tiny}, folder.path / "a.safetensors")
    return half


@pytest.mark.parametrize(
    ("file", "key", "dtype", "factor"),
    [
        ("a.npy", None, "float16", 1),
        ("./a.npy", None, "float16", 1),
        ("swapped.npy", None, "float16", 1),
        ("a.npz", "second", "float16", 2),
        ("a.safetensors", "half", "float16", 1),
        ("a.safetensors", "brain", "bfloat16", 1),
        ("a.safetensors", "tiny", "float8_e5m2", 1),
    ],
)
def test_array_files_are_read_bit_for_bit(folder, dot, files, file, key, dtype, factor):
    how = f"file: {file}" + (f", key: {key}" if key else "")
    text = dot.replace("float32, draw: normal}\n  rhs", f"{dtype}, {how}}}\n  rhs")
    (case,) = folder.cases(text)
    assert case.arrays()[0].dtype.name == dtype
    expected = (files * factor).astype(case.arrays()[0].dtype)
    assert case.arrays()[0].tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("file: 7.npy", "5:46: operands.lhs.file does not exist (got '7.npy')"),
        (
            "file: objets.npy",
            "5:46: operands.lhs.file does not exist (got 'objets.npy')\n"
            "hint: did you mean 'objects.npy'?",
        ),
        (
            "file: swapped.npz",
            "5:46: operands.lhs.file does not exist (got 'swapped.npz')\n"
            "hint: did you mean 'swapped.npy'?",
        ),
        (
            "file: a.txt",
            "5:46: operands.lhs.file is not an array file (got 'a.txt'; allowed .npy, "
            ".npz, .safetensors)",
        ),
        (
            "file: ../a.npy",
            "5:46: operands.lhs.file is outside the case file's folder (got "
            "'../a.npy')\nhint: array files stand beside the case file or below",
        ),
        (
            "file: /etc/a.npy",
            "5:46: operands.lhs.file is outside the case file's folder (got "
            "'/etc/a.npy')\nhint: array files stand beside the case file or below",
        ),
        (
            "file: link.npy",
            "5:46: operands.lhs.file is outside the case file's folder (got "
            "'link.npy')\nhint: array files stand beside the case file or below",
        ),
        (
            "file: a.npy",
            "5:46: operands.lhs.file is not what is declared (got float16 [2, 3]; allowed "
            "float32 [2, 3])",
        ),
        (
            "file: empty.npy",
            "5:46: operands.lhs.file is not what is declared (got float16 [0, 3]; allowed "
            "float32 [2, 3])",
        ),
        (
            "file: a.npy, key: x",
            "5:46: operands.lhs.file holds one array without a name (got key 'x')",
        ),
        (
            "file: a.npz",
            "5:46: operands.lhs.file holds several arrays (got no key; allowed first, second)",
        ),
        (
            "file: a.npz, key: frist",
            "5:46: operands.lhs.file has no such array (got 'frist'; allowed first, "
            "second)\nhint: did you mean 'first'?",
        ),
        (
            "file: a.safetensors, key: x",
            "5:46: operands.lhs.file has no such array (got 'x'; allowed brain, half, tiny)",
        ),
        (
            "file: brain.npy",
            "5:46: operands.lhs.file has a dtype that parity does not know (got "
            "|V2)\nhint: bfloat16 and other narrow formats need .safetensors",
        ),
        (
            "file: pickled.npy",
            "5:46: operands.lhs.file is not a .npy file; pickles are refused\nhint: save "
            "the array with numpy.save(…, allow_pickle=False)",
        ),
        (
            "file: objects.npy",
            "5:46: operands.lhs.file holds pickled objects, which are refused\nhint: save "
            "numbers: numpy.save(…, allow_pickle=False)",
        ),
        (
            "file: text.npz",
            "5:46: operands.lhs.file cannot be read (File is not a zip file)\nhint: write "
            "it again with numpy.savez",
        ),
        ("draw: normal, key: x", "5:54: operands.lhs.key stands beside file only"),
    ],
)
def test_array_files_that_are_refused(folder, dot, files, how, message):
    (folder.path / "pickled.npy").write_bytes(pickle.dumps([1.0]))
    (folder.path / "text.npz").write_bytes(b"text")
    np.save(folder.path / "objects.npy", np.array([object()]), allow_pickle=True)
    outside = folder.path.parent / "outside.npy"
    np.save(outside, files)
    (folder.path / "link.npy").symlink_to(outside)
    assert folder.error(dot.replace("draw: normal}\n  rhs", f"{how}}}\n  rhs")) == message


def test_a_truncated_file_is_refused(folder, dot, files):
    whole = (folder.path / "a.npy").read_bytes()
    (folder.path / "a.npy").write_bytes(whole[:-3])
    text = dot.replace("float32, draw: normal}\n  rhs", "float16, file: a.npy}\n  rhs")
    (case,) = folder.cases(text)
    with pytest.raises(CaseFileError, match=r"^dot\.yaml: operands\.lhs\.file cannot be read \("):
        _ = case.arrays()


def test_a_file_that_changed_since_is_refused(folder, dot, files):
    text = dot.replace("float32, draw: normal}\n  rhs", "float16, file: a.npy}\n  rhs")
    (case,) = folder.cases(text)
    np.save(folder.path / "a.npy", files.T)
    with pytest.raises(CaseFileError) as caught:
        _ = case.arrays()
    assert str(caught.value) == (
        "dot.yaml: operands.lhs.file is not what is declared "
        "(got float16 [3, 2]; allowed float16 [2, 3])"
    )
