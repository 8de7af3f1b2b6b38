"""Lag profiles of cross recurrence: against the matrix, with bands that hold their level."""

from __future__ import annotations

import numpy as np
import pytest
from rqa_oracle import matrix

import pyedmcl
from pyedmcl.errors import InputError

RNG = np.random.default_rng(0)


def series(n, seed):
    return np.cumsum(np.random.default_rng(seed).standard_normal(n)) / 3


def by_definition(x, y, lags, gaps=False, **options):
    """Rates of x at t and y at t + lag, from the whole matrix (rows y, columns x)."""
    cells = matrix(x, y, **options)
    if options.get("convention") == "recurrenceanalysis":
        cells = cells.T
    there = np.outer(~np.isnan(y), ~np.isnan(x)) if gaps else np.ones(cells.shape, bool)
    out = []
    for lag in range(-lags, lags + 1):
        black, every = np.diagonal(cells, -lag), np.diagonal(there, -lag)
        out.append(black.sum() / every.sum() if every.sum() else np.nan)
    return np.array(out)


@pytest.mark.parametrize("convention", ["pyrqa", "crqa", "recurrenceanalysis"])
@pytest.mark.parametrize("case", ["plain", "unequal", "gaps", "embedded", "maximum"])
def test_profiles_are_rates_of_diagonals(device, case, convention):
    x, y = series(90, 1), series(70 if case == "unequal" else 90, 2)
    options = {"radius": 0.7, "convention": convention}
    if case == "gaps":
        x[[5, 40]] = y[60] = np.nan
    if case == "embedded":
        options |= {"m": 3, "tau": 2}
    if case == "maximum":
        options |= {"metric": "maximum", "m": 2}
    wanted = by_definition(x, y, 20, gaps=case == "gaps", **options)
    found = pyedmcl.lag_profile(x, y, lags=20, device=device, **options)
    np.testing.assert_allclose(found.rate[0], wanted, rtol=1e-13)
    assert found.lags.tolist() == list(range(-20, 21))
    result = pyedmcl.rqa(x, y, theiler=0, device=device, **options)
    np.testing.assert_array_equal(result.lag_profile(20).rate, found.rate)
    batch = pyedmcl.rqa_batch([x, y], [y, x], theiler=0, device=device, **options).lag_profile(20)
    np.testing.assert_array_equal(batch.rate[0], found.rate[0])
    np.testing.assert_allclose(batch.rate[1], found.rate[0][::-1], rtol=1e-13)  # who leads follows


def test_the_whole_profile_of_a_dyad_of_codes(one_device):
    """As crqa's drpfromts computes it: means of all diagonals; y follows x by two."""
    x = np.array([1, 2, 3, 4, 1, 3, 2, 4, 4, 1.0])
    y = np.roll(x, 2)
    found = pyedmcl.lag_profile(x, y, radius=0, convention="crqa", device=one_device)
    np.testing.assert_allclose(found.rate[0], by_definition(x, y, 9, radius=0, convention="crqa"))
    assert found.max_lag.tolist() == [2] and found.max_rate.tolist() == [1.0]


@pytest.mark.parametrize("surrogate", ["blocks", "shift", "shuffle", "pairs"])
@pytest.mark.parametrize("options", [{}, {"m": 3, "tau": 2}, {"convention": "recurrenceanalysis"},
                                     {"radius": 0.1, "threshold": "recurrence_rate"}, {"scale": 1e180}], ids=str)
def test_surrogates_are_compared_as_dyads_are(one_device, options, surrogate, monkeypatch):
    """Where a surrogate is y itself, it has y's profile."""
    from pyedmcl.recurrence import profile

    options = dict(options)
    scale = options.pop("scale", 1.0)
    x, y = [scale * series(80, at) for at in range(4)], [scale * series(80, 9 + at) for at in range(4)]
    monkeypatch.setattr(profile, "_drawn", lambda y, at, n, *_: [y[at]] * n)
    given = {"radius": 0.7 * scale, "lags": 15, "device": one_device, **options}
    found = pyedmcl.lag_profile(x, y, n=2, surrogate=surrogate, **given)
    np.testing.assert_array_equal(found.surrogates, np.stack([found.rate, found.rate], axis=1))
    assert (found.p_value == 1).all()


def test_windows_tell_who_leads_when(one_device):
    noise = np.random.default_rng(3).standard_normal(600)
    y = np.concatenate([np.roll(noise, 4)[:300], np.roll(noise, -4)[300:]])
    table = pyedmcl.windowed_rqa(noise, 150, 150, y=y, radius=0.1, theiler=0, device=one_device)
    found = table.lag_profile(10)
    assert found.max_lag.tolist() == [4, 4, -4, -4] and found.labels == {"start": (0, 150, 300, 450)}


@pytest.mark.parametrize("surrogate", ["blocks", "pairs"])
def test_each_window_has_the_profile_and_band_of_a_dyad(one_device, surrogate):
    x, y = [series(120, at) for at in range(4)], [series(120, 9 + at) for at in range(4)]
    given = {"lags": 8, "radius": 0.7, "m": 2, "n": 3, "surrogate": surrogate, "seed": 3, "device": one_device}
    found = pyedmcl.lag_profile(dict(zip("abcd", x, strict=True)), y, window=50, step=35, **given)
    assert found.labels == {"series": tuple("aaabbbcccddd"), "start": (0, 35, 70) * 4}
    for place, (at, start) in enumerate((at, start) for at in range(4) for start in (0, 35, 70)):
        sides = [[side[start : start + 50] for side in dyads] for dyads in (x, y)]
        alone = pyedmcl.lag_profile(*sides, **given)
        np.testing.assert_array_equal(found.rate[place], alone.rate[at])
        if surrogate == "pairs":  # y of the other dyads in the same rows: three of three, in another order
            both = (np.sort(one.surrogates[row], axis=0) for one, row in ((found, place), (alone, at)))
            np.testing.assert_array_equal(*both)
    one = pyedmcl.lag_profile(x[0], y[0], window=50, lags=8, radius=0.7, device=one_device)
    assert one.labels == {"start": (0, 50)} and one.to_frame().columns.tolist() == ["start", "lag", "rate"]


def test_times_of_dyads_are_regular_and_the_same(one_device):
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2020-01-01", periods=60).delete(range(20, 25))
    x, y = (pd.Series(series(55, at), days) for at in (1, 2))
    given = {"lags": 5, "radius": 0.7, "device": one_device}
    for sides in ((x, y), ([x], [y])):
        with pytest.raises(InputError, match="regular='ignore'"):
            pyedmcl.lag_profile(*sides, **given)
        np.testing.assert_array_equal(
            pyedmcl.lag_profile(*sides, regular="ignore", **given).rate,
            pyedmcl.lag_profile(x.to_numpy(), y.to_numpy(), **given).rate,
        )
        filled = [side.asfreq("D").to_numpy() for side in (x, y)]
        found = pyedmcl.lag_profile(*sides, regular="insert", **given)
        np.testing.assert_array_equal(found.rate, pyedmcl.lag_profile(*filled, **given).rate)
    with pytest.raises(InputError, match="y has other times than x"):
        pyedmcl.lag_profile(x, y.set_axis(days + pd.Timedelta("1h")), regular="ignore", **given)


@pytest.mark.parametrize("surrogate", ["blocks", "shift", "shuffle"])
def test_bands_and_p_values_hold_their_level(one_device, surrogate):
    """Of independent noise, 5 % of the dyads reach p <= 0.05, and 5 % of the rates lie outside a band of 0.95."""
    rng = np.random.default_rng(5)
    x, y = ([rng.standard_normal(120) for _ in range(300)] for _ in range(2))
    found = pyedmcl.lag_profile(x, y, lags=5, radius=0.5, n=39, surrogate=surrogate, seed=1, device=one_device)
    low, high = found.band
    outside = ((found.rate < low) | (found.rate > high)).mean()
    assert 0.03 < outside < 0.075
    held = (found.p_value <= 0.05).mean()
    assert held < 0.05 + 3.3 * np.sqrt(0.05 * 0.95 / 300) and (held > 0.01 or surrogate == "shift")


def test_dyads_in_step_are_found(one_device):
    rng = np.random.default_rng(6)
    x = [rng.standard_normal(150) for _ in range(20)]
    y = [np.roll(one, 2) + 0.2 * rng.standard_normal(150) for one in x]
    for surrogate, n in (("blocks", 39), ("shuffle", 39), ("pairs", 19)):
        found = pyedmcl.lag_profile(x, y, lags=6, radius=0.3, n=n, surrogate=surrogate, seed=2, device=one_device)
        assert (found.max_lag == 2).all() and (found.p_value <= 0.05).all()
        mean = found.mean()
        assert mean.max_lag.tolist() == [2] and mean.band[1][0, mean.lags == 2] < mean.max_rate
    again = pyedmcl.lag_profile(x, y, lags=6, radius=0.3, n=19, surrogate="pairs", seed=2, device=one_device)
    np.testing.assert_array_equal(found.surrogates, again.surrogates)
    assert found.to_frame().columns.tolist() == ["series", "lag", "rate", "low", "high"]
    assert dict(found.to_xarray().sizes) == {"profile": 20, "lag": 13}


@pytest.mark.parametrize(("given", "message"), [
    ({"lags": 100}, "lags=100"), ({"n": -1}, "n=-1"), ({"surrogate": "phase"}, "surrogate='phase'"),
    ({"level": 1.0}, "level=1.0"), ({"n": 5, "surrogate": "pairs"}, "there are 0 others"),
    ({"n": 5, "threshold": "neighbours", "radius": 3}, "threshold='neighbours'"),
    ({"window": 1}, "window=1"), ({"window": 1000}, "window=1000"), ({"step": 5}, "need window="),
    ({"radius": [0.1, 0.2]}, "one radius"), ({"seed": -1}, "seed=-1"), ({"y": None}, "y"),
])  # fmt: skip
def test_bad_input(one_device, given, message):
    x = series(50, 1)
    given = {"y": x[::-1].copy(), "radius": 0.5, "device": one_device, **given}
    with pytest.raises(InputError, match=message):
        pyedmcl.lag_profile(x, **given)


def test_a_band_needs_surrogates(one_device):
    with pytest.raises(InputError, match="n=99"):
        _ = pyedmcl.lag_profile(series(50, 1), series(50, 2), radius=0.5, device=one_device).band
