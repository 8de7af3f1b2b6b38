"""Maps of local linear fits against pyEDM's SMap of each pair of the published series: rho within 1e-5."""

from __future__ import annotations

import naive
import numpy as np
import pytest

import pyedmcl

TABLES = {
    "block_3sp.csv": ("x_t", "y_t", "z_t"),
    "sardine_anchovy_sst.csv": ("anchovy", "sardine", "np_sst"),
    "LorenzData1000.csv": ("V1", "V2", "V3"),
}


@pytest.mark.parametrize(("E", "theta", "Tp", "radius"), [(3, 2.0, 0, 0), (3, 0.0, 1, 5), (5, 4.0, 1, 0)])
@pytest.mark.parametrize("table", TABLES)
def test_maps_agree(device, published_series, table, E, theta, Tp, radius):
    pyEDM = pytest.importorskip("pyEDM", reason="pyEDM is not installed: pip install 'pyedmcl[peers]'")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    x = np.column_stack([published_series(table, name) for name in TABLES[table]])[:300]
    n, names = len(x), list("abc")
    frame = pandas.DataFrame(x, columns=names)
    frame.insert(0, "time", np.arange(1, n + 1))
    rho = pyedmcl.xmap(
        x, E=E, method="smap", theta=theta, Tp=Tp, exclusion_radius=radius, device=device
    ).rho  # fmt: skip
    for i, library in enumerate(names):
        for j, target in enumerate(names):
            found = pyEDM.SMap(
                frame, columns=library, target=target, lib=f"1 {n}", pred=f"1 {n}", E=E, tau=-1, Tp=Tp, theta=theta,
                exclusionRadius=radius,
            )["predictions"]  # fmt: skip
            pair = (found[name].to_numpy(float) for name in ("Observations", "Predictions"))
            assert rho[i, j] == pytest.approx(naive.pearson(*pair), abs=1e-5), (library, target)
