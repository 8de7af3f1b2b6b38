"""Data are shifted by their median where a shorter type would lose digits, series by series."""

from __future__ import annotations

import numpy as np
import pytest

from pyedmcl.data import condition as module
from pyedmcl.data.condition import condition


@pytest.mark.parametrize("n_steps", [7, 150, 2500])
def test_each_series_is_shifted_by_its_own_median(n_steps, monkeypatch):
    """However many are looked at together; of long series some rows decide, and numbers that fit stay as they are."""
    monkeypatch.setattr(module, "_BLOCK", 3 * n_steps)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n_steps, 8)) + 100 * np.arange(8)
    x[:, 1] = np.arange(n_steps)
    x[::2, 2] = x[0, 4] = np.nan
    x[1::2, 5] = np.nan
    x[:, 6] = np.nan
    x[:, 7] = np.where(rng.random(n_steps) < 0.5, np.nan, 0.5)
    found = condition(x, "float32")
    rows = slice(None, None, max(n_steps // 1000, 1))
    for each in range(8):
        there = x[rows, each][~np.isnan(x[rows, each])]
        shift = np.median(there) if there.size and each not in (1, 7) else 0.0
        assert found.shift[each] == shift
        np.testing.assert_array_equal(found.values[:, each], (x[:, each] - shift).astype(np.float32))
    assert not condition(x, "float64").shift.any()


@pytest.mark.parametrize("row", [0, 1, 2499])
def test_one_number_that_does_not_fit_has_a_series_shifted(row):
    """Wherever it is: among the rows of the sample or between them."""
    x = np.tile(np.arange(2500.0)[:, None], (1, 3))
    x[row, 1] += 0.1
    found = condition(x, "float32")
    assert found.shift[0] == found.shift[2] == 0 and found.shift[1] == np.median(x[::2, 1])


def test_threads_that_share_a_table_change_nothing(monkeypatch):
    x = np.random.default_rng(2).standard_normal((300, 40)) * 2.0 ** np.arange(-600, 600, 30)
    whole = condition(x, "float32", quiet=True)
    monkeypatch.setattr(module, "_BLOCK", 900)
    parts = condition(x, "float32", quiet=True)
    for name in ("values", "shift", "exponent", "gaps"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


def test_a_table_is_not_looked_at_series_by_series(monkeypatch):
    """Surrogates of one test are some hundred thousand series."""
    calls = []
    for name in ("median", "partition"):
        function = getattr(np, name)
        monkeypatch.setattr(np, name, lambda *given, of=function, **how: calls.append(given) or of(*given, **how))
    condition(np.random.default_rng(1).standard_normal((60, 500)), "float32")
    assert len(calls) == 1


@pytest.mark.parametrize("rows", [1, 2, 59, 60])
def test_the_middle_of_a_series_is_its_median(rows):
    values = 1000.1 + np.random.default_rng(rows).standard_normal((rows, 3))
    assert (condition(values, "float32").shift == np.median(values, axis=0)).all()
