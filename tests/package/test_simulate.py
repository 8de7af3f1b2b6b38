"""The simulated network and the ROC AUC."""

from __future__ import annotations

import naive
import numpy as np
import pytest

from pyedmcl.errors import InputError
from pyedmcl.simulate import coupled_maps, link_auc, roc_auc


@pytest.mark.parametrize("seed", range(4))
def test_auc_with_and_without_ties(seed):
    rng = np.random.default_rng(seed)
    truth = rng.random(60) < 0.3
    for score in (rng.random(60) + 0.3 * truth, rng.integers(0, 4, 60).astype(float)):
        assert roc_auc(score, truth) == pytest.approx(naive.auc(score, truth), abs=1e-12)


def test_auc_of_the_clear_cases():
    truth = np.array([True, True, False, False])
    assert roc_auc([4, 3, 2, 1], truth) == 1
    assert roc_auc([1, 2, 3, 4], truth) == 0
    assert roc_auc([7, 7, 7, 7], truth) == 0.5
    assert roc_auc([2, np.nan, 1, np.nan], truth) == pytest.approx((1 + 1 + 0 + 0.5) / 4)
    assert np.isnan(roc_auc([1, 2], [True, True]))
    with pytest.raises(InputError, match="one score each"):
        roc_auc([1, 2, 3], truth)


def test_link_auc_reads_rows_as_effects():
    links = np.zeros((4, 4), bool)
    links[0, 1] = links[2, 3] = True
    rho = np.full((4, 4), 0.1)
    np.fill_diagonal(rho, 1)  # never counts
    rho[1, 0] = rho[3, 2] = 0.9
    assert link_auc(rho, links) == 1
    assert link_auc(rho.T, links) < 0.5
    with pytest.raises(InputError, match="shape"):
        link_auc(rho[:3], links)


def test_network_is_what_it_says():
    network = coupled_maps(20, 150, seed=4)
    assert network.values.shape == (150, 20) and network.values.dtype == np.float32
    assert network.values.min() > 0 and network.values.max() < 1
    assert not network.links.diagonal().any()
    assert set(network.links.sum(axis=0)) == {1, 2}, "each series has one or two drivers"
    assert len(set(network.names)) == 20
    np.testing.assert_array_equal(network.values, coupled_maps(20, 150, seed=4).values)
    assert not np.array_equal(network.values, coupled_maps(20, 150, seed=5).values)


def test_a_series_follows_its_drivers_and_itself_only():
    network = coupled_maps(12, 400, noise=0, seed=2)
    x = network.values.astype(np.float64)
    inside = (x > 2e-3) & (x < 1 - 2e-3)
    for j in range(12):
        drive = x[:-1, network.links[:, j]].mean(axis=1)
        now, then = x[:-1, j], x[1:, j]
        usable = inside[:-1, j] & inside[1:, j]
        rates = ((then / now + 0.4 * drive) / (1 - now))[usable]
        assert rates.std() < 1e-3 and 3.65 <= rates.mean() <= 3.85, f"series {j} has one growth rate"


def test_series_over_one_other():
    network = coupled_maps(15, 1, seed=1)
    over_one = network.over_one()
    for i in range(15):
        for j in range(15):
            way = any(network.links[i, k] and network.links[k, j] for k in range(15))
            assert over_one[i, j] == (way and i != j and not network.links[i, j])


@pytest.mark.parametrize("options", [{"n_series": 2}, {"n_steps": 0}, {"strength": 0.9}, {"noise": -1}])
def test_parameters_out_of_range(options):
    with pytest.raises(InputError):
        coupled_maps(**options)
