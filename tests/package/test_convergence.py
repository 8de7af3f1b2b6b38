"""Trends by counting orders, and means over samples of which some have no skill."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pyedmcl.statistics import kendall, kendall_columns, means


def test_a_trend_by_counting_orders():
    values = np.array([0.1, 0.4, 0.2, 0.6, 0.7])
    tau, p = kendall(values)
    s = sum(np.sign(values[j] - values[i]) for i, j in itertools.combinations(range(5), 2))
    assert tau == pytest.approx(s / 10)
    as_rising = sum(
        sum(np.sign(order[j] - order[i]) for i, j in itertools.combinations(range(5), 2)) >= s
        for order in itertools.permutations(range(5))
    )
    assert p == pytest.approx(as_rising / math.factorial(5))
    assert np.isnan(kendall(values[:2])).all() and np.isnan(kendall(np.ones(6))).all()


@pytest.mark.parametrize("n", [1, 2, 3, 5, 12, 40])
def test_kendall_of_columns_is_that_of_each(n):
    values = np.random.default_rng(n).normal(size=(n, 60))
    values[:, :30] = np.round(values[:, :30])  # with ties
    values[:, 0] = 1.0
    each = [kendall(column) for column in values.T]
    assert np.array_equal(np.transpose(kendall_columns(values)), each, equal_nan=True)
    assert [len(part) for part in kendall_columns(values[:, :0])] == [0, 0]


def test_a_trend_agrees_with_scipy():
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    rng = np.random.default_rng(2)
    for n in (6, 12, 30):
        values = rng.random(n) + 0.05 * np.arange(n)
        theirs = stats.kendalltau(np.arange(n), values, alternative="greater", method="exact")
        np.testing.assert_allclose(kendall(values), (theirs.statistic, theirs.pvalue), rtol=1e-10)
    tied = np.round(rng.random(20) + 0.03 * np.arange(20), 1)
    assert kendall(tied)[0] == pytest.approx(stats.kendalltau(np.arange(20), tied).statistic)


def test_samples_without_skill_do_not_spoil_a_mean():
    np.testing.assert_allclose(means(np.array([[0.2, np.nan, 0.4], [np.nan] * 3])), [0.3, np.nan])
