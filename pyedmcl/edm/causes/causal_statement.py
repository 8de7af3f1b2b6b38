"""A causal network in sentences: what can be said of a pair, and how the network was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..shared.exceedance import reached_of
from .verdicts import (
    CARRIED,
    DIRECT,
    FAR_WEAKER,
    INDIRECT,
    LEFT,
    LINK,
    MOST_BESIDE,
    NEARLY_ALL,
    NONE,
    UNORDERED,
    WEAKER,
)

if TYPE_CHECKING:
    from .causal_network_result import CausalNetwork


def statement(network: CausalNetwork, cause: int, effect: int) -> str:
    """What can be said of a cause and an effect; series by their numbers."""
    if cause == effect:
        return f"{network.names[cause]} is one series: no statement about a pair can be made."
    x, y = network.names[cause], network.names[effect]
    verdict = network.verdict[effect, cause]
    z = int(network.through[effect, cause])
    via = network.names[z] if z >= 0 else ""
    opening = {
        DIRECT: f"There is evidence that {x} drives {y}, and no other series of the table explains it.",
        INDIRECT: f"{x} and {y} are linked through {via}: {x} acts on {y} through it, or it drives both.",
        LINK: f"There is evidence that {x} drives {y}, directly or through other series: that was not tested.",
        UNORDERED: f"{x} and {y} are linked, but nothing says that {x} comes first: they may share a driver, or feel "
                   "the same at once.",
        NONE: f"There is no sufficient evidence that {x} drives {y}.",
    }[verdict]
    if f"beside:{via}" in network.codes[effect, cause]:
        opening = f"There is evidence that {x} drives {y}, also where {via} is known."
    if verdict in (DIRECT, LINK) and (network.hidden_driver or network.verdict[cause, effect] in (DIRECT, LINK)):
        opening = f"A driver of both that is not in the table would look like this, too. {opening}"
    parts = [opening, _skill(network, cause, effect), _chance(network, cause, effect), _growth(network, cause, effect)]
    parts += [_order(network, cause, effect), _others(network, cause, effect), _forecast(network, cause, effect)]
    if verdict in (DIRECT, INDIRECT, LINK):
        parts.append("A driver that is not in the table is not excluded.")
    return " ".join(part for part in parts if part)


def _skill(network: CausalNetwork, cause: int, effect: int) -> str:
    x, y = network.names[cause], network.names[effect]
    rho = float(network.rho[effect, cause])
    if np.isnan(rho):
        return f"The states of {y} give no estimate of {x} that could be compared (a constant series, or too few rows)."
    when = _steps(int(network.Tp[effect, cause]))
    return f"The states of {y} (E = {network.E[effect]}, tau = {network.tau}) estimate {x} {when} with rho = {rho:.2f}."


def _chance(network: CausalNetwork, cause: int, effect: int) -> str:
    if network.surrogate is None or network.draws is None:
        return "It was not compared with surrogates."
    p, q, n = (float(table[effect, cause]) for table in (network.p_value, network.q_value, network.draws))
    if np.isnan(p):
        return ""
    reached = int(reached_of(p, n))
    many = "none" if reached == 0 else f"{reached:,}"
    passed = "is" if q <= network.rate else "is not"
    return (
        f"Of {int(n):,} surrogates of {network.names[cause]} {many} did as well (p = {p:.2g}, q = {q:.2g}), which "
        f"{passed} significant at a false discovery rate of {network.rate:g}."
    )


def _growth(network: CausalNetwork, cause: int, effect: int) -> str:
    gain, p = float(network.gain[effect, cause]), float(network.p_convergence[effect, cause])
    if np.isnan(gain):
        return "Convergence was not tested." if "convergence-off" in network.codes[effect, cause] else ""
    grows = "grows" if gain > 0 and p <= network.rate else "does not grow reliably"
    return f"The skill {grows} with the library (gain {gain:.2f}, p of the trend {p:.2g})."


def _order(network: CausalNetwork, cause: int, effect: int) -> str:
    if network.lag is None:
        return "Lags were not compared."
    skill, lag = float(network.skill[effect, cause]), int(network.lag[effect, cause])
    if np.isnan(skill):
        return ""
    allows = "which allows this direction" if lag <= network.latest else "which does not speak for this direction"
    if lag <= network.latest and network.p_lag[effect, cause] > network.rate:
        allows += f", but hardly better than later lags (p = {network.p_lag[effect, cause]:.2g})"
    first = " That is the first of the lags that were tried: earlier ones may be better."
    best = "The best of all lags" if lag == network.Tp[effect, cause] else "Of all lags it is highest"
    return f"{best}: {_steps(lag)} (rho = {skill:.2f}), {allows}.{first if lag == network.lags[0] else ''}"


def _others(network: CausalNetwork, cause: int, effect: int) -> str:
    codes, z = network.codes[effect, cause], int(network.through[effect, cause])
    if "partial-off" in codes or network.verdict[effect, cause] not in (DIRECT, INDIRECT):
        return ""
    if z < 0:
        return "No other series is linked to both."
    skill, left = float(network.carried[effect, cause]), float(network.partial[effect, cause])
    explains = "explains it" if network.verdict[effect, cause] == INDIRECT else "does not explain it"
    if f"beside:{network.names[z]}" in codes:
        explains = "alone would explain it"
    p = float("nan") if network.p_partial is None else float(network.p_partial[effect, cause])
    chance = "" if np.isnan(p) else f" (p = {p:.2g} against surrogates of {network.names[cause]})"
    return (
        f"The estimate through {network.names[z]} has rho = {skill:.2f}, and {left:.2f} is left without it{chance}: "
        f"{network.names[z]} {explains}."
    )


def _forecast(network: CausalNetwork, cause: int, effect: int) -> str:
    p = float(network.p_forecast[effect, cause])
    if np.isnan(p):
        return ""
    improves = "improves" if p <= network.rate else "does not improve"
    return (
        f"Beside the states of {network.names[effect]} and its other causes, {network.names[cause]} {improves} "
        f"forecasts of {network.names[effect]} (p = {p:.2g})."
    )


def _steps(lag: int) -> str:
    if lag == 0:
        return "at the same time"
    rows = f"{abs(lag)} {'row' if abs(lag) == 1 else 'rows'}"
    return f"{rows} earlier" if lag < 0 else f"{rows} later"


def _rows(network: CausalNetwork) -> str:
    rows = f"{network.n_steps:,} rows"
    return f"{rows} in {network.groups:,} recordings, which share no state," if network.groups else rows


def methods(network: CausalNetwork) -> str:
    """A paragraph for the methods section of a paper."""
    from ... import __version__

    low, high = int(network.E.min()), int(network.E.max())
    E = f"E = {low}" if low == high else f"E from {low} to {high}"
    parts = [
        f"Causal links among {len(network.names)} series of {_rows(network)} were inferred by convergent cross "
        f"mapping (Sugihara et al. 2012; pyedmcl {__version__}, seed {network.seed}). States were delay embeddings of "
        f"each series ({E}, tau = {network.tau}); those of an effect estimated a possible cause at an earlier row."
    ]
    if network.exclusion_radius:
        parts.append(
            f"Rows up to {network.exclusion_radius} apart in time were no neighbours of each other (Theiler 1986)."
        )
    if network.season:
        parts.append(
            f"A cycle of {network.season:.4g} rows, which {len(network.without_season)} of the series share, was "
            "removed from these before, so that all that follows is of what is left."
        )
    if network.surrogate is not None and network.draws is not None:
        parts.append(
            f"Skill was compared with up to {int(network.draws.max()):,} surrogates of the cause (method "
            f"{network.surrogate!r}), at a false discovery rate of {network.rate:g} over all pairs (Benjamini and "
            "Hochberg 1995)."
        )
    if np.isfinite(network.gain).any():
        parts.append("It had to grow with the size of random libraries (one-sided Mann-Kendall test).")
    if network.lag is not None:
        parts.append(
            f"Of lags from {network.lags[0]} to {network.lags[-1]} rows the best had to be {network.latest} or earlier "
            "(Ye et al. 2015), with a skill above that of all later lags (Fisher's z with the standard error of Newey "
            "and West 1987, one-sided, together with that of the opposite direction where this is best later)."
        )
    if not any("partial-off" in codes for codes in network.codes.ravel()):
        parts.append(
            f"A link was called indirect if its skill was below {WEAKER:g} of that of each step through another series "
            f"and partial cross mapping (Leng et al. 2020) through that series kept {CARRIED:g} of it, or if it was "
            f"weaker than each step, {NEARLY_ALL:g} of it were kept, and the partial correlation was at most "
            f"{LEFT:g} of it, or if it was below {FAR_WEAKER:g} of that of each step."
        )
    if np.isfinite(network.p_forecast).any():
        parts.append(
            "A link that another series explained, or whose order was not clear, was still called direct if the "
            "present value of the cause improved simplex forecasts of the effect's next row from its own state and the "
            f"present values of up to {MOST_BESIDE} of its other causes (the same test of Fisher's z, p at most "
            f"{network.rate:g})."
        )
    parts.append("Drivers that are not among the series cannot be excluded.")
    return " ".join(parts)
