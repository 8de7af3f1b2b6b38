"""Estimators for scikit-learn: its own checks, the numbers of the functions, and the examples."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import MissingExtraError
from pyedmcl.simulate import coupled_maps

ROOT = Path(__file__).resolve().parents[2]
X = coupled_maps(n_series=4, n_steps=400).values[:, 0]


def needed():
    pytest.importorskip("sklearn", "1.6", reason="scikit-learn 1.6 is not installed; pip install 'pyedmcl[sklearn]'")
    import pyedmcl.estimators

    return pyedmcl.estimators


@pytest.fixture
def estimators():
    return needed()


@pytest.mark.parametrize("name", ["SimplexRegressor", "SmapRegressor"])
@pytest.mark.filterwarnings("ignore")
def test_they_pass_the_checks_of_scikit_learn(name, estimators, one_device):
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(getattr(estimators, name)(device=one_device))


def test_predictions_are_those_of_the_functions(estimators, one_device):
    series, n = X.astype(np.float32), 200
    states = pyedmcl.embed(series, E=3).values[2:-1]
    fitted = (estimators.SimplexRegressor(device=one_device), estimators.SmapRegressor(theta=2.0, device=one_device))
    functions = ((pyedmcl.simplex, {}), (pyedmcl.smap, {"theta": 2.0}))
    for model, (function, options) in zip(fitted, functions, strict=True):
        found = model.fit(states[:n], series[3 : n + 3]).predict(states[n:])
        wanted = function(series, E=3, lib_range=(0, n + 3), pred_range=(n, 400), device=one_device, **options)
        np.testing.assert_allclose(found, wanted.predicted[2:-1], rtol=1e-4)
        assert model.n_features_in_ == 3 and model.score(states[n:], series[n + 3 :]) > 0.7


def test_arguments_that_cannot_be_used_are_refused_by_name(estimators, one_device):
    model = estimators.SmapRegressor(theta=-1.0, device=one_device).fit(X[:20, None], X[1:21])
    with pytest.raises(ValueError, match=r"theta=-1\.0"):
        model.predict(X[20:30, None])


@pytest.mark.parametrize("name", ["SimplexRegressor", "SmapRegressor"])
def test_the_example_shows_what_happens(name, estimators, one_device, monkeypatch):
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    example = doctest.DocTestParser().get_doctest(getattr(estimators, name).__doc__, {}, name, None, 0)
    report = []
    assert example.examples
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)


def test_the_example_of_the_guide(estimators, one_device, monkeypatch):
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    guide = ROOT / "docs" / "python.md"
    if not guide.is_file():
        pytest.skip("no checkout: docs/python.md is not there")
    block = r"^```python\n(from pyedmcl\.estimators .*?)^```$"
    (code,) = re.findall(block, guide.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    known = {"pyedmcl": pyedmcl, "x": X}
    exec(code, known)
    assert known["search"].best_params_["theta"] in (0, 1, 2, 4)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "pyedmcl.estimators", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(MissingExtraError, match=r"pyedmcl\[sklearn\]"):
        import pyedmcl.estimators  # noqa: F401
