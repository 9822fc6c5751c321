"""What is emitted shows a disagreement without parity."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import parity
from parity.compare.rows import compare_case
from parity.engine.workers import Workers
from parity.explain.literals import literal
from parity.explain.script import module, script

CASES = Path(__file__).parents[2] / "cases"

INTERPRET = """
import sys
import numpy as np
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
with make_ir_context():
    read = ir.Module.parse(open(sys.argv[1]).read())
    for one in stablehlo.eval_module(read, []):
        print(np.array(ir.DenseElementsAttr(one)).ravel().tolist())
"""


@pytest.fixture(scope="module")
def workers():
    with Workers() as running:
        yield running


def cases_named(file, *parts):
    return [c for c in parity.load(CASES / file).cases if all(p in c.id for p in parts)]


def seen(workers, case, path):
    execution = workers.execute(case, [case.baseline, path])
    return compare_case(case, execution.outcomes, execution.references), execution.references


def executed(text, folder, **environment):
    file = folder / "reproduce.py"
    file.write_text(text)
    return subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, cwd=folder, env=environment
    )


@pytest.mark.parametrize("path", ["jit", "jax2tf-native", "export", "saved-model"])
def test_the_founding_case(workers, tmp_path, monkeypatch, path):
    """jax-ml/jax#25873, the figures of the report's second stack."""
    (case,) = cases_named("conv_bf16.yaml", "bfloat16")
    rows, _ = seen(workers, case, path)
    made = script(workers, case, path, rows=rows)
    assert "parity" not in re.findall(r"^\s*(?:import|from) (\w+)", made.text, re.M)
    assert f"{path} out: [-1.3709509, -2.2795215]" in made.text
    result = executed(made.text, tmp_path)
    assert result.returncode == 1, result.stderr
    assert "[-1.3705847263336182, -2.2770800590515137]" in result.stdout
    assert "[-1.3709509372711182, -2.2795214653015137]" in result.stdout
    assert "2 of 2 elements differ, by up to 0.00244140625" in result.stdout
    if path == "jit":
        kept = executed(made.text, tmp_path, XLA_FLAGS="--xla_allow_excess_precision=false")
        assert kept.returncode == 0
        assert "they agree" in kept.stdout


SAMPLE = [
    ("excess_precision.yaml", ["roundings.dot"], "jit"),
    ("flax_dense_bf16.yaml", ["bfloat16", "transform=vjp"], "jit"),
    ("conv_steps.yaml", [], "jax2tf-native"),
    ("dot_preferred_transforms.yaml", ["transform=jvp"], "jit"),
    ("dot_mixed_dtypes.yaml", [], "jax2tf-nonnative"),
    ("conv_int_preferred_float.yaml", [], "jax2tf-nonnative"),
    ("dot_batch.yaml", [], "jax2tf-native.xla"),
    ("residual_cnn.yaml", [], "jit"),
]


@pytest.mark.parametrize(("file", "parts", "path"), SAMPLE)
def test_it_finds_the_same_elements(workers, tmp_path, file, parts, path):
    case = cases_named(file, *parts)[0]
    check(workers, case, path, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("path", ["jit", "aot", "jax2tf-native", "jax2tf-nonnative.graph"])
@pytest.mark.parametrize("file", sorted(p.name for p in CASES.glob("*.yaml")))
def test_it_finds_the_same_elements_everywhere(workers, tmp_path, file, path):
    case = parity.load(CASES / file).cases[-1]
    if case.baseline == path:
        pytest.skip("its baseline")
    check(workers, case, path, tmp_path)


def check(workers, case, path, folder):
    """Run the script of a path and count what differs."""
    rows, _ = seen(workers, case, path)
    own = [row for row in rows if row.path == path]
    base = [row for row in rows if row.path == case.baseline]
    made = script(workers, case, path, rows=rows)
    if any(row.outcome != "ok" for row in (*own, *base)):
        if made.missing:
            assert "cannot be traced" in made.missing
            return
        result = executed(made.text, folder)
        assert f"run_{re.sub(r'[^A-Za-z0-9]', '_', path)} raised" in result.stdout or any(
            row.outcome != "ok" for row in base
        )
        return
    if made.missing:
        assert "nnx" in made.missing or "intermediates" in made.missing
        return
    result = executed(made.text, folder)
    counts = re.findall(r"(\d+) of (\d+) elements differ", result.stdout)
    assert counts == [(str(row.differing), str(row.count)) for row in own], result.stderr[-2000:]


def test_the_module_gives_what_it_says(workers, tmp_path):
    (case,) = cases_named("conv_bf16.yaml", "bfloat16")
    rows, references = seen(workers, case, "jit")
    made = module(workers, case, references=references, rows=rows)
    file = tmp_path / "program.mlir"
    file.write_text(made.text)
    assert "// " in made.text
    assert "jit out: [-1.3709509, -2.2795215]" in made.text
    result = subprocess.run(
        [sys.executable, "-c", INTERPRET, str(file)], capture_output=True, text=True
    )
    got, expected = map(eval, result.stdout.splitlines())
    assert got == expected == [-1.3705847263336182, -2.2770800590515137]


@pytest.mark.parametrize(
    "dtype", ["bool", "int4", "uint8", "float8_e4m3fn", "bfloat16", "complex64"]
)
def test_the_module_of_other_dtypes(workers, tmp_path, dtype):
    text = f"""
name: case
about: a dot
op: dot_general
operands:
  lhs: {{shape: [2, 3], dtype: {dtype}, draw: integers, low: 0, high: 1}}
  rhs: {{shape: [3, 2], dtype: {dtype}, draw: integers, low: 0, high: 1}}
attributes: {{dimension_numbers: [[[1], [0]], [[], []]], preferred_element_type: float32}}
"""
    if dtype in ("bool", "complex64"):
        text = text.replace(", preferred_element_type: float32", "")
    file = tmp_path / "case.yaml"
    file.write_text(text)
    (case,) = parity.load(file).cases
    execution = workers.execute(case, ["eager"])
    made = module(workers, case, references=execution.references)
    (tmp_path / "program.mlir").write_text(made.text)
    compiled = subprocess.run(
        [sys.executable, "-c", PARSE, str(tmp_path / "program.mlir")],
        capture_output=True,
        text=True,
    )
    assert compiled.returncode == 0, compiled.stderr[-2000:] + made.missing
    assert compiled.stdout.strip() == "1"


PARSE = """
import sys
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
with make_ir_context():
    read = ir.Module.parse(open(sys.argv[1]).read())
    assert read.operation.verify()
    print(sum(op.name.value == "main" for op in read.body.operations))
"""


@pytest.mark.parametrize(
    "array",
    [
        np.array([0.1, -0.0, 5e-324]),
        np.array([np.nan, np.inf, -np.inf], np.float32),
        np.array([[True], [False]]),
        np.zeros((0, 3), np.float16),
        np.array(7, np.int64),
        np.array([2**64 - 1], np.uint64),
        np.array([1 - 0.0j, complex(-0.0, np.nan)], np.complex64),
        np.linspace(0, 1, 1000, dtype=np.float32).reshape(10, 100),
    ],
    ids=str,
)
@pytest.mark.parametrize("narrow", [None, "bfloat16", "float8_e5m2", "int4"])
def test_literals_are_exact(array, narrow):
    import base64
    import zlib

    import ml_dtypes

    if narrow is not None:
        if array.dtype.kind in "c" or not np.isfinite(array.astype(float)).all():
            return
        array = array.astype(getattr(ml_dtypes, narrow))
    again = eval(literal(array), {"np": np, "base64": base64, "zlib": zlib})
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tobytes() == array.tobytes()


def test_why_there_is_no_script(workers):
    (case,) = cases_named("conv_bf16.yaml", "bfloat16")
    assert "serving cannot be said" in script(workers, case, "serving").missing
