"""The price of the metrics, as ratios to a peer in the same process."""

import ml_dtypes
import numpy as np
import pytest

from parity.compare.metrics import measure

pytestmark = pytest.mark.benchmark


def test_all_metrics_of_a_large_output_against_assert_allclose(ratio, interleaved):
    want = np.random.default_rng(0).standard_normal(20_000_000)
    got = want.astype(np.float32)
    assert measure(got, want).max_ulp <= 0.5  # compiles; a rounded value is half an ulp off

    ours, theirs = interleaved(
        lambda: measure(got, want),
        lambda: np.testing.assert_allclose(got, want, rtol=1e-6),
        rounds=3,
    )
    ratio("all metrics of 2e7 float32 / assert_allclose", ours, theirs, 1.0)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_all_metrics_of_a_small_output_against_assert_allclose(dtype, ratio, interleaved):
    want = np.random.default_rng(0).standard_normal(16)
    got = want.astype(dtype)
    widened = got.astype(np.float64)

    def hundred(function):
        return lambda: [function() for _ in range(100)]

    ours, theirs = interleaved(
        hundred(lambda: measure(got, want)),
        hundred(lambda: np.testing.assert_allclose(widened, want, rtol=1e-2)),
        rounds=20,
    )
    ratio(f"all metrics of 16 {np.dtype(dtype).name} / assert_allclose", ours, theirs, 6.0)
