"""Modules of linen and nnx: their parameters, gradients and intermediates."""

import hashlib
import json
from fractions import Fraction

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from numpy.random import PCG64

from parity.dtypes import dtype
from parity.program.build import build
from parity.program.outputs import ProgramError
from parity.program.parameters import draw
from parity.program.spec import OperandSpec, ProgramSpec

X = np.float32([[1, 2, -1], [0, 3, 4]])
INPUTS = (OperandSpec("inputs", (2, 3), "float32"),)
DENSE = {"module": "flax.linen:Dense", "kwargs": {"features": 2}}
LINEAR = {"module": "flax.nnx:Linear", "kwargs": {"in_features": 3, "out_features": 2}}
NETS = """\
from flax import linen, nnx
class Linen(linen.Module):
    @linen.compact
    def __call__(self, x, *, sign=1):
        h = linen.Dense(2)(x)
        self.sow("intermediates", "h", h)
        self.sow("intermediates", "twice", h)
        self.sow("intermediates", "twice", {"k": 2 * h})
        return sign * linen.Dense(2, name="last")(h)
    def encode(self, x):
        return 2 * x
class Norm(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.BatchNorm(use_running_average=True)(x)
class Nnx(nnx.Module):
    def __init__(self, width, rngs):
        self.dense = nnx.Linear(3, width, rngs=rngs)
        self.norm = nnx.BatchNorm(width, use_running_average=True, rngs=rngs)
        self.drop = nnx.Dropout(0.5, deterministic=True, rngs=rngs)
    def __call__(self, x):
        return self.drop(self.norm(self.dense(x)))
def chain(depth): return linen.Sequential([linen.Dense(2) for _ in range(depth)])
def no_module(): return 3
"""


def run(program, *arrays):
    outputs = program.function(*map(jnp.asarray, program.arrays(arrays)))
    return dict(zip(program.outputs, map(np.asarray, outputs), strict=True))


@pytest.fixture
def net(spec):
    def make(name, *, kwargs=None, **attributes):
        fields = {f: attributes.pop(f) for f in ("transform", "extra") if f in attributes}
        known = {"kwargs": kwargs or {}, **attributes}
        operands = {"x": ((2, 3), "float32")}
        return spec(NETS, f"nets:{name}", operands, op="flax", attributes=known, **fields)

    return make


def drawn_by_hand(name, shape, seed):
    """Irwin-Hall from PCG64's words in exact arithmetic, rounded to float64 once."""
    label = json.dumps([name, shape, "parameters", seed])
    bits = PCG64(int.from_bytes(hashlib.sha256(label.encode()).digest(), "little"))
    count = int(np.prod(shape))
    words = [[int(w) >> 11 for w in bits.random_raw(count)] for _ in range(12)]
    normal = [float(Fraction(sum(column), 2**53) - 6) for column in zip(*words, strict=True)]
    return np.reshape(normal, shape)


class TestParameters:
    def test_a_kernel(self):
        got = draw("params.kernel", (3, 2), dtype("float32"), 5)
        want = drawn_by_hand("params.kernel", [3, 2], 5) / np.sqrt(3.0)
        assert got.tobytes() == want.astype(np.float32).tobytes()

    def test_a_vector(self):
        bias = draw("params.bias", (4,), dtype("bfloat16"), 0)
        exact = drawn_by_hand("params.bias", [4], 0) / 8
        np.testing.assert_array_equal(bias, exact.astype(np.float32).astype(ml_dtypes.bfloat16))
        scale = draw("params.scale", (4,), dtype("float64"), 0)
        np.testing.assert_array_equal(scale, 1 + drawn_by_hand("params.scale", [4], 0) / 8)

    def test_name_and_seed_matter(self):
        drawn = {
            draw(name, (3, 2), dtype("float32"), seed).tobytes() for name in "ab" for seed in (0, 1)
        }
        assert len(drawn) == 4

    @pytest.mark.parametrize("attributes", [DENSE, LINEAR])
    def test_linen_and_nnx_have_the_same(self, attributes):
        program = build(ProgramSpec("flax", INPUTS, attributes))
        kernel, bias = program.drawn["params.kernel"], program.drawn["params.bias"]
        assert kernel.tobytes() == draw("params.kernel", (3, 2), dtype("float32"), 0).tobytes()
        np.testing.assert_allclose(run(program, X)["out"], X @ kernel + bias, rtol=1e-6)

    @pytest.mark.parametrize("attributes", [DENSE, LINEAR])
    def test_given_ones_are_used(self, attributes):
        given = (
            OperandSpec("params.kernel", (3, 2), "float32"),
            OperandSpec("params.bias", (2,), "float32"),
        )
        program = build(ProgramSpec("flax", INPUTS, attributes, parameters=given))
        assert not program.drawn
        kernel = np.float32([[1, 2], [3, 4], [5, 6]])
        out = run(program, X, kernel, np.float32([1, -1]))["out"]
        np.testing.assert_array_equal(out, [[3, 3], [30, 35]])

    def test_given_ones_are_the_modules(self):
        given = OperandSpec("params.kernel", (3, 2), "float16"), OperandSpec("w", (2,), "float32")
        with pytest.raises(ProgramError) as caught:
            build(ProgramSpec("flax", INPUTS, DENSE, parameters=given))
        assert str(caught.value) == (
            "the file's parameters are not those of the module (params.bias: none in the file, "
            "float32[2] in the module; params.kernel: float16[3,2] in the file, float32[3,2] in "
            "the module; w: float32[2] in the file, none in the module)"
        )

    def test_names_without_their_collection_are_one_mistake(self):
        given = OperandSpec("kernel", (3, 2), "float32"), OperandSpec("bias", (2,), "float32")
        with pytest.raises(ProgramError) as caught:
            build(ProgramSpec("flax", INPUTS, DENSE, parameters=given))
        assert str(caught.value) == (
            "the file's names lack 'params.' in front (got bias; allowed params.bias)"
        )

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("chain", "nets:chain takes no 'dept' (it takes depth); did you mean 'depth'?"),
            ("Nnx", "nets:Nnx takes no 'dept' (it takes width)"),
            ("Norm", "nets:Norm takes no 'dept' (it takes name)"),
        ],
    )
    def test_a_misspelt_keyword(self, net, name, message):
        with pytest.raises(ProgramError) as caught:
            build(net(name, kwargs={"dept": 2}))
        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("name", "kwargs", "mean", "var"),
        [
            ("Norm", {}, "batch_stats.BatchNorm_0.mean", "batch_stats.BatchNorm_0.var"),
            ("Nnx", {"width": 2}, "state.norm.mean", "state.norm.var"),
        ],
    )
    def test_other_variables_begin_as_the_module_says(self, net, name, kwargs, mean, var):
        drawn = build(net(name, kwargs=kwargs)).drawn
        assert not drawn[mean].any()
        assert (drawn[var] == 1).all()
        assert not any("rngs" in one for one in drawn)


class TestGradients:
    """Of y = x k + b: x'c for k, the sum of c for b, c k' for x; all exact for whole numbers."""

    COTANGENT = OperandSpec("cotangent", (2, 2), "float32")
    C = np.float32([[1, -2], [3, 0]])

    @pytest.mark.parametrize("attributes", [DENSE, LINEAR])
    def test_vjp(self, attributes):
        spec = ProgramSpec(
            "flax",
            INPUTS,
            attributes,
            transform="vjp",
            extra=(self.COTANGENT,),
            gradients=("inputs", "parameters"),
        )
        program = build(spec)
        found = run(program, X, self.C)
        assert set(found) == {"vjp.inputs", "vjp.params.kernel", "vjp.params.bias"}
        np.testing.assert_array_equal(found["vjp.params.kernel"], X.T @ self.C)
        np.testing.assert_array_equal(found["vjp.params.bias"], [4, -2])
        kernel = program.drawn["params.kernel"]
        np.testing.assert_allclose(found["vjp.inputs"], self.C @ kernel.T, rtol=1e-6)

    def test_jvp_has_tangents_for_parameters(self):
        tangent = OperandSpec("tangent.inputs", (2, 3), "float32")
        spec = ProgramSpec(
            "flax",
            INPUTS,
            DENSE,
            transform="jvp",
            extra=(tangent,),
            gradients=("inputs", "parameters"),
        )
        program = build(spec)
        d = program.drawn
        assert [one.name for one in program.inputs] == [
            "inputs",
            "tangent.inputs",
            "params.bias",
            "params.kernel",
            "tangent.params.bias",
            "tangent.params.kernel",
        ]
        want = X @ d["tangent.params.kernel"] + d["tangent.params.bias"]
        found = run(program, X, np.zeros((2, 3), np.float32))
        np.testing.assert_allclose(found["jvp.out"], want, rtol=1e-5, atol=1e-6)

    def test_parameters_are_constant_unless_asked_for(self):
        spec = ProgramSpec("flax", INPUTS, DENSE, transform="vjp", extra=(self.COTANGENT,))
        assert list(run(build(spec), X, self.C)) == ["vjp.inputs"]

    def test_vmap_does_not_map_over_parameters(self):
        program = build(ProgramSpec("flax", INPUTS, DENSE, transform="vmap", batch=2))
        both = run(program, np.stack([X, -X]))["vmap.out"]
        bias = program.drawn["params.bias"]
        np.testing.assert_allclose(both[0] - bias, bias - both[1], rtol=1e-5, atol=1e-6)


class TestModules:
    def test_intermediates(self, net):
        found = run(build(net("Linen", intermediates=True)), X)
        h = found["intermediate.h"]
        assert set(found) == {
            "out",
            "intermediate.Dense_0.__call__",
            "intermediate.last.__call__",
            "intermediate.h",
            "intermediate.twice.0",
            "intermediate.twice.1.k",
        }
        np.testing.assert_array_equal(found["intermediate.twice.1.k"], 2 * h)
        np.testing.assert_array_equal(found["intermediate.Dense_0.__call__"], h)
        np.testing.assert_array_equal(found["intermediate.last.__call__"], found["out"])

    def test_chosen_intermediates(self, net):
        found = run(build(net("Linen", intermediates=("tw*.0", "h"))), X)
        assert set(found) == {"out", "intermediate.h", "intermediate.twice.0"}
        with pytest.raises(ProgramError, match=r"no intermediate matches 'x' \(there are: Dense_0"):
            _ = build(net("Linen", intermediates=("x",))).jaxpr

    def test_arguments_and_method(self, net):
        plain = run(build(net("Linen")), X)["out"]
        turned = run(build(net("Linen", arguments={"sign": -1})), X)["out"]
        np.testing.assert_array_equal(turned, -plain)
        np.testing.assert_array_equal(run(build(net("Linen", method="encode")), X)["out"], 2 * X)

    def test_a_function_may_make_the_module(self, net):
        drawn = build(net("chain", kwargs={"depth": 2})).drawn
        assert {name for name in drawn if name.endswith("kernel")} == {
            "params.layers_0.kernel",
            "params.layers_1.kernel",
        }

    def test_what_is_no_module(self, net):
        with pytest.raises(ProgramError) as caught:
            build(net("no_module"))
        message = "nets:no_module makes no module of linen or nnx (got int)"
        assert str(caught.value) == message
