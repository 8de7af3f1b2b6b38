"""Tests by rounds: bounds hold, decisions are those of many surrogates, and too small a number is told of."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import pyedmcl
from pyedmcl.statistics import EPSILON, SequentialTests, bounds, decided, tell_reach


def test_bounds_by_definition():
    reached, n = np.array([[0, 3], [40, 0]]), np.array([[500, 100], [40, 0]])
    lower, upper = bounds(reached, n)
    for place in ((0, 0), (0, 1), (1, 0)):
        k, m = int(reached[place]), int(n[place])
        for side, end in ((lower[place], 0.0), (upper[place], 1.0)):
            if side != end:
                assert (m + 1) * math.comb(m, k) * side**k * (1 - side) ** (m - k) == pytest.approx(EPSILON, rel=1e-3)
    assert lower[0, 0] == 0 and upper[1, 0] == 1 and (lower[1, 1], upper[1, 1]) == (0, 1)
    assert (lower <= upper).all()


def test_bounds_hold_at_all_times():
    rng = np.random.default_rng(1)
    for p in (0.003, 0.05, 0.4):
        k = (rng.random((400, 1000)) < p).cumsum(axis=1)
        lower, upper = bounds(k, np.broadcast_to(np.arange(1, 1001), k.shape))
        missed = ((lower > p) | (upper < p)).any(axis=1).mean()
        assert missed <= 0.01, f"{missed:.1%} of the sequences missed p = {p} at some time"


def test_rounds_decide_as_many_surrogates_do():
    """Uniform p-values and some small ones: the decisions are those of the true p-values, for a part of the work."""
    rng = np.random.default_rng(3)
    truth = np.concatenate([rng.random(300), np.full(30, 1e-5)])
    tests = SequentialTests(0.05, 2000, 39, rng.binomial(39, truth), np.full(330, 39))
    while step := tests.step(100):
        tests.add(step, rng.binomial(step, truth), np.full(330, step))
    found = pyedmcl.false_discovery((1 + tests.reached) / (1 + tests.n)) <= 0.05
    assert (found != (pyedmcl.false_discovery(truth) <= 0.05)).sum() <= 1
    assert tests.n.mean() < 1000 and tests.n.max() <= 100_000
    assert decided((1 + tests.reached) / (1 + tests.n), tests.n, 0.05)[~tests.open].mean() > 0.95


def test_the_budget_is_kept():
    reached = np.zeros(50, int)
    reached[:45] = 2  # close to the limit for ever
    tests = SequentialTests(0.05, 200, 39, reached, np.full(50, 39))
    while step := tests.step(100):
        tests.add(step, np.where(np.arange(50) < 45, step // 20, 0), np.full(50, step))
    assert tests.n.sum() <= 200 * 50


def test_too_few_surrogates_are_told_of():
    """With 99 of them no pair of 1,560 can pass unless 312 are the smallest: 0 found must not pass for an answer."""
    p = np.full(1560, 0.5)
    p[:243] = 0.01
    with pytest.warns(RuntimeWarning, match=r"n=99 surrogates are too few.*1,560.*312.*243"):
        tell_reach(p, 99, 0.05)
    with pytest.warns(RuntimeWarning, match="none can pass"):
        tell_reach(np.array([0.1, 0.3]), 9, 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tell_reach(np.where(np.arange(1560) < 320, 0.01, 0.5), 99, 0.05)  # these pass
        tell_reach(np.full(20, 0.5), 99, 0.05)  # nothing sits at the smallest p-value
        tell_reach(np.full(2, np.nan), 99, 0.05)
