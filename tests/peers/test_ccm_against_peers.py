"""Convergent cross mapping against pyEDM and kEDM: the full library to rounding, random ones within chance."""

from __future__ import annotations

import naive
import numpy as np
import pytest

import pyedmcl

N = 300


def series():
    """Two maps that never repeat a value: kEDM drops neighbours at distance zero."""
    x = naive.noisy_maps(2, N, 3)
    return np.ascontiguousarray(x[:, 0]), np.ascontiguousarray(x[:, 1])


def frame(x, y):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    return pandas.DataFrame({"t": np.arange(1, N + 1), "x": x.astype(float), "y": y.astype(float)})


@pytest.mark.parametrize(("E", "tau", "Tp", "radius"), [(3, 1, 0, 0), (2, 3, 2, 4), (5, 1, -1, 0)])
def test_pyedm(one_device, E, tau, Tp, radius):
    pyedm = pytest.importorskip("pyEDM", reason="pyEDM is not installed: pip install 'pyedmcl[peers]'")
    x, y = series()
    most = N - max((E - 1) * tau, -Tp) - max(Tp, 0)
    sizes = [20, 90, most]
    theirs = pyedm.CCM(frame(x, y), columns="x", target="y", libSizes=[*sizes, most], sample=60, E=E, tau=-tau, Tp=Tp,
                       exclusionRadius=radius, seed=1, parallel=False, includeData=True)  # fmt: skip
    ours = pyedmcl.ccm(x, y, E=E, tau=tau, Tp=Tp, lib_sizes=sizes, sample=60, exclusion_radius=radius, seed=1,
                       dtype="float64", device=one_device)  # fmt: skip
    for d, name in enumerate(("x:y", "y:x")):
        for place in range(2):
            spread = np.sqrt((ours.rho[d, place].var() + theirs[f"{name}_var"][place]) / 60)
            assert abs(ours.mean[d, place] - theirs[name][place]) < 5 * spread
        assert ours.rho[d, 2] == pytest.approx(theirs[name][2], abs=1e-9)


def test_kedm(one_device, kedm):
    x, y = series()
    sizes = [20, 90, N - 2]
    # kEDM draws among all steps, the first ones without an embedding included.
    theirs = kedm.ccm(x, y, E=3, sample=200, lib_sizes=[20, 90, N], seed=1)
    ours = pyedmcl.ccm(x, y, E=3, lib_sizes=sizes, sample=200, seed=1, device=one_device)
    spread = ours.rho[0].std(axis=1) * np.sqrt(2 / 200)
    for place in range(2):
        assert abs(ours.mean[0, place] - theirs[place]) < 5 * spread[place]
    assert ours.mean[0, 2] == pytest.approx(theirs[2], abs=1e-5)
