"""Surrogates of method "auto" keep what the series shows, say so, and are right where others find links by chance."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from series_helpers import red

import pyedmcl
from pyedmcl.series.series import build_series
from pyedmcl.surrogates import surrogate
from pyedmcl.surrogates.makers import draw
from pyedmcl.surrogates.surrogate import SeriesMakers, choose, choose_each, seasons_of, wanders

SEASON = 3 * np.sin(2 * np.pi * np.arange(240) / 12) + np.cos(2 * np.pi * np.arange(240) / 6)


@pytest.mark.parametrize(
    ("x", "period", "trend", "steps", "words"),
    [
        (red(240, 1), 0, False, False, "since it has no lasting cycle or trend"),
        (red(240, 2) + SEASON, 12, False, False, "mean cycle of 12 rows"),
        (red(240, 3) + 0.03 * np.arange(240), 0, True, False, "slow change"),
        (red(240, 4) + SEASON + 0.03 * np.arange(240), 12, True, False, "mean cycle of 12 rows, which repeats itself"),
        (np.cumsum(red(240, 5, 0.0)), 0, False, True, "does not return to a mean"),
        (np.ones(240), 0, False, False, "spectrum"),
    ],
)
def test_what_a_series_suggests(x, period, trend, steps, words):
    found = choose(x)
    assert (found.period, found.trend, found.steps) == (period, trend, steps)
    assert words in found.reason


def test_a_season_is_kept_and_the_rest_keeps_its_spectrum():
    x = red(240, 2) + SEASON
    drawn = pyedmcl.surrogate(x, "auto", n=200, seed=1)
    cycle = x.reshape(20, 12).mean(axis=0)
    np.testing.assert_allclose(drawn.reshape(200, 20, 12).mean(axis=(0, 1)), cycle, atol=0.2)
    rest, others = x - np.tile(cycle, 20), drawn - np.tile(cycle, 20)
    memory = float((rest[1:] * rest[:-1]).sum() / (rest**2).sum())
    kept = (others[:, 1:] * others[:, :-1]).sum(axis=1) / (others**2).sum(axis=1)
    assert kept.mean() == pytest.approx(memory, abs=0.1)


def test_the_reason_tells_of_a_season_that_was_removed():
    time = np.arange(480)
    season = np.sin(2 * np.pi * time / 12)
    series = build_series(np.stack([red(480, 1) + 2 * season, red(480, 2) + 2 * season, red(480, 3)], axis=1))
    found = seasons_of(series, "auto", None, remove=True)
    assert found.without == ("x0", "x1")
    assert ["its cycle of 12 rows" in choice.reason for choice in found.choices[0]] == [True, True, False]


def test_gaps_stay_and_are_told_of():
    x = red(240, 2) + SEASON
    x[[0, 50, 51]] = np.nan
    drawn = pyedmcl.surrogate(x, "auto", n=3, seed=1)
    assert (np.isnan(drawn) == np.isnan(x)).all()
    assert "3 gaps stay" in choose(x).reason
    walk = np.cumsum(red(240, 5, 0.0))
    walk[[0, 50, 239]] = np.nan
    drawn = pyedmcl.surrogate(walk, "auto", n=3, seed=1)
    assert (np.isnan(drawn) == np.isnan(walk)).all() and choose(walk).steps


def test_each_series_is_looked_at_once(one_device, monkeypatch):
    """However many rounds of surrogates and calls there are; on a worker not at all."""
    seen = []
    monkeypatch.setattr(surrogate, "_FOUND", {})
    monkeypatch.setattr(surrogate, "wanders", lambda values: seen.append(values) or wanders(values))
    data = np.column_stack([red(120, i, 0.3) for i in range(4)])
    found = pyedmcl.xmap_significance(data, E=2, surrogate="auto", seed=1, device=one_device)
    assert found.n > 39 and len(found.reasons) == len(seen) == 4
    given = pickle.dumps(SeriesMakers(build_series(data, "abcd"), "auto", 1, None, 0.1))
    surrogate._FOUND.clear()
    makers = pickle.loads(given)
    assert makers.reasons == found.reasons
    drawn = draw(makers.of(1, 2), 2, 5, 0, 120)
    assert len(seen) == 4
    np.testing.assert_array_equal(drawn, pyedmcl.surrogate(data[:, 1], "auto", n=2, seed=5))  # which looks at it
    for other in (0, 2, 3):
        pyedmcl.ccm_significance(data[:, 1], data[:, other], E=2, surrogate="auto", n=19, seed=1, device=one_device)
    assert len(seen) == 8


def test_what_is_kept_of_series_is_bounded_and_theirs(monkeypatch):
    """The oldest is forgotten first; a period that is named is another question; together and alone are the same."""
    monkeypatch.setattr(surrogate, "_FOUND", {})
    monkeypatch.setattr(surrogate, "_MOST_FOUND", 3)
    columns = [red(240, 7), red(240, 8) + SEASON, np.cumsum(red(240, 9, 0.0)), red(240, 10) + 0.03 * np.arange(240)]
    together = choose_each(columns)
    assert len(surrogate._FOUND) == 3
    assert [choose(values) for values in reversed(columns)] == together[::-1]
    assert choose(columns[1]).period == 12 and choose(columns[1], 6).period == 6


@pytest.mark.parametrize("kind", ["season", "trend", "walk"])
def test_series_that_share_nothing_but_time_are_not_linked(kind, one_device):
    """Of ten networks without links, with a common season or trend or of random walks, one at most has an arrow."""
    common = {"season": SEASON[:120], "trend": 0.05 * np.arange(120.0), "walk": np.zeros(120)}[kind]
    arrows = 0
    for trial in range(10):
        noise = np.column_stack([red(120, 100 * trial + i, 0.3) for i in range(4)])
        data = common[:, None] + (np.cumsum(noise, axis=0) if kind == "walk" else noise)
        found = pyedmcl.xmap_significance(data, E=2, surrogate="auto", seed=trial, device=one_device)
        assert len(found.reasons) == 4
        arrows += bool(found.significant(0.05).any())
    assert arrows <= 1
