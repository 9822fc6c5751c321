"""Loops and branches, against the same steps written out and against what JAX itself does."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from parity.dtypes import DTYPES
from parity.reference.interpreter import Interpreter
from parity.reference.policies import EXCESS_PRECISION, F64, FLUSH, STRICT, WIDE
from parity.reference.value import Value
from parity.reference.wide import narrow, widen

F32 = np.float32
BF16 = ml_dtypes.bfloat16
POLICIES = [STRICT, F64, FLUSH, STRICT.granting("expansion"), EXCESS_PRECISION]


def values_of(function, *inputs, policy=STRICT):
    """All outputs of a function of arrays or of values with a dtype."""
    pairs = [i if isinstance(i, tuple) else (Value.exactly(widen(i)), i.dtype.name) for i in inputs]
    shaped = [jax.ShapeDtypeStruct(v.point.shape, DTYPES[name].numpy()) for v, name in pairs]
    return Interpreter(policy).run(jax.make_jaxpr(function)(*shaped), [v for v, _ in pairs])


def same(a, b):
    for x, y in ((a.point, b.point), (a.lo, b.lo), (a.hi, b.hi)):
        assert x.shape == y.shape
        assert np.array_equal(x, y, equal_nan=True)
    for x, y in ((a.undecided, b.undecided), (a.unspecified, b.unspecified)):
        nothing = np.zeros(a.point.shape, bool)
        assert np.array_equal(nothing if x is None else x, nothing if y is None else y)


def cell(weights, carry, x):
    """A step with a contraction, a transcendental and a comparison."""
    new = jnp.tanh(weights @ carry + x)
    return new, jnp.where(new > 0.125, new * x, -new)


def scanned(dtype, reverse=False):
    def function(weights, start, xs):
        weights, start, xs = (a.astype(dtype) for a in (weights, start, xs))
        last, ys = lax.scan(lambda c, x: cell(weights, c, x), start, xs, reverse=reverse)
        return last.astype(F32), ys.astype(F32)

    return function


def unrolled(dtype, reverse=False):
    def function(weights, start, xs):
        weights, carry, xs = (a.astype(dtype) for a in (weights, start, xs))
        rows = {}
        for i in range(xs.shape[0])[:: -1 if reverse else 1]:
            carry, rows[i] = cell(weights, carry, lax.index_in_dim(xs, i, keepdims=False))
        ys = jnp.stack([rows[i] for i in range(xs.shape[0])])
        return carry.astype(F32), ys.astype(F32)

    return function


def drawn(seed=0, steps=5, width=6):
    rng = np.random.default_rng(seed)
    shapes = ((width, width), (width,), (steps, width))
    return [rng.normal(size=shape).astype(F32) for shape in shapes]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [F32, BF16, np.float16])
def test_a_scan_is_its_unrolled_program_in_point_and_interval(dtype, reverse, policy):
    inputs = drawn()
    loop = values_of(scanned(dtype, reverse), *inputs, policy=policy)
    written = values_of(unrolled(dtype, reverse), *inputs, policy=policy)
    for a, b in zip(loop, written, strict=True):
        same(a, b)
    if policy is STRICT:
        assert not loop[0].exact


def contained(value, got):
    left_out = np.zeros(got.shape, bool) if value.undecided is None else value.undecided
    return (value.lo <= got) & (got <= value.hi) | left_out


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_what_jax_does_is_inside_scanned_and_unrolled(dtype, reverse, seed):
    inputs = drawn(seed)
    references = values_of(scanned(dtype, reverse), *inputs)
    with jax.disable_jit():
        eager = unrolled(dtype, reverse)(*map(jnp.asarray, inputs))
    options = {"xla_allow_excess_precision": False}
    loop = jax.jit(scanned(dtype, reverse)).lower(*inputs).compile(compiler_options=options)
    for got in (eager, loop(*inputs)):
        for value, one in zip(references, got, strict=True):
            assert contained(value, np.asarray(one, float)).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_carry_that_is_never_rounded_is_outside(seed):
    """The same steps with every bfloat16 rounding dropped after the operands' own."""
    inputs = drawn(seed)
    last, ys = values_of(scanned(BF16), *inputs)
    rounded = [x.astype(BF16).astype(F32) for x in inputs]
    kept_last, kept_ys = unrolled(F32)(*map(jnp.asarray, rounded))
    assert contained(last, np.asarray(kept_last, float)).mean() < 0.5
    assert contained(ys, np.asarray(kept_ys, float)).mean() < 0.7


def test_a_recurrence_in_whole_numbers_is_exact():
    """Horner's rule; gradients of the loop, of its checkpointed form and by hand."""

    def horner(step):
        def function(x, coefficients):
            return lax.scan(lambda c, a: (step(c, x, a), None), jnp.zeros((), F32), coefficients)[0]

        return function

    coefficients = np.array([3, -2, 5, 7], F32)
    for step in (lambda c, x, a: c * x + a, jax.checkpoint(lambda c, x, a: c * x + a)):
        both = jax.value_and_grad(horner(step), (0, 1))
        value, by_x, by_coefficients = values_of(
            lambda x, a, both=both: jax.tree_util.tree_leaves(both(x, a)), F32(2), coefficients
        )
        assert value.point == 3 * 8 - 2 * 4 + 5 * 2 + 7
        assert by_x.point == 3 * 3 * 4 - 2 * 2 * 2 + 5
        assert by_coefficients.point.tolist() == [8, 4, 2, 1]
        assert value.lo == value.hi == value.point


def test_a_scan_without_steps_or_without_rows():
    def function(x, xs):
        last, ys = lax.scan(lambda c, x: (c + x, c * 2), x, xs)
        count, _ = lax.scan(lambda c, _: (c + 1.0, None), x, None, length=3)
        return last, ys, count

    last, ys, count = values_of(function, F32(0.5), np.zeros(0, F32))
    assert last.point == 0.5
    assert ys.point.shape == (0,)
    assert ys.point.dtype == np.float64
    assert count.point == 3.5


def test_a_scan_of_one_step_is_the_step():
    def function(x, y):
        return lax.scan(lambda c, r: (c * r + c, None), x * y, y[None])[0]

    x, y = F32(0.1), F32(0.7)
    policy = STRICT.granting("fma")
    same(
        values_of(function, x, y, policy=policy)[0],
        values_of(lambda x, y: (x * y) * y + x * y, x, y, policy=policy)[0],
    )


def around(centre, radius, dtype="float32"):
    point = np.asarray(centre, np.float64)
    return Value(point, point - radius, point + radius), dtype


def double_until(limit):
    def function(x, other):
        return lax.while_loop(
            lambda c: c[0].sum() < limit, lambda c: (c[0] * 2, c[1], c[2] + 1), (x, other, 0)
        )

    return function


def test_a_while_loop_runs_as_often_as_the_points_say():
    x, other = np.array([1.0, 2.0], F32), np.array([0.1], F32)
    grown, kept, count = values_of(double_until(100.0), x, other)
    assert grown.point.tolist() == [64.0, 128.0]
    assert count.point == 6
    assert kept.point.tolist() == [F32(0.1)]
    assert grown.undecided is None


@pytest.mark.parametrize(("limit", "open_"), [(96.0, True), (100.0, False)])
def test_an_open_loop_condition_leaves_open_what_the_body_changes(limit, open_):
    """96 is where the sum of the points just ends the loop, and its interval holds less."""
    x, other = around([1.0, 2.0], 0.001), around([0.1], 0.0)
    grown, kept, count = values_of(double_until(limit), x, other)
    assert grown.point.tolist() == ([32.0, 64.0] if limit == 96 else [64.0, 128.0])
    assert kept.undecided is None
    for value in (grown, count):
        assert (value.undecided is not None and value.undecided.all()) == open_
    assert np.isinf(grown.hi).all() == open_


def test_each_loop_of_a_batch_ends_by_itself():
    """Collatz steps; then loops over an interval, of which one crosses its limit."""

    def steps(n):
        body = lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1)  # noqa: E731
        return lax.while_loop(lambda c: c[0] != 1, body, (n, 0))[1]

    found = values_of(jax.vmap(steps), np.array([1, 7, 27, 2], np.int32))[0]
    assert found.point.tolist() == [0, 16, 111, 1]
    grown = values_of(
        jax.vmap(lambda x: lax.while_loop(lambda c: c < 8.0, lambda c: c * 2, x)),
        around([1.0, 3.0, 9.0], 0.01),
    )[0]
    assert grown.point.tolist() == [8.0, 12.0, 9.0]
    assert grown.undecided.tolist() == [True, False, False]
    assert grown.hi[1] == pytest.approx(12.04)


def branches(x):
    return lax.cond(x[0] > 1.0, lambda x: (x * 2, x), lambda x: (x * 3, x), x)


def test_a_branch_is_the_points_and_open_only_where_branches_differ():
    decided = values_of(branches, around([2.0, 0.0], 0.25))
    assert [v.undecided for v in decided] == [None, None]
    assert decided[0].point.tolist() == [4.0, 0.0]
    product, kept = values_of(branches, around([1.125, 0.0], 0.25))
    assert product.point.tolist() == [2.25, 0.0]
    assert product.undecided.tolist() == [True, True]
    assert product.lo[0] <= 2 * 0.875 < 3 * 1.375 <= product.hi[0]
    assert kept.undecided is None
    flat = values_of(branches, (Value(np.array([1.0, 0.0]), np.array([0.9, 0.0]),
                                      np.array([1.1, 0.0])), "float32"))  # fmt: skip
    assert flat[0].undecided.tolist() == [True, False]  # both branches make 0 of the 0


@pytest.mark.parametrize(("index", "expected"), [(-3, 1.0), (0, 1.0), (1, 4.0), (2, 9.0), (7, 9.0)])
def test_a_switch_takes_the_nearest_branch(index, expected):
    cases = [lambda x: x * 1, lambda x: x * 4, lambda x: x * 9]
    found = values_of(lambda i, x: lax.switch(i, cases, x), np.int32(index), F32(1))[0]
    assert found.point == expected


def test_a_cast_inside_a_loop_is_of_an_input_only_where_it_is():
    """The operand of a scan's constants is the program's; what it carries is its own."""
    x, w = np.array([1.01, 1.03], F32), np.array([1.001, 0.999], F32)

    def function(x, w):
        def body(carry, _):
            product = carry.astype(BF16).astype(F32) * w.astype(BF16).astype(F32)
            return product, None

        return lax.scan(body, x * F32(1.5), None, length=2)[0]

    narrowed = w.astype(BF16).astype(float)
    kept = values_of(function, x, w, policy=EXCESS_PRECISION)[0]
    wide = values_of(function, x, w, policy=WIDE)[0]
    first = (x * F32(1.5)).astype(float)
    assert kept.point == pytest.approx(first * narrowed**2, rel=1e-6)
    assert wide.point == pytest.approx(first * w.astype(float) ** 2, rel=1e-6)
    strict = values_of(function, x, w)[0]
    assert ((kept.lo <= strict.point) & (strict.point <= kept.hi)).all()


def test_a_loop_divides_by_a_constant_only_where_it_stays_one():
    """A carried divisor is nothing a compiler could turn into its reciprocal beforehand."""

    def granted(function):
        closed = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((3,), F32))
        interpreter = Interpreter(STRICT)
        interpreter.run(closed, [Value.exactly(np.array([0.1, 0.2, 0.7]))])
        return "reciprocal" in interpreter.granted

    three = jnp.full(3, 3.0)
    body = lambda c, _: ((c[0] / c[1], c[1] + 1), None)  # noqa: E731
    assert not granted(lambda x: lax.scan(body, (x, three), None, length=3)[0][0])
    kept = lambda c, _: ((c[0] / c[1], c[1]), None)  # noqa: E731
    assert granted(lambda x: lax.scan(kept, (x, three), None, length=3)[0][0])
    assert granted(lambda x: lax.scan(lambda c, _: (c / three, None), x, None, length=3)[0])


def test_custom_derivatives_and_solves_are_what_they_call():
    @jax.custom_vjp
    def twice(x):
        return x * 2

    twice.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 5,))
    x = np.array([[2.0, 0.0], [0.0, 4.0]], F32)
    solve = lambda a: lax.custom_linear_solve(  # noqa: E731
        lambda y: a @ y, a[0] + a[1], lambda _, b: b / jnp.diag(a), symmetric=True
    )
    found = values_of(lambda x: (twice(x), jax.grad(lambda x: twice(x).sum())(x), solve(x)), x)
    assert found[0].point.tolist() == (x * 2).tolist()
    assert found[1].point.tolist() == np.full((2, 2), 5.0).tolist()
    assert found[2].point.tolist() == [1.0, 1.0]


def test_a_barrier_in_a_model_keeps_the_rounding_before_it():
    """jax-ml/jax#25873: with a barrier behind the product whole-function compilation rounds it."""
    x, k = F32(-1.0932409763336182), F32(0.25436434)

    def function(hold):
        return lambda x, k: hold(x.astype(BF16) * k.astype(BF16)).astype(F32) + x

    strict = values_of(function(lambda y: y), x, k)[0]
    free = values_of(function(lambda y: y), x, k, policy=EXCESS_PRECISION)[0]
    held = values_of(function(lax.optimization_barrier), x, k, policy=EXCESS_PRECISION)[0]
    exact = Fraction(float(x.astype(BF16))) * Fraction(float(k.astype(BF16)))
    rounded = Fraction(float(narrow(np.array(float(exact)), DTYPES["bfloat16"])))
    assert held.point == strict.point == F32(float(rounded + Fraction(float(x))))
    assert free.point == F32(float(exact + Fraction(float(x))))
    assert held.lo == held.hi
    assert free.lo < free.hi


def test_a_branch_that_is_exact_beside_one_that_is_not():
    """0 or 3x, open at x[0] = 1.125 ± 0.25; x[1] = 0 ± 0 is 0 either way."""

    def function(x):
        return lax.cond(x[0] > 1.0, jnp.zeros_like, lambda x: x * 3, x)

    radius = np.array([0.25, 0.0])
    for policy in (STRICT, F64):
        (found,) = values_of(function, around([1.125, 0.0], radius), policy=policy)
        assert found.point.tolist() == [0, 0]
        assert found.undecided[0]
        assert found.lo[0] <= 0 < 3 * 1.375 <= found.hi[0]


def padded(x, kernel):
    numbers = ("NWC", "WIO", "NWC")
    return lax.conv_general_dilated(x, kernel, (1,), "SAME", dimension_numbers=numbers)[0, 0, 0]


def test_what_depends_on_an_unspecified_element_is_unspecified():
    """A NaN of the kernel that meets padding: 2 or NaN, nobody's promise which."""
    x, kernel = np.ones((1, 3, 1), F32), np.array([np.nan, 1, 1], F32).reshape(3, 1, 1)
    y = np.array([1.0, 2.0, 3.0], F32)

    def function(x, kernel, y):
        first = padded(x, kernel)
        at = first.astype(jnp.int32)
        return (
            lax.cond(first > 1, lambda y: y * 2, lambda y: y, y),
            lax.while_loop(lambda c: c < first, lambda c: c + 1, 0.0),
            lax.while_loop(lambda c: c[0] < first, lambda c: (c[0] + 1, c[1]), (0.0, y))[1],
            jnp.take(y, at[None], mode="clip"),
            lax.dynamic_slice(y, (at,), (1,)),
            lax.dynamic_update_slice(y, y[:1], (at,)),
            y.at[at[None]].set(7.0),
        )

    branch, count, kept, *picked = values_of(function, x, kernel, y)
    assert branch.point.tolist() == [2, 4, 6]
    assert count.point == 2
    for value in (branch, count, *picked):
        assert value.unspecified is not None
        assert value.unspecified.all()
    assert kept.unspecified is None
    assert picked[0].point.tolist() == [3]
    assert picked[2].point.tolist() == [1, 2, 1]


@pytest.mark.parametrize("batched", [False, True])
def test_a_case_that_is_certainly_not_chosen_leaves_nothing_open(batched):
    """x > 1 is open at 1.125 ± 0.25; what it chooses counts only where it is chosen itself."""

    def inner(x, decided):
        return lax.cond(decided, lambda x: x * 2, lambda x: jnp.where(x > 1, 5.0, 6.0), x)

    def chosen(x, decided):
        return jnp.where(decided, x * 2, jnp.where(x > 1, 5.0, 6.0))

    function = jax.vmap(inner) if batched else chosen
    decided = np.array([True, False])
    (found,) = values_of(function, around([1.125, 1.125], 0.25), decided)
    assert found.undecided.tolist() == [False, True]
    assert (found.lo[0], found.hi[0]) == (1.75, 2.75)


def test_what_comes_from_the_bits_of_an_unrounded_value_may_be_anything():
    """The ideal has no bits of its own: a number made of them is bounded by nothing."""

    def function(x):
        return lax.bitcast_convert_type(lax.bitcast_convert_type(x * x * x, np.int32), F32)

    x = drawn()[1]
    (ideal,) = values_of(function, x, policy=F64)
    got = (x * x * x).astype(float)
    assert ((ideal.lo <= got) & (got <= ideal.hi)).all()
    (strict,) = values_of(function, x)
    assert strict.exact
    assert strict.point.tolist() == got.tolist()
