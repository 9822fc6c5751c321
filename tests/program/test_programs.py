"""Whole programs under each transform; the values are worked out by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from parity.program.build import build
from parity.program.outputs import ProgramError
from parity.program.spec import OperandSpec, ProgramSpec

TEXT = """\
import jax.numpy as jnp
def f(x, n, y):
    return {"loss": jnp.sum(x * x * y), "rows": (x * y, n + 1)}
def scalar(x, n, y): return jnp.sum(x * y), n
def two(x, n, y): return jnp.sum(x), jnp.sum(y)
def single(x, n, y): return x * y
def whole(x, n, y): return n
"""
OPERANDS = {"x": ((3,), "float32"), "n": ((3,), "int32"), "y": ((3,), "float32")}
DOT = {"dot": {"dimension_numbers": (((1,), (0,)), ((), ()))}, "with": "w"}
X, N, Y = np.float32([1, 2, 3]), np.int32([7, 8, 9]), np.float32([4, 5, 6])


def run(spec, *arrays):
    program = build(spec)
    outputs = program.function(*map(jnp.asarray, arrays))
    found = dict(zip(program.outputs, map(np.asarray, outputs), strict=True))
    traced = build(spec)  # names without a call
    assert traced.outputs == tuple(found)
    assert [aval.dtype for aval in traced.jaxpr.out_avals] == [out.dtype for out in found.values()]
    return found


def check(found, **wanted):
    assert list(found) == [name.replace("__", ".") for name in wanted]
    for got, want in zip(found.values(), wanted.values(), strict=True):
        np.testing.assert_array_equal(got, want)


def test_forward(spec):
    found = run(spec(TEXT, "plain:f", OPERANDS), X, N, Y)
    check(found, loss=4 + 20 + 54, rows__0=[4, 10, 18], rows__1=[8, 9, 10])


def test_vjp_of_named_outputs(spec):
    """d(2 loss + c·(x y)) = 4 x y + c y for x, 2 x x + c x for y."""
    extra = (
        OperandSpec("cotangent.loss", (), "float32"),
        OperandSpec("cotangent.rows.0", (3,), "float32"),
    )
    made = spec(TEXT, "plain:f", OPERANDS, transform="vjp", extra=extra)
    found = run(made, X, N, Y, np.float32(2), np.float32([1, 0, -1]))
    check(found, vjp__x=[20, 40, 66], vjp__y=[3, 8, 15])


def test_vjp_of_one_output_leaves_the_others_alone(spec):
    extra = (OperandSpec("cotangent.loss", (), "float32"),)
    made = spec(TEXT, "plain:f", OPERANDS, transform="vjp", extra=extra, gradients=("y",))
    check(run(made, X, N, Y, np.float32(1)), vjp__y=[1, 4, 9])


def test_vjp_of_a_scalar_needs_no_cotangent(spec):
    made = spec(TEXT, "plain:scalar", OPERANDS, transform="vjp")
    check(run(made, X, N, Y), vjp__x=[4, 5, 6], vjp__y=[1, 2, 3])


def test_jvp_gives_the_floating_tangents(spec):
    """d loss = 2 x y dx + x x dy with dx = (1, 0, 0) and dy = (0, 1, 0)."""
    extra = OperandSpec("tangent.x", (3,), "float32"), OperandSpec("tangent.y", (3,), "float32")
    made = spec(TEXT, "plain:f", OPERANDS, transform="jvp", extra=extra)
    found = run(made, X, N, Y, np.float32([1, 0, 0]), np.float32([0, 1, 0]))
    check(found, jvp__loss=8 + 4, jvp__rows__0=[4, 2, 0])


def test_vmap_over_some_operands(spec):
    made = spec(TEXT, "plain:f", OPERANDS, transform="vmap", batch=2, batched=("x",))
    found = run(made, np.stack([X, -X]), N, Y)
    rows = [[4, 10, 18], [-4, -10, -18]]
    check(found, vmap__loss=[78, 78], vmap__rows__0=rows, vmap__rows__1=[N + 1, N + 1])


def test_casts_are_of_floating_arrays_only(spec):
    made = spec(TEXT, "plain:f", OPERANDS, compute_dtype="bfloat16", output_dtype="float16")
    dtypes = {name: out.dtype.name for name, out in run(made, X, N, Y).items()}
    assert dtypes == {"loss": "float16", "rows.0": "float16", "rows.1": "int32"}


def test_a_residual_is_added_to_the_only_output(spec):
    check(run(spec(TEXT, "plain:single", OPERANDS, residual="y"), X, N, Y), out=[8, 15, 24])
    several = build(spec(TEXT, "plain:f", OPERANDS, residual="y"))
    with pytest.raises(ProgramError, match=r"one output \(got loss, rows.0, rows.1\)"):
        several.function(X, N, Y)


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        (
            "f",
            {"transform": "vjp"},
            "vjp needs a cotangent of one or more outputs (the floating ones are loss float32[], "
            "rows.0 float32[3]); write cotangents: {NAME: {shape: […], dtype: …}}",
        ),
        (
            "two",
            {"transform": "vjp"},
            "vjp needs a cotangent of one or more outputs (the floating ones are out.0 float32[], "
            "out.1 float32[]); write cotangents: {NAME: {shape: […], dtype: …}}",
        ),
        (
            "f",
            {"transform": "vjp", "extra": (OperandSpec("cotangent", (3,), "float32"),)},
            "a cotangent is given for out (the outputs are loss, rows.0, rows.1); write "
            "cotangents: {loss: …, rows.0: …}",
        ),
        (
            "single",
            {"transform": "vjp", "extra": (OperandSpec("cotangent", (2,), "float16"),)},
            "the cotangent of out is not like the output (got float16[2]; allowed float32[3])",
        ),
        (
            "whole",
            {
                "transform": "jvp",
                "extra": tuple(OperandSpec(f"tangent.{n}", (3,), "float32") for n in "xy"),
            },
            "jvp needs a floating output",
        ),
    ],
)
def test_what_cannot_be_differentiated(spec, name, fields, message):
    program = build(spec(TEXT, f"plain:{name}", OPERANDS, **fields))
    with pytest.raises(ProgramError) as caught:
        _ = program.jaxpr
    assert str(caught.value) == message


def test_a_program_that_only_runs_eagerly_has_names_once_it_ran(spec):
    text = "def f(x): return (x, -x) if float(x.sum()) > 0 else x\n"
    program = build(spec(text, "plain:f", {"x": ((2,), "float32")}))
    assert len(program.function(jnp.float32([1, 2]))) == 2
    assert program.outputs == ("out.0", "out.1")


class TestSteps:
    """y = ((x w) - b) * b through casts, residuals and names; every number is exact."""

    OPERANDS = (
        OperandSpec("x", (1, 2), "float32"),
        OperandSpec("w", (2, 2), "float32"),
        OperandSpec("b", (2,), "float16"),
    )

    def run(self, *steps):
        attributes = {"operands": ("x", "w", "b"), "steps": steps}
        x, w, b = np.float32([[1, 2]]), np.float32([[1, 0], [3, 1]]), np.float16([2, 4])
        return run(ProgramSpec("steps", self.OPERANDS, attributes), x, w, b)["out"]

    def test_a_chain(self):
        out = self.run(DOT, {"sub": "b"}, {"mul": "b"})
        np.testing.assert_array_equal(out, [[10, -8]])
        assert out.dtype == np.float32

    def test_names_come_back(self):
        steps = {**DOT, "as": "y"}, {"cast": "int8", "from": "b", "as": "c"}
        out = self.run(*steps, {"add": "y", "from": "x"}, {"mul": "c"})
        np.testing.assert_array_equal(out, [[16, 16]])

    def test_a_cast_rounds(self):
        np.testing.assert_array_equal(
            self.run({"cast": "float32", "from": "x"}, {"mul": "x"}, {"cast": "bfloat16"}),
            np.float32([[1, 4]]),
        )
        third = self.run({"cast": "float8_e4m3fn", "from": "b"})
        assert third.dtype.name == "float8_e4m3fn"

    def test_activations(self):
        out = self.run({"activation": "relu"}, {"mul": "x"})
        np.testing.assert_array_equal(out, [[1, 4]])
        out = self.run({"activation": "softmax"})
        np.testing.assert_allclose(out, [[1 / (1 + np.e), np.e / (1 + np.e)]], rtol=1e-6)

    def test_convolution(self):
        lhs, rhs = OperandSpec("l", (1, 3, 1), "float32"), OperandSpec("r", (2, 1, 1), "float32")
        conv = {
            "window_strides": (1,),
            "padding": "VALID",
            "dimension_numbers": ("NWC", "WIO", "NWC"),
        }
        steps = ({"conv": conv, "with": "r"},)
        spec = ProgramSpec("steps", (lhs, rhs), {"operands": ("l", "r"), "steps": steps})
        out = run(
            spec, np.float32([1, 2, 3]).reshape(1, 3, 1), np.float32([10, 1]).reshape(2, 1, 1)
        )
        np.testing.assert_array_equal(out["out"].reshape(-1), [12, 23])
