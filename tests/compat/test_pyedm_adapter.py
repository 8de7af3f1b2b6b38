"""pyEDM's scripts on our adapter: its own test suite, and random parameters side by side."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import pyedmcl

# Tests of pyEDM that pin what the adapter does not copy; docs/pyedm.md says more.
PINNED = {
    "test_multiview.py::test_multiview_predictions_and_combos": "MAE is the largest signed error in pyEDM",
    "test_ccm.py::test_ccm_nan": "the circle's points lie in pairs at equal distance, and a tree decides between them",
    "test_ccm.py::test_ccm_negative_tp": "as above",
}


@pytest.fixture(scope="module")
def pyedm():
    pytest.importorskip("pandas", reason="pandas is not installed")
    return pytest.importorskip("pyEDM", reason="pyEDM is not installed: pip install 'pyedmcl[peers]'")


@pytest.fixture(scope="module")
def adapter(one_device):
    from pyedmcl.compat import pyedm as found

    return found


def test_its_own_suite(pyedm, adapter):
    from importlib.metadata import version

    if version("pyEDM") != "2.5.7":
        pytest.skip(f"pyEDM {version('pyEDM')}; the list of pinned tests is for 2.5.7")
    path = os.pathsep.join(filter(None, [str(Path(pyedmcl.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "agg"}
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("pyedm_suite.py"))], capture_output=True,
                          text=True, timeout=280, env=environment)  # fmt: skip
    found = re.findall(r"^(PASSED|FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    outcome = {name: word for word, name in found}
    assert len(outcome) == 55, done.stdout[-3000:] + done.stderr[-3000:]
    failed = {name for name, word in outcome.items() if word != "PASSED"}
    assert failed <= set(PINNED), failed - set(PINNED)


def table(pandas, n, rng):
    x = np.zeros((n, 3))
    x[0] = rng.random(3) * 0.5 + 0.2
    for t in range(1, n):
        a, b, c = x[t - 1]
        x[t] = a * (3.7 - 3.7 * a), b * (3.6 - 3.6 * b - 0.2 * a), 0.8 * c + 0.1 * rng.standard_normal()
    x += 0.01 * rng.standard_normal(x.shape)
    data = pandas.DataFrame(x, columns=list("abc"))
    data.insert(0, "t", np.arange(1, n + 1))
    if rng.random() < 0.4:
        for column in (1, 2):
            data.iloc[rng.choice(n, 3, replace=False), column] = np.nan
    return data


def parameters(name, n, rng):
    """Random arguments, short of those with which pyEDM reads targets outside the data (docs/pyedm.md)."""
    embedded, Tp = bool(rng.random() < 0.3), int(rng.integers(-3, 4))
    ends = sorted(rng.choice(np.arange(5, n + 1), 4, replace=False).tolist())
    pred = sorted(rng.choice(np.arange(12, n + 1), 2, replace=False).tolist())
    whole = [5 if Tp < 0 else 1, n]
    several = embedded or (name == "Simplex" and rng.random() < 0.2)
    given = {
        "columns": ["a", "b"] if several else ["a"], "target": str(rng.choice(list("abc"))),
        "lib": whole if rng.random() < 0.5 else ends, "E": int(rng.integers(1, 5)),
        "pred": pred if rng.random() < 0.5 else [12 if Tp < 0 else 1, n], "Tp": Tp,
        "tau": int(rng.choice([-3, -2, -1, 1, 2])), "exclusionRadius": int(rng.choice([0, 0, 3])), "embedded": embedded,
    }  # fmt: skip
    if rng.random() < 0.3:
        given["validLib"] = rng.random(n) < 0.8
    if name == "Simplex":
        given["knn"] = int(rng.choice([0, 0, 5]))
    else:
        given |= {"theta": float(rng.choice([0, 0.5, 2, 6])), "knn": int(rng.choice([0, 0, 18]))}
    return given


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["Simplex", "SMap"])
def test_random_parameters(pyedm, adapter, name, seed):
    import pandas

    rng, compared = np.random.default_rng(seed), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(25):
            n = int(rng.integers(60, 200))
            data = table(pandas, n, rng)
            given = parameters(name, n, rng)
            try:
                theirs = getattr(pyedm, name)(data, **given)
            except (ValueError, IndexError):  # it refuses small libraries that can be used
                continue
            ours = getattr(adapter, name)(data, **given)
            pairs = [(ours, theirs, 1e-6)]
            if name == "SMap":
                pairs = [(ours[key], theirs[key], 1e-6 if key == "predictions" else 1e-4)
                         for key in ("predictions", "coefficients")]  # fmt: skip
            for one, other, tolerance in pairs:
                assert list(one.columns) == list(other.columns)
                np.testing.assert_allclose(one.to_numpy(float), other.to_numpy(float), rtol=0, atol=tolerance,
                                           err_msg=f"{given}")  # fmt: skip
            compared += 1
    assert compared >= 12


@pytest.mark.parametrize(
    "options",
    [
        {"columns": "a", "target": "c", "libSizes": "20 120 50", "E": 3},
        {"columns": ["a", "b"], "target": ["c"], "libSizes": [20, 60], "E": 2, "Tp": 2, "tau": -2,
         "exclusionRadius": 4},
        {"columns": "a", "target": "b", "libSizes": [12, 90], "E": 3, "tau": 1, "Tp": -2, "knn": 6},
        {"columns": "a b", "target": "c", "libSizes": [15, 100], "embedded": True},
    ],
)  # fmt: skip
def test_ccm_draws_what_pyedm_draws(pyedm, adapter, options):
    import pandas

    rng = np.random.default_rng(5)
    data = table(pandas, 150, rng)
    valid = rng.random(150) < 0.9
    given = {"sample": 17, "seed": 11, "includeData": True, "validLib": valid, **options}
    theirs = pyedm.CCM(data, parallel=False, **given)
    ours = adapter.CCM(data, **given)
    pandas.testing.assert_frame_equal(ours, theirs, rtol=0, atol=1e-9, check_dtype=False)


def test_the_rest_agrees(pyedm, adapter, monkeypatch):
    import pandas

    data = table(pandas, 150, np.random.default_rng(6)).interpolate()
    span = {"columns": "a", "target": "a", "lib": "1 100", "pred": "101 150"}
    pandas.testing.assert_frame_equal(adapter.Embed(data, E=2, tau=-3, columns="a b", includeTime=True),
                                      pyedm.Embed(data, E=2, tau=-3, columns="a b", includeTime=True))  # fmt: skip
    solver = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed").Ridge(alpha=0.05)
    one, other = (package.SMap(data, E=2, theta=3, solver=solver, **span) for package in (adapter, pyedm))
    for key in ("predictions", "coefficients"):
        pandas.testing.assert_frame_equal(one[key], other[key], rtol=0, atol=1e-9)
    stats, theirs = (package.ComputeError(data["a"], data["b"]) for package in (adapter, pyedm))
    assert {key: stats[key] for key in ("rho", "RMSE", "CAE")} == {key: theirs[key] for key in ("rho", "RMSE", "CAE")}
    assert stats["MAE"] == pytest.approx(np.abs(data["a"] - data["b"]).mean(), abs=1e-6)
    rho = adapter.CrossMap_Matrix(data, E=[2, 1, 3], Tp=0, lib=[1, 80], pred=[81, 150])
    assert np.isnan(np.diag(rho)).all()
    shown = pyedm.Simplex(data, columns="a", target="c", E=3, Tp=0, lib=[1, 80], pred=[81, 150])
    assert rho[0, 2] == pytest.approx(pyedm.ComputeError(shown["Observations"], shown["Predictions"])["rho"], abs=2e-6)
    best = adapter.EmbedDim_Columns(data, maxE=3, firstMax=False)
    sweep = adapter.EmbedDimension(data, columns="b", target="b", lib=[1, 150], pred=[1, 150], maxE=3, showPlot=False)
    assert best["E"][1] == sweep["E"][sweep["rho"].idxmax()]


def test_all_pairs_of_ccm(pyedm, adapter):
    import pandas

    data = table(pandas, 120, np.random.default_rng(8)).interpolate()
    given = {"E": [2, 3, 2], "libSizes": [20, 60, 110], "sample": 6, "seed": 3}
    from pyEDM.apps.CCM_Matrix import CCM_Matrix

    theirs = CCM_Matrix(data, parallel=False, **given).Run()
    ours = adapter.CCM_Matrix(data, **given).Run()
    np.testing.assert_allclose(ours["tensor"], theirs["tensor"], atol=1e-3)  # which are of half precision
    np.testing.assert_allclose(ours["slope"], theirs["slope"], atol=1e-5)
    assert ours["columns"] == theirs["columns"] == ["a", "b", "c"]


def test_surrogates_have_its_columns(adapter):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    data = table(pandas, 80, np.random.default_rng(9)).interpolate()
    for method in ("ebisuzaki", "random_shuffle"):
        found = adapter.SurrogateData(data, "b", method, 4)
        assert list(found.columns) == ["t", "b_1", "b_2", "b_3", "b_4"] and len(found) == 80
        np.testing.assert_allclose(found["b_2"].std(), data["b"].std(), rtol=1e-6)
    np.testing.assert_allclose(np.sort(found["b_1"]), np.sort(data["b"]), atol=1e-8)
    with pytest.raises(pyedmcl.errors.InputError, match="method='x'"):
        adapter.SurrogateData(data, "b", "x")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("Simplex", {"columns": "z", "target": "a", "lib": "1 50", "pred": "1 50", "E": 2}, "columns names 'z'"),
        ("Simplex", {"columns": "a", "target": "a", "lib": "1 50 60", "pred": "1 50", "E": 2}, "lib='1 50 60'"),
        ("Simplex", {"columns": "a", "target": "a", "lib": "1 500", "pred": "1 50", "E": 2}, "lib has rows 1 to 500"),
        ("Simplex", {"columns": "a", "target": "a", "lib": "1 50", "pred": "1 50", "E": 0}, "E=0"),
        ("Simplex", {"columns": "a", "target": "a", "lib": "1 50", "pred": "1 50", "E": 2, "tau": 0}, "tau=0"),
        ("SMap", {"columns": "a", "target": "a", "lib": "1 50", "pred": "1 50", "E": 2}, "theta=None"),
        ("SMap", {"columns": "a b", "target": "a", "lib": "1 50", "pred": "1 50", "E": 2, "theta": 1}, "embedded=True"),
        ("CCM", {"columns": "a", "target": "b", "libSizes": "3", "E": 2}, "at least 4"),
        ("CCM", {"columns": "a", "target": "b", "libSizes": "20 900", "E": 2}, "up to 900"),
        ("Multiview", {"columns": "a b", "target": "a", "lib": "1 50"}, "lib and pred"),
        ("ComputeError", {"pred": [], "digits": -(10**9)}, "digits=-1000000000"),
        ("SurrogateData", {"column": "a", "method": "seasonal", "alpha": -1.0}, "alpha=-1"),
        ("SurrogateData", {"column": "a", "method": "seasonal", "smooth": -1.0}, "smooth=-1"),
    ],
)
def test_bad_input_is_named(adapter, name, options, words):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    data = table(pandas, 80, np.random.default_rng(10)).interpolate()
    with pytest.raises(ValueError, match=words):
        getattr(adapter, name)(data, **options)


def test_example_data_are_its_own(pyedm, adapter):
    import pandas

    pandas.testing.assert_frame_equal(adapter.sampleData["circle"], pyedm.sampleData["circle"])
    assert sorted(adapter.sampleData) == sorted(pyedm.sampleData)
