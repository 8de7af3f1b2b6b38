"""Simplex projection in windows along a series: the same bits as a call for each, and skill over time."""

from __future__ import annotations

import numpy as np
import pytest
from window_helpers import GAPS, SLICES, X, Y

import pyedmcl
from pyedmcl.errors import InputError


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("Tp", [1, 0, -2])
def test_projections_have_the_bits_of_a_call_for_each_window(device, dtype, Tp):
    own = {"E": 2, "tau": 2, "Tp": Tp, "exclusion_radius": 1, "dtype": dtype, "device": device}
    for x, target in ((X + 1000, None), (X, Y * 7), (GAPS[:, 1], X), (X, GAPS[:, 1])):
        found = pyedmcl.simplex(x, target=target, windows=(120, 35), **own)
        for window, rows in enumerate(SLICES):
            alone = pyedmcl.simplex(x[rows], target=None if target is None else target[rows], **own)
            for name in ("predicted", "observed", "variance", "rho", "mae", "rmse"):
                np.testing.assert_array_equal(getattr(found, name)[window], getattr(alone, name))


def test_projections_over_time(tmp_path, one_device):
    found = pyedmcl.simplex(X, E=2, windows=(50, 50), skill="spearman", device=one_device)
    assert found.skill[1] == pyedmcl.simplex(X[50:100], E=2, skill="spearman", device=one_device).skill
    assert found.to_frame()["time"].tolist() == [24.5, 74.5, 124.5, 174.5]
    found.plot(tmp_path / "w.png")
    gone = X.copy()
    gone[50:100] = np.nan
    assert np.isnan(pyedmcl.simplex(gone, E=2, windows=(50, 50), device=one_device).rho).tolist() == [0, 1, 0, 0]
    with pytest.raises(InputError, match=r"windows=\(3, 1\): lib: E=3, tau=1, Tp=1 with 1 neighbours needs at least 5"):
        pyedmcl.simplex(X, E=3, windows=(3, 1))
    with pytest.raises(InputError, match=r"windows=\(50, 5\) cannot be used with lib_range="):
        pyedmcl.simplex(X, E=3, windows=(50, 5), lib_range=(0, 40))
