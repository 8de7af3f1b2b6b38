"""Networks of recordings that stand one below the other: each leg keeps them apart, as the function it stands for."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest
from cli_helpers import inside
from series_helpers import CHAIN, linked_maps

import pyedmcl
from pyedmcl.errors import InputError

SIZES = (110, 70, 90)
LABELS = np.repeat(["b", "a", "c"], SIZES)
LAGS = (-3, -2, -1, 0, 1)
CALL = {"E": 3, "lags": LAGS, "seed": 1}
OFF = ~np.eye(3, dtype=bool)


def recordings():
    """Parts of one chain, with much left out between them."""
    data = linked_maps(600, CHAIN, 3, strength=0.4)
    return np.concatenate([data[begin : begin + size] for begin, size in zip((0, 200, 400), SIZES, strict=True)])


def apart(values, gap):
    """With rows of NaN between groups."""
    parts = np.split(values, np.cumsum(SIZES)[:-1])
    nothing = np.full((gap, values.shape[1]), np.nan)
    return np.concatenate([parts[0], nothing, parts[1], nothing, parts[2]])


@pytest.fixture(scope="module")
def found(one_device):
    return pyedmcl.causal_network(recordings(), groups=LABELS, n="auto", budget=60, device=one_device, **CALL)


def test_every_leg_is_the_function_that_it_stands_for(found, one_device):
    data, own = recordings(), {"E": 3, "groups": LABELS, "device": one_device}
    for place, Tp in enumerate(LAGS):
        np.testing.assert_allclose(found.by_lag[place], pyedmcl.xmap(data, Tp=Tp, **own).rho, atol=1e-6)
    for lag in np.unique(found.Tp):
        own_pairs = OFF & (found.Tp == lag)
        one = pyedmcl.ccm_matrix(data, Tp=int(lag), seed=1, sample=10, **own)
        np.testing.assert_allclose(found.gain[own_pairs], one.gain[own_pairs], atol=0.02)  # eight sizes of other rows
    n = int(found.draws[1, 0])
    drawn = pyedmcl.surrogate(data[:, 0], "auto", n=n, seed=1, groups=LABELS)  # series 0 of the seed
    wide = np.concatenate([data, drawn.T], axis=1)
    skill = np.max([pyedmcl.xmap(wide, Tp=Tp, **own).rho[1, 3:] for Tp in (-3, -2, -1)], axis=0)
    assert found.p_value[1, 0] == (1 + (skill >= found.rho[1, 0]).sum()) / (n + 1)


def test_no_leg_reaches_over_a_border(found, one_device):
    """As with any longer gap; also estimates of what passes through others, which may lie beyond a group's last row."""
    only = {"E": 3, "Tp": 3, "lags": None, "surrogate": None, "convergence": False, "device": one_device}
    long = pyedmcl.causal_network(apart(recordings(), 40), **only)
    plain = pyedmcl.causal_network(recordings(), groups=LABELS, **only)
    np.testing.assert_allclose(plain.by_lag, long.by_lag, atol=2e-6)
    assert np.isfinite(plain.carried).any()
    for name in ("through", "carried", "partial"):
        np.testing.assert_allclose(getattr(plain, name), getattr(long, name), atol=1e-5, err_msg=name)
    np.testing.assert_array_equal(plain.verdict, long.verdict)
    assert {(row[0], row[1]): row[2] for row in found.rows()}["x0", "x1"] == "direct"
    assert found.groups == 3 and found.n_steps == sum(SIZES)
    assert "of 270 rows in 3 recordings were" in found.methods()


def test_libraries_of_whole_groups(found, one_device):
    data, labels = recordings(), np.arange(270) // 18
    both = [
        pyedmcl.causal_network(
            data, groups=labels, draw=draw, surrogate=None, partial=False, lib_sizes=[20, 80], device=one_device, **CALL
        ) for draw in ("rows", "groups")
    ]  # fmt: skip
    assert not np.array_equal(both[0].gain, both[1].gain)
    for lag in np.unique(both[1].Tp):
        pairs = OFF & (both[1].Tp == lag)
        one = pyedmcl.ccm_matrix(
            data, E=3, Tp=int(lag), seed=1, sample=10, groups=labels, draw="groups", lib_sizes=[20, 80],
            device=one_device,
        )  # fmt: skip
        np.testing.assert_allclose(both[1].gain[pairs], one.gain[pairs], atol=1e-6)
    pair = pyedmcl.ccm(
        data[:, 0], data[:, 1], E=3, seed=1, sample=10, groups=labels, draw="groups", lib_sizes=[20, 80],
        device=one_device,
    )  # fmt: skip
    one = pyedmcl.ccm_matrix(
        data[:, :2], E=3, seed=1, sample=10, groups=labels, draw="groups", lib_sizes=[20, 80], device=one_device
    )
    np.testing.assert_allclose(one.at(80)[0, 1], pair.rho[0, 1].mean(), rtol=1e-6)
    with pytest.raises(InputError, match="draw='groups': groups= is needed"):
        pyedmcl.causal_network(data, draw="groups", device=one_device)
    for wrong in ({"method": "smap"}, {"skill": "spearman"}):
        with pytest.raises(InputError, match="draw='groups': method='simplex' with skill='pearson'"):
            pyedmcl.ccm_matrix(data, E=3, groups=labels, draw="groups", device=one_device, **wrong)


def test_a_season_that_groups_share_is_removed_from_each(one_device):
    rng = np.random.default_rng(4)
    rows = np.concatenate([np.arange(160), np.arange(5, 165)])  # the second recording begins at another month
    season = np.sin(2 * np.pi * rows / 12)[:, None]
    data, labels = season * [1, 2] + 0.3 * rng.standard_normal((320, 2)), np.repeat([0, 1], 160)
    only = {"E": 2, "surrogate": None, "partial": False, "convergence": False, "lags": (-1, 0, 1), "device": one_device}
    found = pyedmcl.causal_network(data, groups=labels, **only)
    assert found.season == 12 and found.without_season == ("x0", "x1")
    assert np.nanmax(found.rho[[0, 1], [1, 0]]) < 0.3
    kept = pyedmcl.causal_network(data, groups=labels, season="keep", **only)
    assert kept.season == 0 and kept.rho[0, 1] > 0.7


def test_short_groups_and_times(one_device):
    data = recordings()
    labels = np.where(np.arange(270) < 267, LABELS, "tiny")  # three rows, of which no surrogate can be made
    dates = pandas.date_range("2001-01-01", periods=270)
    times = np.concatenate([dates[:110], dates[:70], dates[:80], dates[90:100]])  # each begins anew, one has a hole
    frame = pandas.DataFrame(data, index=times)
    options = {"partial": False, "convergence": False, "device": one_device, **CALL}
    with pytest.raises(InputError, match=r"data: group c: 10 rows are missing in 1 place, before row 260"):
        pyedmcl.causal_network(frame, groups=labels, n=9, **options)
    with pytest.warns(RuntimeWarning) as told:
        found = pyedmcl.causal_network(
            frame, groups=labels, n=9, regular="ignore", **options
        )
    said = [str(one.message) for one in told]
    assert any("fewer in 'tiny (3 rows)': they hold no state with a target" in one for one in said)
    assert any(one.startswith("data: group c: 10 rows are missing") for one in said)
    assert not any("goes back" in one for one in said)
    assert np.isfinite(found.p_value[OFF]).all()
    with pytest.raises(InputError, match="so that no group is left"):
        pyedmcl.causal_network(data, groups=np.arange(270), device=one_device)


def test_the_command(tmp_path, one_device):
    data = recordings()
    frame = pandas.DataFrame(data, columns=["a", "b", "c"]).assign(plot=LABELS)
    frame.to_csv(tmp_path / "in.csv", index=False)
    done = inside("network", tmp_path / "in.csv", "--groups", "plot", "--E", 3, "--lags", "-3:1", "--n", 19,
                  "--seed", 1, "--json", "--device", one_device)  # fmt: skip
    assert done.returncode == 0, done.stderr
    shell = {(row["cause"], row["effect"]): row for row in json.loads(done.stdout)["pairs"]}
    with pytest.warns(RuntimeWarning, match="n=19 surrogates are too few"):
        own = pyedmcl.causal_network(frame, groups="plot", n=19, device=one_device, **CALL)
    for row in own.rows():
        assert shell[row[0], row[1]]["rho"] == pytest.approx(row[3])
        assert shell[row[0], row[1]]["p_value"] == row[9]
