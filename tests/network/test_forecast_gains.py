"""Forecasts decide doubtful links: as by definition, and right where four legs are not enough."""

from __future__ import annotations

import numpy as np
import pytest
from evidence_helpers import evidence
from series_helpers import CHAIN, LOOP

import pyedmcl
from pyedmcl.network.legs import Forecast, p_of_forecasts, z_of_difference
from pyedmcl.network.verdicts import companions, doubtful, verdict_of
from pyedmcl.states import arguments
from pyedmcl.statistics import upper_tail

OPTIONS = {"E": 3, "lags": (-2, -1, 0, 1), "seed": 1, "surrogate": None, "convergence": False}


def species(rows, links, seed):
    """Competing species in discrete time."""
    rng = np.random.default_rng(seed)
    weights = np.asarray(links, float)
    weights = weights / np.maximum(weights.sum(axis=0), 1)
    growth, x, out = rng.uniform(2.7, 3.0, 3), rng.uniform(0.2, 0.8, 3), np.empty((rows + 100, 3))
    for t in range(rows + 100):
        x = x * np.exp(growth * (1 - x - 0.4 * (x @ weights)) + 0.01 * rng.standard_normal(3))
        out[t] = x
    return out[100:]


def test_as_by_definition(one_device):
    x = species(120, LOOP, 1) * (1.0, 50.0, 1.0)  # units do not matter
    x[30, 2], x[60, 1] = np.nan, np.nan
    unit = (x - np.nanmean(x, axis=0)) / np.nanstd(x, axis=0)
    lagged = np.column_stack([unit[:, 2], np.append([np.nan, np.nan], unit[:-2, 2])])

    def forecast(*others):
        made = pyedmcl.simplex(
            np.column_stack([lagged, *(unit[:, other] for other in others)]), target=x[:, 2], embedded=True, Tp=1,
            exclusion_radius=2, device=one_device,
        )  # fmt: skip
        out = np.full(121, np.nan)
        out[made.time] = made.predicted
        return out[None, 1:120]

    goal = x[None, 1:, 2]
    runner = arguments.runner_on(one_device, "float32")
    links = [(1, Forecast(2, (0,))), (0, Forecast(2)), (0, Forecast(2, (1,)))]
    found, _ = p_of_forecasts(
        runner, x, np.array([3, 3, 2]), links, tau=2, exclusion_radius=2, knn=None, dtype="float32"
    )
    for p, (cause, known) in zip(found, links, strict=True):
        z = z_of_difference((forecast(*known.others, cause), goal), (forecast(*known.others), goal))
        assert p == pytest.approx(upper_tail(z[0]), rel=1e-3)


def test_a_forecast_decides_doubtful_links_only():
    skill = np.array([[np.nan, 0.1, 0.1], [0.9, np.nan, 0.1], [0.5, 0.8, np.nan]])  # 0 -> 1 -> 2
    lag = np.array([[0, 1, 1], [-1, 0, 1], [-2, -1, 0]])
    yes, no = (np.full((3, 3), p) for p in (0.01, 0.2))
    known = {"p_lag": np.zeros((3, 3))}
    three = ("significant", "converges", "lag-before")
    assert verdict_of(evidence(skill, lag, p_forecast=yes, **known), 2, 0, True, "b", 1) == (
        "direct", (*three, "improves-forecast", "beside:b")
    )  # fmt: skip
    assert verdict_of(evidence(skill, lag, p_forecast=no, **known), 2, 0, True, "b", 1) == (
        "indirect", (*three, "through:b")
    )  # fmt: skip
    unclear = {"p_lag": np.full((3, 3), 0.2)}
    assert verdict_of(evidence(skill, lag, p_forecast=yes, **unclear), 2, 0, True, None, 1) == (
        "direct", (*three, "lag-not-clear", "improves-forecast", "not-through-others")
    )  # fmt: skip
    assert verdict_of(evidence(skill, lag, p_forecast=yes, **unclear), 2, 0, False, None, 0) == (
        "link", (*three, "lag-not-clear", "improves-forecast", "partial-off")
    )  # fmt: skip
    assert verdict_of(evidence(skill, lag, p_forecast=no, **unclear), 2, 0, True, None, 1)[0] == "unordered"
    late = evidence(skill, lag, p_forecast=yes)
    assert verdict_of(late, 0, 1, True, None, 0)[0] == "unordered"  # the best lag is after the effect
    weak = evidence(skill, lag, p_forecast=yes, q_value=np.full((3, 3), 0.06))
    assert verdict_of(weak, 2, 0, True, "b", 1)[0] == "none"
    verdict = np.array([["none"] * 3, ["direct", "none", "none"], ["indirect", "direct", "none"]], object)
    assert doubtful(late, verdict).tolist() == [[False] * 3, [False] * 3, [True, False, False]]


def test_the_strongest_other_causes_are_known():
    skill = np.full((6, 6), 0.2)
    skill[0, 1:] = 0.5, 0.6, 0.9, 0.7, 0.8
    verdict = np.full((6, 6), "none", object)
    verdict[0, 1:] = "direct", "direct", "direct", "direct", "unordered"
    one = evidence(skill, np.full((6, 6), -1))
    assert companions(one, verdict, 0, 5, -1) == (2, 3, 4)
    assert companions(one, verdict, 0, 3, 5) == (2, 4, 5)  # that which explains the link first of all
    assert companions(one, verdict, 0, 3, 1) == (1, 2, 4)
    assert companions(one, verdict, 1, 0, -1) == ()


@pytest.mark.parametrize("seeds", [range(7, 17), range(40, 50)])
def test_forecasts_find_links_and_lose_none(seeds, one_device):
    before, after = [], []
    for seed in seeds:
        data = species(300, LOOP, seed)
        for verdicts, forecast in ((before, False), (after, True)):
            found = pyedmcl.causal_network(data, forecast=forecast, device=one_device, **OPTIONS)
            verdicts.append(found.verdict[2, 1])
    lost = [old for old, new in zip(before, after, strict=True) if old == "direct" != new]
    assert not lost and after.count("direct") >= before.count("direct") + 2


@pytest.mark.parametrize(("seed", "verdict", "code"), [(7, "indirect", "beside:x0"), (9, "unordered", "lag-not-clear")])
def test_true_links_that_four_legs_doubt(seed, verdict, code, one_device):
    data = species(300, LOOP, seed)
    without = pyedmcl.causal_network(data, forecast=False, device=one_device, **OPTIONS)
    assert without.verdict[2, 1] == verdict and np.isnan(without.p_forecast).all()
    assert "Forecasts" not in without.methods()
    found = pyedmcl.causal_network(data, device=one_device, **OPTIONS)
    assert found.verdict[2, 1] == "direct" and {"improves-forecast", code} <= set(found.codes[2, 1])
    asked = np.isfinite(found.p_forecast)
    assert asked.any() and (found.verdict[~asked] == without.verdict[~asked]).all()
    said = found.statement("x1", "x2")
    assert said.startswith("There is evidence that x1 drives x2") and "x1 improves forecasts of x2 (p = " in said
    assert ("also where x0 is known" in said) == (verdict == "indirect") == ("alone would explain it" in said)
    assert "Forecasts of the effect beside up to 3 other causes" in found.methods()


def test_chains_stay_chains(one_device):
    for seed in (1, 7, 9):
        found = pyedmcl.causal_network(species(300, CHAIN, seed), device=one_device, **OPTIONS)
        assert found.verdict[2, 0] == "indirect" and found.p_forecast[2, 0] > 0.5
        assert "x0 does not improve forecasts of x2" in found.statement("x0", "x2")
