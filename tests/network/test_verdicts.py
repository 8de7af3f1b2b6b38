"""Verdicts on links follow from what is known of all pairs, by rule."""

from __future__ import annotations

import numpy as np
from evidence_helpers import evidence

from pyedmcl.network.verdicts import intermediates, passes_through, verdict_of


def test_verdicts_by_rule():
    skill = np.array([[np.nan, 0.1, 0.1], [0.9, np.nan, 0.1], [0.5, 0.8, np.nan]])  # 0 -> 1 -> 2
    lag = np.array([[0, 1, 1], [-1, 0, 1], [-2, -1, 0]])
    one = evidence(skill, lag)
    assert intermediates(one, 2, 0) == [1] and intermediates(one, 1, 0) == []
    assert passes_through(one, 2, 0, 1, 0.3, 0.4)
    assert not passes_through(one, 2, 0, 1, 0.2, 0.4)
    weak = skill.copy()
    weak[2, 0] = 0.39  # less than half of the weaker step
    assert passes_through(evidence(weak, lag), 2, 0, 1, 0.0, 0.39)
    stronger = skill.copy()
    stronger[2, 0] = 0.7  # nearly as strong as the weaker step
    near = evidence(stronger, lag)
    assert passes_through(near, 2, 0, 1, 0.7, 0.3)
    assert not passes_through(near, 2, 0, 1, 0.6, 0.3) and not passes_through(near, 2, 0, 1, 0.7, 0.6)
    assert verdict_of(one, 2, 0, True, "b", 1) == (
        "indirect", ("significant", "converges", "lag-before", "through:b")
    )  # fmt: skip
    assert verdict_of(one, 2, 0, True, None, 1)[0] == "direct"
    assert verdict_of(one, 2, 0, False, None, 0)[0] == "link"
    unclear = evidence(skill, lag, p_lag=np.full((3, 3), 0.06))
    assert verdict_of(unclear, 2, 0, True, None, 1) == (
        "unordered", ("significant", "converges", "lag-before", "lag-not-clear")
    )  # fmt: skip
    assert verdict_of(unclear, 2, 0, False, None, 1)[0] == "unordered"
    assert verdict_of(unclear, 2, 0, True, "b", 1)[0] == "indirect"
    assert verdict_of(evidence(skill, lag, p_lag=np.full((3, 3), 0.04)), 2, 0, True, None, 1)[0] == "direct"
    assert verdict_of(one, 0, 1, True, None, 0)[0] == "unordered"
    assert verdict_of(evidence(skill, lag, q_value=np.full((3, 3), 0.06)), 2, 0, True, None, 1)[0] == "none"
    assert verdict_of(evidence(skill, lag, gain=-np.ones((3, 3))), 2, 0, True, None, 1)[0] == "none"
    assert verdict_of(evidence(np.full((3, 3), np.nan), lag), 2, 0, True, None, 1)[0] == "none"


def test_masks_of_all_pairs_are_made_once(monkeypatch):
    """Each pair asks for them: made anew, 500 series would take the square of 250,000 steps."""
    from pyedmcl.network import verdicts

    made, compare = [], verdicts._at_most
    monkeypatch.setattr(verdicts, "_at_most", lambda *given: made.append(1) or compare(*given))
    skill = np.random.default_rng(1).random((12, 12))
    one = evidence(skill, np.full((12, 12), -1), p_lag=np.zeros((12, 12)), p_forecast=np.ones((12, 12)))
    for effect, cause in np.ndindex(12, 12):
        if effect != cause:
            verdict_of(one, effect, cause, True, None, len(intermediates(one, effect, cause)))
    assert len(made) == 3  # of surrogates, lags and forecasts
