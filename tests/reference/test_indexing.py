"""What is picked by index, sorted or ranked, against NumPy; and what an open index leaves open."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from parity.dtypes import DTYPES
from parity.program.jax_versions import enable_x64
from parity.reference.interpreter import Interpreter
from parity.reference.policies import F64, STRICT
from parity.reference.value import Value
from parity.reference.wide import widen

F32 = np.float32
NAN, INF = np.nan, np.inf


def values_of(function, *inputs, policy=STRICT, x64=False):
    """All outputs of a function of arrays or of values, which are float32."""
    pairs = [(i, "float32") if isinstance(i, Value) else (Value.exactly(widen(i)), i.dtype.name)
             for i in inputs]  # fmt: skip
    shaped = [jax.ShapeDtypeStruct(v.point.shape, DTYPES[name].numpy()) for v, name in pairs]
    with enable_x64(x64):
        closed = jax.make_jaxpr(function)(*shaped)
        return Interpreter(policy).run(closed, [value for value, _ in pairs])


def around(point, radius):
    point = np.asarray(point, float)
    return Value(point, point - radius, point + radius)


def marked(value):
    found = value.undecided
    return np.zeros(value.point.shape, bool).tolist() if found is None else found.tolist()


X = np.arange(1, 13, dtype=F32).reshape(4, 3)


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("clip", [X[2], X[0], X[3], X[0]]),
        ("fill", [X[2], X[0], [NAN] * 3, [NAN] * 3]),
        ("promise_in_bounds", None),
    ],
)
def test_a_gather_out_of_bounds(mode, wanted):
    index = np.array([2, 0, 4, -5], np.int32)
    if wanted is None:
        index, wanted = index[:2], X[[2, 0]]
    (found,) = values_of(lambda x, i: x.at[i].get(mode=mode), X, index)
    assert np.array_equal(found.point, np.array(wanted, float), equal_nan=True)
    (ideal,) = values_of(lambda x, i: x.at[i].get(mode=mode), X, index, policy=F64)
    assert ideal.exact


def test_what_a_gather_out_of_bounds_has_of_integers():
    """Source: `jax.lax.GatherScatterMode`: the least signed, the largest unsigned one."""
    index = np.array([9], np.int32)
    for dtype, wanted in ((np.int8, -128), (np.uint8, 255), (np.bool_, True)):
        x = np.zeros(3, dtype)
        (found,) = values_of(lambda x, i: x.at[i].get(mode="fill"), x, index)
        assert found.point.tolist() == [wanted]
    (found,) = values_of(lambda x, i: x.at[i].get(mode="fill", fill_value=7), X[:, 0], index)
    assert found.point.tolist() == [7]


@pytest.mark.parametrize("seed", range(4))
def test_gathers_are_numpys(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, 4, 5)).astype(F32)
    rows, columns = rng.integers(0, 3, (2, 6)), rng.integers(0, 5, (2, 6))
    pairs = [
        (lambda x, i, j: x[i, :, j], x[rows, :, columns]),
        (lambda x, i, j: x[:, 1:3, j], x[:, 1:3, columns]),
        (lambda x, i, j: jnp.take_along_axis(x[0], j[:, :5] % 4, axis=0),
         np.take_along_axis(x[0], columns[:, :5] % 4, axis=0)),
        (lambda x, i, j: jax.vmap(lambda y, k: y[k % 4])(x, i[0, :3]),
         np.stack([x[n, rows[0, n] % 4] for n in range(3)])),
    ]  # fmt: skip
    for function, wanted in pairs:
        index = rows.astype(np.int32), columns.astype(np.int32)
        (found,) = values_of(function, x, *index)
        assert np.array_equal(found.point, wanted)
        assert found.exact


def test_the_gradient_of_a_gather_adds_up_what_came_from_one_place():
    """Whole numbers, by hand: row 2 was taken twice, row 0 once; out of bounds gives nothing."""
    weights = np.array([[1, 2, 3], [10, 20, 30], [100, 200, 300], [7, 7, 7]], F32)
    index = np.array([2, 0, 2, 9], np.int32)

    def function(x, i, w):
        return jax.grad(lambda x: (x.at[i].get(mode="fill", fill_value=0) * w).sum())(x)

    (found,) = values_of(function, X, index, weights)
    wanted = np.zeros((4, 3))
    wanted[2], wanted[0] = weights[0] + weights[2], weights[1]
    assert np.array_equal(found.point, wanted)
    assert np.array_equal(found.lo, found.hi)


def test_the_order_of_scattered_additions_is_nobodys_promise():
    """1 and three times 3/8 of its last bit: each order, each addition rounded."""
    last = 2.0**-23
    x, index = np.array([1.0, 5.0], F32), np.zeros(3, np.int32)
    updates = np.full(3, 0.375 * last, F32)
    (found,) = values_of(lambda x, i, u: x.at[i].add(u), x, index, updates)
    assert found.point.tolist() == [1 + last, 5]
    for order in itertools.permutations([1.0, *updates.tolist()]):
        total = F32(0)
        for term in order:
            total = F32(total + F32(term))
        assert found.lo[0] <= total <= found.hi[0]
    assert found.lo[0] <= 1.0
    assert (found.lo[1], found.hi[1]) == (5, 5)


def test_the_last_of_several_updates_is_unspecified_where_they_differ():
    index = np.array([1, 3, 1, 3, 0], np.int32)
    updates = np.array([5, 6, 7, 6, 8], F32)
    (found,) = values_of(lambda x, i, u: x.at[i].set(u), X[:, 0], index, updates)
    assert found.point.tolist() == [8, 7, 7, 6]
    assert found.unspecified.tolist() == [False, True, False, False]


def test_slices_by_index_are_clamped():
    """Source: `jax.lax.dynamic_slice`."""
    for start, rows in ((-9, [0, 1]), (1, [1, 2]), (3, [2, 3]), (99, [2, 3])):
        sliced = lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3))  # noqa: E731
        where = np.int32(start) if start >= 0 else np.int32(0)
        (found,) = values_of(sliced, X, where)
        assert np.array_equal(found.point, X[rows])
        changed = X.copy()
        changed[rows] = -1
        updated = lambda x, i: lax.dynamic_update_slice(x, -jnp.ones((2, 3)), (i, 0))  # noqa: E731
        assert np.array_equal(values_of(updated, X, where)[0].point, changed)


def chosen_index(x):
    """0 or 2, undecided where x is near 1."""
    return jnp.where(x > 1, 2, 0)


@pytest.mark.parametrize("radius", [0.01, 0.25])
def test_what_an_undecided_index_picks_is_undecided_and_held(radius):
    index = around(1.125, radius)
    table = np.array([4.0, 9.0, -3.0], F32)
    functions = [
        lambda i, x: x[chosen_index(i)],
        lambda i, x: lax.dynamic_slice(x, (chosen_index(i),), (1,)),
        lambda i, x: lax.dynamic_update_slice(x, x[:1] * 0 + 7, (chosen_index(i),)),
        lambda i, x: x.at[chosen_index(i)].set(7.0),
        lambda i, x: x.at[chosen_index(i)].add(7.0),
    ]
    points = [-3.0, [-3.0], [4, 9, 7], [4, 9, 7], [4, 9, 4]]
    either = [4.0, [4.0], [7, 9, -3], [7, 9, -3], [11, 9, -3]]
    for function, point, other in zip(functions, points, either, strict=True):
        (found,) = values_of(function, index, table)
        assert found.point.tolist() == point
        assert np.all(marked(found)) == (radius == 0.25)
        if radius == 0.25:
            assert ((found.lo <= other) & (other <= found.hi)).all()
        else:
            assert np.array_equal(found.lo, found.hi)


def test_argmax_and_argmin_take_the_first_of_equals_and_nan_before_all():
    x = np.array([[1, 3, 3], [NAN, 9, NAN], [-INF, -INF, -INF], [0.0, -0.0, 0.0]], F32)
    for function, wanted in (
        (lambda x: lax.argmax(x, 1, np.int32), [1, 0, 0, 0]),
        (lambda x: lax.argmin(x, 1, np.int32), [0, 0, 0, 0]),
    ):
        (found,) = values_of(function, x)
        assert found.point.tolist() == wanted
        assert found.undecided is None
        assert wanted == np.asarray(function(jnp.asarray(x))).tolist()


def test_an_extreme_is_undecided_only_where_another_may_reach_it():
    """Where ends only meet, the element that comes first decides."""
    meeting = around([[1.0, 2.0, 1.5], [1.5, 2.0, 1.0]], 0.25)
    assert marked(values_of(lambda x: lax.argmax(x, 1, np.int32), meeting)[0]) == [False, True]
    x = around([[1.0, 2.0, 1.5], [1.0, 1.4, 0.9], [3.0, 1.0, 3.0]], 0.25)
    (most,) = values_of(lambda x: lax.argmax(x, 1, np.int32), x)
    assert most.point.tolist() == [1, 1, 0]
    assert marked(most) == [False, True, True]
    tighter = around(x.point, 0.125)
    (most,) = values_of(lambda x: lax.argmax(x, 1, np.int32), tighter)
    assert marked(most) == [False, False, True]
    (least,) = values_of(lambda x: lax.argmin(x, 1, np.int32), tighter)
    assert least.point.tolist() == [0, 2, 1]
    assert marked(least) == [False, True, False]


def test_the_gradient_of_a_maximum_knows_the_certain_winner():
    """The comparison of each element with the maximum is decided where no other reaches it."""
    function = jax.grad(lambda x: jnp.max(x, axis=0).sum())
    (sure,) = values_of(function, around([1.0, 2.0, 0.5], 0.25))
    assert sure.point.tolist() == [0, 1, 0]
    assert marked(sure) == [False] * 3
    (open_,) = values_of(function, around([1.0, 2.0, 1.75], 0.25))
    assert open_.undecided is not None
    assert open_.undecided[1:].all()


def test_sorts_are_numpys_and_stable():
    x = np.array([3, NAN, -INF, 0.0, 3, -0.0, INF, -1], F32)
    other = np.arange(8, dtype=np.int32)
    keys, order = values_of(lambda x, i: lax.sort((x, i), num_keys=1), x, other)
    assert np.array_equal(keys.point, np.sort(x.astype(float)), equal_nan=True)
    assert order.point.tolist() == [2, 7, 3, 5, 0, 4, 6, 1]
    assert order.undecided is None
    first, second = values_of(
        lambda a, b: lax.sort((a, b), num_keys=2),
        np.array([2, 1, 2, 1], np.int32), np.array([0.5, 4, -1, 3], F32),
    )  # fmt: skip
    assert first.point.tolist() == [1, 1, 2, 2]
    assert second.point.tolist() == [3, 4, -1, 0.5]


def test_a_sorted_key_is_held_by_the_sorted_ends():
    rng = np.random.default_rng(0)
    x = around(rng.normal(size=(3, 9)), 0.3)
    (found,) = values_of(lambda x: lax.sort(x, dimension=1), x)
    assert found.undecided is None
    for seed in range(20):
        other = x.point + 0.3 * np.random.default_rng(seed).uniform(-1, 1, x.point.shape)
        assert ((found.lo <= np.sort(other, axis=1)) & (np.sort(other, axis=1) <= found.hi)).all()
    assert np.array_equal(found.hi, np.sort(x.hi, axis=1))


def test_what_is_carried_along_is_open_where_keys_overlap():
    """1 and 1.1 may change places, 2 and 3 may not."""
    keys = around([3.0, 1.1, 2.0, 1.0], 0.1)
    _, order = values_of(
        lambda k, i: lax.sort((k, i), num_keys=1), keys, np.arange(4, dtype=np.int32)
    )
    assert order.point.tolist() == [3, 1, 2, 0]
    assert marked(order) == [True, True, False, False]
    _, carried = values_of(
        lambda k, x: lax.sort((k, x), num_keys=1), keys, np.array([10, 20, 30, 40], F32)
    )
    assert carried.point.tolist() == [40, 20, 30, 10]
    swapped = np.array([20, 40, 30, 10])
    assert ((carried.lo <= swapped) & (swapped <= carried.hi)).all()
    assert (carried.lo[2], carried.hi[2]) == (30, 30)


def test_top_k_takes_the_first_of_equals_and_is_open_where_they_may_swap():
    x = np.array([[1, 5, 5, 2], [NAN, 1, 2, 3]], F32)
    found, index = values_of(lambda x: lax.top_k(x, 3), x)
    assert np.array_equal(found.point, [[5, 5, 2], [NAN, 3, 2]], equal_nan=True)
    assert index.point.tolist() == [[1, 2, 3], [0, 3, 2]]
    assert index.undecided is None
    theirs, where = lax.top_k(jnp.asarray(x), 3)
    assert np.array_equal(theirs, found.point, equal_nan=True)
    assert where.tolist() == index.point.tolist()
    found, index = values_of(lambda x: lax.top_k(x, 2), around([1.0, 5.0, 4.9, 2.0], 0.1))
    assert index.point.tolist() == [1, 2]
    assert marked(index) == [True, True]
    assert marked(found) == [False, False]
    other = np.array([5, 4.95])
    assert ((found.lo <= other) & (other <= found.hi)).all()
    _, index = values_of(lambda x: lax.top_k(x, 2), around([1.0, 5.0, 4.0, 2.0], 0.1))
    assert marked(index) == [False, False]
    _, index = values_of(lambda x: lax.top_k(x, 1), around([1.0, 5.0, 4.0, 3.95], 0.1))
    assert marked(index) == [False]  # the open places are not asked for


def test_large_integers_keep_their_order():
    """Neighbours beyond 2**53, which float64 cannot tell apart."""
    x = np.array([2**62 + 1, 2**62, -(2**62) - 1, -(2**62)], np.int64)
    (found,) = values_of(lambda x: lax.sort(x), x, x64=True)
    assert found.point.tolist() == sorted(x.tolist())
    _, index = values_of(lambda x: lax.top_k(x, 2), x, x64=True)
    assert index.point.tolist() == [0, 1]


def test_top_k_orders_by_sign_where_it_is_known_and_says_nothing_where_it_is_not():
    """totalOrder of IEEE 754: -NaN is below all; a computed NaN may have either sign."""
    x = np.array([[1, NAN, 3, np.copysign(NAN, -1)], [4, 3, 2, 1]], F32)
    found, index = values_of(lambda x: lax.top_k(x, 4), x)
    assert index.point.tolist() == [[1, 2, 0, 3], [0, 1, 2, 3]]
    assert found.unspecified is None
    assert lax.top_k(jnp.asarray(x), 4)[1].tolist() == index.point.tolist()
    roots = np.array([[4, -1, 9], [4, 1, 9]], F32)
    for value in values_of(lambda x: lax.top_k(jnp.sqrt(x), 2), roots):
        assert value.unspecified is not None
        assert value.unspecified.tolist() == [[True] * 2, [False] * 2]


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("positive", [True, False])
def test_a_random_key_that_is_chosen_is_whole(kind, positive):
    """Keys of two and of four words, one and an array of them."""

    def function(x):
        keys = jax.random.split(jax.random.key(3, impl=kind), 4)
        one = jnp.where(x > 0, keys[0], keys[1])
        return jax.random.key_data(one), jax.random.key_data(jnp.where(x > 0, keys[:2], keys[2:]))

    x = np.array(1 if positive else -1, F32)
    for found, wanted in zip(values_of(function, x), function(x), strict=True):
        assert found.point.tolist() == wanted.tolist()
