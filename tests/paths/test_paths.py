"""Each path runs what it is named after, and says so."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from jax import export as jax_export

from parity import paths
from parity.errors import Unsupported
from parity.program.build import Program, build
from parity.program.spec import OperandSpec, ProgramSpec
from parity.worker.evidence import canonical_stablehlo

BUILT_IN = ("eager", "jit", "jax2tf-native", "jax2tf-nonnative")
SPEC = ProgramSpec(
    "dot_general",
    (OperandSpec("lhs", (2, 2), "float32"), OperandSpec("rhs", (2, 2), "float32")),
    {"dimension_numbers": (((1,), (0,)), ((), ()))},
)
INPUTS = (np.array([[1, 2], [3, 4]], np.float32), np.array([[5, 6], [7, 8]], np.float32))


def run(name):
    path = paths.get(name)
    if path.unsupported() is not None:
        pytest.skip(path.unsupported())
    path.load()
    probe = paths.Probe()
    return path.run(build(SPEC), INPUTS, probe), probe


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.filterwarnings("ignore:jax2tf.convert with native_serialization=False")
def test_a_path_computes_the_program(name):
    outputs, probe = run(name)
    assert [out.tolist() for out in outputs] == [[[19, 22], [43, 50]]]
    assert "run" in probe.timings


@pytest.mark.filterwarnings("ignore:jax2tf.convert with native_serialization=False")
def test_the_evidence_tells_the_paths_apart():
    executed = {name: run(name)[1].evidence for name in BUILT_IN}
    assert executed["eager"] == {"executed": "op by op on concrete arrays"}
    assert executed["jit"]["executed"] == "one XLA computation"
    assert set(executed["jit"]) == {"executed", "stablehlo_sha256", "hlo_sha256"}
    assert executed["jax2tf-native"]["executed"] == "XlaCallModule"
    assert "XlaDotV2" in executed["jax2tf-nonnative"]["executed"]
    assert "XlaCallModule" not in executed["jax2tf-nonnative"]["executed"]


@pytest.mark.filterwarnings("ignore:jax2tf.convert with native_serialization=False")
@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("jit", "stablehlo", "stablehlo.dot_general"),
        ("jit", "hlo", "f32[2,2]"),
        ("jax2tf-native", "stablehlo", "stablehlo.dot_general"),
        ("jax2tf-nonnative", "graph", "XlaDotV2"),
    ],
)
def test_what_was_compiled_can_be_read(name, kind, said):
    _, probe = run(name)
    text = probe.programs[probe.evidence[f"{kind}_sha256"]]
    assert said in text
    assert hashlib.sha256(text.encode()).hexdigest() == probe.evidence[f"{kind}_sha256"]


def test_a_native_result_under_the_nonnative_label_is_refused(monkeypatch):
    """What JAX 0.7.2 and later do: `native_serialization=False` is accepted and ignored."""
    from jax.experimental import jax2tf

    convert = jax2tf.convert
    monkeypatch.setattr(
        jax2tf, "convert", lambda f, **kwargs: convert(f, **kwargs | {"native_serialization": True})
    )
    with pytest.raises(paths.PathProofError, match="XlaCallModule is the native path"):
        run("jax2tf-nonnative")


@pytest.mark.filterwarnings("ignore:jax2tf.convert with native_serialization=False")
@pytest.mark.filterwarnings("ignore:jax2tf.convert with enable_xla=False")
def test_without_xla_no_operation_is_one_of_xlas(monkeypatch):
    from jax.experimental import jax2tf

    (out,), probe = run("jax2tf-nonnative.no-xla")
    assert out.tolist() == [[19, 22], [43, 50]]
    assert probe.evidence["executed"] == "MatMul"
    convert = jax2tf.convert
    monkeypatch.setattr(
        jax2tf, "convert", lambda f, **kwargs: convert(f, **kwargs | {"enable_xla": True})
    )
    with pytest.raises(paths.PathProofError, match=r"no-xla executed XlaDotV2"):
        run("jax2tf-nonnative.no-xla")


@pytest.mark.filterwarnings("ignore:jax2tf.convert with native_serialization=False")
def test_a_nonnative_result_under_the_native_label_is_refused(monkeypatch):
    from jax.experimental import jax2tf

    convert = jax2tf.convert
    monkeypatch.setattr(
        jax2tf,
        "convert",
        lambda f, **kwargs: convert(f, **kwargs | {"native_serialization": False}),
    )
    with pytest.raises(paths.PathProofError, match="XlaCallModule is missing"):
        run("jax2tf-native")


def test_jit_that_is_disabled_is_refused():
    import jax

    with jax.disable_jit(), pytest.raises(paths.PathProofError, match="jit is disabled"):
        run("jit")


def test_eager_that_is_traced_is_refused():
    import jax

    program, path = build(SPEC), paths.get("eager")
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda *inputs: path.run(program, inputs, paths.Probe()))(*INPUTS)


@pytest.mark.parametrize(
    ("version", "reason"),
    [("0.4.38", None), ("0.7.1", None), ("0.7.2", "removed in JAX 0.7.2"),
     ("0.10.2", "removed in JAX 0.7.2")],
)  # fmt: skip
def test_nonnative_is_unsupported_from_the_version_that_removed_it(monkeypatch, version, reason):
    from parity.paths import jax2tf

    monkeypatch.setattr(jax2tf, "version", lambda package: version)
    assert paths.get("jax2tf-nonnative").unsupported() == reason


def test_naming_paths_imports_neither_jax_nor_tensorflow():
    program = (
        "import sys; from parity import paths; print(*paths.names());"
        "assert not {'jax', 'tensorflow'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert set(BUILT_IN) <= set(done.stdout.split())


@pytest.mark.parametrize("name", [name for name in paths.names() if name.startswith("jax2tf")])
def test_a_program_over_several_devices_is_not_given_to_tensorflow(name):
    import jax
    from jax.sharding import AbstractMesh, PartitionSpec

    mesh = AbstractMesh((4,), ("d",))
    split = PartitionSpec("d")
    doubled = jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=split, out_specs=split)
    x = OperandSpec("x", (8,), "float32")
    spec = ProgramSpec("callable", (x,), devices=4)
    program = Program(spec, lambda x: (doubled(x),), ["out"])
    with pytest.raises(Unsupported, match="TensorFlow runs a program on one device"):
        paths.get(name).run(program, [np.ones(8, np.float32)], paths.Probe())


def test_an_artifact_is_executed_by_a_process_that_never_traced_the_program(tmp_path):
    """The reader is started without JAX; what it computes is what the file says."""
    export = paths.get("export")
    probe = paths.Probe()
    export.export(build(SPEC), tmp_path, probe)
    code = (
        "import pathlib, sys, numpy as np; from parity import paths\n"
        "path, probe = paths.get('export'), paths.Probe()\n"
        "inputs = np.float32([[1, 2], [3, 4]]), np.float32([[5, 6], [7, 8]])\n"
        "outputs = path.execute(pathlib.Path(sys.argv[1]), inputs, probe)\n"
        "print([out.tolist() for out in outputs], 'parity.program.build' in sys.modules)\n"
        "print(probe.evidence['stablehlo_sha256'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    (file,) = tmp_path.iterdir()
    read = jax_export.deserialize(bytearray(file.read_bytes()))
    text = canonical_stablehlo(read.mlir_module())
    assert done.stdout.splitlines() == [
        "[[[19.0, 22.0], [43.0, 50.0]]] False",
        hashlib.sha256(text.encode()).hexdigest(),
    ]
