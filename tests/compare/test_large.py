"""The compiled pass against NumPy's."""

import math
import sys

import ml_dtypes
import numpy as np
import pytest

from parity.compare import metrics
from parity.compare.metrics import measure, scan_blocks
from parity.dtypes import dtype

large = pytest.importorskip("parity.compare.large")

N = 150_001  # three blocks, the last one partial


def _hard(kind, seed):
    """Numbers of every exponent, zeros of both signs, infinities, NaNs and equal neighbours."""
    generator = np.random.default_rng(seed)
    limit = {"float16": 20, "float64": 300}.get(kind, 130)
    x = generator.standard_normal(N) * 2.0 ** generator.integers(-limit, limit, N)
    for value in (0.0, -0.0, np.inf, -np.inf, np.nan):
        x[generator.integers(0, N, 20)] = value
    return x


def _near(x, seed):
    """The same with small errors in a third of it, and other special values in other places."""
    generator = np.random.default_rng(seed)
    y = x * (1 + 1e-3 * generator.standard_normal(len(x)) * (generator.random(len(x)) < 0.3))
    for value in (0.0, -0.0, np.inf, -np.inf, np.nan):
        y[generator.integers(0, N, 20)] = value
    return y


@pytest.fixture(autouse=True)
def _binned(monkeypatch):
    monkeypatch.setattr(metrics, "LARGE", 1000)


@pytest.mark.filterwarnings("ignore:invalid value|overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("wide", [True, False], ids=["f64", "same"])
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("special", [True, False], ids=["special", "finite"])
def test_the_same_numbers_as_numpy(kind, wide, special):
    element = dtype(kind)
    x = _hard(kind, 1) if special else np.random.default_rng(1).standard_normal(N)
    got = (_near(x, 2) if special else x * (1 + 1e-4)).astype(element.numpy())
    want = x if wide else x.astype(element.numpy())
    expected, expected_p99 = scan_blocks(got, want, element)
    found, p99 = large.scan(got, want, element)
    assert p99 == expected_p99
    for name in expected.__slots__:
        a, b = getattr(found, name), getattr(expected, name)
        if name == "sums":
            _assert_sums(a, b)
        else:
            assert a == b or (math.isnan(a) and math.isnan(b)), name


def _assert_sums(found, expected):
    for name in ("absolute", "ulp"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-11)
    scale = 2.0 ** (2 * (found.exponent - expected.exponent))
    for name in ("error_squared", "want_squared", "got_squared"):
        a, b = getattr(found, name) * scale, getattr(expected, name)
        np.testing.assert_allclose(a, b, rtol=1e-11)
    np.testing.assert_allclose(
        found.signed_ulp, expected.signed_ulp, rtol=1e-11, atol=1e-11 * expected.ulp
    )


@pytest.mark.parametrize("exponent", [0, 1000, -1040])
def test_squares_of_huge_and_tiny_float64(exponent):
    want = np.resize([3.0, 4.0], N) * 2.0**exponent
    total, _ = large.scan(want * 1.5, want, dtype("float64"))
    sums = total.sums
    assert math.sqrt(sums.error_squared / sums.want_squared) == pytest.approx(0.5, rel=1e-12)


def test_measure_uses_it_for_large_outputs_and_reports_as_usual(monkeypatch):
    calls = []
    monkeypatch.setattr(large, "scan", lambda *a, scan=large.scan: calls.append(a) or scan(*a))
    want = np.ones((3, N), np.float64)
    got = want.astype(ml_dtypes.bfloat16)
    got[2, 70_000] = 1.0078125  # one ulp above
    m = measure(got, want)
    assert len(calls) == 1
    assert (m.count, m.differing, m.max_ulp, m.max_abs) == (3 * N, 1, 1, 2.0**-7)
    assert [e.index for e in m.worst] == [(2, 70_000)]
    assert m.histogram[0] == 3 * N - 1
    assert sum(m.histogram) == 3 * N


def test_without_numba_numpy_does_the_work(monkeypatch):
    want = np.random.default_rng(0).standard_normal(N)
    got = want.astype(np.float32)
    compiled = measure(got, want)
    monkeypatch.setitem(sys.modules, "parity.compare.large", None)
    monkeypatch.delattr("parity.compare.large")
    plain = measure(got, want)
    assert plain.max_ulp == compiled.max_ulp
    assert plain.worst == compiled.worst
    assert plain.histogram == compiled.histogram
    assert plain.p99_ulp == compiled.p99_ulp
    assert plain.rms_rel == pytest.approx(compiled.rms_rel, rel=1e-12)
