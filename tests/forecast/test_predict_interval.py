"""Skill over prediction intervals and exclusion radii."""

from __future__ import annotations

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


DATA = naive.noisy_maps(3, 60, 8)


@pytest.mark.parametrize("Tp", [(), (1, 1), 0.5])
def test_bad_intervals_are_named(Tp):
    with pytest.raises(InputError, match="Tp"):
        pyedmcl.predict_interval(DATA[:, 0], E=2, Tp=Tp)
    with pytest.raises(InputError, match="exclusion_radius"):
        pyedmcl.predict_exclusion_radius(DATA[:, 0], E=2, exclusion_radius=-1)
