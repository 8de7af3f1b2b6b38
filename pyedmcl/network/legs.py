"""The tests of a causal network, the arguments that choose them, and the evidence that they give together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..convergence.ccm import drawn_from
from ..convergence.matrix_problem import CcmMatrixProblem, library_sizes, most_rows
from ..convergence.results import CcmMatrixResult
from ..crossmap.pairs import LaggedMapProblem, PairOptions, PairPredictionsProblem, predict_pairs
from ..errors import InputError, warn
from ..forecast.multiview import ViewsEngine, ViewsProblem
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..jobs.runner import ArraySink, Runner
from ..launch.progress import begin_step
from ..series.groups import Groups, Layout
from ..series.scaling import near_one
from ..series.series import Series, require_rows
from ..significance.significance import LaggedSignificanceProblem
from ..significance.xmap_significance import surrogate_tests
from ..states import arguments
from ..states.arguments import operations, pearson
from ..states.states import condition_together, embed, future, standardised
from ..statistics import FIRST, false_discovery, p_values, tell_reach, upper_tail
from ..surrogates.surrogate import Seasons, SeriesMakers, bridged, line
from ..table_check import remarks_on_size, remarks_on_table
from .partial import LinkedSeries, PartialLink, partial_skill, partial_tests
from .verdicts import (
    MOST_GIVEN,
    NONE,
    CausalNetwork,
    Evidence,
    Mask,
    companions,
    doubtful,
    intermediates,
    passes_through,
    verdict_of,
)

if TYPE_CHECKING:
    from ..device.executor import Executor


# Whether skill is higher at one lag than at another: a test of two correlations that depend on each other.
#
# Both skills come from the states of the same rows, and rows of a series are not independent. The difference of
# Fisher's z of both is a mean over rows but for terms that vanish as rows become many (each row's influence on either
# correlation), so that its standard error is that of a mean of a series: Newey and West, Econometrica 55, 703 (1987).


Doubles = NDArray[np.float64]

_LEAST_ROWS = 10
_TOGETHER = 64  # pairs that are compared at once
_NEARLY_ONE = 1 - 1e-9  # Fisher's z of 1 is infinite


def z_of_lags(estimates: Doubles, values: NDArray[Any], cause: NDArray[np.int_], Tp: NDArray[np.int_]) -> Doubles:
    """Fisher's z of the skill at one lag less that at another, in standard errors; see :func:`z_of_difference`.

    Parameters
    ----------
    estimates : ndarray (2 n_pairs, n_steps)
        Of causes, at the rows that are estimated: those of all pairs at their first lag, then at their second one.
    values : ndarray (n_steps, n_series)
    cause, Tp : ndarray of int (2 n_pairs,)
        Which series is estimated, and how many rows after the states.

    Returns
    -------
    ndarray (n_pairs,)
    """
    n = len(estimates) // 2
    z = np.empty(n)
    for few in cut(n, _TOGETHER):
        sides = []
        for begin in (0, n):
            rows = range(begin + few.begin, begin + few.end)
            targets = [values[:, cause[row]].astype(np.float64) for row in rows]
            sides.append((
                np.stack([_at_states(estimates[row], int(Tp[row])) for row in rows]),
                np.stack([_at_states(target, int(Tp[row])) for row, target in zip(rows, targets, strict=True)]),
            ))  # fmt: skip
        z[few.begin : few.end] = z_of_difference(*sides)
    return z


def z_of_difference(first: tuple[Doubles, Doubles], second: tuple[Doubles, Doubles]) -> Doubles:
    """Fisher's z of one skill less that of another, in standard errors of the difference.

    Parameters
    ----------
    first, second : tuple of ndarray (n_pairs, n_rows)
        Estimates and what they estimate, in the order of the states that they come from; NaN for none. Rows count where
        all four have a value.

    Returns
    -------
    ndarray (n_pairs,)
        NaN with fewer than 10 rows, or where either side does not vary.
    """
    present = np.isfinite(first[0]) & np.isfinite(first[1]) & np.isfinite(second[0]) & np.isfinite(second[1])
    n = present.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        (early, on_early), (late, on_late) = (_influence(*pair, present) for pair in (first, second))
        differences = np.where(present, on_early - on_late, 0.0)
        error = np.sqrt(_long_run_variance(differences, n) / n)
        z = np.where(error > 0, (early - late) / error, np.where(early == late, 0.0, np.nan))
    return np.where(n >= _LEAST_ROWS, z, np.nan)


def _influence(estimate: Doubles, target: Doubles, there: NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    """Fisher's z (n_pairs,) of a correlation, and what each row adds to it (n_pairs, n_rows)."""
    a, b = _standard(estimate, there), _standard(target, there)
    rho = np.clip((a * b).sum(axis=1) / there.sum(axis=1), -_NEARLY_ONE, _NEARLY_ONE)
    added = (a * b - rho[:, None] * (a * a + b * b) / 2) / (1 - rho[:, None] ** 2)
    return np.arctanh(rho), added


def _standard(values: Doubles, there: NDArray[np.bool_]) -> Doubles:
    """Values less their mean, by their standard deviation; 0 where there is none."""
    n = there.sum(axis=1, keepdims=True)
    largest = np.where(there, np.abs(values), 0.0).max(axis=1, keepdims=True)  # squares must not overflow
    scaled = np.where(there, values / np.where(largest > 0, largest, 1.0), 0.0)
    centred = np.where(there, scaled - scaled.sum(axis=1, keepdims=True) / n, 0.0)
    return np.asarray(centred / np.sqrt((centred * centred).sum(axis=1, keepdims=True) / n))


def _long_run_variance(values: Doubles, n: NDArray[np.int_]) -> Doubles:
    """Of each row's series of mean 0: its variance and covariances with falling weights up to 4 (n / 100)^(2 / 9)."""
    total = (values * values).sum(axis=1)
    furthest = int(4 * (max(int(n.max(initial=1)), 1) / 100) ** (2 / 9))
    for lag in range(1, furthest + 1):
        total = total + 2 * (1 - lag / (furthest + 1)) * (values[:, lag:] * values[:, :-lag]).sum(axis=1)
    return np.asarray(np.maximum(total, 0.0) / n)


def p_of_order(z: Doubles, opposite: Doubles, shocks: NDArray[np.bool_] | None = None) -> Doubles:
    """P-values (one-sided) of causes being known best before their effects.

    Parameters
    ----------
    z : ndarray
        Of the best skill of lags that a cause may have, less the best of the others.
    opposite : ndarray
        The same of the opposite direction. A link that goes one way only has its opposite best at a later lag (Ye et
        al. 2015): where this is negative, both speak of the same order, and what they say is added up (Stouffer).
    shocks : ndarray of bool, optional
        Pairs that a shock within the row explains (:func:`common_shocks`): both directions of these seem to come first,
        and the order of one has to be clearer than that of the other.
    """
    with np.errstate(invalid="ignore"):
        together = opposite < 0 if shocks is None else shocks | (opposite < 0)
        both = np.where(together, (z - opposite) / math.sqrt(2), z)
    return np.asarray(np.vectorize(upper_tail, otypes=[float])(both))


def common_shocks(
    values: Doubles, E: NDArray[np.int_], tau: int, asked: NDArray[np.bool_], rate: float
) -> NDArray[np.bool_]:
    """Pairs whose series a shock within the row may link, and nothing else that a line sees.

    Their innovations, which neither series' past foretells, are correlated in the same row; and the cause's past does
    not improve a linear forecast of the effect (Granger, Econometrica 37, 424, 1969; false discovery rate ``rate`` over
    all pairs that are asked).

    Parameters
    ----------
    values : ndarray (n_steps, n_series)
        NaN for gaps, and between groups.
    E : ndarray of int (n_series,)
        The past of a pair spans the state of its effect, and a tenth of the rows at most.
    asked : ndarray of bool (n_series, n_series)
        Row = effect, column = cause.

    Returns
    -------
    ndarray of bool (n_series, n_series)
    """
    unit = standardised(values)
    same_row, foretold = np.zeros(asked.shape, bool), np.full(asked.shape, np.nan)
    for effect in np.flatnonzero(asked.any(axis=1)):
        span = max(min(int(E[effect] - 1) * tau + 1, len(unit) // 10), 1)
        own = _past(unit[:, effect], span)
        for cause in np.flatnonzero(asked[effect]):
            states = np.column_stack([np.ones(len(unit)), own, _past(unit[:, cause], span)])
            goals = unit[:, [effect, cause]]
            there = np.isfinite(states).all(axis=1) & np.isfinite(goals).all(axis=1)
            freedom = int(there.sum()) - states.shape[1]
            if freedom < _LEAST_ROWS:
                same_row[effect, cause] = True  # nothing tells them apart
                continue
            basis, both = np.linalg.qr(states[there])[0], goals[there]
            fits = basis.T @ both
            left = both - basis @ fits
            power = max(float(left[:, 0] @ left[:, 0]), 1e-300)
            gained = float(fits[span + 1 :, 0] @ fits[span + 1 :, 0])
            foretold[effect, cause] = _p_of_ratio(gained / span / (power / freedom), span, freedom)
            correlation = min(abs(float(pearson(left[:, 0], left[:, 1]))), _NEARLY_ONE)
            same_row[effect, cause] = 2 * upper_tail(math.atanh(correlation) * math.sqrt(freedom)) <= rate
    with np.errstate(invalid="ignore"):
        return np.asarray(asked & same_row & ~(false_discovery(foretold) <= rate))


def _past(values: Doubles, span: int) -> Doubles:
    """The ``span`` values before each row (n, span); NaN where there are none."""
    return np.concatenate([np.full((1, span), np.nan), embed(values[:, None], span, 1)[:-1]])


def _p_of_ratio(ratio: float, above: int, below: int) -> float:
    """Chance that Fisher's F exceeds a ratio, nearly; Paulson, Ann. Math. Stat. 13, 233 (1942)."""
    a, b, root = 2 / (9 * above), 2 / (9 * below), ratio ** (1 / 3)
    return upper_tail(((1 - b) * root - (1 - a)) / math.sqrt(b * root * root + a))


def _at_states(values: Doubles, Tp: int) -> Doubles:
    """Values (n_rows,) that lie Tp rows after states, in the order of these states; NaN outside the series."""
    n = len(values)
    out = np.full(n, np.nan)
    begin, end = max(-Tp, 0), min(n - Tp, n)
    if begin < end:
        out[begin:end] = values[begin + Tp : end + Tp]
    return out


# Whether a possible cause improves forecasts of its effect, beside the effect's own states and its other causes.
#
# A direct cause knows of the next value of its effect what neither the effect's past nor the other causes tell. A
# series that acts through one of these, or is driven by the effect, adds nothing but a coordinate, with which
# neighbours lie farther apart. Granger, Econometrica 37, 424 (1969), asks the same of linear fits.


_AHEAD = 1  # rows from the states to what is forecast
_BLOCK_FORECASTS = 1024
_GAINS_TOGETHER = 64  # pairs that are compared at once


@dataclass(frozen=True, order=True)
class Forecast:
    """The next row of an effect, from its delay coordinates and the present values of others; series by numbers."""

    effect: int
    others: tuple[int, ...] = ()

    @property
    def alike(self) -> tuple[int, int]:
        """Forecasts of which this is the same are computed together."""
        return self.effect, len(self.others)


@dataclass(frozen=True)
class ForecastsProblem:
    """Simplex forecasts of series from states that others take part in; rows of the result are forecasts."""

    # ndarray (n_steps, n_series). NaN for gaps; each is taken in units of its standard deviation, so that all
    # coordinates count alike.
    values: NDArray[Any]
    # Delay coordinates of each series.
    E: tuple[int, ...]
    # Those that are alike side by side.
    forecasts: tuple[Forecast, ...]
    tau: int
    exclusion_radius: int
    # Neighbours; the number of coordinates + 1 if None.
    knn: int | None
    # What kernels compute in.
    dtype: str

    kernels: ClassVar[tuple[str, ...]] = ViewsProblem.kernels
    unit: ClassVar[str] = "predictions"

    @property
    def total(self) -> int:
        return len(self.forecasts)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """Ranges of forecasts."""
        return cut(self.total, _BLOCK_FORECASTS)

    @property
    def operations(self) -> float:
        n, dims = len(self.values), [self.E[one.effect] + len(one.others) for one in self.forecasts]
        return operations(dims or [1], n_library=n, n_query=n, n_series=self.total, n_targets=1)

    def open(self, executor: Executor) -> ForecastsEngine:
        return ForecastsEngine(self, executor)


class ForecastsEngine:
    """The engine of :class:`ForecastsProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: ForecastsProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Forecasts (forecasts of the block, n_steps), each at the row of the state that it is made from."""
        p, record, done = self._problem, Record(), 0
        (out,) = [np.empty((len(block), len(p.values)))] if into is None else into
        for _, group in itertools.groupby(p.forecasts[block.begin : block.end], lambda one: one.alike):
            alike = list(group)
            engine = ViewsEngine(self._views(alike), self._executor)
            try:
                made = engine.block(Block(0, 0, len(alike)), None, lambda _: None)
            finally:
                engine.release()
            (out[done : done + len(alike)],) = made.arrays
            record = record.joined(made.record)
            done += len(alike)
            report(done)
        return BlockResult([out], record)

    def _views(self, forecasts: Sequence[Forecast]) -> ViewsProblem:
        """Those that are alike, as views of the coordinates that any of them has."""
        p, effect = self._problem, forecasts[0].effect
        others = sorted({other for one in forecasts for other in one.others})
        series = condition_together(standardised(p.values[:, [effect, *others]]), p.dtype)
        E = p.E[effect]
        states = np.concatenate([embed(series[:, :1], E, p.tau), series[:, 1:]], axis=1)
        views = tuple((*range(E), *(E + others.index(other) for other in one.others)) for one in forecasts)
        return ViewsProblem(
            states, p.values[:, effect].astype(np.float64), views, p.knn or len(views[0]) + 1, _AHEAD,
            p.exclusion_radius, None, p.dtype, None,
        )  # fmt: skip

    def release(self) -> None:
        """Nothing is held."""


def p_of_forecasts(
    runner: Runner, values: NDArray[Any], E: NDArray[np.int_], links: Sequence[tuple[int, Forecast]], *, tau: int,
    exclusion_radius: int, knn: int | None, dtype: str,
) -> tuple[Doubles, Record]:  # fmt: skip
    """P-values (n_links,), one-sided, of a cause improving the forecast of its effect.

    Parameters
    ----------
    values : ndarray (n_steps, n_series)
        NaN for gaps.
    E : ndarray of int (n_series,)
    links : sequence of (int, Forecast)
        A cause, and the forecast of its effect without it.
    tau, exclusion_radius, knn, dtype
        As for :class:`ForecastsProblem`.
    """
    pairs = [(Forecast(known.effect, (*known.others, cause)), known) for cause, known in links]
    forecasts = tuple(sorted({one for pair in pairs for one in pair}, key=lambda one: (one.alike, one.others)))
    problem = ForecastsProblem(
        values, tuple(int(dim) for dim in E), forecasts, tau, exclusion_radius, knn, dtype
    )  # fmt: skip
    gains = np.empty((problem.total, len(values)))
    record = runner.run(problem, ArraySink(problem.blocks(), [gains]))
    place = {one: number for number, one in enumerate(forecasts)}
    z = np.empty(len(pairs))
    for part in cut(len(pairs), _GAINS_TOGETHER):
        few = pairs[part.begin : part.end]
        goals = np.stack([future(values[:, known.effect].astype(np.float64), _AHEAD) for _, known in few])
        better, worse = (gains[[place[pair[side]] for pair in few]] for side in (0, 1))
        z[part.begin : part.end] = z_of_difference((better, goals), (worse, goals))
    return np.array([upper_tail(float(value)) for value in z]), record


# What a causal network tests and how, as the user asked for it.


_SHORTEST = 30
_SMOOTH = 0.5  # lag-1 autocorrelation
_FORGOTTEN, _LONGEST_MEMORY = np.exp(-1), 100


@dataclass(frozen=True)
class Legs:
    """What is tested and how, checked."""

    surrogate: str | None
    n: int
    rate: float
    budget: int
    convergence: bool
    sample: int
    lags: tuple[int, ...]
    latest: int
    partial: bool
    forecast: bool
    partial_surrogates: int
    seed: int
    period: float | None
    recurrence: float
    season: str
    draw: str


def lags_asked(lags: Any) -> tuple[int, ...]:
    """Lags that are compared."""
    if lags is None:
        return ()
    return tuple(sorted({arguments.integer("lags", lag) for lag in arguments.several("lags", lags)}))


def latest_asked(latest: Any, lags: Sequence[int], memory: int) -> int:
    """The latest lag at which a cause is believed, with lags on both sides of it.

    Where lags end at 0, none is later than the 0 of smooth series, and -1 is taken as elsewhere.
    """
    limit = (0 if memory else -1) if latest is None else latest
    if latest is None and lags and limit == 0 and max(lags) == 0 > min(lags):
        limit = -1
        warn(
            "the series are smooth, for which latest=0 is the default, but lags end at 0 and none is later: latest=-1 "
            "is taken. Lags up to 1 or more keep a cause within the same row"
        )
    if lags and not min(lags) <= limit < max(lags):
        raise InputError(
            f"lags={arguments.shown(list(lags))}: lags up to latest={limit} and later ones are needed"
        )
    return limit


def partial_surrogates_asked(n: int | None, surrogate: str | None, partial: bool) -> int:
    """Surrogates of a link for the test of what is left without another series; 0 for no test."""
    if n is None:
        return 0
    if surrogate is None or not partial:
        off = "surrogate=None" if surrogate is None else "partial=False"
        raise InputError(f"partial_surrogates={n}: with {off} there is nothing that they could test; leave it out")
    return n


def radius_asked(radius: Any) -> int | None:
    """The exclusion radius; None for "auto"."""
    return None if radius == "auto" else radius


def longest_memory(series: Series, groups: Groups | None) -> int:
    """The most that :func:`memory_of` finds: a tenth of the rows, of the longest group, and 100."""
    rows = series.n_steps if groups is None else int(groups.sizes.max())
    return max(min(rows // 10, _LONGEST_MEMORY), 1)


def memory_of(parts: Sequence[Series], longest: int) -> int:
    """Rows after which smooth series have forgotten their values; 0 where a table is not smooth.

    A table is smooth if the median of its series' autocorrelations at lag 1 is above 0.5, straight lines apart. It has
    forgotten at the first lag at which that median is below 1 / e.

    Parameters
    ----------
    parts : sequence of Series
        The rows of each group; all rows where there are no groups. A group counts for lags up to a tenth of its rows.
    longest : int
        The longest memory that is looked for.
    """
    left = [_without_line(part) for part in parts]
    for lag in range(1, longest + 1):
        long_enough = [values for values in left if lag <= max(values.shape[1] // 10, 1)]
        correlations = [pearson(values[:, lag:], values[:, :-lag]) for values in long_enough]
        alike = float(np.median(np.nan_to_num(np.concatenate(correlations))))
        if lag == 1 and alike <= _SMOOTH:
            return 0
        if alike < _FORGOTTEN:
            return lag
    return longest


def _without_line(series: Series) -> NDArray[np.float64]:
    """Values (n_series, n_steps) near 1 less a straight line each; gaps stay gaps."""
    columns = [near_one(column.astype(np.float64))[0] for column in series.values.T]
    return np.stack([column - line(bridged(column), np.isfinite(column)) for column in columns])


def check_size(series: Series, fields: dict[str, Any], lags: Sequence[int]) -> None:
    """Refuse what no network can be made of, and tell what makes one doubtful; of series as they were given."""
    if series.n_series < 2:
        raise InputError("data: there is one series; a network needs two at least")
    if series.n_steps < _SHORTEST:
        raise InputError(
            f"data: there are {series.n_steps} rows, and at least {_SHORTEST} are needed: states must come near each "
            "other several times before skill means anything"
        )
    of_size = [remark for remark in remarks_on_size(series, 1) if remark.code != "few-rows"]  # of which all tell
    for remark in [*of_size, *remarks_on_table(series)]:
        warn(str(remark))
    highest, name = (fields["E_max"], "E_max") if fields["E"] is None else (max(fields["E"]), "E")
    for Tp in {min(lags, default=0), max(lags, default=0)}:
        require_rows(series, E=highest, tau=fields["tau"], Tp=Tp, k=1, name=name)


# The legs of a causal network: each test of all pairs of a table, and the evidence that they give together.


Numbers = NDArray[np.int_]
_PREDICTIONS_TOGETHER = 1024  # pairs whose predictions are held together


def _best(by_lag: Doubles, lags: Sequence[int]) -> tuple[Doubles, Numbers]:
    """The highest skill of all lags, and its lag; that nearest to 0 of a tie."""
    order = np.argsort(np.abs(lags), kind="stable")
    values = by_lag[order]
    place = np.where(np.isnan(values), -np.inf, values).argmax(axis=0)
    return np.take_along_axis(values, place[None], axis=0)[0], np.array(lags)[order][place]


class LegsOfNetwork:
    """The legs, one after the other, on one table.

    Parameters
    ----------
    fields : dict
        Of a :class:`.pairs.PairsProblem`, E among them.
    layout : Layout or None
        How groups lie among the rows.
    """

    def __init__(
        self, fields: dict[str, Any], legs: Legs, seasons: Seasons, runner: Runner, layout: Layout | None = None
    ) -> None:
        self._fields, self._legs, self._seasons, self._runner = fields, legs, seasons, runner
        self._layout = layout
        self._series: Series = fields["data"].series
        self._dims = np.array(fields["E"], int)
        self._makers = None if legs.surrogate is None else SeriesMakers(
            self._series, legs.surrogate, fields["tau"], legs.period, legs.recurrence,
            seasons.choices or None, layout,
        )
        self._record = Record()
        self._kernels: tuple[str, ...] = ()

    def result(self, lib_sizes: Any) -> CausalNetwork:
        """All evidence, and the verdicts that follow from it; ``lib_sizes`` as the user gave them."""
        legs, series = self._legs, self._series
        lags = legs.lags or (self._fields["Tp"],)
        self._begin("skill")
        by_lag = self._maps(lags)
        skill, best = _best(by_lag, lags)
        early = [place for place, lag in enumerate(lags) if not legs.lags or lag <= legs.latest]
        rho, Tp = _best(by_lag[early], [lags[place] for place in early])
        lag = best if legs.lags else None
        self._begin("surrogates")
        draws, p_value, q_value = self._surrogates(tuple(lags[place] for place in early))
        self._begin("convergence")
        gain, trend = self._convergence(lib_sizes, Tp)
        evidence = Evidence(skill, q_value, gain, trend, lag, legs.rate, legs.latest)
        if legs.lags:
            self._begin("order of lags")
            evidence = self._order(evidence, by_lag, Tp)
        self._begin("links through others")
        partial = through, carried, left, _ = self._partial(evidence)
        verdict, codes = np.full(rho.shape, NONE, object), np.empty(rho.shape, object)
        codes.fill(())  # np.full would take it for an array
        self._judge(evidence, ~np.eye(len(rho), dtype=bool), verdict, codes, *partial)
        p_partial = self._partial_tests(evidence, through)
        if legs.forecast:
            self._begin("forecasts")
            unsettled = doubtful(evidence, verdict)
            evidence = replace(evidence, p_forecast=self._forecasts(evidence, unsettled, verdict, through))
            self._judge(evidence, unsettled, verdict, codes, *partial)
        missing = np.full(rho.shape, np.nan)
        return CausalNetwork(
            names=series.names, verdict=verdict, codes=codes, rho=rho, skill=skill, lag=lag, lags=legs.lags,
            by_lag=by_lag, p_value=missing if p_value is None else p_value,
            q_value=missing if q_value is None else q_value, draws=draws, gain=missing if gain is None else gain,
            trend=missing if trend is None else trend, through=through, carried=carried,
            partial=left, p_partial=p_partial, E=self._dims, tau=self._fields["tau"], Tp=Tp, rate=legs.rate,
            p_lag=missing if evidence.p_lag is None else evidence.p_lag, latest=legs.latest,
            p_forecast=missing if evidence.p_forecast is None else evidence.p_forecast,
            surrogate=legs.surrogate, seed=legs.seed,
            n_steps=int(self._rows.sum()), groups=0 if self._layout is None else len(self._rows),
            reasons=() if self._makers is None else self._makers.reasons,
            season=self._seasons.period, without_season=self._seasons.without,
            exclusion_radius=self._fields["exclusion_radius"],
            provenance=self._runner.provenance(dict.fromkeys(self._kernels), self._record), grid=series.grid,
        )  # fmt: skip

    def _begin(self, step: str) -> None:
        """Tell whoever watches which leg begins, if it is one of those that were asked for."""
        legs = self._legs
        asked = {"skill": True, "surrogates": self._makers is not None, "convergence": legs.convergence,
                 "order of lags": bool(legs.lags), "links through others": legs.partial,
                 "forecasts": legs.forecast}  # fmt: skip
        if asked[step]:
            begin_step(step, [name for name, wanted in asked.items() if wanted])

    def _judge(
        self, evidence: Evidence, asked: Mask, verdict: NDArray[Any], codes: NDArray[Any], through: Numbers,
        carried: Doubles, left: Doubles, looked_at: Numbers,
    ) -> None:  # fmt: skip
        """Write the verdict and the codes of some pairs."""
        names = self._series.names
        for effect, cause in zip(*np.nonzero(asked), strict=True):
            z = int(through[effect, cause])
            explains = z >= 0 and passes_through(
                evidence, effect, cause, z, float(carried[effect, cause]), float(left[effect, cause])
            )
            verdict[effect, cause], codes[effect, cause] = verdict_of(
                evidence, effect, cause, self._legs.partial, names[z] if explains else None,
                int(looked_at[effect, cause]),
            )  # fmt: skip

    def _forecasts(self, evidence: Evidence, asked: Mask, verdict: NDArray[Any], through: Numbers) -> Doubles:
        """P-value of causes improving forecasts, of some links; NaN for other pairs."""
        f, p = self._fields, np.full(verdict.shape, np.nan)
        effects, causes = np.nonzero(asked)
        for part in cut(len(effects), _PREDICTIONS_TOGETHER):
            here = slice(part.begin, part.end)
            links = [
                (cause, Forecast(effect, companions(evidence, verdict, effect, cause, int(through[effect, cause]))))
                for effect, cause in zip(effects[here].tolist(), causes[here].tolist(), strict=True)
            ]
            of_part, record = p_of_forecasts(
                self._runner, self._series.values, self._dims, links, tau=f["tau"],
                exclusion_radius=f["exclusion_radius"], knn=f["knn"], dtype=f["data"].dtype,
            )  # fmt: skip
            self._note(record, ForecastsProblem.kernels)
            p[effects[here], causes[here]] = of_part
        return p

    def _note(self, record: Record, kernels: Sequence[str]) -> None:
        self._record = self._record.joined(record)
        self._kernels += tuple(kernels)

    def _order(self, evidence: Evidence, by_lag: Doubles, early: Numbers) -> Evidence:
        """With each link's p-value of the best lag being better than those that a cause may not have.

        ``early`` holds the best of the lags that a cause may have. Where a shock within the row explains the link, the
        order has to be clearer than the opposite one: the same row is not before.
        """
        lags, values = self._legs.lags, self._series.values
        places = [place for place, lag in enumerate(lags) if lag > self._legs.latest]
        late = _best(by_lag[places], [lags[place] for place in places])[1]
        links = evidence.ordered
        effects, causes = np.nonzero(links | links.T)
        z = np.full(links.shape, np.nan)
        for part in cut(len(effects), _PREDICTIONS_TOGETHER):
            effect, cause = effects[part.begin : part.end], causes[part.begin : part.end]
            pairs = np.column_stack([effect, cause, self._dims[effect]])
            both = np.concatenate([np.column_stack([pairs, Tp[effect, cause]]) for Tp in (early, late)])
            skills, record = predict_pairs(self._runner, values, values, both, self._linked().options)
            self._note(record, PairPredictionsProblem.kernels)
            z[effect, cause] = z_of_lags(skills, values, both[:, 1], both[:, 3])
        shocks = common_shocks(
            values.astype(np.float64), self._dims, self._fields["tau"], links, self._legs.rate
        )  # fmt: skip
        return replace(evidence, p_lag=np.where(links, p_of_order(z, z.T, shocks), np.nan), shocks=shocks)

    @property
    def _rows(self) -> NDArray[np.int64]:
        """Rows of each group."""
        return np.array([self._series.n_steps]) if self._layout is None else self._layout.groups.sizes

    def _maps(self, lags: tuple[int, ...]) -> Doubles:
        """Skill (n_lags, n_series, n_series) at each lag."""
        N = self._series.n_series
        problem = LaggedMapProblem(**self._fields, lags=lags)
        rho = np.empty((len(lags), N, N))
        self._note(self._runner.run(problem, ArraySink(problem.blocks(), [rho])), problem.kernels)
        return rho

    def _surrogates(
        self, lags: tuple[int, ...]
    ) -> tuple[NDArray[np.int_] | None, Doubles | None, Doubles | None]:
        """Surrogates of each pair, p-values and q-values; None where the leg is off."""
        legs = self._legs
        if self._makers is None:
            return None, None, None
        problem = LaggedSignificanceProblem(
            **self._fields, makers=self._makers, n=legs.n or min(FIRST, legs.budget), seed=legs.seed, lags=lags
        )
        record, _, table = surrogate_tests(
            problem, self._runner, rate=legs.rate, budget=0 if legs.n else legs.budget
        )  # fmt: skip
        self._note(record, problem.kernels)
        p_value = p_values(table.reached, table.n)
        tell_reach(p_value, int(table.n.max(initial=0)), legs.rate)
        return table.n, p_value, false_discovery(p_value)

    def _convergence(self, lib_sizes: Any, Tp: NDArray[np.int_]) -> tuple[Doubles | None, Doubles | None]:
        """Gain of skill with the library at the lag of each pair, and its trend; None if the leg is off."""
        legs, N = self._legs, self._series.n_series
        if not legs.convergence:
            return None, None
        gain, trend = np.full((2, N, N), np.nan)
        for lag in np.unique(Tp).tolist():
            pairs = lag == Tp
            fields = self._fields | {"Tp": lag}
            problem = CcmMatrixProblem(
                **fields, lib_sizes=(), sample=legs.sample, seed=legs.seed, pairs=pairs,
                group_of=drawn_from(self._layout, legs.draw),
            )  # fmt: skip
            problem = replace(problem, lib_sizes=library_sizes(lib_sizes, problem, most_rows(problem)))
            matrices = list(np.empty((len(problem.lib_sizes), N, N), np.dtype(problem.data.dtype)))
            self._note(self._runner.run(problem, ArraySink(problem.blocks(), matrices)), problem.kernels)
            result = CcmMatrixResult(
                np.array(problem.lib_sizes), tuple(matrices), self._dims, self._series.names, legs.sample, legs.seed
            )
            gain[pairs], trend[pairs] = result.gain[pairs], result.trend[pairs]
        return gain, trend

    def _partial(self, evidence: Evidence) -> tuple[NDArray[np.int_], Doubles, Doubles, NDArray[np.int_]]:
        """Of each link the series that explains it best, or -1; the skill through it, and what is left without it.

        And how many series the link might pass through.
        """
        N = self._series.n_series
        through, looked_at = np.full((N, N), -1), np.zeros((N, N), int)
        carried, left = np.full((2, N, N), np.nan)
        links = []
        for effect, cause in zip(*np.nonzero(evidence.ordered), strict=True) if self._legs.partial else ():
            others = intermediates(evidence, int(effect), int(cause))
            looked_at[effect, cause] = len(others)
            links += [self._link(evidence, int(effect), int(cause), z) for z in others[:MOST_GIVEN]]
        if not links:
            return through, carried, left, looked_at
        if looked_at.max() > MOST_GIVEN:
            warn(
                f"{int((looked_at > MOST_GIVEN).sum()):,} links may pass through more than {MOST_GIVEN} other series "
                "each; those with the strongest steps were tested"
            )
        skill, record = partial_skill(self._runner, self._linked(), links, {})
        self._note(record, PairPredictionsProblem.kernels)
        for number, link in enumerate(links):
            place, (z,) = (link.effect, link.cause), link.given
            new = float(skill.through[number][0, 0]), float(skill.partial[number, 0])
            old, mediator = (float(carried[place]), float(left[place])), int(through[place])
            # Series that explain a link come first, and of these the one that carries most.
            rank = passes_through(evidence, *place, z, *new), new[0]
            if mediator < 0 or rank > (passes_through(evidence, *place, mediator, *old), old[0]):
                through[place], (carried[place], left[place]) = z, new
        return through, carried, left, looked_at

    def _partial_tests(self, evidence: Evidence, through: Numbers) -> Doubles | None:
        """P-value of what is left of each link without the series that explains it best; None if not asked for."""
        if not self._legs.partial_surrogates or self._makers is None:
            return None
        share = np.full(through.shape, np.nan)
        effects, causes = np.nonzero(through >= 0)
        links = [
            self._link(evidence, effect, cause, int(through[effect, cause]))
            for effect, cause in zip(effects.tolist(), causes.tolist(), strict=True)
        ]
        if links:
            legs = self._legs
            share[effects, causes], record = partial_tests(
                self._runner, self._linked(), links, self._makers, budget=legs.partial_surrogates, rate=legs.rate,
                seed=legs.seed,
            )  # fmt: skip
            self._note(record, PairPredictionsProblem.kernels)
        return share

    def _linked(self) -> LinkedSeries:
        """The series of the network, and how their states are made."""
        f = self._fields
        options = PairOptions(f["tau"], f["exclusion_radius"], f["knn"], f["data"].dtype)
        there = None if self._layout is None else self._layout.there
        return LinkedSeries(self._series.values, self._dims, options, there)

    def _link(self, evidence: Evidence, effect: int, cause: int, given: int) -> PartialLink:
        """Each estimate at the lag at which it is best."""
        lag = evidence.lag
        if lag is None:
            Tp = int(self._fields["Tp"])
            return PartialLink(cause, effect, (given,), Tp, (Tp,), (Tp,))
        return PartialLink(
            cause, effect, (given,), int(lag[effect, cause]), (int(lag[effect, given]),), (int(lag[given, cause]),)
        )
