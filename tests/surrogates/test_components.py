"""Cycles that keep their phase are found by a test of the level that it claims, and can be removed."""

from __future__ import annotations

import numpy as np
import pytest
from series_helpers import CHAIN, linked_maps, red

import pyedmcl
from pyedmcl.series.series import as_series, build_series
from pyedmcl.surrogates.components import (
    Components,
    Line,
    Spectrum,
    common_line,
    components_of,
    far_from_normal,
    lines_of,
    normal_scores,
    without_cycle,
)
from pyedmcl.surrogates.surrogate import choices, choose, seasons_of

WAVE = np.sin(2 * np.pi * np.arange(300) / 12)
WHOLE = np.ones(300, bool)


def cycle(values, there=WHOLE):
    lines = lines_of(values - values[there].mean(), there)
    return lines[0].period if lines else 0


@pytest.mark.parametrize(("period", "drift"), [(2, False), (12, False), (12.37, False), (60, False), (12.37, True)])
@pytest.mark.parametrize("memory", [0.0, 0.6])
def test_p_values_are_even_where_there_is_no_cycle(period, drift, memory):
    p = np.array([Spectrum.of(red(300, seed, memory), WHOLE).p_of(period, drift) for seed in range(200)])
    assert 0.01 <= (p <= 0.05).mean() <= 0.1 and 0.35 <= (p <= 0.5).mean() <= 0.65


@pytest.mark.parametrize("period", [5.3, 12, 12.37, 29.53])
def test_a_cycle_of_a_ninth_of_the_variance_is_found(period):
    """Surrogates that do not keep it would let two series that share it pass for linked."""
    chaos, wave = linked_maps(300, np.zeros((6, 6)), 8), np.sin(2 * np.pi * np.arange(300) / period)
    found = [lines_of(x - x.mean() + 0.5 * x.std() * wave, WHOLE) for x in chaos.T]  # some go by turns, too
    assert all(any(line.period == pytest.approx(period, rel=0.02) for line in lines) for lines in found)


@pytest.mark.parametrize("gap", [False, True])
def test_the_length_is_a_real_number_and_a_whole_one_where_that_will_do(gap):
    there = WHOLE.copy()
    there[140:150] = not gap
    for period in (7.31, 12.0, 12.42, 29.53):
        found = cycle(red(300, 3, 0.4) + 2 * np.sin(2 * np.pi * np.arange(300) / period), there)
        assert found == pytest.approx(period, rel=0.01) and (found == period) == (period == 12)


def test_a_cycle_that_drifts_by_chance_is_none_and_one_that_drifts_slowly_is_found():
    rng = np.random.default_rng(1)
    drifting = np.sin(np.cumsum(2 * np.pi / 10 + 0.8 * rng.standard_normal(300)))
    assert cycle(drifting) == 0 and cycle(np.zeros(300)) == 0
    way = np.linspace(0, 1, 300)
    slow = np.sin(2 * np.pi * (np.arange(300) / 10 + 0.8 * way**2)) * (1 + 0.5 * way)
    (line,) = lines_of(slow + 0.5 * rng.standard_normal(300), WHOLE)
    assert line.drift and line.period == pytest.approx(9.7, abs=0.2)
    left = without_cycle(slow, line)
    assert left.std() < 0.15 * slow.std()


@pytest.mark.parametrize(("slow", "jumps", "x"), [
    (1, 0, 4 * np.linspace(0, 1, 300)), (None, 0, 4 / (1 + np.exp((150 - np.arange(300)) / 20))),
    (None, 0, 4 * np.exp(-(((np.arange(300) - 120) / 40) ** 2))), (0, 1, 4.0 * (np.arange(300) > 180)),
    (0, 2, 4.0 * (np.arange(300) > 80) - 6 * (np.arange(300) > 200)),
])  # fmt: skip
def test_slow_change_and_steps_are_told_apart(slow, jumps, x):
    found, _ = components_of(x + red(300, 2, 0.4), WHOLE, 18)
    assert len(found.jumps) == jumps and not found.lines
    assert found.slow >= 2 if slow is None else found.slow == slow
    rest = x - found.fitted(x, WHOLE)
    assert rest.std() < 0.2 * x.std()
    if jumps:
        assert found.jumps[0] == pytest.approx({1: 181, 2: 81}[jumps], abs=3)


@pytest.mark.parametrize("n", [60, 150, 400])
def test_little_is_found_in_noise(n):
    rng = np.random.default_rng(n)
    found = [components_of(rng.standard_normal(n), np.ones(n, bool))[0] for _ in range(100)]
    assert sum(bool(one.lines) for one in found) <= 11  # 5 % expected
    assert sum(bool(one.slow) for one in found) <= 40 and sum(bool(one.jumps) for one in found) <= 10


def test_ranks_for_what_is_far_from_normal():
    rng = np.random.default_rng(1)
    assert not far_from_normal(rng.standard_normal(500)) and far_from_normal(np.exp(rng.standard_normal(500)))
    assert far_from_normal(rng.standard_cauchy(500)) and not far_from_normal(np.ones(5))
    scores = normal_scores(np.array([3.0, 1.0, 1.0, 9.0]))
    assert scores[1] == scores[2] < scores[0] < scores[3]
    x = np.exp(red(400, 2))
    drawn = pyedmcl.surrogate(x, "auto", n=50, seed=1)
    np.testing.assert_allclose(np.sort(drawn, axis=1), np.sort(x)[None].repeat(50, axis=0))
    assert "the values and the spectrum" in choose(x).reason
    logs = np.log(drawn)
    memory = [np.corrcoef(one[1:], one[:-1])[0, 1] for one in (*logs, np.log(x))]
    assert np.mean(memory[:-1]) == pytest.approx(memory[-1], abs=0.07)


def test_spread_that_has_a_season_is_kept():
    rng = np.random.default_rng(3)
    spread = np.exp(0.9 * np.sin(2 * np.pi * np.arange(480) / 12.37))
    x = spread * rng.standard_normal(480)
    assert "how its spread changes in 12.3" in choose(x).reason
    drawn = pyedmcl.surrogate(x, "auto", n=200, seed=1)
    assert np.corrcoef(drawn.std(axis=0), spread)[0, 1] > 0.9


def test_what_others_share_is_looked_for_once_more():
    data = np.column_stack([red(240, seed) + size * WAVE[:240] for seed, size in ((1, 3), (2, 3), (3, 0.6), (4, 0))])
    alone = [cycle(x, np.ones(240, bool)) for x in data.T]
    assert alone == [12, 12, 0, 0]
    assert [one.period for one in choices(build_series(data, "abcd"), "auto", None)] == [12, 12, 12, 0]
    lines = [[Line(12)], [], [Line(7)], [Line(12.05)]]
    assert common_line(lines, 240) == Line(12) and common_line(lines[1:], 240) is None


def test_what_no_other_has_is_no_season_to_be_kept():
    wave = np.sin(2 * np.pi * np.arange(240) / 17.3)
    data = np.column_stack([red(240, 1) + 3 * WAVE[:240], red(240, 2) + 3 * wave])
    assert [choose(x).period > 0 for x in data.T] == [True, True]
    assert [one.period for one in choices(build_series(data, "ab"), "auto", None)] == [0, 0]


def test_a_cycle_is_removed_and_gaps_stay():
    x = red(300, 1) + 2 * WAVE + np.abs(WAVE)
    x[[0, 70]] = np.nan
    left, there = without_cycle(x, Line(12.0, 6)), np.isfinite(x)
    assert (np.isfinite(left) == there).all()
    means = [np.nanmean(left[phase::12]) for phase in range(12)]
    np.testing.assert_allclose(means, np.nanmean(left), atol=0.02)
    assert np.nanmean(left) == pytest.approx(np.nanmean(x), abs=0.05)
    assert not Components() and Components(jumps=(3,))


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


def _rotators(rng, coupled):
    """Phases of the same mean speed that noise disturbs, each pulled towards the one before it."""
    phase = rng.uniform(0, 2 * np.pi, 4)
    out = np.empty((500, 4))
    for row in range(-100, 500):
        pull = np.sin(np.roll(phase, 1) - phase)
        phase = phase + 2 * np.pi / rng.choice([13.7, 14.3]) + coupled * pull + 0.08 * rng.standard_normal(4)
        if row >= 0:
            out[row] = np.sin(phase) + 0.1 * rng.standard_normal(4)
    return out


@pytest.mark.parametrize("seed", range(6))
def test_a_rhythm_of_the_series_themselves_is_no_season(seed):
    """Its phase wanders, so that a peak stays beside the line; that of a calendar leaves noise."""
    rng = np.random.default_rng(seed)
    rhythm = as_series(_rotators(rng, 0.2))
    assert seasons_of(rhythm, "auto", None, remove=True).period == 0
    noise = np.zeros((500, 4))
    for row in range(1, 500):
        noise[row] = 0.5 * noise[row - 1] + rng.standard_normal(4)
    calendar = as_series(noise + 1.5 * np.sin(2 * np.pi * np.arange(500)[:, None] / 14 + np.arange(4)))
    found = seasons_of(calendar, "auto", None, remove=True)
    assert abs(found.period - 14) < 0.05
    assert len(found.without) == 4
