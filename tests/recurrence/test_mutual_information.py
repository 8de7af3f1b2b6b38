"""Mutual information of a series and its lags, against the definitions and where it is known."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import RecurrenceWarning
from pyedmcl.recurrence.mutual_information import MutualInformation


def test_binned_information_is_that_of_the_table(one_device):
    x = np.sin(np.arange(500) * 0.2) + 0.2 * np.random.default_rng(0).standard_normal(500)
    x[40] = np.nan
    found = pyedmcl.mutual_information(x, lags=[1, 7], bins=5, device=one_device)
    edges = np.quantile(x[~np.isnan(x)], [0.2, 0.4, 0.6, 0.8])
    for lag, value in zip(found.lags, found.values, strict=True):
        pairs = [(np.searchsorted(edges, a, "right"), np.searchsorted(edges, b, "right"))
                 for a, b in zip(x[lag:], x[:-lag], strict=True) if a == a and b == b]  # fmt: skip
        both, first, second = Counter(pairs), Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
        n = len(pairs)
        wanted = sum(c / n * np.log(c * n / (first[a] * second[b])) for (a, b), c in both.items())
        assert value == pytest.approx(wanted, rel=1e-12)


def brute_kraskov(a, b, k):
    n = len(a)
    psi = [-0.5772156649015329]
    for i in range(1, n + 1):
        psi.append(psi[-1] + 1 / i)
    total = 0.0
    for i in range(n):
        da, db = np.abs(a - a[i]), np.abs(b - b[i])
        reach = np.sort(np.delete(np.maximum(da, db), i))[k - 1]
        total += psi[np.sum(np.delete(da, i) < reach)] + psi[np.sum(np.delete(db, i) < reach)]
    return psi[k - 1] + psi[n - 1] - total / n


def test_kraskov_information_is_that_of_the_definition(device):
    x = np.round(np.cumsum(np.random.default_rng(1).standard_normal(150)), 2)  # some values and distances tie
    x[20] = np.nan
    found = pyedmcl.mutual_information(x, lags=[1, 5], method="kraskov", k=3, device=device)
    for lag, value in zip(found.lags, found.values, strict=True):
        known = ~np.isnan(x[lag:] + x[:-lag])
        assert value == pytest.approx(brute_kraskov(x[lag:][known], x[:-lag][known], 3), rel=1e-9)


def test_information_of_gaussian_noise_is_known(one_device):
    rng = np.random.default_rng(2)
    x = np.zeros(4000)
    for t in range(1, len(x)):
        x[t] = 0.8 * x[t - 1] + rng.standard_normal()
    wanted = [-0.5 * np.log(1 - 0.8 ** (2 * lag)) for lag in (1, 2, 8)]
    kraskov = pyedmcl.mutual_information(x, lags=[1, 2, 8], method="kraskov", device=one_device)
    np.testing.assert_allclose(kraskov.values, wanted, atol=0.04)
    binned = pyedmcl.mutual_information(x, lags=[1, 2, 8], device=one_device)
    np.testing.assert_allclose(binned.values, wanted, atol=0.08)


def test_first_minimum(one_device):
    curves = np.array([[3.0, 2.0, 2.5, 1.0], [4.0, 3.0, 2.0, 1.0], [3.0, np.nan, 1.0, 2.0]])
    found = MutualInformation(curves, (1, 2, 4, 8), ("a", "b", "c"))
    assert found.first_minimum().tolist() == [2, 8, 4]
    assert MutualInformation(curves[0], (1, 2, 4, 8), ("a",)).first_minimum() == 2
    wave = np.sin(np.arange(1000) * 2 * np.pi / 40)
    assert pyedmcl.mutual_information(wave, device=one_device).lags == tuple(range(1, 51))
    assert pyedmcl.mutual_information(wave[:30], device=one_device).lags == tuple(range(1, 11))


@pytest.mark.parametrize("noise", [0.01, 0.02, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("period", [40, 62.8, 100])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_first_minimum_resists_noise(period, noise, seed):
    rng = np.random.default_rng(seed)
    wave = np.sin(2 * np.pi * np.arange(4000) / period) + noise * rng.standard_normal(4000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tau = pyedmcl.mutual_information(wave, lags=60).first_minimum()
    assert abs(tau - period / 4) <= 0.25 * period / 4 + 1


def test_where_there_is_no_minimum_it_is_told():
    rng = np.random.default_rng(3)
    walk, noise = rng.standard_normal(3000).cumsum(), rng.standard_normal(3000)
    with pytest.warns(RecurrenceWarning, match=r"'x0': the mutual information has no minimum up to lag 40"):
        assert pyedmcl.mutual_information(walk, lags=40).first_minimum() == 40
    with pytest.warns(RecurrenceWarning, match=r"'walk': .*no minimum up to lag 20"):
        both = pyedmcl.mutual_information({"walk": walk, "noise": noise}, lags=20)
        assert both.first_minimum()[1] == 1
    assert pyedmcl.mutual_information(noise, lags=40).first_minimum() == 1  # nothing is left at any lag


def test_ties_are_told_of_neighbours(one_device):
    codes = np.random.default_rng(0).integers(0, 9, 300).astype(float)
    with pytest.warns(RecurrenceWarning, match="many values are equal"):
        pyedmcl.mutual_information(codes, lags=2, method="kraskov", device=one_device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pyedmcl.mutual_information(codes, lags=2)
