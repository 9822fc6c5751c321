"""Honest orders of summation against plain loops over scalars of the accumulator's dtype."""

import itertools
import math

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from parity.dtypes import DTYPES
from parity.reference import honest
from parity.reference.wide import widen

F32 = np.float32
bf16 = ml_dtypes.bfloat16


def sequential(terms, add):
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def pairwise(terms, add):
    while len(terms) > 1:
        paired = [add(a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = paired + terms[len(paired) * 2 :]
    return terms[0]


def blocked(terms, add):
    """32 running sums, each over every 32nd term; then those and what is left, one by one."""
    whole = len(terms) // 32 * 32
    lanes = [sequential(terms[lane:whole:32], add) for lane in range(32)] if whole else []
    return sequential(lanes + terms[whole:], add)


LOOPS = {
    "sequential": sequential,
    "reversed": lambda terms, add: sequential(terms[::-1], add),
    "pairwise": pairwise,
    "blocked": blocked,
}


def in_dtype(dtype):
    """An addition of scalars that is rounded to a dtype."""
    return lambda a, b: dtype(dtype(a) + dtype(b))


def multiplied(a, b):
    """Products of scalars, each rounded to float32."""
    return [F32(F32(x) * F32(y)) for x, y in zip(a, b, strict=True)]


ROWS = (((1,), (1,)), ((), ()))
INNERMOST = (((1,), (1,)), ((2,), (2,)))


def equation(function, *arrays):
    return jax.make_jaxpr(function)(*arrays).eqns[-1]


def added(function, arrays, order):
    return honest.add_up(equation(function, *arrays), [widen(x) for x in arrays], order)


def test_every_order_is_tried():
    assert set(honest.ORDERS) == set(LOOPS)


@pytest.mark.parametrize("order", LOOPS)
@pytest.mark.parametrize("terms", [1, 2, 7, 31, 32, 33, 64, 100])
@pytest.mark.parametrize("dtype", [F32, bf16, np.float16], ids=lambda d: d.__name__)
def test_a_dot_is_added_in_float32(order, terms, dtype):
    """Batch axes last, contracting axes in the middle: their order in the sum is that of lhs."""
    rng = np.random.default_rng(terms)
    lhs, rhs = (rng.normal(size=(3, terms, 2)).astype(dtype) for _ in range(2))
    found = added(lambda a, b: lax.dot_general(a, b, INNERMOST), (lhs, rhs), order)
    assert found.shape == (2, 3, 3)
    for batch, i, j in itertools.product(range(2), range(3), range(3)):
        products = multiplied(lhs[i, :, batch], rhs[j, :, batch])
        assert found[batch, i, j] == LOOPS[order](products, in_dtype(F32))


@pytest.mark.parametrize("order", LOOPS)
@pytest.mark.parametrize("terms", [1, 9, 50])
def test_each_part_of_a_complex_dot_is_twice_as_many_real_products(order, terms):
    rng = np.random.default_rng(terms)
    lr, li, rr, ri = rng.normal(size=(4, 3, terms, 2)).astype(F32)
    lhs, rhs = lr + 1j * li, rr + 1j * ri
    found = added(lambda a, b: lax.dot_general(a, b, INNERMOST), (lhs, rhs), order)
    for batch, i, j in itertools.product(range(2), range(3), range(3)):
        at = (i, slice(None), batch), (j, slice(None), batch)
        real = multiplied(lr[at[0]], rr[at[1]]) + multiplied(li[at[0]], -ri[at[1]])
        imaginary = multiplied(lr[at[0]], ri[at[1]]) + multiplied(li[at[0]], rr[at[1]])
        assert found[batch, i, j].real == LOOPS[order](real, in_dtype(F32))
        assert found[batch, i, j].imag == LOOPS[order](imaginary, in_dtype(F32))


@pytest.mark.parametrize("order", LOOPS)
def test_several_contracting_axes_are_taken_in_their_order(order):
    rng = np.random.default_rng(1)
    lhs, rhs = rng.normal(size=(4, 2, 5)).astype(F32), rng.normal(size=(5, 3, 4)).astype(F32)
    numbers = (((2, 0), (0, 2)), ((), ()))
    found = added(lambda a, b: lax.dot_general(a, b, numbers), (lhs, rhs), order)
    for i, j in itertools.product(range(2), range(3)):
        products = [lhs[m, i, k] * rhs[k, j, m] for k in range(5) for m in range(4)]
        assert found[i, j] == LOOPS[order](products, in_dtype(F32))


def test_integers_with_a_floating_result_are_added_in_float32():
    lhs = np.arange(100, dtype=np.int32).reshape(2, 50) * 9973
    found = added(
        lambda a, b: lax.dot_general(a, b, ROWS, preferred_element_type=F32),
        (lhs, lhs),
        "sequential",
    )
    assert found[0, 1] == sequential(multiplied(lhs[0], lhs[1]), in_dtype(F32))


@pytest.mark.parametrize("order", LOOPS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float8_e4m3fn"])
def test_a_declared_sum_is_added_in_its_own_dtype(order, dtype):
    """Narrow dtypes have no blocks: `pairwise` keeps the steps few."""
    rng = np.random.default_rng(2)
    element = DTYPES[dtype].numpy().type
    x = (rng.normal(size=(3, 9, 2, 5)) / 2).astype(element)
    found = added(lambda x: lax.reduce_sum(x, (1, 3)), (x,), order)

    def add(a, b):
        """Exact in float32 for what is drawn here, then rounded to the dtype."""
        return element(F32(a) + F32(b))

    loop = LOOPS["pairwise" if order == "blocked" and dtype != "float32" else order]
    for i, j in itertools.product(range(3), range(2)):
        terms = [element(t) for t in x[i, :, j, :].ravel()]
        assert found[i, j] == float(loop(terms, add))


@st.composite
def convolutions(draw):
    """Shapes (batch and features first) and attributes of small convolutions."""
    rank = draw(st.integers(1, 2))

    def per_axis(low, high):
        return tuple(draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank)))

    groups, by_feature = draw(st.integers(1, 2)), draw(st.booleans())
    features, out_features, batch = (draw(st.integers(1, n)) for n in (5, 2, 2))
    layouts = [tuple(draw(st.permutations(range(rank + 2)))) for _ in range(3)]
    lhs = (
        batch * (1 if by_feature else groups), features * (groups if by_feature else 1),
        *per_axis(2, 5),
    )  # fmt: skip
    rhs = (out_features * groups, features, *per_axis(1, 3))
    attributes = {
        "window_strides": per_axis(1, 3),
        "padding": [draw(st.tuples(st.integers(-1, 3), st.integers(0, 3))) for _ in range(rank)],
        "lhs_dilation": per_axis(1, 3),
        "rhs_dilation": per_axis(1, 3),
        "feature_group_count": groups if by_feature else 1,
        "batch_group_count": 1 if by_feature else groups,
        "dimension_numbers": lax.ConvDimensionNumbers(*layouts),
    }
    return lhs, rhs, attributes


def laid_out(array, spec):
    """Batch and features first, to where a dimension specification puts them."""
    return np.ascontiguousarray(np.moveaxis(array, range(array.ndim), spec))


def window(lhs, rhs, attributes, image, first, corner):
    """(lhs element, tap) by feature, then by tap; an implicit zero is (None, tap)."""
    for feature in range(rhs.shape[0]):
        for tap in itertools.product(*map(range, rhs.shape[1:])):
            at = []
            for axis, k in enumerate(tap):
                hole = attributes["lhs_dilation"][axis]
                place = corner[axis] * attributes["window_strides"][axis]
                place += k * attributes["rhs_dilation"][axis] - attributes["padding"][axis][0]
                size = lhs.shape[2 + axis]
                at.append(place // hole if place % hole == 0 else -1)
                at[-1] = at[-1] if 0 <= at[-1] < size else None
            inside = None not in at
            yield lhs[(image, first + feature, *at)] if inside else None, rhs[(feature, *tap)]


@given(conv=convolutions(), seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from([F32, bf16]))
@settings(max_examples=60, deadline=None)
def test_a_convolution_is_added_by_feature_and_tap(conv, seed, dtype):
    lhs_shape, rhs_shape, attributes = conv
    rng = np.random.default_rng(seed)
    lhs, rhs = (rng.normal(size=shape).astype(dtype) for shape in (lhs_shape, rhs_shape))
    numbers = attributes["dimension_numbers"]
    arrays = laid_out(lhs, numbers.lhs_spec), laid_out(rhs, numbers.rhs_spec)
    eqn = equation(lambda a, b: lax.conv_general_dilated(a, b, **attributes), *arrays)
    found = {o: honest.add_up(eqn, [widen(x) for x in arrays], o) for o in honest.ORDERS}
    shape = eqn.outvars[0].aval.shape
    batch, out_features, *spatial = (shape[axis] for axis in numbers.out_spec)
    by_batch, by_feature = attributes["batch_group_count"], attributes["feature_group_count"]
    for n, o in itertools.product(range(batch), range(out_features)):
        group = o // (out_features // (by_batch * by_feature))
        image = n + (group * batch if by_batch > 1 else 0)
        first = group * rhs.shape[1] if by_feature > 1 else 0
        for corner in itertools.product(*map(range, spatial)):
            pairs = window(lhs, rhs[o], attributes, image, first, corner)
            products = [F32(0.0) if a is None else F32(a) * F32(b) for a, b in pairs]
            for order, out in found.items():
                got = out.transpose(numbers.out_spec)[(n, o, *corner)]
                assert got == LOOPS[order](products, in_dtype(F32))
    assert all(out.shape == shape for out in found.values())
    assert math.prod(shape) == batch * out_features * math.prod(spatial)


def test_nothing_to_add_is_zero():
    none = np.zeros((2, 0), F32)
    for order in honest.ORDERS:
        assert added(lambda x: lax.reduce_sum(x, (1,)), (none,), order).tolist() == [0.0, 0.0]
        assert added(lambda x: lax.reduce_sum(x, (0,)), (none,), order).shape == (0,)
        dots = added(lambda a, b: lax.dot_general(a, b, ROWS), (none, none), order)
        assert dots.tolist() == [[0.0, 0.0], [0.0, 0.0]]
        long = np.zeros((0, 100), F32)
        assert added(lambda x: lax.reduce_sum(x, (1,)), (long,), order).shape == (0,)


def test_the_orders_differ_where_they_may_and_agree_where_sums_are_exact(interpret):
    rng = np.random.default_rng(4)
    lhs, rhs = rng.normal(size=(16, 200)).astype(F32), rng.normal(size=(200, 16)).astype(F32)
    found = interpret(lambda a, b: a @ b, lhs, rhs)
    spreads = found.honest["out"]
    assert set(spreads) == set(honest.ORDERS)
    rms = np.sqrt(np.mean((found.f64["out"].point - found.strict["out"].point) ** 2))
    assert all(rms < spread.rms < 100 * rms for spread in spreads.values())
    whole = rng.integers(-9, 9, (16, 200)).astype(F32)
    exact = interpret(lambda a, b: a @ b.T, whole, whole)
    assert all(spread.rms == 0 for spread in exact.honest.get("out", {}).values())
