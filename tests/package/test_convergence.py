"""Trends by counting orders, and means over samples of which some have no skill."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pyedmcl.statistics import kendall, means


def test_a_trend_by_counting_orders():
    values = np.random.default_rng(2).normal(size=(6, 40))
    values[:, :20] = np.round(values[:, :20])  # with ties
    values[:, 0] = 1.0
    for column, trend in zip(values.T, kendall(values), strict=True):
        signs = [np.sign(later - earlier) for earlier, later in itertools.combinations(column, 2)]
        untied = np.count_nonzero(signs)
        assert trend == pytest.approx(sum(signs) / np.sqrt(15 * untied) if untied else np.nan, nan_ok=True)
    assert kendall(values[:2, -1:]) in (-1, 1) and np.isnan(kendall(values[:1, :5])).all()
    assert kendall(values[:, :0]).shape == (0,)


def test_a_trend_agrees_with_scipy():
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    rng = np.random.default_rng(2)
    for n, digits in ((6, 8), (30, 8), (20, 1)):
        values = np.round(rng.random(n) + 0.03 * np.arange(n), digits)
        assert kendall(values[:, None])[0] == pytest.approx(stats.kendalltau(np.arange(n), values).statistic)


def test_samples_without_skill_do_not_spoil_a_mean():
    np.testing.assert_allclose(means(np.array([[0.2, np.nan, 0.4], [np.nan] * 3])), [0.3, np.nan])
