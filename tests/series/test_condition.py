"""Data are shifted by their median where a shorter type would lose digits, series by series."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError, PyedmclWarning
from pyedmcl.series import scaling as module
from pyedmcl.series.scaling import condition
from pyedmcl.simulate import coupled_maps


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


@pytest.mark.parametrize("n", [60, 300, 5000])
@pytest.mark.parametrize("levels", ["half", "blocks", "ten", "few rows"])
@pytest.mark.parametrize("apart", [1e4, 1e5, 1e7, 1e9, 1e12])
def test_levels_far_apart_are_told(n, levels, apart):
    """Where float32 keeps too few digits of what happens on a level."""
    row = np.arange(n)
    level = {"half": row > n // 2, "blocks": row // 75 % 2, "ten": row * 10 // n, "few rows": row >= 0.85 * n}[levels]
    if levels == "blocks" and n < 76:
        level = row % 2
    x = np.random.default_rng(n).random(n) + apart * np.asarray(level)
    if apart == 1e4 and levels == "few rows":
        return  # on the border
    with pytest.warns(PyedmclWarning, match=r"1 series with values on levels so far apart.*dtype='float64'"):
        condition(x[:, None], "float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        condition(x[:, None], "float64")


USUAL = {
    "normal": lambda rng: rng.standard_normal(3000), "few": lambda rng: rng.standard_normal(7),
    "heavy tails": lambda rng: rng.standard_cauchy(3000), "skewed": lambda rng: np.exp(3 * rng.standard_normal(3000)),
    "walk": lambda rng: rng.standard_normal(100_000).cumsum(), "slow": lambda rng: np.sin(np.arange(100_000) / 1e4),
    "trend": lambda rng: 1e6 + 1e-3 * np.arange(100_000), "decay": lambda rng: 5 + np.exp(-np.arange(3000) / 20),
    "mostly zero": lambda rng: np.where(rng.random(3000) < 0.6, 0.0, rng.standard_normal(3000)),
    "rounded": lambda rng: rng.standard_normal(3000).round(2), "constant": lambda rng: np.full(50, 0.1),
    "two levels": lambda rng: rng.random(3000) + 100.0 * (np.arange(3000) // 75 % 2),
    "spikes": lambda rng: rng.random(3000) + 1e4 * (rng.random(3000) < 0.02),
    "offset": lambda rng: 1e9 + rng.standard_normal(3000),
}  # fmt: skip


@pytest.mark.parametrize("kind", USUAL)
def test_nothing_is_told_of_usual_data(kind):
    rng = np.random.default_rng(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            x = USUAL[kind](rng)
            gapped = np.where(rng.random(len(x)) < 0.1, np.nan, x)
            condition(np.stack([x, gapped], axis=1), "float32")


@pytest.mark.parametrize("apart", [0.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8])
def test_skills_in_float32_are_those_of_float64_or_it_is_told(apart, one_device):
    data = coupled_maps(n_series=3, n_steps=300, seed=3).values.astype(np.float64)
    x = data[:, 1] + apart * (np.arange(300) // 75 % 2)
    rho = {}
    for dtype in ("float32", "float64"):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                rho[dtype] = pyedmcl.simplex(x, target=data[:, 0], E=2, Tp=0, dtype=dtype, device=one_device).rho
            except InputError as error:
                pytest.skip(str(error))
        if dtype == "float32" and any("levels so far apart" in str(one.message) for one in told):
            assert apart >= 1e3
            return
    assert abs(rho["float32"] - rho["float64"]) < 2e-3


#: Functions that find neighbours in float32. S-map of one series and recurrence decide in float64.
ON_LEVELS = {
    "simplex": lambda y, a, **o: pyedmcl.simplex(y, target=a, E=2, Tp=0, **o),
    "knn": lambda y, a, **o: pyedmcl.knn(y, E=2, **o),
    "ccm": lambda y, a, **o: pyedmcl.ccm(y, a, E=2, sample=2, seed=1, **o),
    "ccm_lagged": lambda y, a, **o: pyedmcl.ccm_lagged(y, a, E=2, Tp=[0], **o),
    "ccm_significance": lambda y, a, **o: pyedmcl.ccm_significance(y, a, E=2, n=19, seed=1, **o),
    "partial_ccm": lambda y, a, **o: pyedmcl.partial_ccm(y, a, given=a[::-1].copy(), E=2, n=19, seed=1, **o),
    "xmap": lambda y, a, **o: pyedmcl.xmap(np.column_stack([y, a]), E=2, **o),
    "xmap, spearman": lambda y, a, **o: pyedmcl.xmap(np.column_stack([y, a]), E=2, skill="spearman", **o),
    "windows": lambda y, a, **o: pyedmcl.xmap(np.column_stack([y, a]), E=2, windows=(150, 50), **o),
    "xmap_significance": lambda y, a, **o: pyedmcl.xmap_significance(np.column_stack([y, a]), E=2, n=19, seed=1, **o),
    "ccm_matrix": lambda y, a, **o: pyedmcl.ccm_matrix(np.column_stack([y, a]), E=2, sample=2, seed=1, **o),
    "embed_dimension": lambda y, a, **o: pyedmcl.embed_dimension(y, E_max=2, **o),
    "false_neighbors": lambda y, a, **o: pyedmcl.false_neighbors(y, E_max=2, **o),
    "multiview": lambda y, a, **o: pyedmcl.multiview(np.column_stack([y, a]), 0, D=2, **o),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ON_LEVELS)
def test_levels_that_float32_does_not_tell_apart_are_told_by_every_function(name, one_device):
    y, a = coupled_maps(n_series=3, n_steps=300).values[:, :2].T.astype(float)
    levels = 1e7 * (np.arange(300) // 75 % 2)
    with pytest.warns(PyedmclWarning, match="loses digits by which neighbours are found"):
        ON_LEVELS[name](y + levels, a, device=one_device)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ON_LEVELS[name](y, a, device=one_device)
    assert not [one for one in told if "loses digits" in str(one.message)]
