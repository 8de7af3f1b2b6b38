"""p-values by counting surrogates, and adjusted for how many tests there are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.statistics import exceedance, tell_reach


def test_false_discovery_by_definition():
    rng = np.random.default_rng(1)
    p = rng.random((4, 5)) ** 2
    p[2, 3] = np.nan
    q = pyedmcl.false_discovery(p)
    flat = np.sort(p[np.isfinite(p)])
    for place in np.ndindex(p.shape):
        if np.isnan(p[place]):
            assert np.isnan(q[place])
            continue
        larger = [flat[i] * len(flat) / (i + 1) for i in range(len(flat)) if flat[i] >= p[place]]
        assert q[place] == pytest.approx(min(*larger, 1.0))
    np.testing.assert_array_equal(pyedmcl.false_discovery([0.5]), [0.5])
    with pytest.raises(InputError, match="0 to 1"):
        pyedmcl.false_discovery([0.5, 1.5])


@pytest.mark.parametrize(
    ("found", "tests", "n", "rate"), [(3, 6, 39, 0.05), (7, 28, 79, 0.05), (12, 12, 19, 0.05), (6, 240, 799, 0.05),
                                      (1, 6, 59, 0.1)]
)  # fmt: skip
def test_a_rate_that_is_met_exactly_is_met(found, tests, n, rate):
    """Three of six p-values at 1 / 40 give 0.05, not a rounding more."""
    p = np.full(tests, 0.9)
    p[:found] = 1 / (n + 1)
    q = pyedmcl.false_discovery(p)
    assert (q <= rate).sum() == found
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tell_reach(p, n, rate)


def test_rates_near_a_short_number_stay_where_they_are():
    for p in (0.05 * (1 + 1e-12), 0.05 * (1 - 1e-12), 1 / 3, 1e-30, 0.0):
        assert pyedmcl.false_discovery([p])[0] == p


def test_false_discovery_agrees_with_scipy():
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    p = np.random.default_rng(2).random(30) ** 3
    np.testing.assert_allclose(pyedmcl.false_discovery(p), stats.false_discovery_control(p))


NO_PROBABILITIES = ([0.5, np.inf], [0.5, -np.inf], [0.5 + 0.5j], [2.0], [-0.1], ["0.5"], {})


@pytest.mark.parametrize("p", NO_PROBABILITIES)
def test_what_is_no_probability_is_refused(p):
    """Also infinities, which are no missing values, and imaginary parts."""
    with pytest.raises(InputError, match="p_values"):
        pyedmcl.false_discovery(p)


def test_masked_probabilities_are_missing():
    p = np.ma.masked_array([0.01, 0.02, 0.5], [False, True, False])
    np.testing.assert_array_equal(pyedmcl.false_discovery(p), [0.02, np.nan, 0.5])


def test_p_values_are_counts():
    surrogates = np.array([[0.1, 0.5, 0.5, np.nan], [0.1, 0.2, 0.3, 0.4], [np.nan] * 4, [0.0] * 4])
    found = exceedance(np.array([0.5, 0.9, 0.1, np.nan]), surrogates)
    np.testing.assert_allclose(found, [3 / 4, 1 / 5, np.nan, np.nan])
