"""Intervals of forecasts hold what they claim, one step ahead and many, and grow with the horizon."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.forecast.simplex import _states_of_paths


def noisy_map(seed, n, noise):
    rng = np.random.default_rng(seed)
    x = np.full(n, rng.uniform(0.2, 0.8))
    for t in range(1, n):
        x[t] = 3.8 * x[t - 1] * (1 - x[t - 1])
    return x + noise * x.std() * rng.standard_normal(n)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("Tp", [1, 5])
def test_rows_that_follow_lie_within(noise, Tp, one_device):
    shares = []
    for seed in range(8):
        x = noisy_map(seed, 2400, noise)
        known = pyedmcl.simplex(x[:1200], E=2, Tp=Tp, device=one_device)
        later = pyedmcl.simplex(x, E=2, Tp=Tp, lib_range=(0, 1200), pred_range=(1200, 2390), device=one_device)
        off = np.abs(later.observed - later.predicted)
        halves = [float(np.nanmedian(upper - lower)) / 2 for lower, upper in map(known.interval, (0.5, 0.95))]
        shares.append([(off[np.isfinite(off)] <= half).mean() for half in halves])
    # Of one series the share of 0.5 has a standard deviation of 0.02 (counts of 1,200 and of 1,190 rows), and up to
    # 0.04 as rows depend on each other; that of 0.95 has 0.015.
    assert np.mean(shares, axis=0) == pytest.approx([0.5, 0.95], abs=0.03)


def test_generated_steps_lie_within_and_intervals_grow(one_device):
    hits, width = [], []
    for seed in range(24):
        x = noisy_map(seed, 306, 0.1)
        made = pyedmcl.simplex(x[:300], E=2, generate_steps=6, device=one_device)
        lower, upper = made.interval(0.8)
        hits.append((lower <= x[300:]) & (x[300:] <= upper))
        width.append(upper - lower)
    assert np.mean(hits) == pytest.approx(0.8, abs=0.09)  # 144 of them
    assert (np.diff(np.mean(width, axis=0)) > 0).all()
    assert (np.diff(made.variance) >= 0).all() and made.variance[5] > 2 * made.variance[0]
    frame = pytest.importorskip("pandas") and made.to_frame(level=0.8)
    np.testing.assert_array_equal(frame["upper"], upper)


def test_states_that_paths_came_to():
    values, paths = np.arange(6.0), np.array([[np.nan, np.nan, 22, 23, 24, 25], [np.nan, 11, 12, 13, 14, 15]])
    states = _states_of_paths(values, paths, 3, 1)
    assert states[4].tolist() == [24, 13, 2] and states[2].tolist() == [22, 11, 0] and np.isnan(states[:2]).all()
    assert _states_of_paths(values, paths, 2, 2)[5].tolist() == [25, 3]


def test_too_few_errors_for_a_level_are_told(one_device):
    found = pyedmcl.simplex(noisy_map(1, 40, 0.1), E=2, device=one_device)
    assert len(found.interval(0.9)) == 2
    with pytest.raises(InputError, match=r"level=0.99: the errors of at least 99 predictions are needed, .* are 38"):
        found.interval(0.99)
    with pytest.raises(InputError, match="level=1"):
        found.interval(1)
    other = pyedmcl.simplex(noisy_map(1, 60, 0.1), noisy_map(2, 60, 0.1), E=2, generate_steps=3, device=one_device)
    assert np.isnan(other.variance).all()
    with pytest.raises(InputError, match="errors of step 1"):
        other.interval()


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_variance_of_generated_steps_never_shrinks(noise, one_device):
    """That among neighbours does, to 1e-36: what was generated is ever nearer to a row of the library."""
    for seed in range(6):
        x = noisy_map(seed, 320, noise)
        made = pyedmcl.simplex(x[:300], E=2, generate_steps=20, device=one_device)
        off = (made.predicted - x[300:]) ** 2
        assert (np.diff(made.variance) >= 0).all() and made.variance[-1] > 0.1 * off.mean()
