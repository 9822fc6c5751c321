"""Names of what a program returns."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from parity.program.outputs import ProgramError, named, nested

ONE = jnp.ones(2)


class Pair(NamedTuple):
    left: object
    right: object


@pytest.mark.parametrize(
    ("tree", "names"),
    [
        (ONE, ["out"]),
        ((ONE, ONE), ["out.0", "out.1"]),
        ([ONE, (ONE, {"k": ONE})], ["out.0", "out.1.0", "out.1.1.k"]),
        ({"loss": ONE, "grads": {"w": ONE, "b": (ONE,)}}, ["grads.b.0", "grads.w", "loss"]),
        (Pair(ONE, {"a": ONE}), ["left", "right.a"]),
        ((None, ONE), ["out.1"]),
        ({1: ONE}, ["out.1"]),
        (np.float32(3), ["out"]),
        (np.arange(3), ["out"]),
    ],
)
def test_names(tree, names):
    assert list(named(tree)) == names
    assert all(isinstance(array, jax.Array) for array in named(tree).values())


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (None, "the program returned no array (got None)"),
        ((), "the program returned no array (got an empty tuple)"),
        ({}, "the program returned no array (got an empty dict)"),
        (
            3,
            "the program returned an int as out; outputs are arrays, such as jax.numpy.asarray "
            "makes",
        ),
        (
            {"a": ONE, "b": "x"},
            "the program returned a str as b; outputs are arrays, such as jax.numpy.asarray makes",
        ),
        ({"a.b": ONE, "a": {"b": ONE}}, "the program returned two arrays under the name a.b"),
        (jax.random.key(0), "the program returned key<fry> elements as out"),
        (np.array("text"), "the program returned <U4 elements as out"),
    ],
)
def test_what_is_no_output(tree, message):
    with pytest.raises(ProgramError) as caught:
        named(tree)
    assert str(caught.value) == message


def test_nested_undoes_the_names_of_nested_dicts():
    tree = {"params": {"Dense_0": {"kernel": 1, "bias": 2}}, "batch_stats": {"mean": 3}}
    flat = {"params.Dense_0.kernel": 1, "params.Dense_0.bias": 2, "batch_stats.mean": 3}
    assert nested(flat) == tree
