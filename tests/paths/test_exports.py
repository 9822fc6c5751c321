"""Every way out on the founding report: what each runtime makes of one dropped rounding.

Source of the numbers: https://github.com/jax-ml/jax/issues/25873, measured there and here.
"""

from pathlib import Path

import numpy as np
import pytest

import parity
from parity.paths import get, options

DECLARED = [-1.3705847, -2.27708]
UNROUNDED = [-1.3709509, -2.2795215]
CASE = Path(__file__).parents[2] / "cases" / "conv_bf16.yaml"

ROUNDS = (
    "jax2tf-nonnative.graph",
    "jax2tf-nonnative.xla",
    "saved-model.nonnative",
    "serving.nonnative",
    "stablehlo",
)
DROPS = (
    "aot",
    "export",
    "jax2tf-native.graph",
    "jax2tf-native.xla",
    "saved-model",
    "serving",
    "serving.gradients",
    "iree",
)


@pytest.fixture(scope="module")
def founding():
    paths = ("eager", *ROUNDS, *DROPS, "tflite")
    result = parity.run(f"{CASE}::conv_bf16:compute_dtype=bfloat16", paths=paths, cache=False)
    return {row.path: row for row in result.rows}


@pytest.mark.parametrize("path", ROUNDS)
def test_the_product_is_rounded(founding, path):
    assert np.float32(founding[path].values).tolist() == np.float32(DECLARED).tolist()
    assert founding[path].grade == "identical"


@pytest.mark.parametrize("path", DROPS)
def test_the_product_is_not_rounded(founding, path):
    row = founding[path]
    assert np.float32(row.values).tolist() == np.float32(UNROUNDED).tolist()
    assert (row.grade, row.model) == ("divergent", "excess-precision")


def test_a_bfloat16_product_has_no_place_in_tensorflow_lite(founding):
    row = founding["tflite"]
    assert (row.outcome, row.stage) == ("error", "convert")


def test_a_server_executes_what_it_loaded_without_python(founding):
    assert "C API" in founding["serving"].evidence["executed"]
    assert founding["jax2tf-native.xla"].evidence["executed"].endswith("in a compiled tf.function")
    assert "hlo_sha256" in founding["jax2tf-native.xla"].evidence


GRADIENT = """\
about: Gradients through files.
op: dot_general
operands:
  lhs: {shape: [2, 3], dtype: float32, values: [[1, 2, 3], [4, 5, 6]]}
  rhs: {shape: [3, 2], dtype: float32, values: [[1, 0], [2, 1], [0, 3]]}
attributes: {contracting: [[1], [0]]}
transforms: [vjp]
cotangent: {values: [[1, 2], [3, 4]]}
paths: [eager, export, saved-model, saved-model.tape, serving, tflite, stablehlo, iree]
"""


def test_gradients_go_through_every_format(tmp_path, monkeypatch):
    """d lhs = ct @ rhs.T and d rhs = lhs.T @ ct, exact in small integers."""
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("[tool.parity]\n")
    Path("dot.yaml").write_text(GRADIENT)
    lhs, rhs = np.array([[1, 2, 3], [4, 5, 6]]), np.array([[1, 0], [2, 1], [0, 3]])
    cotangent = np.array([[1, 2], [3, 4]])
    want = {"vjp.lhs": cotangent @ rhs.T, "vjp.rhs": lhs.T @ cotangent}
    rows = parity.run("dot.yaml", cache=False).rows
    assert {row.path for row in rows if row.outcome == "ok"} == {row.path for row in rows}
    for row in rows:
        assert list(row.values) == want[row.output].ravel().tolist(), row.path


WAYS = """\
about: Every bit of every dtype goes through.
op: dot_general
operands:
  lhs: {shape: [1], dtype: %s, values: [%s]}
  rhs: {shape: [1], dtype: %s, values: [1]}
attributes: {contracting: [[0], [0]]}
paths: [eager, saved-model, serving, stablehlo, iree]
"""


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("bfloat16", "3.140625"),
        ("float16", "0.333251953125"),
        ("float32", "0.1"),
        ("float64", "0.1"),
        ("int8", "-7"),
        ("int64", "1099511627777"),
        ("complex64", "'1+2j'"),
    ],
)
def test_values_survive_the_way_through_a_file(tmp_path, monkeypatch, dtype, value):
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("[tool.parity]\n")
    Path("dot.yaml").write_text(WAYS % (dtype, value, dtype))
    rows = {row.path: row for row in parity.run("dot.yaml", cache=False).rows}
    assert {path: row.grade for path, row in rows.items()} == dict.fromkeys(rows, "identical")


def test_the_host_knows_which_options_a_path_takes():
    assert set(options()["onnx"]) == {"optimization", "providers"}
    assert "disabled" in options()["onnx"]["optimization"]
    assert options()["eager"] == {}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (
            "{path: onnx, settings: {optimization: most}}",
            "unknown optimization of onnx (got 'most'; allowed disabled, basic, extended, all)",
        ),
        ("{path: eager, settings: {speed: 1}}", "eager does not take it (got speed; allowed "),
        (
            "{path: export, polymorphic_shapes: {lsh: 'a'}}",
            "no such operand (got lsh; allowed lhs, rhs, cotangent)",
        ),
        (
            "{path: export, polymorphic_shapes: {lhs: 'a'}}",
            "another number of dimensions than lhs has (got 'a'; allowed 2 for shape [2, 3])",
        ),
    ],
)
def test_an_option_that_cannot_be_is_refused_where_it_stands(tmp_path, line, error):
    file = tmp_path / "dot.yaml"
    (tmp_path / "pyproject.toml").write_text("")
    file.write_text(GRADIENT.replace("paths: [eager, ", f"paths: [eager, {line}, "))
    with pytest.raises(parity.CaseFileError, match=r"dot.yaml:9:\d+: ") as caught:
        parity.load(file)
    assert error in str(caught.value)


def test_what_is_not_installed_is_said(monkeypatch):
    monkeypatch.setattr("parity.paths.iree.installed", lambda name: None)
    monkeypatch.setattr("parity.paths.onnx.installed", lambda name: None)
    assert get("iree").unsupported().startswith("iree-base-compiler is not installed")
    assert get("onnx").unsupported().startswith("onnxruntime is not installed")
