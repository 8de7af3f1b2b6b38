"""Adapters tell of values as all other functions do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from pyedmcl.compat import kedm, pyedm
from pyedmcl.compat.pyrqa.time_series import EmbeddedSeries, TimeSeries
from pyedmcl.errors import ReadingWarning

pandas = pytest.importorskip("pandas")

STEPS = np.random.default_rng(2).integers(0, 50, 120)


def _simplex(values):
    frame = pandas.DataFrame({"time": np.arange(120), "a": values, "b": values[::-1]})
    return pyedm.Simplex(dataFrame=frame, columns="a", target="b", lib="1 60", pred="61 110", E=2)


def _regressor(values):
    pytest.importorskip("sklearn")
    from pyedmcl.estimators import SimplexRegressor

    return SimplexRegressor().fit(np.stack([values, values[::-1]], axis=1), values)


CALLS = {
    "pyedm": _simplex,
    "kedm": lambda values: kedm.simplex(values[:60], values[60:], E=2),
    "pyrqa": TimeSeries,
    "vectors of pyrqa": lambda values: EmbeddedSeries(np.stack([values, values[::-1]], axis=1)),
    "estimators": _regressor,
}


@pytest.mark.parametrize("call", CALLS)
def test_digits_and_codes_are_told(call):
    with pytest.warns(ReadingWarning, match="in the last digits that float64 holds"):
        CALLS[call](2**60 + STEPS)
    with pytest.warns(ReadingWarning, match="-9999 occurs"):
        CALLS[call](np.where(STEPS < 3, -9999.0, STEPS))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReadingWarning)
        CALLS[call](STEPS.astype(float))
