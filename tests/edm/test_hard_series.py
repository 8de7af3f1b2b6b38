"""Series that are hard for floating point: constant predictions, transients, level shifts, outliers."""

from __future__ import annotations

import warnings

import naive
import numpy as np
import pytest

import pyedmcl


def single_event(n):
    """Zeros but for one row, which is no other row's neighbour: every prediction is the same number."""
    x = np.zeros(n, np.float32)
    x[n // 2] = 1
    return x


@pytest.mark.parametrize("E", [2, 3, 4])
@pytest.mark.parametrize("n", [100, 500, 4000])
def test_simplex_of_constant_predictions_has_no_skill(one_device, n, E):
    assert np.isnan(pyedmcl.simplex(single_event(n), E=E, Tp=0, device=one_device).rho)


@pytest.mark.parametrize("E", [1, 2, 3, 5])
def test_xmap_of_constant_predictions_has_no_skill(one_device, E):
    events = (np.random.default_rng(0).random((400, 6)) < 0.01).astype(np.float32)
    expected = naive.xmap(events, E)
    assert np.isnan(expected).any() and np.isfinite(expected).any()
    np.testing.assert_allclose(pyedmcl.xmap(events, E=E, device=one_device).rho, expected, rtol=0, atol=1e-5)


def transient(size):
    """Rows before the first embedded one lie far away, so that the scored rows are far from the mean of all."""
    x = naive.noisy_maps(2, 1000, 5).astype(np.float64)
    x[:20] += size
    return x.astype(np.float32)


@pytest.mark.parametrize("size", [1e3, 1e4])
def test_xmap_after_a_transient(one_device, size):
    x = transient(size)
    got = pyedmcl.xmap(x, E=11, tau=2, device=one_device).rho
    np.testing.assert_allclose(got, naive.xmap(x, 11, tau=2), rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", [1e3, 1e4])
def test_embed_dimension_after_a_transient(one_device, size):
    x = transient(size)[:, 0]
    rho = pyedmcl.embed_dimension(x, E_max=11, tau=2, device=one_device).rho
    np.testing.assert_allclose(rho, naive.embed_dimension(x, 11, tau=2)[1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("shift", [1e2, 3e3])
def test_xmap_where_gaps_hide_a_level_shift(one_device, shift):
    """The library has no rows before the target's level shift: its own mean is far from that of the scored rows."""
    x = naive.noisy_maps(2, 1000, 5).astype(np.float64)
    x[:500, 1] += shift
    x[:500, 0] = np.nan
    x = x.astype(np.float32)
    got = pyedmcl.xmap(x, E=3, device=one_device).rho
    np.testing.assert_allclose(got, naive.xmap(x, 3), rtol=0, atol=1e-4)


def test_one_outlier_does_not_cost_the_offset_its_accuracy(one_device):
    """float64 data far from zero with one dropout: rounding to float32 must not lose the digits of all the others."""
    x = naive.noisy_maps(2, 1000, 5).astype(np.float64) + 1e5
    x[7, 0] = 0.0
    got = pyedmcl.xmap(x, E=3, device=one_device).rho
    np.testing.assert_allclose(got, naive.xmap(x, 3), rtol=0, atol=1e-4)


@pytest.mark.parametrize(("dtype", "outlier"), [("float32", 1e25), ("float64", 1e200)])
def test_outliers_beside_which_all_else_vanishes_are_told(one_device, dtype, outlier):
    """Squares of the other differences are 0, so that neighbours are any rows."""
    x = np.random.default_rng(0).standard_normal(200)
    x[50] = outlier
    with pytest.warns(RuntimeWarning, match=f"differences of the others vanish in {dtype}"):
        pyedmcl.knn(x, E=2, dtype=dtype, device=one_device)
    x[50] = 1e9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pyedmcl.knn(x, E=2, dtype=dtype, device=one_device)
        pyedmcl.knn(x * 1e30, E=2, dtype=dtype, device=one_device)
