"""What a worker takes for a path, evidence and packing included, as a ratio to its bare calls.

Both sides run the same convolutions in a process of their own, imports and one convolution before
the clock apart; the shortest of several rounds in turns counts.
"""

import json
import pickle
import subprocess
import sys

import pytest

import parity

pytestmark = pytest.mark.benchmark

LIMIT = 1.15
PATHS = ("aot", "export", "jax2tf-native.graph", "jax2tf-native.xla", "saved-model", "stablehlo")


CASES = """
name: convolutions
about: float32 convolutions as models have them
op: conv_general_dilated
operands:
  lhs: {shape: [2, 16, 16, 4], dtype: float32, draw: normal}
  rhs: {shape: [3, 3, 4, 8], dtype: float32, draw: normal}
attributes: {window_strides: [1, 1], padding: SAME, dimension_numbers: [NHWC, HWIO, NHWC]}
sweep:
  attributes.window_strides: [[1, 1], [2, 2], [1, 2], [2, 1]]
  attributes.padding: [SAME, VALID, [[1, 1], [1, 1]]]
"""

COMMON = """
import json, pickle, sys, tempfile, time
import numpy as np
cases, path = pickle.load(open(sys.argv[1], "rb")), sys.argv[2]
def timed(one):
    one(*cases[0])
    begin = time.perf_counter()
    for case in cases[1:]:
        one(*case)
    print(json.dumps(time.perf_counter() - begin))
"""

OURS = (
    COMMON
    + """
from parity.paths import Exported
from parity.worker.process import Post, path_named
from parity.worker.protocol import pack
from parity.worker.read import Reader
from parity.worker.serve import Server
folder = tempfile.mkdtemp()
post = Post({"variables": {}, "stderr": f"{folder}/e", "state": f"{folder}/s", "folder": folder})
server, reader = Server(post), Reader(post)
named = path_named(path)
named.load()
if isinstance(named, Exported):
    named.prepare()
request = {"path": path, "options": {}, "memory": None}
def one(spec, attributes, arrays):
    inputs = {str(n): pack(array, folder) for n, array in enumerate(arrays)}
    server.case({"spec": spec, "inputs": inputs})
    answer = server.path(request)
    if isinstance(named, Exported):
        reader.operands({"inputs": {str(n): pack(a, folder) for n, a in enumerate(arrays)}})
        answer = reader.execute(request | {"artifact": answer["artifact"]})
    assert answer["failure"] is None, answer["failure"]
timed(one)
"""
)

BARE = (
    COMMON
    + """
import jax
from jax import export, lax
if path.startswith(("jax2tf", "saved")):
    import tensorflow as tf
    from jax.experimental import jax2tf
if path == "stablehlo":
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
def aot(f, arrays):
    arrays = [jax.numpy.asarray(a) for a in arrays]
    return [np.asarray(jax.jit(f).lower(*arrays).compile()(*arrays))]
def exported(f, arrays):
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
    made = export.export(jax.jit(f), platforms=["cpu"])(*shapes)
    with tempfile.NamedTemporaryFile() as file:
        file.write(made.serialize())
        file.flush()
        read = export.deserialize(bytearray(open(file.name, "rb").read()))
    return [np.asarray(jax.jit(read.call)(*map(jax.numpy.asarray, arrays)))]
def function(f, arrays, **how):
    specs = [tf.TensorSpec(a.shape, a.dtype, name=f"x{n}") for n, a in enumerate(arrays)]
    converted = jax2tf.convert(f, with_gradient=False)
    return tf.function(converted, input_signature=specs, autograph=False, **how)
def graph(f, arrays):
    called = function(f, arrays).get_concrete_function()
    return [called(*map(tf.constant, arrays)).numpy()]
def xla(f, arrays):
    called = function(f, arrays, jit_compile=True).get_concrete_function()
    return [called(*map(tf.constant, arrays)).numpy()]
def saved(f, arrays):
    module = tf.Module()
    module.function = function(lambda *xs: {"y0": f(*xs)}, arrays)
    with tempfile.TemporaryDirectory() as folder:
        signature = module.function.get_concrete_function()
        tf.saved_model.save(module, folder, signatures=signature)
        called = tf.saved_model.load(folder).signatures["serving_default"]
        given = {f"x{n}": tf.constant(a) for n, a in enumerate(arrays)}
        return [one.numpy() for one in called(**given).values()]
def interpreted(f, arrays):
    module = jax.jit(f).lower(*arrays).compiler_ir("stablehlo")
    with module.context:
        given = [ir.DenseElementsAttr.get(np.ascontiguousarray(a)) for a in arrays]
        return [np.array(ir.DenseElementsAttr(a)) for a in stablehlo.eval_module(module, given)]
how = {"aot": aot, "export": exported, "jax2tf-native.graph": graph, "jax2tf-native.xla": xla,
       "saved-model": saved, "stablehlo": interpreted}[path]
def one(spec, attributes, arrays):
    how(lambda lhs, rhs: lax.conv_general_dilated(lhs, rhs, **attributes), arrays)
timed(one)
"""
)


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """A file of specs, attributes and operands."""
    folder = tmp_path_factory.mktemp("cases")
    (folder / "case.yaml").write_text(CASES)
    found = [
        (case.program.to_wire(), dict(case.program.attributes), case.arrays())
        for case in parity.load(folder / "case.yaml").cases
    ]
    (folder / "cases.pickle").write_bytes(pickle.dumps(found))
    return folder / "cases.pickle"


def seconds(script, cases, path):
    command = [sys.executable, "-W", "ignore", "-c", script, str(cases), path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("path", PATHS)
def test_a_path_against_its_bare_calls(ratio, cases, path):
    rounds = 3
    pairs = [(seconds(OURS, cases, path), seconds(BARE, cases, path)) for _ in range(rounds)]
    ours, theirs = (min(times) for times in zip(*pairs, strict=True))
    ratio(f"{path} of 11 convolutions in a worker / bare calls", ours, theirs, LIMIT)
