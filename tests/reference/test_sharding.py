"""Programs over meshes of any size against NumPy on whole numbers; a mesh needs no devices here."""

import functools
import itertools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from parity.dtypes import DTYPES
from parity.program.jax_versions import enable_x64
from parity.reference.interpreter import Interpreter
from parity.reference.policies import F64, STRICT
from parity.reference.rounding import round_to
from parity.reference.value import Value
from parity.reference.wide import widen

F32 = np.float32
BF16 = ml_dtypes.bfloat16
SIZES = (1, 2, 4, 8)


SPLIT = P("d")


def sharded(function, specs, out=SPLIT, sizes=(4,), check=True):
    mesh = AbstractMesh(sizes, ("d", "e")[: len(sizes)])
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=out, check_vma=check)


def values_of(function, *inputs, policy=STRICT, x64=False):
    """All outputs of a function of arrays."""
    with enable_x64(x64):
        closed = jax.make_jaxpr(function)(*inputs)
        return Interpreter(policy).run(closed, [Value.exactly(widen(x)) for x in inputs])


def whole(seed, *shape, dtype=F32):
    return np.random.default_rng(seed).integers(-8, 9, size=shape).astype(dtype)


def is_exactly(value, wanted):
    assert value.point.shape == np.shape(wanted)
    assert np.array_equal(value.point, wanted)
    assert np.array_equal(value.lo, value.point)
    assert np.array_equal(value.hi, value.point)
    assert value.undecided is None


def ring(size, step=1):
    return [(i, (i + step) % size) for i in range(size)]


def every(x, size):
    """What one member of `size` has of all collectives; x [8, 3]."""
    parts = x.reshape(size, 8 // size, 3)
    return (
        lax.psum(x, "d"),
        lax.pmean(x, "d"),
        lax.pmax(x, "d"),
        lax.pmin(x, "d"),
        lax.all_gather(x, "d"),
        lax.all_gather(x, "d", axis=1, tiled=True),
        lax.all_to_all(parts, "d", 0, 0),
        lax.ppermute(x, "d", ring(size)),
        lax.psum_scatter(parts, "d"),
        lax.psum_scatter(x, "d", tiled=True),
        lax.axis_index("d"),
    )


def expected(x):
    """The same, of all members, by NumPy; x [size, 8, 3]."""
    size = len(x)
    parts = x.reshape(size, size, 8 // size, 3)
    on_all = functools.partial(np.broadcast_to, shape=x.shape)
    return (
        on_all(x.sum(0)),
        on_all(x.sum(0) / size),
        on_all(x.max(0)),
        on_all(x.min(0)),
        np.broadcast_to(x, (size, *x.shape)),
        np.broadcast_to(np.concatenate(list(x), axis=1), (size, 8, 3 * size)),
        parts.swapaxes(0, 1),
        np.roll(x, 1, axis=0),
        parts.sum(0),
        parts.sum(0),
        np.arange(size),
    )


@pytest.mark.parametrize("policy", [STRICT, F64], ids=lambda p: p.name)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("over", ["devices", "vmap"])
def test_collectives_of_whole_numbers(over, size, policy):
    x = whole(size, size, 8, 3)

    def local(part):
        return jax.tree_util.tree_map(lambda out: out[None], every(part[0], size))

    if over == "vmap":
        function = jax.vmap(lambda part: every(part, size), axis_name="d")
    else:
        function = sharded(local, (P("d"),), sizes=(size,))
    found = values_of(function, x, policy=policy)
    for value, wanted in zip(found, expected(x.astype(float)), strict=True):
        assert np.array_equal(value.point, wanted)
        if policy is STRICT:
            is_exactly(value, wanted)
        else:
            assert ((value.lo <= wanted) & (wanted <= value.hi)).all()


@pytest.mark.parametrize("size", [2, 4, 8])
def test_what_nobody_sends_to_has_zeros(size):
    x = whole(20 + size, size, 3)
    function = sharded(lambda p: lax.ppermute(p, "d", ring(size)[:-1]), (P("d"),), sizes=(size,))
    is_exactly(values_of(function, x)[0], np.concatenate([np.zeros((1, 3)), x[:-1]]))


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8])
def test_a_sum_of_integers_wraps_as_declared_and_not_in_the_ideal(dtype):
    x = np.full((4, 2), 100, dtype)
    function = sharded(lambda part: lax.psum(part, "d"), (P("d"),), P())
    (strict,), (ideal,) = (values_of(function, x, policy=policy) for policy in (STRICT, F64))
    assert strict.point.tolist() == np.full((1, 2), np.int64(400).astype(dtype)).tolist()
    assert ideal.point.tolist() == [[400, 400]]


@pytest.mark.parametrize("dtype", [F32, BF16, np.float16])
def test_a_sum_over_devices_holds_every_order(dtype):
    """1 and three quarters of its last bit: any two orders, each addition rounded."""
    form = DTYPES[np.dtype(dtype).name]
    last = 2.0 ** (1 - form.format.precision)
    x = np.array([[1.0], [0.375 * last], [0.375 * last], [0.375 * last]]).astype(dtype)
    (found,) = values_of(sharded(lambda part: lax.psum(part, "d"), (P("d"),), P()), x)
    assert found.point.tolist() == [[1 + last]]  # 1 + 1.125 of the last bit, rounded once
    for order in itertools.permutations(x.astype(float).ravel()):
        total = np.zeros(1)
        for term in order:
            total = round_to(total + term, form)
        assert found.lo[0, 0] <= total[0] <= found.hi[0, 0]
    assert found.hi[0, 0] < 1 + 8 * last


def test_a_sum_in_float64_is_wider_than_float64():
    """1, then many tiny terms that float64 loses one by one."""
    x = np.array([[1.0], [2.0**-53], [2.0**-53], [2.0**-53]])
    function = sharded(lambda part: lax.psum(part, "d"), (P("d"),), P())
    (found,) = values_of(function, x, policy=F64, x64=True)
    assert found.point.dtype == np.float64
    assert found.lo[0, 0] <= 1 + 2.0**-52 <= found.hi[0, 0]


def test_gradients_through_collectives():
    """Each device weighs by its number + 1 what it is given; by hand."""
    x = whole(0, 4, 3)
    weights = np.arange(1.0, 5.0)

    def loss(x, collective):
        def local(part):
            return (collective(part) * (lax.axis_index("d") + 1)).sum()[None]

        return sharded(local, (P("d"),))(x).sum()

    def gradient(collective):
        return values_of(jax.grad(functools.partial(loss, collective=collective)), x)[0]

    is_exactly(gradient(lambda part: lax.psum(part, "d")), np.full((4, 3), weights.sum()))
    received = gradient(lambda part: lax.ppermute(part, "d", ring(4)))
    is_exactly(received, np.repeat(np.roll(weights, -1)[:, None], 3, axis=1))
    gathered = gradient(lambda part: lax.all_gather(part, "d") ** 2)
    is_exactly(gathered, 2.0 * x * weights.sum())


def test_the_gradient_of_a_weight_that_every_device_has_is_summed():
    """d/dw of the rows' dots; jax-ml/jax#36886: under `check_vma` it is the sum on each device."""
    x, w = whole(1, 4, 6), whole(2, 6)

    def local(rows, w):
        return jax.grad(lambda w: (rows @ w).sum())(w)[None]

    is_exactly(values_of(sharded(local, (P("d"), P())), x, w)[0], np.tile(x.sum(0), (4, 1)))
    alone = sharded(local, (P("d"), P()), check=False)
    is_exactly(values_of(alone, x, w)[0], x)


def test_a_sum_inside_of_a_loop():
    """c <- Σ (c + number of the device) - 3c, three times, from each device's own part."""
    x = whole(3, 4, 2)

    def local(part):
        def body(carry, _):
            new = lax.psum(carry + lax.axis_index("d").astype(F32), "d") - 3 * carry
            return new, carry

        last, rows = lax.scan(body, part[0], None, length=3)
        return last[None], rows[None]

    carry, rows = x.astype(float), []
    for _ in range(3):
        rows.append(carry)
        carry = (carry + np.arange(4)[:, None]).sum(0) - 3 * carry
    last, seen = values_of(sharded(local, (P("d"),), (P("d"), P("d"))), x)
    is_exactly(last, carry)
    is_exactly(seen, np.stack(rows, axis=1))


def test_a_branch_by_the_number_of_the_device():
    x = whole(4, 4, 2)

    def local(part):
        first = lax.axis_index("d") == 0
        return lax.cond(first, lambda p: p * 2, lambda p: p - 1, part)

    wanted = np.concatenate([x[:1] * 2, x[1:] - 1])
    is_exactly(values_of(sharded(local, (P("d"),)), x)[0], wanted)


def test_a_loop_that_ends_when_all_devices_say_so():
    """Doubled until the sum over devices passes 100, as often on each of them."""
    x = np.array([[1.0], [2.0], [0.0], [4.0]], F32)

    def local(part):
        return lax.while_loop(lambda p: lax.psum(p.sum(), "d") < 100, lambda p: 2 * p, part)

    is_exactly(values_of(sharded(local, (P("d"),)), x)[0], 16 * x)


def test_two_axes_of_a_mesh_and_dimensions_that_both_split():
    x = whole(5, 8, 6)
    total = sharded(lambda p: lax.psum(p, ("d", "e")), (P("d", "e"),), P(), sizes=(2, 3))
    is_exactly(values_of(total, x)[0], sum(x[4 * i : 4 * i + 4, 2 * j : 2 * j + 2]
                                           for i in range(2) for j in range(3)))  # fmt: skip
    rows = sharded(lambda p: lax.psum(p, "e"), (P("d", "e"),), P("d"), sizes=(2, 3))
    is_exactly(values_of(rows, x)[0], x.reshape(8, 3, 2).sum(1))
    numbers = sharded(
        lambda p: p * 0 + 10.0 * lax.axis_index("d") + lax.axis_index("e"),
        (P(("e", "d")),), P(("e", "d")), sizes=(2, 4),
    )  # fmt: skip
    found = values_of(numbers, whole(6, 8, 1))[0]
    is_exactly(found, [[10.0 * d + e] for e in range(4) for d in range(2)])


def test_a_contraction_whose_terms_lie_on_several_devices():
    """Whole numbers are exact; else each device's sum is rounded before they are added."""
    function = sharded(
        lambda x, w: lax.psum(jnp.dot(x, w), "d"), (P(None, "d"), P("d")), P()
    )  # fmt: skip
    x, w = whole(7, 3, 16), whole(8, 16, 2)
    is_exactly(values_of(function, x, w)[0], x @ w)
    rng = np.random.default_rng(9)
    x, w = (rng.normal(size=shape).astype(np.float16) for shape in ((3, 16), (16, 2)))
    form = DTYPES["float16"]
    parts = [
        round_to(x[:, i : i + 4].astype(float) @ w[i : i + 4].astype(float), form)
        for i in range(0, 16, 4)
    ]
    (found,) = values_of(function, x, w)
    assert np.array_equal(found.point, round_to(np.sum(parts, axis=0), form))
    for order in itertools.permutations(parts):
        total = functools.reduce(lambda a, b: round_to(a + b, form), order)
        assert ((found.lo <= total) & (total <= found.hi)).all()


def test_replicas_that_differ_are_all_inside():
    """A ring sum ends as another number on each device; whole numbers end as the same."""

    def local(part):
        total = arrived = part[0]
        for _ in range(3):
            arrived = lax.ppermute(arrived, "d", ring(4))
            total = total + arrived
        return total

    function = sharded(local, (P("d"),), P(), check=False)
    x = np.random.default_rng(10).normal(size=(4, 64)).astype(F32)
    on_device = np.stack([functools.reduce(lambda a, b: a + b, [x[(i - k) % 4] for k in range(4)])
                          for i in range(4)])  # fmt: skip
    assert (on_device != on_device[0]).any()
    (found,) = values_of(function, x)
    assert np.array_equal(found.point, on_device[0])
    assert np.array_equal(found.lo, on_device.min(0))
    assert np.array_equal(found.hi, on_device.max(0))
    is_exactly(values_of(function, whole(11, 4, 5))[0], whole(11, 4, 5).sum(0))


@pytest.mark.parametrize("policy", [STRICT, F64], ids=lambda p: p.name)
@pytest.mark.parametrize("who", [0, 2])
def test_a_device_that_adds_something_gives_no_other_answer_of_the_same_sum(who, policy):
    """100 more on one device: what the others have is a hundred from the first one, or it is."""

    def local(part):
        return lax.psum(part[0], "d") + jnp.where(lax.axis_index("d") == who, F32(100), F32(0))

    x = np.random.default_rng(15).normal(size=(4, 64)).astype(F32)
    (found,) = values_of(sharded(local, (P("d"),), P(), check=False), x, policy=policy)
    right = x.astype(float).sum(0) + (100 if who == 0 else 0)
    assert (np.abs(found.lo - right) < 1e-4).all()
    assert (np.abs(found.hi - right) < 1e-4).all()


def test_vmap_of_a_program_over_devices_and_inside_of_one():
    x = whole(12, 4, 3, 2)
    outside = jax.vmap(sharded(lambda p: lax.psum(p, "d"), (P("d"),), P()), in_axes=1)
    is_exactly(values_of(outside, x)[0], x.sum(0)[:, None])

    def local(part):
        return jax.vmap(lambda y: lax.psum(lax.psum(y, "m"), "d"), axis_name="m")(part[0])

    inside = sharded(local, (P("d"),), P(), check=False)
    is_exactly(values_of(inside, x)[0], np.tile(x.sum((0, 1)), (3, 1)))


def test_undecided_elements_stay_on_their_devices():
    """x > 1 at 1 ± 0.25 on the second of two devices; a sum over both depends on it."""
    point = np.array([[3.0, 3.0], [3.0, 1.0]])
    value = Value(point, point - 0.25, point + 0.25)
    shape = jax.ShapeDtypeStruct(point.shape, F32)

    def run(function):
        (found,) = Interpreter(STRICT).run(jax.make_jaxpr(function)(shape), [value])
        return found.undecided

    chosen = lambda part: jnp.where(part > 1, part, -part)  # noqa: E731
    kept = run(sharded(chosen, (P("d"),), sizes=(2,)))
    assert kept.tolist() == [[False, False], [False, True]]
    total = run(sharded(lambda p: lax.psum(chosen(p), "d"), (P("d"),), P(), sizes=(2,)))
    assert total.tolist() == [[False, True]]


def test_a_sum_over_groups_of_devices_is_refused():
    def local(part):
        return lax.psum(part, "d", axis_index_groups=[[0, 1], [2, 3]])

    function = sharded(local, (P("d"),), check=False)
    with pytest.raises(NotImplementedError, match="groups of devices"):
        values_of(function, whole(13, 4, 2))


@pytest.mark.parametrize("axes", [("d", "e"), ("e", "d")])
def test_collectives_over_two_axes_number_the_devices_by_the_first(axes):
    """8 rows on 2 x 4 devices; gathered and scattered in the order of the axes that are named."""
    x = whole(14, 8, 8, 3)
    split = P(("d", "e"))
    order = [4 * d + e for d in range(2) for e in range(4)]
    if axes == ("e", "d"):
        order = [4 * d + e for e in range(4) for d in range(2)]

    def run(function):
        return values_of(sharded(function, (split,), split, (2, 4), check=False), x)[0]

    stacked = run(lambda p: lax.all_gather(p[0], axes)[None])
    is_exactly(stacked, np.broadcast_to(x[order], (8, 8, 8, 3)))
    behind = run(lambda p: lax.all_gather(p[0], axes, axis=1, tiled=True)[None])
    is_exactly(behind, np.broadcast_to(np.concatenate(list(x[order]), axis=1), (8, 8, 24)))
    total = x.sum(0)
    part = np.argsort(order)
    is_exactly(run(lambda p: lax.psum_scatter(p[0], axes)[None]), total[part])
    wide = run(lambda p: lax.psum_scatter(p[0], axes, tiled=True))
    is_exactly(wide, total[part])


def test_a_ppermute_over_two_axes_is_refused():
    pairs = [(i, (i + 1) % 8) for i in range(8)]
    function = sharded(
        lambda p: lax.ppermute(p, ("d", "e"), pairs), (P(("d", "e")),), P(("d", "e")), (2, 4)
    )
    with pytest.raises(NotImplementedError, match="several axes"):
        values_of(function, whole(15, 8, 2))
