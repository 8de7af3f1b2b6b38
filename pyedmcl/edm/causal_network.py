"""What drives what in a table of series, and how is that known? All tests of all pairs, and a verdict on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.series import Series, require_rows
from ..device.select import DeviceNames
from ..errors import InputError, warn
from ..jobs.blocks import Record
from ..jobs.function import public_function
from ..jobs.runner import Runner
from ..jobs.sinks import ArraySink
from ..launch.progress import Progress
from . import arguments
from .causal_network_result import CausalNetwork
from .ccm_matrix import _library_sizes
from .ccm_matrix_problem import CcmMatrixProblem
from .ccm_matrix_result import CcmMatrixResult
from .exceedance import p_values
from .false_discovery import false_discovery
from .lagged_map_problem import LaggedMapProblem
from .pair_predictions_problem import PairPredictionsProblem
from .pairs import pairs_arguments, with_dimensions
from .partial_links import PartialLink, partial_skill
from .scores import pearson
from .sequential import FIRST, tell_reach
from .surrogate import SeriesMakers, check_method
from .times import remarks_on_times
from .verdicts import MOST_GIVEN, NONE, Evidence, intermediates, passes_through, verdict_of
from .xmap_significance import surrogate_tests
from .xmap_significance_problem import XmapSignificanceProblem

Doubles = NDArray[np.float64]
_LEAST_ROWS = 30
_SMOOTH = 0.5  # lag-1 autocorrelation
_LEAST_E = 2  # the state of a driven series needs more than its own value


@public_function
def causal_network(
    data: Any,
    *,
    E: str | int | Sequence[int] = "auto",
    tau: int = 1,
    lags: Sequence[int] | None = (-6, -5, -4, -3, -2, -1, 0, 1, 2, 3),
    latest: int | None = None,
    Tp: int = -1,
    surrogate: str | None = "auto",
    n: int | str = "auto",
    rate: float = 0.05,
    budget: int = 2000,
    convergence: bool = True,
    lib_sizes: Any = None,
    sample: int = 10,
    partial: bool = True,
    seed: int | None = None,
    period: int | None = None,
    recurrence: float = 0.1,
    exclusion_radius: int = 0,
    knn: int | None = None,
    E_max: int = 10,
    columns: Sequence[str | int] | str | int | None = None,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> CausalNetwork:
    """Which series drives which, directly or through others, and how is that known?

    Four legs carry a link from cause to effect. Its skill, that of the effect's states in estimating the cause, is
    higher than with surrogates of the cause (false discovery rate over all pairs); it grows with the library; it is
    highest at a lag before the effect; and no other series of the table explains it. Each leg can be switched off, and
    the result says so. docs/causality.md has the rules.

    Parameters
    ----------
    data : array_like (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    E : "auto", int or sequence of int
        Embedding dimension of each series; its states are what estimates the others. "auto" takes that of the best
        self-prediction, at least 2.
    lags : sequence of int or None
        Steps from the states of the effect to the cause (Tp) at which skill is compared; None switches the leg off.
    latest : int, optional
        The latest best lag at which a cause is believed. Skill, convergence and surrogates are those of the best lag up
        to there (for surrogates, of each one's own best lag). By default 0 where the series are smooth (half of them
        have a lag-1 autocorrelation above 0.5), since a row then hardly differs from the next one, and -1 elsewhere.
        With 0 common drivers are told less well.
    Tp : int
        The only lag that is tested where ``lags`` is None.
    surrogate : str or None
        Method of :func:`pyedmcl.surrogate`; None switches the leg off.
    n, rate, budget
        As for :func:`pyedmcl.xmap_significance`; ``rate`` is also the level of the test of convergence.
    convergence : bool
        Whether skill must grow with the library.
    lib_sizes, sample
        As for :func:`pyedmcl.ccm_matrix`.
    partial : bool
        Whether links that others may explain are told from direct ones, by partial cross mapping.
    seed : int, optional
        Chooses surrogates and sub-libraries; by default a fresh one, which the result names.
    period, recurrence
        As for :func:`pyedmcl.surrogate`.
    progress : callable, optional
        Called as ``progress(done, total, unit)`` with units "dimensions", "lags", "series" and "predictions".
    tau, exclusion_radius, knn, E_max, columns, dtype, device, client, tune
        As for :func:`pyedmcl.xmap`.

    Returns
    -------
    CausalNetwork
        A table with a row for each pair: ``to_frame()``; sentences: ``statement(cause, effect)``; the network:
        ``plot()``, ``to_networkx()``.

    Raises
    ------
    InputError
        Data or an argument cannot be used; there are fewer than 30 rows.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; a table does not fit.
    ClientError
        Workers of ``client`` cannot be used, or were lost.

    See Also
    --------
    xmap_significance, ccm_matrix, ccm_lagged, partial_ccm : the legs one by one.

    Notes
    -----
    Cost: that of :func:`xmap_significance` and :func:`ccm_matrix`, a cross map for each lag, and for each link that may
    be indirect as many searches as there are series that it may pass through (5 at most).

    Drivers that are not in the table are not excluded by any of this.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> data = coupled_maps(n_series=4, n_steps=400)
    >>> found = pyedmcl.causal_network(data.values, E=3, seed=1)
    >>> found.verdict.shape  # row = effect, column = cause
    (4, 4)
    """
    legs = _Legs(
        None if surrogate is None else check_method(surrogate, "surrogate"), arguments.surrogates(n),
        arguments.share("rate", rate), arguments.draws("budget", budget), bool(convergence),
        arguments.draws("sample", sample), _lags(lags), 0, bool(partial),
        arguments.stream(seed), period, recurrence,
    )  # fmt: skip
    arguments.reporter(progress)
    fields = pairs_arguments(
        data, E=E, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn, E_max=E_max, columns=columns, dtype=dtype
    )
    series = fields["data"].series
    legs = replace(legs, latest=_latest(latest, legs.lags, series))
    _check_size(series, fields, legs.lags)
    runner = arguments.runner_on(device, fields["data"].dtype, client)
    problem = with_dimensions(LaggedMapProblem(**fields, lags=()), runner, ArraySink([], []))
    dims = np.array(problem.E, int)
    if problem.E_max is not None:
        dims = np.maximum(dims, min(_LEAST_E, problem.E_max))
    fields |= {"E": tuple(dims.tolist()), "E_max": None}
    return _Work(fields, legs, runner).result(lib_sizes)


@dataclass(frozen=True)
class _Legs:
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
    seed: int
    period: int | None
    recurrence: float


def _lags(lags: Any) -> tuple[int, ...]:
    """Lags that are compared."""
    if lags is None:
        return ()
    return tuple(sorted({arguments.integer("lags", lag) for lag in arguments.several("lags", lags)}))


def _latest(latest: Any, lags: Sequence[int], series: Series) -> int:
    """The latest lag at which a cause is believed, with lags on both sides of it."""
    limit = (0 if _smooth(series) else -1) if latest is None else arguments.integer("latest", latest)
    if lags and not min(lags) <= limit < max(lags):
        raise InputError(
            f"lags={arguments.shown(list(lags))}: lags up to latest={limit} and later ones are needed, or None"
        )
    return limit


def _smooth(series: Series) -> bool:
    """Whether half of the series have a lag-1 autocorrelation above 0.5."""
    now, before = series.values[1:].T.astype(np.float64), series.values[:-1].T.astype(np.float64)
    return float(np.median(np.nan_to_num(pearson(now, before)))) > _SMOOTH


def _check_size(series: Series, fields: dict[str, Any], lags: Sequence[int]) -> None:
    """Refuse what no network can be made of, and tell what makes one doubtful."""
    if series.n_series < 2:
        raise InputError("data: there is one series; a network needs two at least")
    if series.n_steps < _LEAST_ROWS:
        raise InputError(
            f"data: there are {series.n_steps} rows, and at least {_LEAST_ROWS} are needed: states must come near each "
            "other several times before skill means anything"
        )
    if series.n_series > series.n_steps:
        warn(
            f"there are more series ({series.n_series:,}) than rows ({series.n_steps:,}). If the table is the other "
            "way round (a row for each series), transpose it"
        )
    for _, text in remarks_on_times(series.time):
        warn(f"data: {text}")
    highest = fields["E_max"] if fields["E"] is None else max(fields["E"])
    for Tp in {min(lags, default=0), max(lags, default=0)}:
        require_rows(series, E=highest, tau=fields["tau"], Tp=Tp, k=1)


def _best(by_lag: Doubles, lags: Sequence[int]) -> tuple[Doubles, NDArray[np.int_]]:
    """The highest skill of all lags, and its lag; that nearest to 0 of a tie."""
    order = np.argsort(np.abs(lags), kind="stable")
    values = by_lag[order]
    place = np.where(np.isnan(values), -np.inf, values).argmax(axis=0)
    return np.take_along_axis(values, place[None], axis=0)[0], np.array(lags)[order][place]


class _Work:
    """The legs, one after the other, on one table."""

    def __init__(self, fields: dict[str, Any], legs: _Legs, runner: Runner) -> None:
        self._fields, self._legs, self._runner = fields, legs, runner
        self._series: Series = fields["data"].series
        self._dims = np.array(fields["E"], int)
        self._makers = None if legs.surrogate is None else SeriesMakers(
            self._series, legs.surrogate, fields["tau"], legs.period, legs.recurrence
        )
        self._record = Record()
        self._kernels: tuple[str, ...] = ()

    def result(self, lib_sizes: Any) -> CausalNetwork:
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
        through, carried, left, looked_at = self._partial(evidence)
        N = series.n_series
        verdict, codes = np.full((N, N), NONE, object), np.empty((N, N), object)
        for number in range(N):
            codes[number, number] = ()
        for effect, cause in zip(*np.nonzero(~np.eye(N, dtype=bool)), strict=True):
            z = int(through[effect, cause])
            explains = z >= 0 and passes_through(
                evidence, effect, cause, z, float(carried[effect, cause]), float(left[effect, cause])
            )
            verdict[effect, cause], codes[effect, cause] = verdict_of(
                evidence, effect, cause, legs.partial, series.names[z] if explains else None,
                int(looked_at[effect, cause]),
            )  # fmt: skip
        missing = np.full((N, N), np.nan)
        return CausalNetwork(
            names=series.names, verdict=verdict, codes=codes, rho=rho, skill=skill, lag=lag, lags=legs.lags,
            by_lag=by_lag, p_value=missing if p_value is None else p_value,
            q_value=missing if q_value is None else q_value, draws=draws, gain=missing if gain is None else gain,
            p_convergence=missing if p_convergence is None else p_convergence, through=through, carried=carried,
            partial=left, E=self._dims, tau=self._fields["tau"], Tp=Tp, rate=legs.rate,
            latest=legs.latest, surrogate=legs.surrogate, seed=legs.seed, n_steps=series.n_steps,
            reasons=() if self._makers is None else self._makers.reasons,
            provenance=self._runner.provenance(dict.fromkeys(self._kernels), self._record),
        )  # fmt: skip

    def _note(self, record: Record, kernels: Sequence[str]) -> None:
        self._record = self._record.joined(record)
        self._kernels += tuple(kernels)

    def _maps(self, lags: tuple[int, ...]) -> Doubles:
        """Skill (n_lags, n_series, n_series) at each lag."""
        N = self._series.n_series
        problem = LaggedMapProblem(**self._fields, lags=lags)
        found = np.empty((len(lags), N, N))
        self._note(self._runner.run(problem, ArraySink(problem.blocks(), [found])), problem.kernels)
        return found

    def _surrogates(
        self, lags: tuple[int, ...]
    ) -> tuple[NDArray[np.int_] | None, Doubles | None, Doubles | None]:
        """Surrogates of each pair, p-values and q-values; None where the leg is off."""
        legs = self._legs
        if self._makers is None:
            return None, None, None
        problem = XmapSignificanceProblem(
            **self._fields, makers=self._makers, n=legs.n or min(FIRST, legs.budget), seed=legs.seed,
            E_of_library=True, lags=lags,
        )  # fmt: skip
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
            problem = CcmMatrixProblem(**fields, lib_sizes=(), sample=legs.sample, seed=legs.seed, pairs=pairs)
            problem = replace(problem, lib_sizes=_library_sizes(lib_sizes, problem))
            matrices = list(np.empty((len(problem.lib_sizes), N, N), np.dtype(problem.data.dtype)))
            self._note(self._runner.run(problem, ArraySink(problem.blocks(), matrices)), problem.kernels)
            found = CcmMatrixResult(
                np.array(problem.lib_sizes), tuple(matrices), self._dims, self._series.names, legs.sample, legs.seed
            )
            gain[pairs], p_value[pairs] = found.gain[pairs], found.trend()[1][pairs]
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
        f = self._fields
        found, record = partial_skill(
            self._runner, self._series.values, self._dims, links, {}, tau=f["tau"],
            exclusion_radius=f["exclusion_radius"], knn=f["knn"], dtype=f["data"].dtype,
        )  # fmt: skip
        self._note(record, PairPredictionsProblem.kernels)
        for number, link in enumerate(links):
            place, (z,) = (link.effect, link.cause), link.given
            new = float(found.through[number][0, 0]), float(found.partial[number, 0])
            old, known = (float(carried[place]), float(left[place])), int(through[place])
            # Series that explain a link come first, and of these the one that carries most.
            rank = passes_through(evidence, *place, z, *new), new[0]
            if known < 0 or rank > (passes_through(evidence, *place, known, *old), old[0]):
                through[place], (carried[place], left[place]) = z, new
        return through, carried, left, looked_at

    def _link(self, evidence: Evidence, effect: int, cause: int, given: int) -> PartialLink:
        """Each estimate at the lag at which it is best."""
        lag = evidence.lag
        if lag is None:
            Tp = int(self._fields["Tp"])
            return PartialLink(cause, effect, (given,), Tp, (Tp,), (Tp,))
        return PartialLink(
            cause, effect, (given,), int(lag[effect, cause]), (int(lag[effect, given]),), (int(lag[given, cause]),)
        )
