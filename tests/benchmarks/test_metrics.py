"""The price of the metrics, as ratios to a peer in the same process."""

import time

import ml_dtypes
import numpy as np
import pytest

from parity.compare.metrics import measure

pytestmark = pytest.mark.benchmark


def _best(function, repeat):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def test_all_metrics_of_a_large_output_cost_no_more_than_assert_allclose():
    want = np.random.default_rng(0).standard_normal(20_000_000)
    got = want.astype(np.float32)
    assert measure(got, want).max_ulp <= 0.5  # compiles; a rounded value is half an ulp off

    ours = _best(lambda: measure(got, want), 3)
    theirs = _best(lambda: np.testing.assert_allclose(got, want, rtol=1e-6), 3)
    print(f"measure {ours:.3f} s, assert_allclose {theirs:.3f} s")
    assert ours <= 1.0 * theirs


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_all_metrics_of_a_small_output_cost_a_few_assert_allclose(dtype):
    want = np.random.default_rng(0).standard_normal(16)
    got = want.astype(dtype)
    widened = got.astype(np.float64)

    def hundred(function):
        return lambda: [function() for _ in range(100)]

    ours = _best(hundred(lambda: measure(got, want)), 20)
    theirs = _best(hundred(lambda: np.testing.assert_allclose(widened, want, rtol=1e-2)), 20)
    print(f"measure {ours * 1e4:.0f} us, assert_allclose {theirs * 1e4:.0f} us")
    assert ours <= 6 * theirs
