"""A series that never changes has no skill, and every function says so."""

from __future__ import annotations

import warnings

import naive
import numpy as np
import pytest

import pyedmcl

N = 60
FLAT = np.full(N, 0.25)
X = naive.coupled_maps(2, N).astype(np.float64)
TABLE = np.column_stack([X, FLAT])

CALLS = {
    "simplex": lambda **o: pyedmcl.simplex(FLAT, E=2, **o).rho,
    "simplex of a target": lambda **o: pyedmcl.simplex(X[:, 0], target=FLAT, E=2, **o).rho,
    "predict_interval": lambda **o: pyedmcl.predict_interval(FLAT, E=2, Tp=[1, 2], **o).rho,
    "predict_exclusion_radius": lambda **o: pyedmcl.predict_exclusion_radius(
        FLAT, E=2, exclusion_radius=[0, 1], **o).rho,
    "smap": lambda **o: pyedmcl.smap(FLAT, E=2, theta=1.0, **o).rho,
    "predict_nonlinear": lambda **o: pyedmcl.predict_nonlinear(FLAT, E=2, theta=[0.0, 1.0], **o).rho,
    "embed_dimension": lambda **o: pyedmcl.embed_dimension(TABLE, E_max=2, **o).rho[2],
    "embed_dimension of a target": lambda **o: pyedmcl.embed_dimension(X, target=FLAT, E_max=2, **o).rho,
    "multiview": lambda **o: pyedmcl.multiview(TABLE, 2, D=2, **o).rho,
    "xmap": lambda **o: pyedmcl.xmap(TABLE, E=2, **o).rho[:, 2],
    "xmap_significance": lambda **o: pyedmcl.xmap_significance(TABLE, E=2, n=200, seed=1, **o).rho[:, 2],
    "ccm": lambda **o: pyedmcl.ccm(X[:, 0], FLAT, E=2, lib_sizes=[20], sample=2, seed=1, **o).rho[0],
    "ccm_lagged": lambda **o: pyedmcl.ccm_lagged(X[:, 0], FLAT, E=2, Tp=[0], **o).rho[0],
    "ccm_significance": lambda **o: pyedmcl.ccm_significance(
        X[:, 0], FLAT, E=2, n=3, seed=1, surrogate="shuffle", **o).rho[0],
    "ccm_matrix": lambda **o: np.asarray(
        pyedmcl.ccm_matrix(TABLE, E=2, lib_sizes=[20], sample=2, seed=1, **o).rho)[..., 0, 2],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_constant_series_is_told_once(one_device, name):
    with pytest.warns(RuntimeWarning, match="constant series, whose rho is NaN") as told:
        rho = CALLS[name](device=one_device)
    assert np.isnan(rho).all()
    assert len(told) == 1 and told[0].filename == __file__


def test_a_series_whose_gaps_leave_no_state_is_told(one_device):
    gappy = X.copy()
    gappy[::3, 0] = np.nan
    with pytest.warns(RuntimeWarning, match="leave no row with all 3 lags at tau=1.*'x0'$") as told:
        rho = pyedmcl.xmap(gappy, E=3, device=one_device).rho
    assert len(told) == 1 and np.isnan(rho[0]).all() and np.isfinite(rho[1]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pyedmcl.xmap(gappy, E=2, device=one_device)


def test_a_constant_coordinate_is_no_reason_to_warn(one_device):
    """Other columns tell states apart, and the predicted series has a skill."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = pyedmcl.simplex(TABLE, target=X[:, 0], E=1, device=one_device)
    assert np.isfinite(result.rho)
