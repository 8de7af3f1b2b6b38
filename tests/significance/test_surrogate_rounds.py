"""Tests by rounds of surrogates: each p-value is that of as many surrogates, asked for as a fixed number."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from series_helpers import driven

import pyedmcl
from pyedmcl.device.quirks import quirks_for
from pyedmcl.engines import lagged
from pyedmcl.errors import InputError
from pyedmcl.significance import significance
from pyedmcl.simulate import coupled_maps


def test_all_pairs_by_rounds(one_device):
    """Each pair's p-value is that of as many surrogates, asked for as a fixed number."""
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
    for module in (lagged, significance):
        quirks = functools.partial(replace, scalar_work_items=True, on_host=False)
        monkeypatch.setattr(module, "quirks_for", lambda info, quirks=quirks: quirks(quirks_for(info)))
    monkeypatch.setattr(significance, "_LEAST_TARGETS", 64)
    monkeypatch.setattr(lagged, "_FILLS", 1 << 30)
    run_marked = lagged.Lookups.run_marked
    monkeypatch.setattr(
        lagged.Lookups, "run_marked", lambda *a, **k: (calls.append(k["marked"]), run_marked(*a, **k))[1]
    )
    found = network()
    assert len(calls) > 10 and found.draws.max() > 200
    for name in ("draws", "p_value", "q_value", "rho"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
