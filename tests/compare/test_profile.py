"""Error against magnitude."""

import itertools
import math

import numpy as np
import pytest

from parity.compare.profile import BANDS, SAMPLE, profile
from parity.dtypes import dtype


def of(got, want, name="float32"):
    got = np.asarray(got, dtype(name).numpy())
    return profile(got, np.asarray(want), dtype(name))


def test_each_power_of_two_is_a_band_with_its_largest_and_mean_error():
    # ulp(1) = ulp(1.5) = 2^-23, ulp(2) = 2^-22, ulp(8) = 2^-20
    want = np.array([0.0, 1.0, 1.5, 2.0, 8.0])
    off = np.array([0.0, 3 * 2.0**-23, 2.0**-23, 2.0**-22, 5 * 2.0**-20])
    assert of(want + off, want) == (
        (0.0, 1, 0.0, 0.0),
        (1.0, 2, 3.0, 2.0),
        (2.0, 1, 1.0, 1.0),
        (8.0, 1, 5.0, 5.0),
    )


def test_the_sign_does_not_matter_and_a_float_below_one_has_its_own_power():
    (band,) = of([-0.25], [-0.25])
    assert band == (0.25, 1, 0.0, 0.0)


def test_a_wide_range_is_cut_into_few_equal_bands():
    want = 2.0 ** np.arange(-100, 101).astype(np.float64)
    bands = of(want, want)
    assert len(bands) <= BANDS
    assert sum(count for _, count, _, _ in bands) == 201
    widths = {math.log2(b[0] / a[0]) for a, b in itertools.pairwise(bands)}
    assert widths == {7.0}  # 201 powers in 31 bands
    assert bands[0][0] == 2.0**-100


def test_a_nan_is_the_largest_error_of_its_band_and_what_no_finite_value_is_wanted_is_left_out():
    bands = of([np.nan, 1.0, np.inf], [1.0, 1.0, np.inf])
    ((low, count, largest, mean),) = bands
    assert (low, count) == (1.0, 2)
    assert math.isnan(largest)
    assert math.isnan(mean)
    assert of([1.0], [np.nan]) == ()


def test_complex_elements_go_by_their_modulus_and_integers_by_their_distance():
    assert of([3 + 4j], [3 + 4j], "complex64") == ((4.0, 1, 0.0, 0.0),)
    assert of([7, 9], np.array([5, 9]), "int32") == ((4.0, 1, 2.0, 2.0), (8.0, 1, 0.0, 0.0))


def test_subnormal_values_have_a_band():
    assert of([5e-324], [5e-324], "float64") == ((5e-324, 1, 0.0, 0.0),)


@pytest.mark.parametrize("count", [SAMPLE, SAMPLE + 1, 3 * SAMPLE])
def test_of_many_elements_evenly_spaced_ones_are_looked_at(count):
    ((_, seen, largest, _),) = of(np.ones(count), np.ones(count))
    assert SAMPLE / 2 < seen <= SAMPLE
    assert largest == 0.0
