"""Links among series by methods of others, for bench/networks.py: Granger causality, transfer entropy and PCMCI."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pyedmcl

Truth = NDArray[np.bool_]
Data = NDArray[np.float64]
LAGS = 3
RATE = 0.05
_BINS, _SHIFTS = 4, 999


def granger(data: Data) -> Truth:
    """Conditional on all other series: a vector autoregression of 1 to 3 lags (by AIC), F tests (statsmodels)."""
    from statsmodels.tsa.api import VAR

    n = data.shape[1]
    fit = VAR(data).fit(maxlags=LAGS, ic="aic")
    p = np.full((n, n), np.nan)
    if fit.k_ar:
        for effect in range(n):
            for cause in np.delete(np.arange(n), effect):
                p[effect, cause] = fit.test_causality(effect, int(cause), kind="f").pvalue
    return _linked(p)


def pcmci(data: Data) -> Truth:
    """PCMCI with linear partial correlation (tigramite), lags 1 to 3."""
    from tigramite import pcmci as methods
    from tigramite.data_processing import DataFrame
    from tigramite.independence_tests.parcorr import ParCorr

    method = methods.PCMCI(dataframe=DataFrame(data), cond_ind_test=ParCorr(), verbosity=0)
    result = method.run_pcmci(tau_min=1, tau_max=LAGS, pc_alpha=RATE)
    p = result["p_matrix"][:, :, 1:].copy()
    p[np.arange(len(p)), np.arange(len(p))] = np.nan
    with np.errstate(invalid="ignore"):
        return np.asarray((pyedmcl.false_discovery(p) <= RATE).any(axis=2).T)


def transfer_entropy(data: Data) -> Truth:
    """Of pairs: ranks in 4 bins, one row of history of either, against 999 shifts of the cause in a circle."""
    rows, n = len(data) - 1, data.shape[1]
    ranks = data.argsort(axis=0, kind="stable").argsort(axis=0)
    bins = ranks * _BINS // len(data)
    rng = np.random.default_rng(1)
    shifts = np.append(0, rng.choice(np.arange(10, rows - 10), min(_SHIFTS, rows - 20), replace=False))
    p = np.full((n, n), np.nan)
    for effect in range(n):
        now = bins[1:, effect] * _BINS + bins[:-1, effect]
        for cause in np.delete(np.arange(n), effect):
            source = bins[:-1, cause]
            found = np.array([_entropy(now, np.roll(source, int(shift))) for shift in shifts])
            p[effect, cause] = (1 + (found[1:] >= found[0]).sum()) / len(shifts)
    return _linked(p)


def _entropy(now: NDArray[np.int_], source: NDArray[np.int_]) -> float:
    """Transfer entropy, without the part that no shift of the source changes."""
    counts = np.bincount(now * _BINS + source, minlength=_BINS**3).reshape(_BINS, _BINS, _BINS).astype(float)
    before = counts.sum(axis=0)
    return float((counts * np.log(np.maximum(counts, 1))).sum() - (before * np.log(np.maximum(before, 1))).sum())


def _linked(p: Data) -> Truth:
    with np.errstate(invalid="ignore"):
        return np.asarray(pyedmcl.false_discovery(p) <= RATE)


def peers() -> dict[str, Callable[[Data], Truth]]:
    """Those that can run here; tables have row = effect and column = cause."""
    found: dict[str, Any] = {"transfer entropy": transfer_entropy}
    for name, needs, function in (("Granger", "statsmodels", granger), ("PCMCI", "tigramite", pcmci)):
        if importlib.util.find_spec(needs) is not None:
            found[name] = function
    return found
