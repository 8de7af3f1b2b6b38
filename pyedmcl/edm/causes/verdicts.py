"""From the evidence of all pairs to verdicts: which rule says what, in one place.

All tables are (n_series, n_series) with row = effect (the library, whose states predict) and column = cause (the
target).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..shared.false_discovery import false_discovery

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: What passes through another series cannot be known better behind it: a link is explained if its skill is below WEAKER
#: of each step's, and the estimate of the cause through that series has CARRIED of the link's own skill.
WEAKER, CARRIED = 0.8, 0.5
#: Or if it is weaker than each step at all, that estimate has NEARLY_ALL of its skill, and of the skill no more than
#: LEFT is left as partial correlation.
NEARLY_ALL, LEFT = 0.9, 0.7
#: Or if it is below FAR_WEAKER of each step's: the path explains as much, and a direct link beside it cannot be told.
FAR_WEAKER = 0.5
#: Series that a link may pass through are looked at up to this number, those with the strongest steps first.
MOST_GIVEN = 5
#: Forecasts know this many other causes at most: each is a coordinate more, with which neighbours lie farther apart.
MOST_BESIDE = 3

DIRECT, INDIRECT, LINK, UNORDERED, NONE = "direct", "indirect", "link", "unordered", "none"
MEANINGS = {
    DIRECT: "the cause drives the effect, and no other series of the table explains it",
    INDIRECT: "the cause acts through another series of the table, or both have a driver in it",
    LINK: "the cause drives the effect, directly or not: that was not tested",
    UNORDERED: "linked, but the best lag is not clearly before the effect: a common driver, synchrony, or the other "
               "direction",
    NONE: "no evidence of a link",
}


@dataclass(frozen=True)
class Evidence:
    """What was measured; None for a leg that was switched off. Masks are made once: each pair asks for all of them.

    Attributes
    ----------
    skill : ndarray
        The highest skill of any lag, or of the one that was tested.
    q_value : ndarray or None
        Against surrogates.
    gain, p_convergence : ndarray or None
        Of skill with the size of the library.
    lag : ndarray of int or None
        Tp of the highest skill.
    rate : float
        The level of all tests.
    latest : int
        The latest best lag at which a cause is believed.
    p_lag : ndarray or None
        P-value of the best lag up to there being better than the best later one; NaN for pairs that fail another leg.
    p_forecast : ndarray or None
        P-value of the cause improving forecasts of the effect; NaN for pairs that other evidence decides.
    shocks : ndarray of bool or None
        Pairs that a shock within the row explains as well, as one weather does.
    """

    skill: Doubles
    q_value: Doubles | None
    gain: Doubles | None
    p_convergence: Doubles | None
    lag: NDArray[np.int_] | None
    rate: float
    latest: int
    p_lag: Doubles | None = None
    p_forecast: Doubles | None = None
    shocks: Mask | None = None

    @cached_property
    def significant(self) -> Mask | None:
        return None if self.q_value is None else _at_most(self.q_value, self.rate)

    @cached_property
    def converges(self) -> Mask | None:
        if self.gain is None or self.p_convergence is None:
            return None
        with np.errstate(invalid="ignore"):
            return np.asarray((self.gain > 0) & _at_most(self.p_convergence, self.rate))

    @cached_property
    def before(self) -> Mask | None:
        return None if self.lag is None else np.asarray(self.lag <= self.latest)

    @cached_property
    def clear(self) -> Mask | None:
        """Pairs whose best lag is better than those that a cause may not have."""
        return None if self.p_lag is None else self._decided(self.p_lag)

    @cached_property
    def improves(self) -> Mask:
        """Pairs whose cause improves forecasts of the effect, as far as that was asked."""
        return np.zeros(self.skill.shape, bool) if self.p_forecast is None else self._decided(self.p_forecast)

    def _decided(self, p_value: Doubles) -> Mask:
        """P-values of at most ``rate``; of links that a shock within the row explains, at that false discovery rate.

        Those may all be nothing else, and of many some would pass by chance.
        """
        adjusted = p_value.copy()
        if self.shocks is not None:
            adjusted[self.shocks] = false_discovery(p_value[self.shocks])
        return _at_most(adjusted, self.rate)

    @cached_property
    def linked(self) -> Mask:
        """Pairs that pass all legs but the lag, off the diagonal."""
        with np.errstate(invalid="ignore"):
            passing = np.asarray(self.skill > 0)
        for leg in (self.significant, self.converges):
            if leg is not None:
                passing = passing & leg
        np.fill_diagonal(passing, False)
        return passing

    @cached_property
    def ordered(self) -> Mask:
        """Pairs that pass all legs."""
        return self.linked if self.before is None else self.linked & self.before


def _at_most(values: Doubles, limit: float) -> Mask:
    with np.errstate(invalid="ignore"):
        return np.asarray(values <= limit)


def intermediates(evidence: Evidence, effect: int, cause: int) -> list[int]:
    """Series that a link may pass through, or that may drive both, those with the strongest steps first.

    They are linked to the effect as its cause, and to the cause in either direction.
    """
    linked, others = evidence.ordered, np.arange(len(evidence.skill))
    between = linked[effect] & (linked[:, cause] | linked[cause]) & (others != effect) & (others != cause)
    series = np.flatnonzero(between)
    steps = np.array([weaker_step(evidence, effect, cause, int(z)) for z in series])
    return [int(z) for z in series[np.argsort(-steps, kind="stable")]]


def weaker_step(evidence: Evidence, effect: int, cause: int, through: int) -> float:
    """The skill of the weaker of both steps between a cause and an effect through another series."""
    skill = evidence.skill
    return float(min(skill[effect, through], np.nanmax([skill[through, cause], skill[cause, through]])))


def passes_through(
    evidence: Evidence, effect: int, cause: int, through: int, carried: float, partial: float
) -> bool:
    """Whether another series explains a link.

    Parameters
    ----------
    carried : float
        Skill of the estimate of the cause through that series.
    partial : float
        Correlation of cause and direct estimate, given that one.
    """
    direct, step = float(evidence.skill[effect, cause]), weaker_step(evidence, effect, cause, through)
    clearly = direct < WEAKER * step and carried >= CARRIED * direct
    wholly = direct < step and carried >= NEARLY_ALL * direct and partial <= LEFT * direct
    return clearly or wholly or direct < FAR_WEAKER * step


def verdict_of(
    evidence: Evidence, effect: int, cause: int, asked: bool, explained: str | None, looked_at: int
) -> tuple[str, tuple[str, ...]]:
    """The verdict on a pair, and the codes of its reasons.

    Parameters
    ----------
    asked : bool
        Whether intermediates were looked at.
    explained : str or None
        Name of the series that the link passes through.
    looked_at : int
        How many series it might have passed through.
    """
    codes = []
    legs: list[tuple[Any, str, str, str]] = [
        (evidence.significant, "significant", "not-significant", "surrogates-off"),
        (evidence.converges, "converges", "no-convergence", "convergence-off"),
        (evidence.before, "lag-before", "lag-not-before", "lags-off"),
    ]
    for leg, yes, no, off in legs:
        codes.append(off if leg is None else yes if leg[effect, cause] else no)
    if not evidence.linked[effect, cause]:
        return NONE, tuple(codes)
    if not evidence.ordered[effect, cause]:
        return UNORDERED, tuple(codes)
    improves = bool(evidence.improves[effect, cause])
    if explained is not None and asked and not improves:
        return INDIRECT, (*codes, f"through:{explained}")
    if evidence.clear is not None and not evidence.clear[effect, cause]:
        codes.append("lag-not-clear")
        if not improves:
            return UNORDERED, tuple(codes)
    if improves:
        codes.append("improves-forecast")
    if not asked:
        return LINK, (*codes, "partial-off")
    if explained is not None:
        return DIRECT, (*codes, f"beside:{explained}")
    return DIRECT, (*codes, "not-through-others" if looked_at else "no-intermediate")


def doubtful(evidence: Evidence, verdict: NDArray[Any]) -> Mask:
    """Links that a series explains, or whose order is not clear: a forecast may decide them."""
    return evidence.ordered & np.isin(verdict.astype(str), (INDIRECT, UNORDERED))


def companions(evidence: Evidence, verdict: NDArray[Any], effect: int, cause: int, through: int) -> tuple[int, ...]:
    """What else a forecast of the effect knows: the series that explains the link, and the strongest other causes."""
    beside = [int(z) for z in np.flatnonzero(np.isin(verdict[effect].astype(str), (DIRECT, LINK))) if z != cause]
    beside.sort(key=lambda z: (z != through, -float(evidence.skill[effect, z])))
    if through >= 0 and through not in beside:
        beside.insert(0, through)
    return tuple(sorted(beside[:MOST_BESIDE]))
