"""Skill over E, tau and Tp, each that of its own call; what all ways to choose an embedding draw and refuse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.jobs import blocks
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
