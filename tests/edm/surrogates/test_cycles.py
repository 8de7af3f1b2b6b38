"""Cycles that keep their phase are found by a test of the level that it claims, and can be removed."""

from __future__ import annotations

import numpy as np
import pytest
from series_helpers import CHAIN, linked_maps, red

import pyedmcl
from pyedmcl.data.series import build_series
from pyedmcl.edm.surrogates.cycles import common_period, cycles, p_of_period, without_cycle
from pyedmcl.edm.surrogates.seasons import seasons_of
from pyedmcl.edm.surrogates.surrogate_choice import choices

WAVE = np.sin(2 * np.pi * np.arange(300) / 12)


def cycle(values, there):
    return cycles(values[None], there[None])[0]


@pytest.mark.parametrize("period", [2, 12, 75])
@pytest.mark.parametrize("memory", [0.0, 0.6])
def test_p_values_are_even_where_there_is_no_cycle(period, memory):
    there = np.ones(300, bool)
    p = np.array([p_of_period(red(300, seed, memory), there, period) for seed in range(200)])
    assert 0.01 <= (p <= 0.05).mean() <= 0.1 and 0.35 <= (p <= 0.5).mean() <= 0.65


def test_a_cycle_of_a_ninth_of_the_variance_is_found():
    """Surrogates that do not keep it would let two series that share it pass for linked."""
    chaos = linked_maps(300, np.zeros((6, 6)), 8)
    found = [cycle(x + 0.5 * x.std() * WAVE, np.ones(300, bool)) for x in chaos.T]
    assert found == [12] * 6


def test_a_cycle_that_drifts_is_none():
    rng = np.random.default_rng(1)
    drifting = np.sin(np.cumsum(2 * np.pi / 10 + 0.3 * rng.standard_normal(300)))
    assert cycle(drifting, np.ones(300, bool)) == 0
    assert cycle(np.zeros(300), np.ones(300, bool)) == 0 and p_of_period(WAVE[:20], np.ones(20, bool), 12) == 1


def test_what_others_share_is_looked_for_once_more():
    data = np.column_stack([red(240, seed) + size * WAVE[:240] for seed, size in ((1, 3), (2, 3), (3, 0.6), (4, 0))])
    alone = [cycle(x - x.mean(), np.ones(240, bool)) for x in data.T]
    assert alone == [12, 12, 0, 0]
    assert [one.period for one in choices(build_series(data, "abcd"), "auto", None)] == [12, 12, 12, 0]
    assert common_period([12, 0, 7, 12]) == 12 and common_period([12, 7]) == 0


def test_a_cycle_is_removed_and_gaps_stay():
    x = red(300, 1) + 2 * WAVE + np.abs(WAVE)
    x[[0, 70]] = np.nan
    left, there = without_cycle(x, 12), np.isfinite(x)
    assert (np.isfinite(left) == there).all()
    means = [np.nanmean(left[phase::12]) for phase in range(12)]
    np.testing.assert_allclose(means, np.nanmean(left), atol=0.02)
    assert np.nanmean(left) == pytest.approx(np.nanmean(red(300, 1)), abs=1)


def test_a_season_that_series_share_links_none_of_them(one_device):
    links = np.zeros((4, 4), bool)
    links[0, 1] = True
    data = linked_maps(300, links, 9, strength=0.4)
    data = data / data.std(axis=0) + WAVE[:, None]
    options = {"E": 3, "lags": (-2, -1, 0), "seed": 1, "partial": False, "convergence": False, "device": one_device}
    found = pyedmcl.causal_network(data, **options)
    assert found.season == 12 and len(found.without_season) == 4 and "12 rows" in found.methods()
    assert ((found.verdict == "link") == links.T).all()
    kept = pyedmcl.causal_network(data, season="keep", **options)
    assert kept.season == 0 and kept.rho[3, 2] > found.rho[3, 2] + 0.2
    assert all("12 rows" in reason for reason in kept.reasons)


def test_what_goes_up_and_down_by_turns_is_left_as_it_is(one_device):
    """Chaos may do so by itself, and drive others that then do so, too."""
    data = linked_maps(400, CHAIN, 3, strength=0.4)
    assert [one.period for one in choices(build_series(data, "abc"), "auto", None)] == [2, 2, 2]
    off = {"surrogate": None, "convergence": False, "partial": False, "E": 3, "lags": (-1, 0), "device": one_device}
    assert pyedmcl.causal_network(data, **off).season == 0


def test_a_rhythm_of_few_cycles_is_left_unless_its_period_is_known():
    wave = np.sin(2 * np.pi * np.arange(300) / 50)
    series = build_series(np.column_stack([red(300, seed) + 4 * wave for seed in (1, 2)]), "ab")
    assert [one.period for one in choices(series, "auto", None)] == [50, 50]
    assert seasons_of(series, "auto", None, remove=True).period == 0
    assert seasons_of(series, "auto", 50, remove=True).without == ("a", "b")
    shorter = build_series(series.values + 4 * WAVE[:, None] - 4 * wave[:, None], "ab")
    found = seasons_of(shorter, "auto", None, remove=True)
    assert found.period == 12 and [one.period for one in found.choices[0]] == [0, 0]


def test_series_that_are_looked_at_together_have_the_cycles_of_each(monkeypatch):
    rng = np.random.default_rng(2)
    values = rng.standard_normal((9, 200)) + np.sin(2 * np.pi * np.arange(200) / np.arange(2, 11)[:, None])
    there = rng.random((9, 200)) < np.where(np.arange(9) % 2, 0.9, 1.0)[:, None]
    monkeypatch.setattr("pyedmcl.edm.surrogates.cycles._TOGETHER", 900)  # four at a time
    together = cycles(values, there)
    assert together == [cycle(*one) for one in zip(values, there, strict=True)]
    assert sum(found > 0 for found in together) >= 5
