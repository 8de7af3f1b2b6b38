"""Whether one of two dependent skills is higher: p-values hold their level, also for series that remember."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pyedmcl.network.legs import _p_of_ratio, common_shocks, p_of_order, z_of_difference, z_of_lags


def smooth(rng, shape, memory):
    """Noise, each row of which is a mean of some before."""
    noise = rng.standard_normal((*shape[:-1], shape[-1] + memory))
    return sum(noise[..., step : step + shape[-1]] for step in range(memory + 1))


@pytest.mark.parametrize("memory", [0, 3])
def test_equal_skills_are_told_apart_at_the_level(memory):
    rng = np.random.default_rng(1)
    goal, one, two = smooth(rng, (3, 3000, 300), memory)
    z = z_of_difference((goal + one, goal), (goal + two, goal))
    share = (p_of_order(z, np.full(3000, np.nan)) <= 0.05).mean()
    assert 0.035 < share < 0.085
    if memory:  # as if rows were independent, far more would pass
        naive = [np.arctanh([np.corrcoef(g + x, g)[0, 1] for g, x in zip(goal, noise, strict=True)])
                 for noise in (one, two)]  # fmt: skip
        assert ((naive[0] - naive[1]) * math.sqrt(297) > 1.645).mean() > 0.15


def test_a_difference_between_skills_that_share_their_errors_is_seen():
    rng = np.random.default_rng(2)
    goal, error = rng.standard_normal((2, 200, 300))
    better, worse = goal + 0.5 * error, goal + 0.5 * error + 0.3 * rng.standard_normal((200, 300))
    z = z_of_difference((better, goal), (worse, goal))
    assert (p_of_order(z, np.full(200, np.nan)) <= 0.05).mean() > 0.9
    np.testing.assert_allclose(z_of_difference((worse, goal), (better, goal)), -z)
    scaled = z_of_difference((better * 1e200, goal * 1e-200), (worse, goal))
    np.testing.assert_allclose(scaled, z, rtol=1e-9)


def test_gaps_and_constants():
    rng = np.random.default_rng(3)
    goal, one, two = rng.standard_normal((3, 1, 100))
    holed = one.copy()
    holed[0, 90:] = np.nan
    cut = [(values[:, :90], goal[:, :90]) for values in (one, two)]
    assert z_of_difference((holed, goal), (two, goal)) == pytest.approx(z_of_difference(*cut), rel=0.05)
    assert z_of_difference((one, goal), (one, goal)) == 0
    assert np.isnan(z_of_difference((np.ones((1, 100)), goal), (two, goal)))
    assert np.isnan(z_of_difference((one[:, :9], goal[:, :9]), (two[:, :9], goal[:, :9])))


def test_lags_are_aligned_by_the_states_that_estimate():
    rng = np.random.default_rng(4)
    values = rng.standard_normal((100, 2))
    estimates = values.T[[1, 1]] + rng.standard_normal((2, 100))
    estimates[0, :3] = np.nan  # of states before row 5
    (z,) = z_of_lags(estimates, values, np.array([1, 1]), np.array([-2, 1]))
    # States 5 to 98 have both.
    rows = [(estimates[:1, 3:97], values[None, 3:97, 1]), (estimates[1:, 6:100], values[None, 6:100, 1])]
    assert z == pytest.approx(z_of_difference(*rows)[0], abs=1e-9)


def test_the_opposite_direction_counts_where_it_is_best_later():
    z, opposite = np.array([1.2, 1.2, 1.2]), np.array([-1.2, 0.5, np.nan])
    alone, together = (0.5 * math.erfc(value / math.sqrt(2)) for value in (1.2, 1.2 * math.sqrt(2)))
    np.testing.assert_allclose(p_of_order(z, opposite), [together, alone, alone])


def test_of_two_directions_that_come_first_one_has_to_be_clearer():
    rng = np.random.default_rng(5)
    z, opposite = rng.normal(4, 1, (2, 2000))  # as where series feel one weather at once
    shocks = np.ones(2000, bool)
    assert 0.035 < (p_of_order(z, opposite, shocks) <= 0.05).mean() < 0.07
    assert (p_of_order(z, opposite) <= 0.05).mean() > 0.95
    assert (p_of_order(z + 6, opposite, shocks) <= 0.05).mean() > 0.95


def driven(rng, n, link, shock):
    """Two autoregressions with innovations that are correlated in the row, the first of which may drive the second."""
    noise = rng.standard_normal((n, 2)) @ np.linalg.cholesky(np.array([[1, shock], [shock, 1]])).T
    x = np.zeros((n, 2))
    for t in range(1, n):
        x[t] = 0.7 * x[t - 1] + (0, link * x[t - 1, 0]) + noise[t]
    return x


@pytest.mark.parametrize("gap", [False, True])
def test_a_shock_within_the_row_is_told_from_a_link(gap):
    """Of 40 tables each: a shock alone explains both directions, a link besides it one, and no shock none."""
    rng, asked, found = np.random.default_rng(6), ~np.eye(2, dtype=bool), {}
    for link, shock in ((0.0, 0.7), (0.4, 0.7), (0.4, 0.0)):
        tables = [driven(rng, 300, link, shock) for _ in range(40)]
        for x in tables if gap else ():
            x[100:104, 0] = np.nan
        dims = np.array([3, 3])
        found[link, shock] = np.mean([common_shocks(x, dims, 1, asked, 0.05) for x in tables], axis=0)
    assert found[0.0, 0.7][0, 1] > 0.85 and found[0.0, 0.7][1, 0] > 0.85  # row = effect
    assert found[0.4, 0.7][1, 0] < 0.05 and found[0.4, 0.7][0, 1] > 0.85
    assert found[0.4, 0.0].max() < 0.2


def test_ratios_of_variances_hold_their_level():
    rng = np.random.default_rng(7)
    for above, below in ((1, 20), (3, 100), (10, 250)):
        ratio = rng.chisquare(above, 4000) / above / (rng.chisquare(below, 4000) / below)
        share = np.mean([_p_of_ratio(one, above, below) <= 0.05 for one in ratio])
        assert share == pytest.approx(0.05, abs=0.012)  # 3.5 standard errors
