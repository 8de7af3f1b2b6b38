"""Skill over prediction intervals and exclusion radii, delay tables, and multiview embedding."""

from __future__ import annotations

import itertools

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError


def series(n, seed=0):
    return naive.noisy_maps(1, n, seed)[:, 0].astype(np.float64)


def test_prediction_intervals(one_device):
    x, y = series(200), series(200, 1)
    result = pyedmcl.predict_interval(x, target=y, E=2, Tp=[1, 3, -2, 0], exclusion_radius=1, device=one_device)
    for place, Tp in enumerate((1, 3, -2, 0)):
        expected = naive.simplex(x, target=y, E=2, Tp=Tp, exclusion_radius=1)
        for name in ("rho", "mae", "rmse"):
            assert getattr(result, name)[place] == pytest.approx(expected[name], abs=2e-5)
    assert result.parameter == "Tp" and result.best == result.values[np.nanargmax(result.rho)]
    assert pyedmcl.predict_interval(x, E=2, device=one_device).values.tolist() == list(range(1, 11))


def test_chaos_is_forgotten(one_device):
    x = np.full(400, 0.4)
    for t in range(1, 400):
        x[t] = 3.9 * x[t - 1] * (1 - x[t - 1])
    rho = pyedmcl.predict_interval(x, E=2, Tp=(1, 6, 12), device=one_device).rho
    assert rho[0] > 0.98 and rho[0] > rho[1] > rho[2]


def test_exclusion_radii(one_device):
    x = np.cumsum(np.random.default_rng(2).standard_normal(250))
    radii = [0, 4, 40, 300]
    result = pyedmcl.predict_exclusion_radius(x, E=2, exclusion_radius=radii, device=one_device)
    for place, radius in enumerate(radii[:3]):
        expected = naive.simplex(x, E=2, exclusion_radius=radius)["rho"]
        assert result.rho[place] == pytest.approx(expected, abs=2e-5)
    assert np.isnan(result.rho[3]) and result.best == 0
    assert result.rho[0] > result.rho[2]


def test_frames_and_pictures(one_device, tmp_path):
    x = series(100)
    result = pyedmcl.predict_interval(x, E=2, Tp=(3, 1), device=one_device)
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = result.to_frame()
    assert list(frame.columns) == ["Tp", "rho", "mae", "rmse"] and frame["rho"][1] == result.rho[1]
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    line = result.plot(str(tmp_path / "a.png")).axes[0].lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [1, 3])
    np.testing.assert_array_equal(line.get_ydata(), result.rho[::-1])


def test_delay_tables():
    data = {"a": np.arange(6.0), "b": np.arange(6.0) * 10}
    table = pyedmcl.embed(data, E=3, tau=2)
    assert table.names == ("a(t-0)", "a(t-2)", "a(t-4)", "b(t-0)", "b(t-2)", "b(t-4)")
    np.testing.assert_array_equal(table.values[4:], [[4, 2, 0, 40, 20, 0], [5, 3, 1, 50, 30, 10]])
    assert np.isnan(table.values[:4]).any(axis=1).all() and np.isnan(table.values).sum() == 12
    assert pyedmcl.embed(data, E=1, columns="b").names == ("b(t-0)",)
    with pytest.raises(InputError, match="at least 7 rows"):
        pyedmcl.embed(data, E=4, tau=2)


@pytest.mark.parametrize("Tp", [1, -1])
def test_multiview(one_device, Tp):
    n = 130
    x = naive.noisy_maps(3, n, 7).astype(np.float64)
    x[:, 1] = 50 + 3 * x[:, 1]
    lib, pred = (0, 80), (70, n)
    result = pyedmcl.multiview(x, 2, E=2, D=2, Tp=Tp, lib_range=lib, pred_range=pred, device=one_device)
    table = pyedmcl.embed(x, E=2)
    rows = np.arange(lib[0] + max(1, -Tp), min(lib[1], lib[1] - Tp))
    asked = np.arange(*pred)
    skill, predictions = {}, {}
    for view in itertools.combinations(range(6), 2):
        states = table.values[:, view]
        inner = naive.predictions(states, x[:, 2], rows, rows, k=3, Tp=Tp)[0]
        skill[view] = naive.pearson(inner, x[rows + Tp, 2])
        predictions[view] = naive.predictions(states, x[:, 2], asked, rows, k=3, Tp=Tp)[0]
    best = sorted(skill, key=lambda view: -skill[view])[:3]
    assert result.n_tried == 15 and result.E == 2
    assert [tuple(table.names[c] for c in view) for view in best] == list(result.views)
    np.testing.assert_allclose(result.view_rho, [skill[view] for view in best], atol=2e-5)
    expected = np.mean([predictions[view] for view in best], axis=0)
    np.testing.assert_allclose(result.predicted, expected, atol=2e-5)
    np.testing.assert_array_equal(result.time, asked + Tp)
    inside = asked + Tp < n
    assert result.rho == pytest.approx(naive.pearson(expected[inside], x[(asked + Tp)[inside], 2]), abs=2e-5)


def test_multiview_beats_a_single_view(one_device):
    rng = np.random.default_rng(3)
    x = naive.coupled_maps(3, 300, 4)
    noisy = x + 0.1 * rng.standard_normal(x.shape)
    result = pyedmcl.multiview(noisy, "x0", E=3, D=3, device=one_device)
    single = pyedmcl.simplex(noisy[:, 0], E=3, device=one_device)
    assert result.n_tried == 84 and len(result.views) == 9
    assert result.rho > single.rho
    without = pyedmcl.multiview(noisy, "x0", E=2, D=2, exclude_target=True, n_views=2, device=one_device)
    assert all(not name.startswith("x0(") for view in without.views for name in view) and len(without.views) == 2
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert list(result.views_frame().columns) == ["coordinate 1", "coordinate 2", "coordinate 3", "rho"]


DATA = naive.noisy_maps(3, 60, 8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "z"}, "no column 'z'"),
        ({"D": 7, "E": 2}, "D=7"),
        ({"D": 0}, "D=0"),
        ({"n_views": 9}, "n_views=9"),
        ({"E": 0}, "E=0"),
        ({"E": 20, "D": 12}, "views"),
        ({"columns": ["x0"], "target": "x0", "exclude_target": True}, "exclude_target"),
        ({"lib_range": (0, 90)}, "lib_range"),
    ],
)
def test_bad_views_are_named(options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.multiview(DATA, **{"target": "x1", **options})


@pytest.mark.parametrize("Tp", [(), (1, 1), 0.5])
def test_bad_intervals_are_named(Tp):
    with pytest.raises(InputError, match="Tp"):
        pyedmcl.predict_interval(DATA[:, 0], E=2, Tp=Tp)
    with pytest.raises(InputError, match="exclusion_radius"):
        pyedmcl.predict_exclusion_radius(DATA[:, 0], E=2, exclusion_radius=-1)
