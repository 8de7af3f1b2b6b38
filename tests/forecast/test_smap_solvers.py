"""S-map's other ways: forecasts that feed themselves, ridge, estimators; and input that cannot be used."""

from __future__ import annotations

import re
import warnings

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError, PyedmclWarning
from pyedmcl.reference.edm import smap_rows
from pyedmcl.states.states import embed_columns


def noisy(n, seed=0):
    rng = np.random.default_rng(seed)
    return naive.noisy_maps(1, n, seed)[:, 0].astype(float) + 0.02 * rng.standard_normal(n)


X = noisy(180)


def test_generated_steps_feed_themselves(device):
    result = pyedmcl.smap(X, E=3, tau=2, theta=[1, 3], generate_steps=6, device=device)
    np.testing.assert_array_equal(result.time, range(180, 186))
    assert np.isnan(result.observed).all()
    assert np.isnan(result.rho).all()
    legal = np.arange(4, 179)
    table = embed_columns(X[:, None], 3, 2)
    for s, theta in enumerate((1, 3)):
        path = list(X)
        for step in range(6):
            point = np.array([[path[-1], path[-3], path[-5]]])
            fit = smap_rows(table[legal], X[legal + 1], legal, point, np.array([179 + step]), theta)
            path.append(float(fit.predicted[0]))
            assert result.predicted[s, step] == pytest.approx(path[-1], abs=1e-5)
            path[-1] = result.predicted[s, step]  # chaos: errors of one step must not enter the next
            np.testing.assert_allclose(result.coefficients[s, step], fit.coefficients[0], atol=1e-3)


def test_ridge_is_the_penalised_fit(device):
    result = pyedmcl.smap(X, E=3, theta=2, solver="ridge", alpha=0.5, device=device)
    table, legal = embed_columns(X[:, None], 3, 1), np.arange(2, 179)
    expected = smap_rows(table[legal], X[legal + 1], legal, table[2:], np.arange(2, 180), 2, alpha=0.5)
    np.testing.assert_allclose(result.predicted, expected.predicted, atol=1e-6)
    np.testing.assert_allclose(result.coefficients, expected.coefficients, atol=1e-5)
    plain = pyedmcl.smap(X, E=3, theta=2, device=device)
    lengths = [np.linalg.norm(r.coefficients[:, 1:], axis=1) for r in (result, plain)]
    assert (lengths[0] < lengths[1]).all()


def test_estimators(one_device):
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    some = {"E": 2, "pred_range": (20, 40), "device": one_device}
    plain = pyedmcl.smap(X, theta=2, **some)
    least = pyedmcl.smap(X, theta=2, solver=linear_model.LinearRegression(), **some)
    np.testing.assert_allclose(least.predicted, plain.predicted, atol=1e-6)
    np.testing.assert_allclose(least.coefficients, plain.coefficients, atol=1e-5)
    table = embed_columns(X[:, None], 2, 1)
    near = np.array([j for j in range(1, 179) if j != 25])
    d = np.linalg.norm(table[near] - table[25], axis=1)
    w = np.exp(-2 * d / d.mean())
    for name, kind in (("lasso", linear_model.Lasso), ("elasticnet", linear_model.ElasticNet)):
        result = pyedmcl.smap(X, theta=2, solver=name, alpha=0.01, **some)
        fit = kind(alpha=0.01).fit(table[near], X[near + 1], sample_weight=w**2)
        assert result.predicted[5] == pytest.approx(fit.predict(table[25:26])[0], abs=1e-9)


SHORT = noisy(60, 5)
PAIR = np.column_stack([SHORT, SHORT[::-1]])
INFINITE = SHORT.copy()
INFINITE[7] = np.inf


@pytest.mark.parametrize(
    ("lib", "options", "words"),
    [
        (SHORT, {}, "E=None"),
        (SHORT, {"E": 0}, "E=0"),
        (SHORT, {"E": 3, "tau": 0}, "tau=0"),
        (SHORT, {"E": 3, "theta": -1}, "theta=-1.*from 0"),
        (SHORT, {"E": 3, "theta": [0, np.nan]}, "theta=nan"),
        (SHORT, {"E": 3, "theta": []}, "theta=\\[\\]"),
        (SHORT, {"E": 3, "theta": "two"}, "theta='two'"),
        (SHORT, {"E": 3, "knn": 0}, "knn=0"),
        (SHORT, {"E": 3, "Tp": 0.5}, "Tp=0.5"),
        (SHORT, {"E": 3, "exclusion_radius": -1}, "exclusion_radius=-1"),
        (SHORT, {"E": 3, "solver": "qr"}, "solver='qr'.*ridge"),
        (SHORT, {"E": 3, "solver": 3}, "solver=3"),
        (SHORT, {"E": 3, "solver": "ridge", "alpha": 0}, "alpha=0.*above 0"),
        (SHORT, {"E": 3, "dtype": "int8"}, "int8"),
        (SHORT, {"E": 3, "lib_range": (0, 61)}, r"lib_range.*\(0, 61\)"),
        (SHORT, {"E": 3, "lib_range": (0, 3)}, "lib_range=.*no library row"),
        (SHORT, {"E": 3, "pred_range": (70, 80)}, r"pred_range.*\(70, 80\)"),
        (SHORT, {"E": 3, "valid_lib": [True] * 59}, "valid_lib.*59.*60"),
        (SHORT, {"E": 60}, r"E=60.*62 rows, there are 60"),
        (SHORT, {"E": 3, "target": SHORT[1:]}, "target has 59 steps and lib 60"),
        (SHORT, {"E": 3, "generate_steps": -1}, "generate_steps=-1"),
        (SHORT, {"E": 3, "generate_steps": 2, "Tp": 2}, "generate_steps=2.*Tp=2"),
        (SHORT, {"E": 3, "generate_steps": 2, "target": SHORT}, "generate_steps=2.*target"),
        (PAIR, {"E": 3}, "target=None.*2 series"),
        (PAIR, {"E": 3, "target": SHORT, "embedded": True}, "E=3.*columns of lib, 2"),
        (PAIR, {"E": 1, "target": SHORT, "pred": SHORT}, "pred has 1 columns and lib 2"),
        (np.zeros((60, 33)), {"E": 2, "target": SHORT}, "33 columns with E=2 are 66 coordinates; at most 64"),
        (INFINITE, {"E": 3}, "infinite in row 7"),
        (np.full(60, np.nan), {"E": 3}, "lib: no row"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_reason(lib, options, words):
    with pytest.raises(InputError, match=f"(?s){words}"):
        pyedmcl.smap(lib, **options)


def test_a_missing_package_is_named(monkeypatch):
    import sys

    from pyedmcl.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"scikit-learn.*pyedmcl\[solvers\]"):
        pyedmcl.smap(SHORT, E=2, solver="lasso")


def test_a_device_without_double_precision_is_named():
    from types import SimpleNamespace

    from device_helpers import ARC

    from pyedmcl.forecast.smap import local_fits

    poor = SimpleNamespace(info=SimpleNamespace(fp64=False, name=ARC.name))
    with pytest.raises(InputError, match=r"Arc.*double precision.*device='cpu'"):
        local_fits(poor, None, None, 0.0, "float32")


@pytest.mark.parametrize("function", ["smap", "predict_nonlinear"])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"E": 4, "lib_range": (0, 9)}, "4 slopes (E=4) needs 5 library rows; some row has 4 (exclusion_radius=0)"),
        ({"E": 2, "lib_range": (0, 8), "exclusion_radius": 2}, "needs 3 library rows; some row has 1 (exclusion"),
        ({"E": 3, "knn": 3}, "3 slopes (E=3) needs 4 library rows, and knn=3 leaves fewer"),
    ],
)  # fmt: skip
def test_fits_with_fewer_rows_than_coefficients_are_told_of(one_device, function, options, says):
    call = getattr(pyedmcl, function)
    with pytest.warns(PyedmclWarning, match=re.escape(says)):
        call(X, theta=[1.0], device=one_device, **options)


@pytest.mark.parametrize(
    ("pred", "options"),
    [
        (None, {"E": 4, "lib_range": (0, 10)}),
        (None, {"E": 3, "knn": 4}),
        (None, {"E": 4, "lib_range": (0, 9), "solver": "ridge"}),  # a penalty makes every fit unique
        (X[:30], {"E": 4, "lib_range": (0, 9)}),  # a library of its own keeps all of its rows
    ],
)
def test_fits_with_as_many_rows_as_coefficients_are_not(one_device, pred, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PyedmclWarning)
        pyedmcl.smap(X, pred, theta=1.0, device=one_device, **options)
