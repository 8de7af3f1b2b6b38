"""Surrogates keep what they promise, and nothing else; the same seed gives the same ones."""

from __future__ import annotations

import itertools
import threading

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.series.series import build_series
from pyedmcl.surrogates.makers import Drawer, Streams, _order, _short, draw, twin_groups, twin_path
from pyedmcl.surrogates.surrogate import maker


def red(n, seed=0):
    """Red noise, skewed: its values and its spectrum say different things."""
    rng = np.random.default_rng(seed)
    x = np.zeros(n)
    for t in range(1, n):
        x[t] = 0.9 * x[t - 1] + rng.standard_normal()
    return np.exp(x / 4)


@pytest.mark.parametrize("method", ["shuffle", "phase", "iaaft", "twin", "seasonal", "auto"])
def test_seeds(method):
    x = red(120)
    one = pyedmcl.surrogate(x, method, n=6, seed=3, period=12)
    assert one.shape == (6, 120) and np.isfinite(one).all()
    np.testing.assert_array_equal(pyedmcl.surrogate(x, method, n=2, seed=3, period=12), one[:2])
    assert len({row.tobytes() for row in one}) == 6
    assert not np.array_equal(pyedmcl.surrogate(x, method, n=6, seed=4, period=12), one)
    fresh = [pyedmcl.surrogate(x, method, n=1, period=12) for _ in range(2)]
    assert not np.array_equal(*fresh)


@pytest.mark.parametrize("method", ["shuffle", "phase", "iaaft", "twin", "seasonal", "auto"])
def test_many_surrogates_are_those_that_are_drawn_one_by_one(method, monkeypatch):
    """However many are made together, and by however many threads."""
    values = np.cumsum(red(120))
    x = build_series(values * 1e200 if method == "auto" else values, ["x"])  # a wandering series that is far from 1
    make = maker(x, method, period=12)
    alone = np.concatenate([draw(make, 1, 3, 0, 120, first) for first in range(20)])
    monkeypatch.setattr("pyedmcl.surrogates.makers._SURROGATE_DRAWS_CELLS", 3 * 120)
    monkeypatch.setattr("pyedmcl.surrogates.makers.n_threads", lambda most: 4)
    np.testing.assert_array_equal(draw(make, 20, 3, 0, 120), alone)


def test_threads_and_memory_serve_from_one_draw_to_the_next(monkeypatch):
    monkeypatch.setattr("pyedmcl.surrogates.makers.n_threads", lambda most: 3)
    drawer, used = Drawer(), set()

    def make(streams):
        used.add(threading.current_thread())
        return np.full((len(streams), 1 << 16), float(streams.begin))

    first = drawer.room((1 << 16, 48), "float32")
    for _ in range(6):
        drawer.draw([(first.T, make, 0)], seed=1, first=5)
        np.testing.assert_array_equal(first[0], 5 + np.arange(48) // 8 * 8)
    # The three that are kept, of which two help at a time, and this one. Two new ones for each draw would be 13.
    assert len(used) <= 4
    drawer.give_back(first)
    smaller = drawer.room((10, 16), "float64")
    assert np.shares_memory(first, smaller) and not np.shares_memory(first, drawer.room((10, 16), "float64"))
    drawer.give_back(smaller)
    assert not np.shares_memory(first, drawer.room((1 << 16, 64), "float32"))
    drawer.release()
    assert not any(thread.is_alive() for thread in used - {threading.current_thread()})


def test_a_surrogate_that_cannot_be_drawn_ends_the_draw(monkeypatch):
    """What others have begun is done by then, so that nothing writes into the memory any more."""
    monkeypatch.setattr("pyedmcl.surrogates.makers.n_threads", lambda most: 3)
    begun, ended = [], []

    def make(streams):
        begun.append(streams.begin)
        if streams.begin == 0:
            raise MemoryError
        ended.append(streams.begin)
        return np.zeros((len(streams), 1 << 17))

    drawer = Drawer()
    with pytest.raises(MemoryError):
        drawer.draw([(np.empty((40, 1 << 17)), make, 0)], seed=1, first=0)
    assert len(ended) == len(begun) - 1 and 0 in begun
    drawer.release()


def test_shuffled_values_stay_the_same():
    x = red(100)
    x[[3, 50]] = np.nan
    for row in pyedmcl.surrogate(x, "shuffle", n=5, seed=1):
        np.testing.assert_array_equal(np.sort(row), np.sort(x))
        np.testing.assert_array_equal(np.isnan(row), np.isnan(x))


@pytest.mark.parametrize("n", [100, 101])
def test_random_phases_keep_the_spectrum(n):
    x = red(n)
    power = np.abs(np.fft.rfft(x))
    drawn = pyedmcl.surrogate(x, "phase", n=400, seed=1)
    found = np.abs(np.fft.rfft(drawn, axis=1))
    inner = slice(0, -1 if n % 2 == 0 else None)
    np.testing.assert_allclose(found[:, inner] - power[inner], 0, atol=1e-9 * power.max())
    if n % 2 == 0:  # on average only
        assert (found[:, -1] ** 2).mean() == pytest.approx(power[-1] ** 2, rel=0.2)
    # Phases are uniform: no frequency keeps its own.
    angle = np.angle(np.fft.rfft(drawn, axis=1)[:, 5])
    assert np.abs(np.exp(1j * angle).mean()) < 0.15


def test_adjusted_surrogates_keep_values_and_nearly_the_spectrum():
    x = red(1024)
    power = np.abs(np.fft.rfft(x - x.mean()))
    shuffled = pyedmcl.surrogate(x, "shuffle", n=5, seed=1)
    for row, other in zip(pyedmcl.surrogate(x, "iaaft", n=5, seed=1), shuffled, strict=True):
        np.testing.assert_array_equal(np.sort(row), np.sort(x))
        off = np.abs(np.abs(np.fft.rfft(row - row.mean())) - power).sum() / power.sum()
        worse = np.abs(np.abs(np.fft.rfft(other - other.mean())) - power).sum() / power.sum()
        assert off < 0.05 and off < worse / 20


def test_seasonal_surrogates_keep_the_mean_cycle():
    cycle = np.array([0.0, 5, 9, -3])
    x = np.tile(cycle, 25) + np.random.default_rng(1).standard_normal(100)
    x[7] = np.nan
    drawn = pyedmcl.surrogate(x, "seasonal", n=200, seed=1, period=4)
    assert np.isnan(drawn[:, 7]).all() and np.isnan(drawn).sum() == 200
    means = [np.nanmean(x[p::4]) for p in range(4)]
    for p in range(4):
        assert np.nanmean(drawn[:, p::4]) == pytest.approx(means[p], abs=0.05)
    rest = np.sort((x - np.array(means)[np.arange(100) % 4])[np.isfinite(x)])
    np.testing.assert_allclose(np.sort((drawn[0] - np.array(means)[np.arange(100) % 4])[np.isfinite(x)]), rest)


def with_season(n, period, seed):
    return 2 * np.sin(2 * np.pi * np.arange(n) / period) + np.random.default_rng(seed).standard_normal(n)


def test_a_season_of_unknown_length_is_found_and_said():
    x = with_season(240, 12, 1)
    x[7] = np.nan
    with pytest.warns(RuntimeWarning, match="period=None.*mean cycle of 12 rows, which was found in it"):
        drawn = pyedmcl.surrogate(x, "seasonal", n=3, seed=1)
    np.testing.assert_array_equal(drawn, pyedmcl.surrogate(x, "seasonal", n=3, seed=1, period=12))


def test_seasons_of_groups_are_those_that_most_have():
    """One group in which none is found, and one that is too short for two cycles."""
    rest = np.random.default_rng(7).standard_normal(140)
    x = np.concatenate([with_season(240, 12, 1), with_season(240, 12, 2), rest])
    groups = np.repeat(["a", "b", "c", "d"], [240, 240, 120, 20])
    with pytest.warns(RuntimeWarning, match="in 2 of 4 groups keeps the mean cycle of 12 rows"):
        found = pyedmcl.surrogate(x, "seasonal", n=2, seed=1, groups=groups)
    drawn = pyedmcl.surrogate(x[240:480], "seasonal", n=1, seed=1, period=12)  # the same mean cycle
    np.testing.assert_allclose(
        found[0, 240:480].reshape(20, 12).mean(axis=0), drawn.reshape(20, 12).mean(axis=0), atol=0.9
    )
    np.testing.assert_array_equal(np.sort(found[0, -20:]), np.sort(x[-20:]))


def test_tests_of_all_pairs_and_of_one_say_which_season_they_took(one_device):
    data = np.column_stack([with_season(240, 12, 1), np.random.default_rng(2).standard_normal(240)])
    asked = {"E": 2, "n": 9, "seed": 1, "surrogate": "seasonal", "device": one_device}
    own, others = "keeps the mean cycle of 12 rows, which was found in it", "which was found in others, not in it"
    every, said = pyedmcl.xmap_significance(data, **asked), pyedmcl.xmap_significance(data, period=12, **asked)
    assert every.reasons[0] == own and others in every.reasons[1] and said.reasons == ()
    np.testing.assert_array_equal(every.p_value, said.p_value)
    pair, known = pyedmcl.ccm_significance(*data.T, **asked), pyedmcl.ccm_significance(*data.T, period=12, **asked)
    assert sorted(pair.reasons) == sorted(every.reasons)
    np.testing.assert_array_equal(pair.surrogates, known.surrogates)
    with pytest.warns(RuntimeWarning, match="of x keeps the mean cycle of 12 rows, which was found in it"):
        partial = pyedmcl.partial_ccm(*data.T, given=data[::-1, 1].copy(), **asked)
    assert np.isfinite(partial.p_value).all()
    network = pyedmcl.causal_network(data, lags=None, partial=False, convergence=False, **asked)
    assert own in network.reasons
    with pytest.raises(InputError, match="period=None: no cycle was found"):
        pyedmcl.xmap_significance(data[:, [1, 1]], **asked)


def gappy():
    """Stretches of 17, 42 and 49 rows."""
    x = red(111)
    x[[17, 60, 61]] = np.nan
    return x


@pytest.mark.parametrize("method", ["phase", "iaaft"])
def test_stretches_without_gaps_have_surrogates_of_their_own(method, monkeypatch):
    x = gappy()
    said = r"each of 2 stretches of 30 rows or more without gaps and shuffles 17 values within shorter.*3 gaps stay"
    with pytest.warns(RuntimeWarning, match=said):
        drawn = pyedmcl.surrogate(x, method, n=6, seed=1)
    assert (np.isnan(drawn) == np.isnan(x)).all() and len({row.tobytes() for row in drawn}) == 6
    for stretch in (slice(18, 60), slice(62, 111)):
        own, of = np.abs(np.fft.rfft(drawn[:, stretch], axis=1)), np.abs(np.fft.rfft(x[stretch]))
        rows = slice(0, -1) if method == "phase" else slice(0, 1)  # the highest frequency is kept on average
        np.testing.assert_allclose(own[:, rows], np.broadcast_to(of[rows], own[:, rows].shape), rtol=1e-9)
        assert np.abs(own - of).max() < (np.inf if method == "phase" else 0.6 * of[1:].max())
        assert np.abs(drawn[:, stretch] - x[stretch]).max() > 0.1
        if method == "iaaft":
            np.testing.assert_array_equal(np.sort(drawn[:, stretch]), np.tile(np.sort(x[stretch]), (6, 1)))
    np.testing.assert_array_equal(np.sort(drawn[:, :17]), np.tile(np.sort(x[:17]), (6, 1)))
    make = maker(build_series(x, ["x"]), method)
    alone = np.concatenate([draw(make, 1, 1, 0, 111, first) for first in range(6)])
    monkeypatch.setattr("pyedmcl.surrogates.makers._SURROGATE_DRAWS_CELLS", 2 * 111)
    np.testing.assert_array_equal(draw(make, 6, 1, 0, 111), alone)
    np.testing.assert_array_equal(alone, drawn)


def test_the_two_halves_of_a_series_with_a_gap_do_not_share_their_phases():
    x = red(121)
    x[60], x[61:] = np.nan, x[:60]
    with pytest.warns(RuntimeWarning, match="2 stretches of 30 rows or more without gaps; 1 gap stays"):
        drawn = pyedmcl.surrogate(x, "phase", n=20, seed=1)
    alike = [np.corrcoef(row[:60], row[61:])[0, 1] for row in drawn]
    assert np.mean(alike) < 0.5


def test_tests_of_series_with_gaps_say_what_was_done(one_device):
    x = gappy()
    data = np.column_stack([x, red(111, 1)])
    asked = {"E": 2, "n": 39, "seed": 1, "device": one_device}
    phase = asked | {"surrogate": "phase"}
    every = pyedmcl.xmap_significance(data, **phase)
    assert "each of 2 stretches" in every.reasons[0] and every.reasons[1] == "keeps the power spectrum"
    assert np.isfinite(every.p_value[~np.eye(2, dtype=bool)]).all()
    pair = pyedmcl.ccm_significance(data[:, 0], data[:, 1], surrogate="iaaft", **asked)
    by_target = dict(zip([link[1] for link in pair.links], pair.reasons, strict=True))
    assert "each of 2 stretches" in by_target["x"] and by_target["y"] == "keeps the values and, nearly, the spectrum"
    with pytest.warns(RuntimeWarning, match="each of 2 stretches"):
        assert np.isfinite(pyedmcl.partial_ccm(data[:, 0], data[:, 1], given=red(111, 2), **phase).p_value).all()
    labels = np.repeat([0, 1], [61, 50])  # one group with a gap, and one that ends in gaps
    grouped = pyedmcl.xmap_significance(data, groups=labels, **phase)
    assert "of the one stretch" in grouped.reasons[0] and grouped.reasons[1] == "keeps the power spectrum"
    assert pyedmcl.xmap_significance(red(222).reshape(111, 2), **phase).reasons == ()


def test_twins_have_the_same_recurrences():
    x = np.round(np.sin(np.arange(200) * 0.7), 1)
    groups = twin_groups(x, 2, 3, 0.2)
    states = np.column_stack([x[3:], x[:-3]])
    distance = np.abs(states[:, None] - states[None]).max(axis=2)
    threshold = np.quantile(distance, 0.2)
    near = distance <= threshold
    same = (near[:, None, :] == near[None, :, :]).all(axis=2)
    np.testing.assert_array_equal(groups[:, None] == groups[None, :], same)
    assert 1 < len(np.unique(groups)) < 197
    path = twin_path(groups, 5000, np.random.default_rng(0))
    jumps = 0
    for a, b in itertools.pairwise(path):
        twins = np.flatnonzero(groups == groups[a])
        if b - 1 not in twins:
            assert 196 in twins  # a path that ends begins anywhere
        jumps += b != a + 1
    assert 0 < jumps < 5000
    # Each twin is as likely as the row itself.
    group = np.flatnonzero(groups == groups[path[10]])
    nexts = [b - 1 for a, b in itertools.pairwise(path) if groups[a] == groups[path[10]] and b - 1 in group]
    share = np.array([nexts.count(row) for row in group if row < 196]) / len(nexts)
    assert share.max() < 2.5 * share.min()


def test_twin_surrogates_are_paths_of_the_series():
    x = naive.coupled_maps(2, 300)[:, 1].astype(float)
    drawn = pyedmcl.surrogate(x, "twin", n=3, seed=2, E=2)
    assert np.isin(drawn, x).all()


X = red(60)
GAPPY = X.copy()
GAPPY[17] = np.nan


@pytest.mark.parametrize(
    ("x", "options", "words"),
    [
        (X, {"method": "fourier"}, "method='fourier'"),
        (X, {"n": 0}, "n=0"),
        (X, {"seed": -2}, "seed=-2"),
        (X, {"method": "seasonal"}, "period=None: no cycle was found"),
        (X, {"method": "seasonal", "period": 1}, "period=1"),
        (X, {"method": "seasonal", "period": 31}, "period=31"),
        (X, {"method": "twin", "recurrence": 1.0}, "recurrence=1.0"),
        (X, {"method": "twin", "E": 59}, "E=59"),
        (X, {"method": "auto", "period": 31}, "period=31"),
        (np.where(np.arange(60) % 30 == 20, np.nan, X), {"method": "phase"}, "'phase' surrogates of series.*30 rows"),
        (np.where(np.arange(60) % 30 == 20, np.nan, X), {"method": "iaaft"}, "'iaaft' surrogates of series.*30 rows"),
        (GAPPY, {"method": "twin"}, "gap in row 17"),
        (X[:3], {}, "at least 4"),
        (np.ones((9, 2)), {}, "one series"),
    ],
)
def test_bad_input_is_named(x, options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.surrogate(x, **options)


def test_the_order_of_values_is_the_stable_one():
    rng = np.random.default_rng(1)
    tied = rng.integers(0, 3, 500).astype(float), np.zeros(50), np.tile([1.0, -1.0], 40)
    for values in (rng.standard_normal(500), *tied):
        np.testing.assert_array_equal(_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("width", [1, 7, 16, 101])
def test_phases_do_not_depend_on_which_surrogates_are_drawn_together(width):
    whole = Streams(3, 2, 0, 96).turns(width).copy()
    for begin, end in ((0, 1), (5, 6), (31, 33), (7, 96), (64, 96), (40, 50)):
        np.testing.assert_array_equal(Streams(3, 2, begin, end).turns(width), whole[begin:end])


def test_random_numbers_of_16_bits_are_those_of_numpy():
    for n in (1, 4, 5, 33, 1000):
        numbers = np.random.Generator(np.random.Philox(7)).integers(0, 1 << 16, n, np.uint16)
        np.testing.assert_array_equal(_short(np.random.Philox(7), n), numbers)
