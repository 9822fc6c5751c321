"""Intervals through calls, gradients, tangents and batches."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from parity.dtypes import DTYPES
from parity.program.build import build
from parity.program.spec import OperandSpec, ProgramSpec
from parity.reference import honest
from parity.reference.evaluate import evaluate
from parity.reference.interpreter import Interpreter
from parity.reference.policies import F64, STRICT
from parity.reference.value import Value
from parity.reference.wide import widen

F32 = np.float32


def layer(x, w):
    """Rounded sums, an undecided choice, an elementary function."""
    y = jnp.tanh(x @ w)
    return jnp.where(y > 0, y * 3, y)


@jax.custom_jvp
def with_jvp(x, w):
    return layer(x, w)


@jax.custom_vjp
def with_vjp(x, w):
    return layer(x, w)


with_jvp.defjvp(lambda primals, tangents: (layer(*primals), layer(*tangents)))
with_vjp.defvjp(lambda x, w: (layer(x, w), None), lambda residual, g: (g, g))

CALLS = {
    "jit": jax.jit(layer),
    "nested jit": jax.jit(lambda x, w: jax.jit(layer)(x, w)),
    "remat": jax.checkpoint(layer),
    "custom_jvp": with_jvp,
    "custom_vjp": with_vjp,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("policy", [STRICT, F64], ids=lambda p: p.name)
def test_a_call_changes_nothing(enclosed, name, policy):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 64))
    x[1] = np.concatenate([x[1][:32], -x[1][:32]]) * 1e3  # cancels: the choice is undecided
    w = np.ones((64, 3))
    plain, called = (
        enclosed(function, Value.exactly(widen(x.astype(F32))), Value.exactly(w), policy=policy)
        for function in (layer, CALLS[name])
    )
    assert not plain.exact
    assert plain.undecided.any()
    assert not plain.undecided.all()
    for part in ("point", "lo", "hi", "undecided"):
        assert np.array_equal(getattr(plain, part), getattr(called, part))


def test_licences_pass_into_a_call(interpret):
    """softmax-like: a jitted function inside divides by a constant that is an argument of it."""
    scaled = jax.jit(lambda x, c: x / c)
    found = interpret(lambda x: scaled(x, np.float32(3)), np.arange(1, 9, dtype=F32))
    assert set(found.licensed) == {"reciprocal"}


CONV = {
    "window_strides": (2, 1),
    "padding": ((1, 0), (0, 2)),
    "lhs_dilation": (1, 2),
    "rhs_dilation": (2, 1),
    "feature_group_count": 2,
    "dimension_numbers": ("NHWC", "HWIO", "NHWC"),
}
OPS = {
    "conv_general_dilated": (CONV, [(2, 7, 6, 4), (3, 2, 2, 6)]),
    "dot_general": (
        {"dimension_numbers": (((2,), (1,)), ((0,), (0,)))}, [(2, 5, 33), (2, 33, 4)],
    ),
    "einsum": ({"subscripts": "bij,bkj->ibk"}, [(2, 5, 33), (2, 4, 33)]),
}  # fmt: skip


def drawn(rng, shape, dtype):
    return rng.normal(size=shape).astype(DTYPES[dtype].numpy())


def made(op, transform, dtype, rng):
    """A program and its operands."""
    attributes, shapes = OPS[op]
    operands = tuple(
        OperandSpec(name, shape, dtype) for name, shape in zip(("lhs", "rhs"), shapes, strict=True)
    )
    extra, batch = (), None
    if transform == "jvp":
        extra = tuple(OperandSpec(f"tangent.{o.name}", o.shape, dtype) for o in operands)
    elif transform == "vmap":
        batch = 3
    elif transform == "vjp":
        forward = build(ProgramSpec(op, operands, attributes))
        shape = forward.jaxpr.out_avals[0].shape
        extra = (OperandSpec("cotangent", shape, dtype),)
    spec = ProgramSpec(op, operands, attributes, transform=transform, extra=extra, batch=batch)
    return build(spec), tuple(drawn(rng, i.shape, i.dtype) for i in spec.inputs())


def inside(enclosure, got):
    got = np.asarray(got).astype(np.float64)
    low, high = (np.asarray(end).astype(np.float64) for end in (enclosure.lo, enclosure.hi))
    return bool(((low <= got) & (got <= high)).all())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("transform", ["forward", "vjp", "jvp", "vmap"])
@pytest.mark.parametrize("op", OPS)
def test_every_order_of_a_transformed_op_is_inside(op, transform, dtype):
    rng = np.random.default_rng(4)
    program, inputs = made(op, transform, dtype, rng)
    found = evaluate(program, inputs)
    produced = [program.function(*map(jnp.asarray, inputs))]
    for order in honest.ORDERS:
        interpreter = Interpreter(STRICT.adding(order))
        outputs = interpreter.run(program.jaxpr, [Value.exactly(widen(x)) for x in inputs])
        produced.append([value.point for value in outputs])
    if dtype == "float32":  # in bfloat16 a compiler drops roundings
        produced.append(jax.jit(program.function)(*inputs))
    assert set(found.honest) == set(program.outputs)
    for outputs in produced:
        for name, got in zip(program.outputs, outputs, strict=True):
            assert inside(found.strict[name], got)
            assert inside(found.f64[name], got)


def test_vjp_of_bfloat16_operands_seen_as_float64_is_held_by_the_accuracy_bound():
    """What is computed in float64, without any rounding, is the ideal itself."""
    program, inputs = made("dot_general", "vjp", "bfloat16", np.random.default_rng(6))
    found = evaluate(program, inputs)
    lhs, rhs, cotangent = (x.astype(np.float64) for x in inputs)
    assert np.allclose(found.f64["vjp.lhs"].point, cotangent @ rhs.swapaxes(1, 2), rtol=1e-12)
    assert np.allclose(found.f64["vjp.rhs"].point, lhs.swapaxes(1, 2) @ cotangent, rtol=1e-12)


def test_operands_that_jax_narrows_are_in_the_accuracy_bound(interpret):
    """With x64 off JAX takes float64 as float32: the ideal does not, its bound allows it."""
    x = np.array([1 + 2.0**-25, 0.3])
    found = interpret(lambda x: x - np.float32(1), x)
    assert found.f64["out"].point[0] == 2.0**-25
    for narrowed in (x.astype(F32) - F32(1), np.asarray(lax.sub(x.astype(F32), F32(1)))):
        assert inside(found.f64["out"], narrowed)


def test_infinities_are_exact_and_leave_the_bounds_after_them_as_they_are(interpret):
    """A causal mask of -inf: what it hides weighs exactly 0."""
    rng = np.random.default_rng(8)
    scores, values = rng.normal(size=(6, 6)).astype(F32), rng.normal(size=(6, 3)).astype(F32)
    mask = np.tri(6, dtype=bool)

    def attended(scores, values):
        return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)) @ values

    found = interpret(attended, scores, values)
    f64, strict = found.f64["out"], found.strict["out"]
    for enclosure in (f64, strict):
        assert np.isfinite(enclosure.lo).all()
        assert np.isfinite(enclosure.hi).all()
    assert (f64.hi - f64.lo).max() < 1e-4
    assert inside(strict, jax.jit(attended)(scores, values))
    weights = interpret(lambda s: jax.nn.softmax(jnp.where(mask, s, -jnp.inf)), scores)
    for enclosure in (weights.f64["out"], weights.strict["out"]):
        assert (np.abs(enclosure.hi[~mask]) < 1e-30).all()


def test_overflow_in_a_dtype_without_infinity_leaves_the_interval_open(interpret):
    """4 · 116 ± a little: float8_e4m3fn holds up to 464 as 448, beyond that there is only NaN."""
    fp8 = ml_dtypes.float8_e4m3fn
    x = np.full(4, 116, F32) + np.array([0, 3e-6, -2e-6, 0], F32)
    x[0] -= F32(1e-5)
    narrow = lambda x: lax.reduce_sum(x, (0,)).astype(fp8)  # noqa: E731
    found = interpret(narrow, x).strict["out"]
    assert float(found.point) == 448
    assert float(found.lo) == 448
    assert np.isnan(np.asarray(found.hi).astype(F32))
    assert interpret(lambda x: narrow(x) > fp8(100), x).undecided == {}


def test_outputs_that_are_not_floating_stand_beside_sums(interpret):
    rows = np.arange(12, dtype=F32).reshape(3, 4) * F32(0.1)
    found = interpret(lambda x: (x @ x.T).argmax(1).astype(jnp.int32), rows)
    assert found.strict["out"].point.tolist() == [2, 2, 2]
    assert found.honest == {}
    positive = interpret(lambda x: x.sum(1) > 1e3, rows)
    assert positive.strict["out"].point.tolist() == [False] * 3
    assert positive.undecided == {}


def test_empty_sums_and_empty_outputs(interpret):
    for x64 in (False, True):
        none = np.zeros((0, 3), np.float64 if x64 else F32)
        assert interpret(lambda x: lax.reduce_sum(x, (1,)), none, x64=x64).strict["out"].exact
        columns = interpret(lambda x: lax.reduce_sum(x, (0,)), none, x64=x64).strict["out"]
        assert columns.point.tolist() == [0.0] * 3
        assert interpret(lambda x: x @ x.T, none, x64=x64).strict["out"].point.shape == (0, 0)
        assert interpret(lambda x: x.T @ x, none, x64=x64).strict["out"].point.shape == (3, 3)
        conv = interpret(
            lambda x, k: lax.conv_general_dilated(x, k, (1,), "VALID"),
            np.zeros((1, 1, 2), none.dtype),
            np.zeros((1, 1, 3), none.dtype),
            x64=x64,
        )
        assert conv.strict["out"].point.shape == (1, 1, 0)
