"""Convergent cross mapping of windows, of a pair and of all pairs: the bits of a call for each, and skill over time."""

from __future__ import annotations

import numpy as np
import pytest
from window_helpers import GAPS, SLICES, TABLE, X, Y

import pyedmcl
from pyedmcl.errors import InputError


@pytest.mark.parametrize("E", [2, (2, 3)])
@pytest.mark.parametrize("y", [Y, GAPS[:, 1]], ids=["whole", "gaps"])
def test_sub_libraries_have_the_bits_of_a_call_for_each_window(device, E, y):
    own = {"E": E, "lib_sizes": [12, 80], "sample": 3, "seed": 5, "device": device}
    found = pyedmcl.ccm(X, y, windows=(120, 35), **own)
    assert found.rho.shape == (3, 2, 2, 3) and found.seed == 5
    for window, rows in enumerate(SLICES):
        np.testing.assert_array_equal(found.rho[window], pyedmcl.ccm(X[rows], y[rows], **own).rho)


def test_sub_libraries_over_time(tmp_path, one_device):
    own = {"E": 2, "sample": 2, "seed": 5, "method": "smap", "skill": "mae", "device": one_device}
    found = pyedmcl.ccm(X, Y, lib_sizes=[30], windows=(100, 100), **own)
    alone = pyedmcl.ccm(X[100:], Y[100:], lib_sizes=[30], **own)
    np.testing.assert_array_equal(found.rho[1], alone.rho)
    frame = found.to_frame()
    assert frame["target"].tolist() == ["y", "x"] * 2 and frame["mean"].tolist() == found.mean.ravel().tolist()
    found.plot(tmp_path / "w.png")
    with pytest.raises(InputError, match=r"windows=\(20, 5\): lib_sizes: 30 rows cannot be drawn"):
        pyedmcl.ccm(X, Y, E=2, lib_sizes=[30], windows=(20, 5))
    with pytest.raises(InputError, match=r"windows=\(50, 5\) cannot be used with predictions="):
        pyedmcl.ccm(X, Y, E=2, predictions=True, windows=(50, 5))


@pytest.mark.parametrize("values", [TABLE, GAPS], ids=["whole", "gaps"])
@pytest.mark.parametrize("more", [{}, {"E": "auto", "E_max": 2}, {"folds": 2}], ids=["fixed", "auto", "folds"])
def test_matrices_have_the_bits_of_a_call_for_each_window(one_device, values, more):
    own = {"E": [2, 1, 3], "Tp": 1, "lib_sizes": [12, 40], "sample": 3, "seed": 5, "device": one_device} | more
    found = pyedmcl.ccm_matrix(values, windows=(120, 35), **own)
    assert found.rho.shape == (3, 2, 3, 3) and found.seed == 5
    for window, rows in enumerate(SLICES):
        alone = pyedmcl.ccm_matrix(values[rows], **own)
        np.testing.assert_array_equal(found.rho[window], [np.asarray(one) for one in alone.matrices])
        np.testing.assert_array_equal(found.E[window], alone.E)


def test_matrices_over_time(tmp_path, one_device):
    own = {"E": 2, "sample": 2, "seed": 5, "device": one_device}
    found = pyedmcl.ccm_matrix(TABLE, method="smap", lib_sizes=[30, 60], windows=(100, 50), **own)
    alone = pyedmcl.ccm_matrix(TABLE[50:150], method="smap", lib_sizes=[30, 60], **own)
    np.testing.assert_allclose(found.rho[1], alone.rho, atol=1e-6)
    np.testing.assert_allclose(found.gain[1], alone.gain, atol=2e-6)
    frame = found.to_frame()
    one = frame[(frame["start"] == 50) & (frame["cause"] == found.names[1]) & (frame["effect"] == found.names[0])]
    np.testing.assert_array_equal(one["rho"], found.rho[1, :, 0, 1])
    assert len(frame) == 3 * 2 * 6 and one["lib_size"].tolist() == [30, 60] and one["end"].tolist() == [150, 150]
    found.plot(tmp_path / "w.png")
    default = pyedmcl.ccm_matrix(GAPS, windows=(100, 50), **own)
    assert default.lib_sizes.max() == 97  # of 99 states those around a gap
    with pytest.raises(InputError, match=r"windows=\(20, 5\): lib_sizes: 30"):
        pyedmcl.ccm_matrix(TABLE, lib_sizes=30, windows=(20, 5), **own)
    with pytest.raises(InputError, match=r"windows=\(20, 5\) cannot be used with out=: save\(\)"):
        pyedmcl.ccm_matrix(TABLE, windows=(20, 5), out=tmp_path / "m", **own)
