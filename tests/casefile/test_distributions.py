"""The distributions: what each promises of its elements."""

import hashlib
import json

import numpy as np
import pytest

from parity.casefile.distributions import PARAMETERS, draw

COUNT = 4000


def elements(name, shape=(COUNT,), **parameters):
    return draw("x", shape, name, {**PARAMETERS[name], **parameters}, 0)


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (5, 3)])
def test_every_distribution_fills_every_shape(name, shape):
    got = elements(name, shape)
    assert (got.shape, got.dtype) == (shape, np.float64)


def test_the_stream_is_pcg64_seeded_by_sha_256():
    # Worked out from the documented rule, in Python integers: the words of PCG64 by NumPy's own
    # Generator, the sum and the scaling exactly.
    label = json.dumps(["x", [3], "normal", [], 0]).encode()
    seed = int.from_bytes(hashlib.sha256(label).digest(), "little")
    rng = np.random.Generator(np.random.PCG64(seed))
    words = [[int(w) for w in rng.integers(0, 2**64, 3, np.uint64)] for _ in range(12)]
    expected = [(sum(w[i] >> 11 for w in words) - 6 * 2**53) / 2**53 for i in range(3)]
    assert draw("x", (3,), "normal", {}, 0).tolist() == expected


def test_normal_has_the_moments_of_its_rule():
    got = elements("normal", (100_000,))
    assert abs(got.mean()) < 5 / 100_000**0.5
    assert abs(got.var() - 1) < 5 * (1.9 / 100_000) ** 0.5
    assert abs((got**4).mean() - 2.9) < 0.15
    assert abs(got).max() < 6


def test_uniform_stays_within_its_limits():
    got = elements("uniform", low=3.0, high=5.0)
    assert got.min() >= 3
    assert got.max() < 5
    assert np.histogram(got, bins=4, range=(3, 5))[0].min() > COUNT / 4 * 0.85


@pytest.mark.parametrize("name", ["log_uniform", "wide_range"])
def test_exponents_are_uniform_and_signs_mixed(name):
    got = elements(name, min_exponent=-3, max_exponent=2)
    exponents = np.frexp(got)[1] - 1
    assert sorted(set(exponents)) == [-3, -2, -1, 0, 1, 2]
    assert min(np.sum(exponents == e) for e in range(-3, 3)) > COUNT / 6 * 0.85
    assert 0.4 < np.mean(got < 0) < 0.6


def test_integers_reach_both_ends():
    got = elements("integers", low=-2.0, high=1.0)
    assert set(got) == {-2, -1, 0, 1}


def test_cancellation_leaves_small_remainders_of_large_elements():
    got = elements("cancellation", (COUNT + 1,))
    pairs = got[:-1].reshape(-1, 2)
    assert (abs(pairs) >= 1 - 2**-10).all()
    assert (abs(pairs.sum(axis=1)) <= 2**-10).all()
    assert np.count_nonzero(pairs.sum(axis=1)) > COUNT / 2 * 0.99
    assert abs(got[-1]) <= 2**-10


@pytest.mark.parametrize(
    ("of", "tiny", "eta"),
    [
        ("float32", np.finfo(np.float32).tiny, np.finfo(np.float32).smallest_subnormal),
        ("float16", np.finfo(np.float16).tiny, np.finfo(np.float16).smallest_subnormal),
        ("float64", np.finfo(np.float64).tiny, np.finfo(np.float64).smallest_subnormal),
        ("float8_e5m2", 2**-14, 2**-16),
    ],
)
def test_subnormals_are_nonzero_multiples_below_the_smallest_normal(of, tiny, eta):
    got = elements("subnormals", of=of)
    assert (got != 0).all()
    assert (abs(got) < float(tiny)).all()
    assert (np.mod(got, float(eta)) == 0).all()
    assert 0.4 < np.mean(got < 0) < 0.6


def test_signed_zeros_come_with_both_signs_at_their_share():
    got = elements("signed_zeros", share=0.25)
    zeros = got[got == 0]
    assert 0.22 < len(zeros) / COUNT < 0.28
    assert 0.4 < np.signbit(zeros).mean() < 0.6
    assert not elements("signed_zeros", share=1.0).any()


def test_nonfinite_numbers_come_in_three_kinds_at_their_share():
    got = elements("nonfinite", share=0.3)
    shares = [np.isnan(got).mean(), np.isposinf(got).mean(), np.isneginf(got).mean()]
    assert all(0.08 < share < 0.12 for share in shares)
    assert np.isfinite(elements("nonfinite", share=0.0)).all()
