"""Surrogates by rounds: bounds hold, decisions are those of many surrogates, and too small a number is told of."""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from series_helpers import driven

import pyedmcl
from pyedmcl.device.quirks import quirks_for
from pyedmcl.edm.shared.sequential import EPSILON, SequentialTests, bounds, decided, tell_reach
from pyedmcl.edm.significance import lagged_draws
from pyedmcl.engines import lagged_map
from pyedmcl.errors import InputError
from pyedmcl.simulate import coupled_maps


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


def test_all_pairs_by_rounds(one_device):
    """Each pair's p-value is that of so many surrogates of a fixed number."""
    data = np.column_stack([*driven(140), *np.random.default_rng(1).standard_normal((2, 140))])
    options = {"E": [2, 3, 2, 1], "seed": 5, "device": one_device}
    found = pyedmcl.xmap_significance(data, rate=0.1, budget=200, **options)
    assert found.n == found.draws.max() > found.draws[~np.eye(4, dtype=bool)].min() >= 39
    for n in np.unique(found.draws[found.draws > 0]):
        fixed = pyedmcl.xmap_significance(data, n=int(n), **options)
        np.testing.assert_array_equal(found.p_value[found.draws == n], fixed.p_value[found.draws == n])
        np.testing.assert_array_equal(fixed.draws[np.isfinite(fixed.p_value)], n)
        np.testing.assert_array_equal(fixed.rho, found.rho)
    assert np.isnan(np.diag(found.p_value)).all() and not np.diag(found.draws).any()
    assert found.smallest_p == 1 / (found.n + 1) and found.smallest_q == pytest.approx(12 / (found.n + 1))
    assert found.decided().shape == (4, 4) and found.rate == 0.1


def test_one_pair_by_rounds(one_device):
    x, y = driven(150)
    found = pyedmcl.ccm_significance(x, y, E=2, seed=7, budget=100, device=one_device)
    fixed = pyedmcl.ccm_significance(x, y, E=2, seed=7, n=found.n, device=one_device)
    there = np.isfinite(found.surrogates)
    np.testing.assert_array_equal(found.surrogates[there], fixed.surrogates[there])
    for d in (0, 1):
        reached = (found.surrogates[d][there[d]] >= found.rho[d]).sum()
        assert found.p_value[d] == (1 + reached) / (1 + there[d].sum())
    assert found.p_value[1] < 0.025 and found.smallest_q == 2 * found.smallest_p


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


def test_all_pairs_warn_of_too_few(one_device):
    x, y = driven(300)
    with pytest.warns(RuntimeWarning, match="n=9 surrogates are too few"):
        pyedmcl.xmap_significance(np.column_stack([x, y]), E=2, n=9, seed=1, device=one_device)


@pytest.mark.parametrize(
    ("options", "words"), [({"n": "all"}, "n='all'"), ({"rate": 1.0}, "rate=1.0"), ({"budget": 0}, "budget=0")]
)
def test_bad_input_is_named(options, words):
    x, y = driven(60)
    with pytest.raises(InputError, match=words):
        pyedmcl.ccm_significance(x, y, E=2, **options)
    with pytest.raises(InputError, match=words):
        pyedmcl.xmap_significance(np.column_stack([x, y]), E=2, **options)


def test_tests_on_a_gpu_have_the_same_bits(one_device, monkeypatch):
    """There, targets are in smaller parts, and one launch looks up the pairs that are open."""
    data = coupled_maps(n_series=6, n_steps=120, seed=2).values
    legs = {"lags": (-1, 0), "convergence": False, "partial": False, "forecast": False}
    calls = []

    def network():
        return pyedmcl.causal_network(data, E=2, seed=1, budget=150, device=one_device, **legs)

    plain = network()
    for module in (lagged_map, lagged_draws):
        quirks = functools.partial(replace, scalar_work_items=True, on_host=False)
        monkeypatch.setattr(module, "quirks_for", lambda info, quirks=quirks: quirks(quirks_for(info)))
    monkeypatch.setattr(lagged_draws, "_LEAST_TARGETS", 64)
    monkeypatch.setattr(lagged_map, "_FILLS", 1 << 30)
    run_marked = lagged_map.Lookups.run_marked
    monkeypatch.setattr(
        lagged_map.Lookups, "run_marked", lambda *a, **k: (calls.append(k["marked"]), run_marked(*a, **k))[1]
    )
    found = network()
    assert len(calls) > 10 and found.draws.max() > 200
    for name in ("draws", "p_value", "q_value", "rho"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
