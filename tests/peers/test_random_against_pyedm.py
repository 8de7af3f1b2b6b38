"""The native functions beside pyEDM on random parameters: within 1e-6, in float32 within 1e-4, of the spread.

pyEDM trims libraries in its own way and counts rows whose target is a gap as neighbours (docs/conventions.md), so the
library rows it ended with are given to ours as a mask, and rows that lead to a gap are kept out by ``validLib``.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyedmcl

DRAWS = 25
TOLERANCE = {"float64": 1e-6, "float32": 1e-4}


@pytest.fixture(scope="module")
def pyedm():
    pytest.importorskip("pandas", reason="pandas is not installed")
    return pytest.importorskip("pyEDM", reason="pyEDM is not installed: pip install 'pyedmcl[peers]'")


def system(n, rng, gaps):
    """Two coupled maps and a driven linear series, with observation noise so that no two distances are equal."""
    x = np.zeros((n, 3))
    x[0] = rng.random(3) * 0.5 + 0.2
    for t in range(1, n):
        a, b, c = x[t - 1]
        x[t] = a * (3.7 - 3.7 * a), b * (3.6 - 3.6 * b - 0.2 * a), 0.8 * c + a + 0.3 * rng.standard_normal()
    x += 0.02 * rng.standard_normal(x.shape)
    if gaps:
        for column in range(3):
            x[rng.choice(n, 4, replace=False), column] = np.nan
    return x * [1, 5, 0.3] + [0, 40, -7]


def draw(n, x, rng, local):
    """Arguments for pyEDM, and what of them ours take as they are."""
    embedded, Tp = bool(rng.random() < 0.25), int(rng.integers(-3, 5))
    columns = [0, 1] if embedded or (not local and rng.random() < 0.3) else [int(rng.integers(0, 2))]
    target = int(rng.integers(0, 3))
    cuts = np.sort(rng.choice(np.arange(5, n - 5), 4, replace=False)).tolist()
    kind = int(rng.integers(0, 3))
    first = 5 if Tp < 0 else 1  # before it pyEDM reads targets outside the data
    lib = [[first, n], [cuts[0], cuts[2]], [cuts[0], cuts[1], cuts[2], n]][kind]
    pred = [[12, n], [cuts[2] + 1, n], [12, cuts[3]]][int(rng.integers(0, 3))]
    # Few shapes of kernels, each of which is compiled: 1 to 4 coordinates of S-map, 1, 2, 3 or 6 of simplex.
    E = int(rng.integers(1, 5) if local else rng.choice([1, 3]))
    tau, radius = int(rng.integers(1, 4) if local else rng.choice([1, 3])), int(rng.choice([0, 0, 4]))
    goes = np.zeros(n, bool)
    rows = np.arange(n)
    inside = (rows + Tp >= 0) & (rows + Tp < n)
    goes[inside] = np.isfinite(x[rows[inside] + Tp, target])
    valid = goes & (rng.random(n) < (0.8 if rng.random() < 0.3 else 1.0))
    theirs = {"columns": [f"c{i}" for i in columns], "target": f"c{target}", "lib": lib, "pred": pred, "E": E,
              "tau": -tau, "Tp": Tp, "exclusionRadius": radius, "embedded": embedded, "validLib": valid}  # fmt: skip
    ours = {"target": x[:, target], "E": None if embedded else E, "tau": tau, "Tp": Tp, "exclusion_radius": radius,
            "embedded": embedded}  # fmt: skip
    if local:
        theirs |= {"theta": float(rng.choice([0, 0.3, 1.5, 5])), "knn": 0 if radius else int(rng.choice([0, 0, 20]))}
        ours["theta"] = theirs["theta"]
    else:
        theirs["knn"] = int(rng.choice([0, 0, 6]))
    return columns, theirs, ours


def compared(pyedm, name, seed, device):
    """(their task, our results by dtype, spread, arguments) of draws that pyEDM takes."""
    import pandas

    rng = np.random.default_rng(seed)
    for _ in range(DRAWS):
        n = int(rng.integers(70, 180))
        x = system(n, rng, gaps=rng.random() < 0.4)
        columns, given, options = draw(n, x, rng, name == "SMap")
        frame = pandas.DataFrame(x, columns=["c0", "c1", "c2"])
        frame.insert(0, "t", np.arange(1, n + 1))
        try:
            task = getattr(pyedm, name)(frame, returnObject=True, **given)
        except (ValueError, IndexError, RuntimeError):  # it refuses small libraries that can be used
            continue
        mask, asked = np.zeros(n, bool), np.zeros(n, bool)
        mask[task.lib_i], asked[task.pred_i] = True, True
        function = pyedmcl.smap if name == "SMap" else pyedmcl.simplex
        found = {
            dtype: function(x[:, columns], lib_range=mask, pred_range=asked, knn=int(task.knn), dtype=dtype,
                            device=device, **options)
            for dtype in TOLERANCE
        }  # fmt: skip
        yield task, found, float(np.nanstd(options["target"])), given


@pytest.mark.parametrize(("name", "seed"), [("Simplex", 11), ("SMap", 12)])
def test_predictions(pyedm, one_device, name, seed):
    count, sparse = 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task, found, spread, given in compared(pyedm, name, seed, one_device):
            for dtype, result in found.items():
                np.testing.assert_array_equal(result.time, task.pred_i + task.Tp)
                for mine, other in ((result.predicted, task.projection), (result.variance, task.variance)):
                    scale = spread if mine is result.predicted else spread**2
                    np.testing.assert_allclose(mine / scale, np.asarray(other, float).ravel() / scale, rtol=0,
                                               atol=TOLERANCE[dtype], err_msg=f"{dtype} {given}")  # fmt: skip
            count += 1
            sparse += len(task.lib_i) < 40
    assert count >= DRAWS // 2 and sparse, (count, sparse)


@pytest.mark.parametrize("seed", [21, 22])
def test_skill_against_what_is_varied(pyedm, one_device, seed):
    """Disjoint ranges, for which both trim the library alike; pyEDM's rho has six digits."""
    import pandas

    rng = np.random.default_rng(seed)
    n = 150
    x = system(n, rng, gaps=False)
    frame = pandas.DataFrame(x, columns=["c0", "c1", "c2"])
    frame.insert(0, "t", np.arange(1, n + 1))
    E, tau, radius = int(rng.integers(2, 4)), int(rng.integers(1, 3)), int(rng.choice([0, 3]))
    valid = rng.random(n) < 0.85
    theirs = {"columns": "c0", "target": "c1", "lib": [1, 90], "pred": [95, n], "tau": -tau, "validLib": valid,
              "exclusionRadius": radius, "showPlot": False, "numProcess": 1}  # fmt: skip
    ours = {"target": x[:, 1], "tau": tau, "lib_range": (0, 90), "pred_range": (94, n), "valid_lib": valid,
            "exclusion_radius": radius, "dtype": "float64", "device": one_device}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown = pyedm.EmbedDimension(frame, maxE=5, Tp=2, **theirs)
        found = pyedmcl.embed_dimension(x[:, 0], E_max=5, Tp=2, **ours)
        np.testing.assert_allclose(found.rho, shown["rho"], rtol=0, atol=2e-6)
        shown = pyedm.PredictInterval(frame, maxTp=4, E=E, **theirs)
        np.testing.assert_allclose(pyedmcl.predict_interval(x[:, 0], Tp=range(1, 5), E=E, **ours).rho, shown["rho"],
                                   rtol=0, atol=2e-6)  # fmt: skip
        shown = pyedm.PredictNonlinear(frame, theta=[0.1, 1, 4], E=E, knn=25, **theirs | {"exclusionRadius": 0})
        found = pyedmcl.predict_nonlinear(x[:, 0], theta=[0.1, 1, 4], E=E, knn=25, **ours | {"exclusion_radius": 0})
        np.testing.assert_allclose(found.rho, shown["rho"], rtol=0, atol=2e-6)
        del theirs["validLib"], theirs["showPlot"], ours["valid_lib"], ours["target"]
        # Without lags: with them pyEDM gives each view the first rows that it can use, ours gives all the same.
        shown = pyedm.Multiview(frame, D=2, E=1, Tp=1, multiview=3, **theirs | {"columns": ["c0", "c1", "c2"]})
        found = pyedmcl.multiview(x, 1, D=2, E=1, Tp=1, n_views=3, **ours)
    last = shown["Predictions"].set_index("Time")["Predictions"]
    np.testing.assert_allclose(found.predicted[:-1], last.reindex(found.time[:-1] + 1), rtol=0, atol=1e-6)
    assert len(found.predicted) == n - 94
