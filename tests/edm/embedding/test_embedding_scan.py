"""Choosing an embedding: skill over E, tau and Tp, false nearest neighbours and mutual information, against oracles."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.jobs import blocks
from pyedmcl.recurrence.mutual_information import MutualInformation
from pyedmcl.simulate import coupled_maps


def table(n=200, n_series=3):
    return coupled_maps(n_series=n_series, n_steps=n).values.astype(np.float64)


@pytest.mark.parametrize("gaps", [False, True])
def test_a_scan_is_embed_dimension_for_each_lag_and_step(one_device, gaps):
    x = table()
    if gaps:
        x[[30, 31], 1] = np.nan
    scan = pyedmcl.embedding_scan(x, E=[2, 1, 5], tau=[1, 3], Tp=[1, 0, -2], device=one_device)
    assert scan.rho.shape == (3, 3, 2, 3) and scan.axes == ("series", "E", "tau", "Tp")
    for (at, tau), (step, Tp) in itertools.product(enumerate(scan.tau), enumerate(scan.Tp)):
        alone = pyedmcl.embed_dimension(x, E_max=5, tau=tau, Tp=Tp, device=one_device)
        np.testing.assert_array_equal(scan.rho[:, :, at, step], alone.rho[:, [1, 0, 4]])


def test_blocks_and_devices_change_nothing(both_devices, monkeypatch):
    x = table()
    whole = pyedmcl.embedding_scan(x, E=range(1, 4), tau=[1, 2], device=both_devices[0])
    monkeypatch.setattr(blocks, "_BLOCK_VALUES", 1)
    seen = []
    parts = pyedmcl.embedding_scan(
        x, E=range(1, 4), tau=[1, 2], device=both_devices[0], progress=lambda *at: seen.append(at)
    )
    np.testing.assert_array_equal(whole.rho, parts.rho)
    assert seen[-1] == (6, 6, "series")
    shared = pyedmcl.embedding_scan(x, E=range(1, 4), tau=[1, 2], device=list(both_devices))
    np.testing.assert_allclose(whole.rho, shared.rho, atol=1e-5)


def test_best_selection_and_frame(one_device):
    x = table()
    scan = pyedmcl.embedding_scan(x, E=range(1, 5), tau=[1, 2], Tp=[1, 3], device=one_device)
    for series, found in enumerate(scan.best()):
        for step in range(2):
            rho = scan.rho[series, ..., step]
            assert found["rho"][step] == rho.max()
            assert rho[found["E"][step] - 1, [1, 2].index(found["tau"][step])] == rho.max()
    near = scan.sel(Tp=1).best(tolerance=0.02)
    for series, found in enumerate(near):
        rho = scan.rho[series, ..., 0]
        assert found["rho"] >= rho.max() - 0.02
        assert not (rho[: found["E"] - 1] >= rho.max() - 0.02).any()
    part = scan.sel(E=3, tau=2)
    assert (part.E, part.tau, part.Tp) == ((3,), (2,), (1, 3))
    np.testing.assert_array_equal(part.rho[:, 0, 0], scan.rho[:, 2, 1])
    one = pyedmcl.embedding_scan(x[:, 0], E=3, tau=2, Tp=[1, 3], device=one_device)
    assert one.axes == ("E", "tau", "Tp") and one.rho.shape == (1, 1, 2)
    np.testing.assert_allclose(one.rho[0, 0], scan.rho[0, 2, 1], rtol=1e-5)  # sums are split otherwise
    assert one.best()["E"] == [3, 3]
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = scan.to_frame()
    assert list(frame.columns) == ["series", "E", "tau", "Tp", "rho"] and len(frame) == 3 * 4 * 2 * 2
    row = frame[(frame.series == scan.names[1]) & (frame.E == 2) & (frame.tau == 2) & (frame.Tp == 3)]
    assert row.rho.item() == scan.rho[1, 1, 1, 1]
    assert list(one.to_frame().columns) == ["E", "tau", "Tp", "rho"]


def test_undefined_skill_has_no_best_place(one_device):
    with pytest.warns(RuntimeWarning, match="constant"):
        scan = pyedmcl.embedding_scan(np.ones(60), E=[1, 2], tau=1, device=one_device)
    assert scan.best()["E"] == 1 and np.isnan(scan.best()["rho"])


def false_share(x, E, tau, ratio, size):
    """By the definition, in loops over rows."""
    spread = np.nanstd(x)
    rows = [t for t in range(E * tau, len(x)) if not np.isnan(x[t - (E - 1) * tau : t + 1 : tau]).any()]
    states = {t: x[[t - e * tau for e in range(E)]] for t in rows}
    judged = []
    for t in rows:
        distances = {j: np.sqrt(((states[t] - states[j]) ** 2).sum()) for j in rows if j != t}
        j = min(distances, key=lambda row: (distances[row], row))
        apart = abs(x[t - E * tau] - x[j - E * tau])
        if not np.isnan(apart):
            near = distances[j]
            judged.append(apart > ratio * near or np.sqrt(near**2 + apart**2) > size * spread)
    return np.mean(judged)


@pytest.mark.parametrize("gaps", [False, True])
def test_false_neighbours_are_those_of_the_definition(device, gaps):
    x = table(120)
    if gaps:
        x[50, 1] = np.nan
    found = pyedmcl.false_neighbors(x, E_max=4, tau=2, ratio=5.0, size=1.5, device=device, dtype="float64")
    wanted = [[false_share(column, E, 2, 5.0, 1.5) for E in range(1, 5)] for column in x.T]
    np.testing.assert_allclose(found.share, wanted, rtol=1e-12)
    assert pyedmcl.false_neighbors(x[:, 0], E_max=4, device=device).share.shape == (4,)


def test_dimension_of_a_known_attractor(one_device):
    """The Henon map unfolds in two coordinates."""
    x, y, values = 0.1, 0.1, []
    for _ in range(600):
        x, y = 1 - 1.4 * x * x + y, 0.3 * x
        values.append(x)
    henon = np.array(values[100:])
    found = pyedmcl.false_neighbors(henon, E_max=4, device=one_device)
    assert found.dimension() == 2 and found.share[0] > 0.5
    noise = np.random.default_rng(0).standard_normal(500)
    assert pyedmcl.false_neighbors(noise, E_max=4, device=one_device).dimension() == 0
    scaled = pyedmcl.false_neighbors(np.ldexp(henon, 900), E_max=4, device=one_device)
    np.testing.assert_array_equal(scaled.share, found.share)


def test_binned_information_is_that_of_the_table(one_device):
    x = np.sin(np.arange(500) * 0.2) + 0.2 * np.random.default_rng(0).standard_normal(500)
    x[40] = np.nan
    found = pyedmcl.mutual_information(x, lags=[1, 7], bins=5, device=one_device)
    edges = np.quantile(x[~np.isnan(x)], [0.2, 0.4, 0.6, 0.8])
    for lag, value in zip(found.lags, found.values, strict=True):
        pairs = [(np.searchsorted(edges, a, "right"), np.searchsorted(edges, b, "right"))
                 for a, b in zip(x[lag:], x[:-lag], strict=True) if a == a and b == b]  # fmt: skip
        both, first, second = Counter(pairs), Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
        n = len(pairs)
        wanted = sum(c / n * np.log(c * n / (first[a] * second[b])) for (a, b), c in both.items())
        assert value == pytest.approx(wanted, rel=1e-12)


def brute_kraskov(a, b, k):
    n = len(a)
    psi = [-0.5772156649015329]
    for i in range(1, n + 1):
        psi.append(psi[-1] + 1 / i)
    total = 0.0
    for i in range(n):
        da, db = np.abs(a - a[i]), np.abs(b - b[i])
        reach = np.sort(np.delete(np.maximum(da, db), i))[k - 1]
        total += psi[np.sum(np.delete(da, i) < reach)] + psi[np.sum(np.delete(db, i) < reach)]
    return psi[k - 1] + psi[n - 1] - total / n


def test_kraskov_information_is_that_of_the_definition(device):
    x = np.round(np.cumsum(np.random.default_rng(1).standard_normal(150)), 2)  # some values and distances tie
    x[20] = np.nan
    found = pyedmcl.mutual_information(x, lags=[1, 5], method="kraskov", k=3, device=device)
    for lag, value in zip(found.lags, found.values, strict=True):
        known = ~np.isnan(x[lag:] + x[:-lag])
        assert value == pytest.approx(brute_kraskov(x[lag:][known], x[:-lag][known], 3), rel=1e-9)


def test_information_of_gaussian_noise_is_known(one_device):
    rng = np.random.default_rng(2)
    x = np.zeros(4000)
    for t in range(1, len(x)):
        x[t] = 0.8 * x[t - 1] + rng.standard_normal()
    wanted = [-0.5 * np.log(1 - 0.8 ** (2 * lag)) for lag in (1, 2, 8)]
    kraskov = pyedmcl.mutual_information(x, lags=[1, 2, 8], method="kraskov", device=one_device)
    np.testing.assert_allclose(kraskov.values, wanted, atol=0.04)
    binned = pyedmcl.mutual_information(x, lags=[1, 2, 8], device=one_device)
    np.testing.assert_allclose(binned.values, wanted, atol=0.08)


def test_first_minimum(one_device):
    curves = np.array([[3.0, 2.0, 2.5, 1.0], [4.0, 3.0, 2.0, 1.0], [3.0, np.nan, 1.0, 2.0]])
    found = MutualInformation(curves, (1, 2, 4, 8), ("a", "b", "c"))
    assert found.first_minimum().tolist() == [2, 8, 4]
    assert MutualInformation(curves[0], (1, 2, 4, 8), ("a",)).first_minimum() == 2
    wave = np.sin(np.arange(1000) * 2 * np.pi / 40)
    assert pyedmcl.mutual_information(wave, device=one_device).lags == tuple(range(1, 51))
    assert pyedmcl.mutual_information(wave[:30], device=one_device).lags == tuple(range(1, 11))


def test_pictures(one_device, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    x = table()
    pyedmcl.embedding_scan(x, E=[1, 2], tau=[1, 2], Tp=[1, 2], device=one_device).plot(tmp_path / "scan.png")
    pyedmcl.false_neighbors(x, E_max=3, device=one_device).plot(tmp_path / "false.png")
    many = np.tile(x, 4)
    pyedmcl.mutual_information(many, lags=5, device=one_device).plot(tmp_path / "lags.png")
    assert all((tmp_path / name).stat().st_size > 5_000 for name in ("scan.png", "false.png", "lags.png"))


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [("embedding_scan", {"E": []}, r"E=\[\]: one value or several different ones"),
     ("embedding_scan", {"tau": [1, 1]}, r"tau=\[1, 1\]: one value or several different ones"),
     ("embedding_scan", {"E": "auto"}, "E='auto'"),
     ("embedding_scan", {"tau": 0}, "tau=0"),
     ("embedding_scan", {"E": 10, "tau": 40}, "x"),
     ("false_neighbors", {"ratio": 0}, "ratio=0: a positive number is needed"),
     ("false_neighbors", {"size": float("nan")}, "size=nan"),
     ("false_neighbors", {"E_max": 500}, "x"),
     ("mutual_information", {"method": "gauss"}, "method='gauss': one of 'binned', 'kraskov'"),
     ("mutual_information", {"lags": 0}, "lags=0"),
     ("mutual_information", {"lags": []}, r"lags=\[\]"),
     ("mutual_information", {"lags": [500]}, "x: 200 values, and lags up to 500"),
     ("mutual_information", {"bins": 1}, "bins=1"),
     ("mutual_information", {"k": 0}, "k=0")],
)  # fmt: skip
def test_bad_input(one_device, function, given, message):
    with pytest.raises(InputError, match=message):
        getattr(pyedmcl, function)(table(), device=one_device, **given)


def test_unknown_places_are_refused(one_device):
    scan = pyedmcl.embedding_scan(table(), E=[1, 2], tau=1, device=one_device)
    with pytest.raises(InputError, match="E=3 was not scanned; there are 1, 2"):
        scan.sel(E=3)
    with pytest.raises(InputError, match="tolerance=-1"):
        scan.best(tolerance=-1)
    with pytest.raises(InputError, match="tolerance=2"):
        pyedmcl.false_neighbors(table(), device=one_device).dimension(2)
