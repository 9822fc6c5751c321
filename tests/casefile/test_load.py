"""Fields of a case file: what they become, and how their errors read."""

import subprocess
import sys
from pathlib import Path

import pytest

from parity.casefile.load import check_unique, load
from parity.errors import CaseFileError

ROOT = Path(__file__).parents[2]
DTYPES = (
    "float64, float32, float16, bfloat16, float8_e5m2, float8_e4m3, float8_e3m4, float8_e4m3fn, "
    "float8_e4m3fnuz, float8_e4m3b11fnuz, float8_e5m2fnuz, float8_e8m0fnu, float4_e2m1fn, "
    "complex64, complex128, int2, int4, int8, int16, int32, int64, uint2, uint4, uint8, uint16, "
    "uint32, uint64, bool"
)
FIELDS = (
    "name, about, links, transforms, sweep, expect, program, flax, steps, op, operands, "
    "attributes, compute_dtype, output_dtype, residual, batch, cotangent, cotangents, "
    "gradients, batched, tangents, paths, baseline, tolerance, "
    "licences, x64, devices, seed, timeout"
)


def test_the_founding_case():
    file = load(ROOT / "cases" / "conv_bf16.yaml")
    stem = "cases/conv_bf16.yaml::conv_bf16:compute_dtype="
    assert [case.id for case in file.cases] == [
        stem + dtype for dtype in ("bfloat16", "float16", "float32")
    ]
    case = file.cases[0]
    assert case.program.attributes == {
        "window_strides": (1,),
        "padding": "VALID",
        "dimension_numbers": ("NWC", "WIO", "NWC"),
        "feature_group_count": 2,
    }
    assert (case.program.compute_dtype, case.program.output_dtype) == ("bfloat16", "float32")
    assert case.program.residual == "lhs"
    assert not case.program.x64
    assert case.paths == ("eager", "jit", "jax2tf-native", "jax2tf-nonnative")
    native = ("jax2tf-native",)
    assert [entry.paths for entry in case.expect] == [("jit",), native, native]
    assert case.expect[1].when == {"tensorflow": ">=2.18"}
    assert [entry.line for entry in case.expect] == [23, 28, 34]
    assert [len(case.expect) for case in file.cases] == [3, 1, 0]
    lhs = case.arrays()[0]
    assert lhs.ravel().tolist() == pytest.approx([-1.0932409763, -1.23801767], rel=1e-7)


def test_loading_imports_neither_jax_nor_tensorflow_nor_pandas_nor_numpy():
    code = (
        "import sys; from parity.casefile.load import load; load('cases/conv_bf16.yaml');"
        "print([m for m in ('jax', 'tensorflow', 'pandas', 'numpy') if m in sys.modules])"
    )
    run = [sys.executable, "-c", code]
    assert subprocess.run(run, cwd=ROOT, capture_output=True, text=True).stdout == "[]\n"


def test_defaults(folder, dot):
    (case,) = folder.cases(dot.replace("name: dot\n", ""))
    assert case.id == "dot.yaml::dot"
    assert case.file == folder.path / "dot.yaml"
    assert case.paths == ("eager", "jit", "jax2tf-native", "jax2tf-nonnative")
    assert case.baseline == "eager"
    assert case.program.attributes == {"dimension_numbers": (((1,), (0,)), ((), ()))}
    assert (case.point, case.tolerance, case.timeout) == ({}, None, None)


def test_whole_numbers_are_accepted_where_numbers_are_wanted(folder, dot):
    (case,) = folder.cases(dot + "tolerance: {rtol: 1, max_ulp: 2, against: f64}\ntimeout: 3\n")
    assert (case.tolerance.rtol, case.tolerance.max_ulp, case.tolerance.against) == (
        1.0,
        2.0,
        "f64",
    )
    assert case.timeout == 3.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "operands:",
            "operand:",
            f"4:1: unknown key 'operand' (got operand; allowed {FIELDS}) (and 1 more)\n"
            "hint: did you mean 'operands'?",
        ),
        (
            "about: A matrix product.\n",
            "",
            "1:1: missing key 'about'\nhint: about: one sentence: what it guards",
        ),
        (
            "dot_general",
            "dot_genral",
            "3:5: unknown op (got 'dot_genral'; "
            "allowed conv_general_dilated, dot_general, einsum)\nhint: did you mean 'dot_general'?",
        ),
        (
            "contracting",
            "contractin",
            "8:3: unknown key 'contractin' in attributes (got contractin; allowed "
            "dimension_numbers, contracting, batch, precision, preferred_element_type)\n"
            "hint: did you mean 'contracting'?",
        ),
        (
            "3, 4]",
            "3, true]",
            "6:20: operands.rhs.shape[1] is not an integer (got true; allowed an integer)",
        ),
        (
            "3, 4]",
            "3, 4.0]",
            "6:20: operands.rhs.shape[1] is not an integer (got 4.0; allowed an integer)",
        ),
        (
            "3, 4]",
            "3, '4']",
            "6:20: operands.rhs.shape[1] is not an integer (got '4'; allowed an integer)",
        ),
        (
            "3, 4]",
            "3, -1]",
            "6:20: operands.rhs.shape[1] is too small (got -1; allowed at least 0)",
        ),
        (
            "float32, draw: normal}\n  rhs",
            "bfloat61, draw: normal}\n  rhs",
            f"5:31: operands.lhs.dtype is no dtype (got 'bfloat61'; allowed {DTYPES})\n"
            "hint: did you mean 'bfloat16'?",
        ),
        (
            "3, 4]",
            "5, 4]",
            "8:16: contracting dimensions differ in size (got lhs[1] = 3 and rhs[0] = 5 of "
            "lhs [2, 3], rhs [5, 4]; allowed equal sizes)",
        ),
        (
            "shape: [2, 3], dtype: float32, draw: normal",
            "dtype: float32, draw: normal",
            "5:8: missing key 'shape' in operands.lhs\nhint: shape: [2, 3]",
        ),
        (
            "draw: normal}\n  rhs",
            "draw: normal, values: [1]}\n  rhs",
            "5:8: operands.lhs needs exactly one of values, file and draw (got values, draw)\n"
            "hint: draw: normal",
        ),
        (
            "draw: normal}\n  rhs",
            "draw: normal, low: 3}\n  rhs",
            "5:54: operands.lhs.low is no parameter of normal (got low)",
        ),
        (
            "draw: normal}\n  rhs",
            "draw: uniform, low: 3}\n  rhs",
            "5:60: operands.lhs.low exceeds high (got 3.0 and 1.0)",
        ),
        (
            "float32, draw: normal}\n  rhs",
            "uint8, draw: integers}\n  rhs",
            "5:44: operands.lhs.low is no whole number that uint8 holds "
            "(got -4; allowed 0 to 255)\n"
            "hint: give low and high, such as low: 0, high: 4",
        ),
        (
            "float32, draw: normal}\n  rhs",
            "int8, draw: normal}\n  rhs",
            "5:43: operands.lhs.draw gives no whole numbers "
            "(got normal for int8; allowed integers)",
        ),
        (
            "attributes:",
            "  bias: {shape: [4], dtype: float32, draw: normal}\nattributes:",
            "7:3: operand 'bias' is not used (got lhs, rhs, bias; the op takes lhs, rhs)\n"
            "hint: remove it, or add it to the result with residual: bias",
        ),
        (
            "  contracting: [[1], [0]]",
            "  precision: [high, hihgest]",
            "8:21: attributes.precision[1] is no precision "
            "(got 'hihgest'; allowed default, high, highest)\nhint: did you mean 'highest'?",
        ),
        (
            "  contracting: [[1], [0]]",
            "  precision: high",
            "8:3: give either dimension_numbers or contracting\n"
            "hint: contracting: [[1], [0]] is a matrix product",
        ),
        (
            "name: dot",
            "name: a dot",
            "1:7: name has a character that ids cannot hold "
            "(got 'a dot'; allowed letters, digits, _ . -)",
        ),
        ("  rhs:", "  Rhs:", "5:3: operands has no 'rhs' (got lhs, Rhs; required lhs, rhs)"),
    ],
)
def test_a_wrong_field_is_refused_at_its_place(folder, dot, old, new, message):
    assert folder.error(dot.replace(old, new)) == message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "tolerance: {rtol: .nan}",
            "9:19: tolerance.rtol is not finite (got NaN; allowed a finite number)",
        ),
        (
            "tolerance: {atol: .inf}",
            "9:19: tolerance.atol is not finite (got Infinity; allowed a finite number)",
        ),
        (
            "tolerance: {max_ulp: -1}",
            "9:22: tolerance.max_ulp is too small (got -1; allowed at least 0)",
        ),
        (
            "tolerance: {rtol: '1'}",
            "9:19: tolerance.rtol is not a number (got '1'; allowed a number)",
        ),
        ("tolerance: {}", "9:12: tolerance has no limit (allowed rtol, atol, max_ulp)"),
        ("paths: [eager, jit, jit]", "9:21: paths names 'jit' twice\nhint: keep one of the two"),
        ("paths: [jit]", "9:8: baseline is not among the paths (got 'eager'; allowed jit)"),
        (
            "paths: [eager, jax2tf-natve]",
            "9:16: unknown path (got 'jax2tf-natve'; allowed eager, jit, jax2tf-native)\n"
            "hint: did you mean 'jax2tf-native'?",
        ),
        ("x64: 1", "9:6: x64 is no setting of x64 (got 1; allowed auto, true, false)"),
        ("timeout: 0", "9:10: timeout is too small (got 0; allowed more than 0)"),
        ("seed: true", "9:7: seed is not an integer (got true; allowed an integer)"),
        ("residual: bias", "9:11: residual names no operand (got 'bias'; allowed lhs, rhs)"),
        (
            "residual: lhs",
            "9:11: residual 'lhs' cannot be added to the result "
            "(got [2, 3]; allowed [2, 4] or what broadcasts to it)",
        ),
        (
            "transforms: [forward, vpj]",
            "9:23: transforms[1] is no transform (got 'vpj'; allowed forward, vjp, jvp, vmap)\n"
            "hint: did you mean 'vjp'?",
        ),
        (
            "tangents: {lsh: {draw: uniform}}",
            "9:12: tangents names no floating operand (got lsh; allowed lhs, rhs)",
        ),
    ],
)
def test_a_wrong_line_is_refused_at_its_place(folder, dot, line, message):
    known = ["eager", "jit", "jax2tf-native"]
    assert (
        folder.error(dot + line + "\n", known_paths=known if "natve" in line else None) == message
    )


def test_all_problems_of_a_file_are_to_be_had(folder, dot):
    text = dot.replace("[2, 3]", "[2, x]").replace("[3, 4]", "[3, 1.5]") + "batch: 0\n"
    with pytest.raises(CaseFileError, match=r"dot\.yaml:5:20: .* \(and 2 more\)$") as caught:
        folder.load(text)
    assert [(error.line, error.col) for error in caught.value.others] == [(6, 20), (9, 8)]


def test_a_stem_that_ids_cannot_hold_needs_a_name(folder, dot):
    path = folder.path / "a b.yaml"
    path.write_text(dot.replace("name: dot\n", ""))
    with pytest.raises(CaseFileError, match="hint: give a name: or rename the file"):
        load(path)


def test_ids_are_relative_to_the_nearest_pyproject_or_the_given_root(folder, dot):
    below = folder.path / "sub" / "cases"
    below.mkdir(parents=True)
    (below / "x.yaml").write_text(dot)
    assert load(below / "x.yaml").cases[0].id == "sub/cases/x.yaml::dot"
    assert load(below / "x.yaml", root=below).cases[0].id == "x.yaml::dot"
    (folder.path / "sub" / "pyproject.toml").touch()
    assert load(below / "x.yaml").cases[0].id == "cases/x.yaml::dot"


def test_the_same_id_in_two_files_is_refused(folder, dot):
    for name in ("a", "b"):
        (folder.path / name).mkdir()
        (folder.path / name / "dot.yaml").write_text(dot)
    files = [load(f"{name}/dot.yaml", root=folder.path / name) for name in ("a", "b")]
    check_unique(files[:1])
    with pytest.raises(CaseFileError) as caught:
        check_unique(files)
    assert str(caught.value) == (
        "b/dot.yaml:1:7: duplicate case id 'dot.yaml::dot' (first in a/dot.yaml)\n"
        "hint: give one of the files another name"
    )


@pytest.mark.parametrize(
    ("line", "x64"),
    [
        ("", False),
        ("output_dtype: float64\n", True),
        ("compute_dtype: int64\n", True),
        ("compute_dtype: complex64\n", False),
        ("output_dtype: float64\nx64: false\n", False),
        ("x64: true\n", True),
    ],
)
def test_x64_auto_means_any_declared_64_bit_dtype(folder, dot, line, x64):
    (case,) = folder.cases(dot + line)
    assert case.program.x64 is x64


def test_transforms_bring_the_arrays_they_need(folder, dot):
    text = dot + "batch: 5\ntransforms: [forward, vjp, jvp, vmap]\n"
    text += "tangents: {rhs: {draw: uniform, seed: 9}}\n"
    forward, vjp, jvp, vmap = folder.cases(text)
    assert [case.id.partition("::")[2] for case in (forward, vjp, jvp, vmap)] == [
        "dot",
        "dot:transform=vjp",
        "dot:transform=jvp",
        "dot:transform=vmap",
    ]
    assert forward.point == {}
    assert vjp.point == {"transform": "vjp"}
    assert [(s.name, s.shape, s.dtype) for s in vjp.program.extra] == [
        ("cotangent", (2, 4), "float32")
    ]
    assert [(s.name, s.shape) for s in jvp.program.extra] == [
        ("tangent.lhs", (2, 3)),
        ("tangent.rhs", (3, 4)),
    ]
    assert [(o.draw, o.seed) for o in jvp.operands[2:]] == [("normal", 0), ("uniform", 9)]
    assert [spec.shape for spec in vmap.program.operands] == [(2, 3), (3, 4)]
    for case in (forward, vjp, jvp, vmap):
        inputs = case.program.inputs()
        assert [array.shape for array in case.arrays()] == [spec.shape for spec in inputs]
    assert vmap.arrays()[0].shape == (5, 2, 3)


@pytest.mark.parametrize(
    ("lines", "dtype"),
    [
        ("", None),
        ("cotangent: {dtype: float32}\n", "float32"),
        ("output_dtype: float16\n", "float16"),
        ("compute_dtype: bfloat16\n", "bfloat16"),
        ("compute_dtype: float64\nx64: false\n", "float32"),
    ],
)
def test_the_cotangent_has_the_dtype_of_the_output(folder, dot, lines, dtype):
    text = dot.replace("float32, draw: normal}\n  rhs", "bfloat16, draw: normal}\n  rhs")
    text += "transforms: [vjp]\n" + lines
    if dtype is None:
        assert folder.error(text) == (
            "9:13: the output's dtype, which the cotangent must have, cannot be inferred without "
            "JAX, at transform=vjp\nhint: say it: cotangent: {dtype: float32}"
        )
    else:
        assert folder.cases(text)[0].program.extra[0].dtype == dtype


def test_vjp_of_whole_numbers_is_refused(folder, dot):
    text = dot.replace("float32, draw: normal", "int8, draw: integers")
    assert folder.error(text + "transforms: [vjp]\n") == (
        "9:13: vjp needs a floating operand (got int8, int8), at transform=vjp"
    )


def test_operands_come_in_the_order_in_which_the_op_takes_them(folder, dot):
    head, lhs, rhs, tail = dot.partition("  lhs")[0], *dot.splitlines()[4:6], "attributes:\n"
    text = f"{head}  bias: {{shape: [4], dtype: float16, draw: normal}}\n{rhs}\n{lhs}\n{tail}"
    text += "  contracting: [[1], [0]]\nresidual: bias\ntransforms: [vjp]\n"
    (case,) = folder.cases(text)
    assert [operand.name for operand in case.operands] == ["lhs", "rhs", "bias", "cotangent"]
    assert case.program.extra[0].dtype == "float32"


def test_a_wrong_value_is_refused_although_a_sweep_replaces_it(folder, dot):
    text = dot + "compute_dtype: bf16\nsweep: {compute_dtype: [bfloat16, float16]}\n"
    assert "compute_dtype is no dtype (got 'bf16'; allowed float64" in folder.error(text)
