"""Skill of S-map over theta."""

from __future__ import annotations

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError


def test_skill_is_that_of_smap(device):
    x = naive.noisy_maps(1, 200, 1)[:, 0]
    result = pyedmcl.predict_nonlinear(x, E=2, theta=[0, 0.5, 3], device=device)
    whole = pyedmcl.smap(x, E=2, theta=[0, 0.5, 3], device=device)
    for name in ("theta", "rho", "mae", "rmse"):
        np.testing.assert_array_equal(getattr(result, name), getattr(whole, name))


def test_a_nonlinear_map_gains_and_a_linear_process_does_not(one_device):
    rng = np.random.default_rng(2)
    noise = rng.standard_normal(400)
    linear = np.zeros(400)
    for t in range(1, 400):
        linear[t] = 0.8 * linear[t - 1] + noise[t]
    curved = naive.noisy_maps(1, 400, 3)[:, 0]
    found = [pyedmcl.predict_nonlinear(x, E=2, device=one_device) for x in (linear, curved)]
    gains = [result.rho.max() - result.rho[0] for result in found]
    assert gains[0] < 0.02 < gains[1]


def test_defaults_best_and_frame(one_device):
    pytest.importorskip("pandas", reason="pandas is not installed")
    result = pyedmcl.predict_nonlinear(naive.noisy_maps(1, 150, 4)[:, 0], E=2, device=one_device)
    assert len(result.theta) == 15
    assert (result.theta[0], result.theta[-1]) == (0.01, 9.0)
    assert result.best == result.theta[result.rho.argmax()]
    assert list(result.to_frame()) == ["theta", "rho", "mae", "rmse"]
    flat = pyedmcl.predict_nonlinear(np.full(50, 3.0), E=2, theta=[0, 1], device=one_device)
    assert np.isnan(flat.best)


def test_other_solvers(one_device):
    x = naive.noisy_maps(1, 120, 5)[:, 0]
    for solver in ("ridge", "lasso"):
        if solver == "lasso":
            pytest.importorskip("sklearn", reason="scikit-learn is not installed")
        options = {"E": 2, "theta": [0, 2], "solver": solver, "alpha": 0.01, "device": one_device}
        found, whole = pyedmcl.predict_nonlinear(x, **options), pyedmcl.smap(x, **options)
        np.testing.assert_array_equal(found.rho, whole.rho)
        assert (found.rho != pyedmcl.predict_nonlinear(x, E=2, theta=[0, 2], device=one_device).rho).all()


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="solver='qr'"):
        pyedmcl.predict_nonlinear(np.arange(30.0), E=2, solver="qr")
    with pytest.raises(InputError, match="theta=-2"):
        pyedmcl.predict_nonlinear(np.arange(30.0), E=2, theta=[0, -2])
    with pytest.raises(InputError, match="E=None"):
        pyedmcl.predict_nonlinear(np.arange(30.0))
