"""The legs of a causal network: each test of all pairs of a table, and the evidence that they give together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.groups import Layout
from ...data.series import Series
from ...errors import warn
from ...jobs.blocks import Record, cut
from ...jobs.runner import Runner
from ...jobs.sinks import ArraySink
from ..ccm.ccm_matrix_problem import CcmMatrixProblem
from ..ccm.ccm_matrix_result import CcmMatrixResult
from ..ccm.ccm_matrix_sizes import library_sizes, most_rows
from ..maps.lagged_map_problem import LaggedMapProblem
from ..maps.pair_predictions_problem import PairOptions, PairPredictionsProblem, predict_pairs
from ..shared.exceedance import p_values
from ..shared.false_discovery import false_discovery
from ..shared.sequential import FIRST, tell_reach
from ..significance.lagged_significance_problem import LaggedSignificanceProblem
from ..significance.surrogate_tests import surrogate_tests
from ..surrogates.group_draws import drawn_from
from ..surrogates.seasons import Seasons
from ..surrogates.surrogate import SeriesMakers
from .causal_arguments import Legs
from .causal_network_result import CausalNetwork
from .forecast_gains import Forecast, ForecastsProblem, p_of_forecasts
from .lag_order import common_shocks, p_of_order, z_of_lags
from .partial_links import LinkedSeries, PartialLink, partial_skill
from .partial_tests import partial_tests
from .verdicts import (
    MOST_GIVEN,
    NONE,
    Evidence,
    Mask,
    companions,
    doubtful,
    intermediates,
    passes_through,
    verdict_of,
)

Doubles = NDArray[np.float64]
Numbers = NDArray[np.int_]
_TOGETHER = 1024  # pairs whose predictions are held together


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
    legs : Legs
    seasons : Seasons
    runner : Runner
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
        by_lag = self._maps(lags)
        skill, best = _best(by_lag, lags)
        early = [place for place, lag in enumerate(lags) if not legs.lags or lag <= legs.latest]
        rho, Tp = _best(by_lag[early], [lags[place] for place in early])
        lag = best if legs.lags else None
        draws, p_value, q_value = self._surrogates(tuple(lags[place] for place in early))
        gain, p_convergence = self._convergence(lib_sizes, Tp)
        evidence = Evidence(skill, q_value, gain, p_convergence, lag, legs.rate, legs.latest)
        if legs.lags:
            evidence = self._order(evidence, by_lag, Tp)
        partial = through, carried, left, _ = self._partial(evidence)
        verdict, codes = np.full(rho.shape, NONE, object), np.empty(rho.shape, object)
        codes.fill(())  # np.full would take it for an array
        self._judge(evidence, ~np.eye(len(rho), dtype=bool), verdict, codes, *partial)
        p_partial = self._partial_tests(evidence, through)
        if legs.forecast:
            unsettled = doubtful(evidence, verdict)
            evidence = replace(evidence, p_forecast=self._forecasts(evidence, unsettled, verdict, through))
            self._judge(evidence, unsettled, verdict, codes, *partial)
        missing = np.full(rho.shape, np.nan)
        return CausalNetwork(
            names=series.names, verdict=verdict, codes=codes, rho=rho, skill=skill, lag=lag, lags=legs.lags,
            by_lag=by_lag, p_value=missing if p_value is None else p_value,
            q_value=missing if q_value is None else q_value, draws=draws, gain=missing if gain is None else gain,
            p_convergence=missing if p_convergence is None else p_convergence, through=through, carried=carried,
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
        for part in cut(len(effects), _TOGETHER):
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
        for part in cut(len(effects), _TOGETHER):
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
        """Gain of skill with the library at the lag of each pair, and p-value of its trend; None if the leg is off."""
        legs, N = self._legs, self._series.n_series
        if not legs.convergence:
            return None, None
        gain, p_value = np.full((2, N, N), np.nan)
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
            gain[pairs], p_value[pairs] = result.gain[pairs], result.trend()[1][pairs]
        return gain, p_value

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
