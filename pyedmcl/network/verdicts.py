"""From the evidence of all pairs to verdicts, sentences and the result."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import choice, several
from ..errors import InputError, need, pandas_for, shown
from ..results.edges import Graph, graph_of
from ..results.result import ANSWER_ROWS, Answer, Label, Result, labelled
from ..series.fields import Grid
from ..statistics import STEADY, false_discovery, reached_of

# All tables are (n_series, n_series) with row = effect (the library, whose states predict) and column = cause (the
# target).


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
    """What was measured; None for a leg that was switched off. Masks are made once: each pair asks for all of them."""

    # The highest skill of any lag, or of the one that was tested.
    skill: Doubles
    # Against surrogates.
    q_value: Doubles | None
    # gain, trend: Of skill with the size of the library.
    gain: Doubles | None
    trend: Doubles | None
    # Tp of the highest skill.
    lag: NDArray[np.int_] | None
    # The level of all tests.
    rate: float
    # The latest best lag at which a cause is believed.
    latest: int
    # P-value of the best lag up to there being better than the best later one; NaN for pairs that fail another leg.
    p_lag: Doubles | None = None
    # P-value of the cause improving forecasts of the effect; NaN for pairs that other evidence decides.
    p_forecast: Doubles | None = None
    # Pairs that a shock within the row explains as well, as one weather does.
    shocks: Mask | None = None

    @cached_property
    def significant(self) -> Mask | None:
        return None if self.q_value is None else _at_most(self.q_value, self.rate)

    @cached_property
    def converges(self) -> Mask | None:
        if self.gain is None or self.trend is None:
            return None
        with np.errstate(invalid="ignore"):
            return np.asarray((self.gain > 0) & (self.trend > STEADY))

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


# A causal network in sentences: what can be said of a pair, and how the network was made.


def statement(network: CausalNetwork, cause: int, effect: int) -> str:
    """What can be said of a cause and an effect; series by their numbers."""
    if cause == effect:
        return f"{network.names[cause]} is one series: no statement about a pair can be made."
    parts = [opening(network, cause, effect), _skill(network, cause, effect), _chance(network, cause, effect)]
    parts += [_growth(network, cause, effect), _order(network, cause, effect), _others(network, cause, effect)]
    parts.append(_forecast(network, cause, effect))
    if network.verdict[effect, cause] in (DIRECT, INDIRECT, LINK):
        parts.append("A driver that is not in the table is not excluded.")
    return " ".join(part for part in parts if part)


#: What the statement on a link begins with, where a driver that is not in the table is likely.
IN_DOUBT = "A driver of both that is not in the table would look like this, too."


def opening(network: CausalNetwork, cause: int, effect: int) -> str:
    """The first words of :func:`statement`: the verdict, without its numbers."""
    x, y = network.names[cause], network.names[effect]
    verdict = network.verdict[effect, cause]
    z = int(network.through[effect, cause])
    via = network.names[z] if z >= 0 else ""
    said = {
        DIRECT: f"There is evidence that {x} drives {y}, and no other series of the table explains it.",
        INDIRECT: f"{x} and {y} are linked through {via}: {x} acts on {y} through it, or it drives both.",
        LINK: f"There is evidence that {x} drives {y}, directly or through other series: that was not tested.",
        UNORDERED: f"{x} and {y} are linked, but nothing says that {x} comes first: they may share a driver, or feel "
                   "the same at once.",
        NONE: f"There is no sufficient evidence that {x} drives {y}.",
    }[verdict]
    if f"beside:{via}" in network.codes[effect, cause]:
        said = f"There is evidence that {x} drives {y}, also where {via} is known."
    if verdict in (DIRECT, LINK) and (network.hidden_driver or network.verdict[cause, effect] in (DIRECT, LINK)):
        said = f"{IN_DOUBT} {said}"
    return said


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
    gain, trend = float(network.gain[effect, cause]), float(network.trend[effect, cause])
    if np.isnan(gain):
        return "Convergence was not tested." if "convergence-off" in network.codes[effect, cause] else ""
    grows = "grows steadily" if gain > 0 and trend > STEADY else "does not grow steadily"
    return f"The skill {grows} with the library (gain {gain:.2f}, Kendall's tau of the trend {trend:.2f})."


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


def methods(network: CausalNetwork) -> str:
    """A paragraph for the methods section of a paper, of at most 120 words."""
    from .. import __version__

    low, high = int(network.E.min()), int(network.E.max())
    states = f"E = {low}" if low == high else f"E from {low} to {high}"
    states += f", tau = {network.tau}"
    if network.exclusion_radius:
        states += f", exclusion radius {network.exclusion_radius}"
    recordings = f" in {network.groups:,} recordings" if network.groups else ""
    parts = [
        f"Links among {len(network.names)} series of {network.n_steps:,} rows{recordings} were inferred by "
        f"convergent cross mapping (Sugihara et al. 2012; pyedmcl {__version__}, seed {network.seed}; {states})."
    ]
    if network.season:
        parts.append(f"A shared cycle of {network.season:.4g} rows was removed.")
    if network.surrogate is not None and network.draws is not None:
        parts.append(
            f"Skill had to exceed that of up to {int(network.draws.max()):,} surrogates of the cause "
            f"({network.surrogate!r}; false discovery rate {network.rate:g})."
        )
    if np.isfinite(network.gain).any():
        parts.append(f"It had to grow with the library (Kendall's tau above {STEADY:g}).")
    if network.lag is not None:
        parts.append(
            f"Of lags from {network.lags[0]} to {network.lags[-1]} the best had to be at most {network.latest} "
            "(Ye et al. 2015; Fisher's z)."
        )
    if not any("partial-off" in codes for codes in network.codes.ravel()):
        parts.append("Partial cross mapping (Leng et al. 2020) told indirect links.")
    if np.isfinite(network.p_forecast).any():
        parts.append(
            f"Forecasts of the effect beside up to {MOST_BESIDE} other causes decided doubtful links."
        )
    parts.append("Unmeasured drivers cannot be excluded.")
    return " ".join(parts)


# What a causal network is: the evidence of all pairs, verdicts, sentences, and the network itself.


COLUMNS = (
    "cause", "effect", "verdict", "rho", "Tp", "best_lag", "rho_at_best_lag", "lag_allows", "p_lag", "p_value",
    "q_value", "surrogates", "gain", "trend", "other", "rho_through_other", "partial", "p_partial",
    "p_forecast", "E", "E_of", "tau", "reasons",
)  # fmt: skip
_ANSWER = ("cause", "effect", "verdict", "rho_at_best_lag", "best_lag", "q_value", "E")
#: Said first where it is likely.
HIDDEN = "so many are linked, or both ways, that a driver which is not in the table is likely"
# Of all pairs: those that are linked in both directions, and those with an arrow; of so many series at least.
_MANY_MUTUAL, _MANY_ARROWS, _LEAST_SERIES = 0.25, 0.4, 4
#: The whole result, in the folder of a network.
NETWORK_FILE = "network.edm"
_ORDER = (DIRECT, LINK, INDIRECT, UNORDERED, NONE)


@dataclass(frozen=True, repr=False)
class CausalNetwork(Graph, Result):
    """The evidence of each pair of series, and the verdict on it.

    All tables are (n_series, n_series) with **row = effect** (the library, whose states estimate) and **column =
    cause** (the target, which is estimated). What was not tested is NaN or None.

    Attributes
    ----------
    names : tuple of str
    verdict : ndarray of str
        "direct", "indirect", "link" (direct or not was not asked), "unordered" or "none".
    codes : ndarray of tuple of str
        The reasons of each verdict.
    rho, Tp : ndarray
        The highest skill of lags that a cause may have, and that lag; with all rows as library.
    skill, lag, lags, by_lag
        The highest skill of all ``lags``, its lag (None if that leg is off), and the skill at each (n_lags, ...).
    p_lag : ndarray
        P-value of the best lag that a cause may have being better than all others; NaN for pairs that fail another leg.
    p_value, q_value, draws : ndarray
        Against surrogates of the cause, and how many there were.
    gain, trend : ndarray
        Of skill from the smallest to the largest library, and Kendall's tau of skill and library size. These
        describe and are no test: series without a link often have both.
    through, carried, partial : ndarray
        Number of the series that explains the link best (-1 for none), the skill of the estimate of the cause through
        it, and the partial correlation that is left without it.
    p_partial : ndarray or None
        P-value of that partial correlation against surrogates of the cause, where ``partial_surrogates`` were asked
        for: whether anything is left, and not whether the link is direct.
    p_forecast : ndarray
        P-value of the cause improving forecasts of the effect; NaN where other evidence decides.
    E : ndarray of int (n_series,)
        Embedding dimension of each series.
    tau, rate, latest, surrogate, seed, n_steps
        What it was made with.
    groups : int
        Recordings that the rows belong to, where they were told apart; else 0.
    reasons : tuple of str
        For surrogates of method "auto": what was taken for each series, and why.
    season, without_season : float, tuple of str
        Rows of the cycle that was removed, 0 for none; and the names of the series that had it.
    exclusion_radius : int
        Rows so near in time were no neighbours.
    grid : Grid or None
        Where the series lie, if they are a field.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> found = pyedmcl.causal_network(network.values[:, [0, 2]], E=3, seed=1)
    >>> found.verdict[0, 1]  # row = effect, column = cause
    'direct'
    >>> print(found.statement(cause="x1", effect="x0").split(".")[0])
    A driver of both that is not in the table would look like this, too
    >>> found.rows(["direct"])[0][:3]
    ('x1', 'x0', 'direct')
    """

    column_labels: ClassVar = {
        "lag": Label("rows", "interval Tp that was tried"), "rho_by_lag": Label("1", "skill at each interval"),
    }  # fmt: skip

    names: tuple[str, ...]
    verdict: NDArray[Any]
    codes: NDArray[Any]
    rho: Doubles
    skill: Doubles
    lag: NDArray[np.int_] | None
    lags: tuple[int, ...]
    by_lag: Doubles = field(repr=False)
    p_lag: Doubles
    p_value: Doubles
    q_value: Doubles
    draws: NDArray[np.int_] | None
    gain: Doubles
    trend: Doubles
    through: NDArray[np.int_]
    carried: Doubles
    partial: Doubles
    p_forecast: Doubles
    E: NDArray[np.int_]
    tau: int
    Tp: NDArray[np.int_]
    rate: float
    latest: int
    surrogate: str | None
    seed: int
    n_steps: int
    groups: int = 0
    reasons: tuple[str, ...] = ()
    season: float = 0
    without_season: tuple[str, ...] = ()
    exclusion_radius: int = 0
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    grid: Grid | None = field(default=None, repr=False)
    p_partial: Doubles | None = None

    def _headline(self, alone: bool) -> str:
        return f"CausalNetwork of {len(self.names)} series: {self.summary()}"

    def answer(self) -> Answer:
        """The strongest links: those of verdict direct or link."""
        rows = self.rows([DIRECT, LINK])
        shown = [COLUMNS.index(name) for name in _ANSWER]
        first = [[row[place] for place in shown] for row in rows[:ANSWER_ROWS]]
        return Answer(_ANSWER, first, len(rows), 'to_frame(["direct", "link"]); statement(cause, effect) in words')

    def summary(self) -> str:
        """How many pairs have which verdict, in words."""
        counts = {word: int((self.verdict == word).sum()) for word in _ORDER}
        counts[NONE] -= len(self.names)
        said = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
        return f"{said}; {HIDDEN}" if self.hidden_driver else said

    @property
    def hidden_driver(self) -> bool:
        """Whether so many pairs are linked both ways, or directly, that a driver outside of the table is likely."""
        linked = np.isin(self.verdict.astype(str), (DIRECT, LINK, UNORDERED))
        arrows, N = np.isin(self.verdict.astype(str), (DIRECT, LINK)), len(self.names)
        most = max((linked & linked.T).sum() / _MANY_MUTUAL, arrows.sum() / _MANY_ARROWS)
        return N >= _LEAST_SERIES and bool(most >= N * (N - 1))

    def rows(self, verdicts: Collection[str] | None = None) -> list[tuple[Any, ...]]:
        """Pairs as rows of :data:`COLUMNS`, by verdict and then by skill; only those of some verdicts if given."""
        shown_verdicts = self._verdicts(verdicts)
        places = [
            (effect, cause) for effect, cause in np.ndindex(*self.rho.shape)
            if effect != cause and self.verdict[effect, cause] in shown_verdicts
        ]  # fmt: skip
        strength = np.where(np.isnan(self.skill), -np.inf, self.skill)
        places.sort(key=lambda place: (_ORDER.index(self.verdict[place]), -strength[place]))
        return [self._row(*place) for place in places]

    def _row(self, effect: int, cause: int) -> tuple[Any, ...]:
        at = (effect, cause)
        z = int(self.through[at])
        lag = None if self.lag is None else int(self.lag[at])
        return (
            self.names[cause], self.names[effect], self.verdict[at], float(self.rho[at]), int(self.Tp[at]), lag,
            float(self.skill[at]), None if lag is None else lag <= self.latest,
            float(self.p_lag[at]), float(self.p_value[at]), float(self.q_value[at]),
            0 if self.draws is None else int(self.draws[at]), float(self.gain[at]), float(self.trend[at]),
            "" if z < 0 else self.names[z], float(self.carried[at]), float(self.partial[at]),
            float("nan") if self.p_partial is None else float(self.p_partial[at]), float(self.p_forecast[at]),
            int(self.E[effect]), "effect", self.tau, " ".join(self.codes[at]),
        )  # fmt: skip

    def to_frame(self, verdicts: Collection[str] | None = None) -> Any:
        """A pandas DataFrame with a row for each pair; only those of some verdicts, such as ["direct"], if given."""
        return pandas_for("to_frame()").DataFrame(self.rows(verdicts), columns=list(COLUMNS))

    def statement(self, cause: str, effect: str) -> str:
        """What can be said of a cause and an effect, in plain sentences with the numbers."""
        return statement(self, self._number(cause, "cause"), self._number(effect, "effect"))

    def methods(self) -> str:
        """A paragraph for the methods section."""
        return methods(self)

    def to_networkx(self, verdicts: Collection[str] = (DIRECT, LINK)) -> Any:
        """A networkx.DiGraph with an edge from cause to effect for each pair of some verdicts. Needs networkx."""
        rows = self.rows(verdicts)
        edges = ((row[0], row[1], dict(zip(COLUMNS[2:], row[2:], strict=True))) for row in rows)
        return graph_of(self.names, dict(zip(self.names, self.E.tolist(), strict=True)), edges)

    def to_xarray(self) -> Any:
        """An xarray.Dataset of all tables (effect, cause), of E (effect), and of the skill at each lag (lag, effect,
        cause); the coordinates of a field take the place of its cells."""
        pairs = [("effect", self.grid or self.names), ("cause", self.grid or self.names)]
        tables = {
            "verdict": self.verdict.astype(str), "rho": self.rho, "Tp": self.Tp, "rho_at_best_lag": self.skill,
            "best_lag": self.lag, "p_lag": self.p_lag, "p_value": self.p_value, "q_value": self.q_value,
            "surrogates": self.draws, "gain": self.gain, "trend": self.trend,
            "rho_through_other": self.carried, "partial": self.partial, "p_partial": self.p_partial,
            "p_forecast": self.p_forecast,
        }  # fmt: skip
        parts = {name: labelled(table, pairs, name) for name, table in tables.items() if table is not None}
        other = np.array(["", *self.names])[self.through + 1]
        parts |= {"other": labelled(other, pairs, "other"), "E": labelled(self.E, pairs[:1], "E")}
        if self.lags:
            parts["rho_by_lag"] = labelled(self.by_lag, [("lag", self.lags), *pairs], "rho_by_lag")
        return need("xarray", "to_xarray()").Dataset(parts)

    def plot(
        self, path: str | None = None, *, verdicts: Collection[str] = (DIRECT, LINK), top: int = 40,
        layout: str = "circle", clusters: Any = None,
    ) -> Any:  # fmt: skip
        """Links of some verdicts as arrows from cause to effect; saved to ``path`` if given. Needs matplotlib.

        ``layout="force"`` puts series near those that they are linked to. ``clusters`` colours series and puts those of
        a cluster together: a label for each (by its name, or in order), or "auto" for those that are linked most among
        themselves.
        """
        from ..plot.pairs import causal_network

        shown_verdicts = self._verdicts(verdicts)
        keep = np.isin(self.verdict.astype(str), list(shown_verdicts)) & ~np.eye(len(self.names), dtype=bool)
        tests = f"{self.n_steps:,} rows, surrogates: {self.surrogate or 'none'}, rate {self.rate:g}"
        held = set(self.verdict[~np.eye(len(self.names), dtype=bool)].tolist())
        words = ", ".join([word for word in _ORDER if word in shown_verdicts & held] or [DIRECT])
        return causal_network(
            self.skill, self.names, path, keep=keep, top=top, title=f"verdict: {words} ({tests})", layout=layout,
            clusters=clusters,
        )  # fmt: skip

    def _verdicts(self, verdicts: Collection[str] | None) -> set[str]:
        return set(_ORDER) if verdicts is None else {
            choice("verdicts", verdict, _ORDER) for verdict in several("verdicts", verdicts)
        }

    def _number(self, name: str, what: str) -> int:
        if not isinstance(name, str) or name not in self.names:
            raise InputError(f"{what}={shown(name)}: there is no such series; there are {', '.join(self.names)}")
        return self.names.index(name)
