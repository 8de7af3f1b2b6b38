"""pyEDM's Simplex: the second opinion equals it to rounding, the kernels within 1e-5 in rho."""

from __future__ import annotations

import naive
import numpy as np
import pytest

import pyedmcl

SERIES = [
    ("block_3sp.csv", "x_t"),
    ("block_3sp.csv", "z_t"),
    ("sardine_anchovy_sst.csv", "anchovy"),
    ("sardine_anchovy_sst.csv", "np_sst"),
    ("LorenzData1000.csv", "V1"),
    ("TentMapNoise.csv", "TentMap"),
    ("circle.csv", "x"),
]
FLOW = ("S12CD-S333-SumFlow_1980-2005.csv", "S12.C.D.S333")
PARAMETERS = [(3, 1, 1, 0), (3, 3, 0, 0), (3, 1, 3, 5), (10, 1, 1, 0)]


@pytest.fixture(scope="module")
def simplex():
    """``simplex(x, y, E, tau, Tp, R)``: pyEDM's observed, predicted and variance of y mapped from x."""
    pyEDM = pytest.importorskip("pyEDM", reason="pyEDM is not installed: pip install 'pyedmcl[peers]'")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")

    def run(x, y, E, tau, Tp, R):
        rows = len(x)
        frame = pandas.DataFrame({"time": np.arange(1, rows + 1), "x": x, "y": y})
        span = f"1 {rows}"
        out = pyEDM.Simplex(
            frame, columns="x", target="y", lib=span, pred=span, E=E, tau=-tau, Tp=Tp, exclusionRadius=R
        )
        out = out.set_index(out["Time"].astype(int) - 1).loc[(E - 1) * tau + Tp :]
        return [out[name].to_numpy(float) for name in ("Observations", "Predictions", "Pred_Variance")]

    return run


@pytest.mark.parametrize(("E", "tau", "Tp", "R"), PARAMETERS)
@pytest.mark.parametrize("source", SERIES, ids=lambda s: s[1])
def test_second_opinion_is_pyedm(simplex, published_series, source, E, tau, Tp, R):
    x = published_series(*source)
    _, predicted, variance = simplex(x, x, E, tau, Tp, R)
    ours = naive.simplex(x, E=E, tau=tau, Tp=Tp, exclusion_radius=R)
    np.testing.assert_allclose(ours["predicted"], predicted, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours["variance"], variance, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("E", "tau", "Tp", "R"), PARAMETERS)
def test_simplex_rho(one_device, simplex, published_series, E, tau, Tp, R):
    for source in SERIES:
        x = published_series(*source)
        observed, predicted, _ = simplex(x, x, E, tau, Tp, R)
        result = pyedmcl.simplex(x, E=E, tau=tau, Tp=Tp, exclusion_radius=R, device=one_device)
        assert result.rho == pytest.approx(naive.pearson(observed, predicted), abs=1e-5), source


@pytest.mark.parametrize(("E", "tau", "Tp", "R"), PARAMETERS[:3])
def test_quantised_flow_differs_only_where_distances_tie(one_device, simplex, published_series, E, tau, Tp, R):
    """pyEDM breaks ties by row difference, pyedmcl by row: elsewhere the two are the same, and so is rho there."""
    x = published_series(*FLOW)
    _, predicted, _ = simplex(x, x, E, tau, Tp, R)
    _, distances = naive.knn(x, E, tau, E + 2, Tp, R)
    clear = (np.diff(distances[(E - 1) * tau :, E:], axis=1) > 1e-5 * distances[(E - 1) * tau :, E:-1]).ravel()
    assert 0.5 < clear.mean() <= 1
    ours = naive.simplex(x, E=E, tau=tau, Tp=Tp, exclusion_radius=R)
    np.testing.assert_allclose(ours["predicted"][clear], predicted[clear], rtol=1e-9)
    result = pyedmcl.simplex(x, E=E, tau=tau, Tp=Tp, exclusion_radius=R, device=one_device)
    np.testing.assert_allclose(result.predicted[clear], predicted[clear], rtol=0, atol=1e-5 * x.max())
    observed = ours["observed"][clear]
    assert naive.pearson(observed, np.asarray(result.predicted)[clear]) == pytest.approx(
        naive.pearson(observed, predicted[clear]), abs=1e-5)  # fmt: skip


def test_xmap_rho(one_device, simplex, published_series):
    data = np.stack([published_series("block_3sp.csv", name) for name in ("x_t", "y_t", "z_t")], axis=1)
    E = [3, 10, 3]
    rho = pyedmcl.xmap(data, E=E, Tp=1, device=one_device).rho
    for i in range(3):
        for j in range(3):
            observed, predicted, _ = simplex(data[:, i], data[:, j], E[j], 1, 1, 0)
            assert rho[i, j] == pytest.approx(naive.pearson(observed, predicted), abs=1e-5), (i, j)


def test_embed_dimension(one_device, simplex, published_series):
    x = published_series("TentMapNoise.csv", "TentMap")
    expected = [naive.pearson(*simplex(x, x, E, 1, 1, 0)[:2]) for E in range(1, 7)]
    result = pyedmcl.embed_dimension(x, E_max=6, device=one_device)
    np.testing.assert_allclose(result.rho[1:], expected[1:], rtol=0, atol=1e-5)
    best = int(np.argmax(expected)) + 1
    assert best == result.E
    # At E = 1 values of a few decimals tie, some exactly and most but for rounding, which is another in float32.
    assert result.rho[0] == pytest.approx(expected[0], abs=5e-4)
    exact = pyedmcl.simplex(x, E=1, dtype="float64", device=one_device)
    assert exact.rho == pytest.approx(expected[0], abs=1e-5)
