"""From the arguments of simplex to states, and from states to predictions; shared by all that predicts so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...data.condition import condition
from ...data.groups import Entries, Layout
from ...data.series import check_embedding
from ...engines.projector import project_each, project_once
from ...errors import InputError
from ...jobs.blocks import Record
from ...neighbors.choose import SearchRequest
from ...neighbors.coordinates import coordinate_problem, delay_problem, lay_out, lay_out_in_itself, lay_out_states
from ...neighbors.plan import SearchProblem
from ..shared import arguments, scores
from ..shared.options import PredictionOptions
from ..shared.rows import library_of, sides_of
from ..shared.states import condition_together, embed, future

if TYPE_CHECKING:
    from ...device.executor import Executor

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Projection:
    """What is predicted from what.

    Attributes
    ----------
    library, query : ndarray (n, columns), (m, columns)
        Series, of which each column is embedded; ``query`` is ``library`` where a series predicts itself.
    target_values : ndarray (n,) of float64
        The series whose values are predicted.
    lags : int
        Lags of each column; 1 where the columns are the coordinates.
    tau, Tp, k : int
    exclusion_radius : int
        -1 where library and query are different series.
    library_mask : ndarray of bool (n,) or None
        Library rows that ranges and masks leave.
    rows : ndarray of int
        Query rows that are predicted.
    observed : ndarray of float64
        Value at each row + Tp, NaN where there is none.
    layout : Layout or None
        How groups lie among the query rows.
    extent : (ndarray, ndarray) or None
        Of the library, where it is known.
    """

    library: NDArray[Any]
    query: NDArray[Any]
    target_values: Doubles
    lags: int
    tau: int
    Tp: int
    k: int
    exclusion_radius: int
    library_mask: Mask | None
    rows: NDArray[np.int64]
    observed: Doubles
    layout: Layout | None = None
    extent: tuple[NDArray[Any], NDArray[Any]] | None = None

    def entries(self) -> Entries:
        """Which predictions a result shows."""
        return Entries.of(self.rows, self.Tp, (self.lags - 1) * self.tau, self.layout)

    @property
    def E(self) -> int:
        """Coordinates of a state."""
        return self.lags * int(self.library.shape[1])


@dataclass(frozen=True)
class Forecast:
    """Predictions of a projection's rows, their variance and skill; of generated steps how far off such ones were."""

    predicted: Doubles
    variance: Doubles
    rho: float
    mae: float
    rmse: float
    errors: Doubles | None = None


def prepare(
    lib: Any, pred: Any, target: Any, options: PredictionOptions, *, gaps_only: bool = False, quiet: bool = False
) -> Projection:
    """Check the arguments of :func:`pyedmcl.simplex`.

    With ``gaps_only`` a library that has no row is taken: one series of many may hold nothing but gaps. With ``quiet``
    nothing is said of constant series.

    Raises
    ------
    InputError
        An argument cannot be used; the message names it, its value, and what is needed.
    """
    series, groups = library_of(lib, options)
    E, embedded = options.E, options.embedded
    if embedded:
        if E is not None and arguments.integer("E", E, 1) != series.n_series:
            raise InputError(f"E={E}: with embedded=True, E is the number of columns of lib, {series.n_series}")
        lags, tau = 1, 1
    elif E is None:
        raise InputError(
            "E=None: the number of lags is needed, an integer of at least 1; with embedded=True, E is that of columns"
        )
    else:
        lags, tau = check_embedding(E, options.tau)
    Tp = arguments.integer("Tp", options.Tp)
    k = arguments.count("knn", options.knn) or lags * series.n_series + 1
    sides = sides_of(series, groups, pred, target, options, lags=lags, tau=tau, Tp=Tp, quiet=quiet)
    library = sides.library.values
    if not gaps_only:
        given_k = None if options.knn is None else k
        check_library(library, sides.target_values, lags, tau, Tp, sides.library_mask, given_k, "lib")
    return Projection(
        library=library, query=library if pred is None else sides.asked.values, target_values=sides.target_values,
        lags=lags, tau=tau, Tp=Tp, k=k, exclusion_radius=sides.exclusion_radius, library_mask=sides.library_mask,
        rows=sides.rows, observed=sides.observed, layout=sides.layout, extent=sides.library.extent,
    )  # fmt: skip


def check_library(
    values: NDArray[Any], target_values: Doubles, lags: int, tau: int, Tp: int, library_mask: Mask | None,
    knn: int | None, what: str,
) -> None:  # fmt: skip
    """Refuse a library without any row, or with fewer than the neighbours that were asked for by number.

    Parameters
    ----------
    values : ndarray (n, columns)
    target_values : ndarray (n,)
    knn : int or None
        None where the caller named none: then those there are count.

    Raises
    ------
    InputError
    """
    first = (lags - 1) * tau
    complete = np.isfinite(values).all(axis=1)
    mask = np.isfinite(future(target_values, Tp))
    mask[:first] = False
    if not complete.all():
        for e in range(lags):
            mask[first:] &= complete[first - e * tau : len(complete) - e * tau]
    if library_mask is not None:
        mask &= library_mask
    rows = int(mask.sum())
    if rows >= max(knn or 1, 1):
        return
    need = "at least one is needed" if knn is None else f"knn={knn} neighbours cannot be found among them"
    raise InputError(
        f"{what}: {rows:,} rows have all their coordinates (E={lags}, tau={tau}) and a target {Tp} steps on, and are "
        f"in the library; {need}. Gaps (NaN), lib_range and valid_lib take rows away; use longer series, fewer lags or "
        "a smaller knn"
    )


def laid_out(p: Projection, dtype: str) -> tuple[SearchProblem, NDArray[Any], NDArray[Any]]:
    """The search of a projection, and library and query states in its layout."""
    n, m, same_series = len(p.library), len(p.query), p.query is p.library
    kind = np.result_type(p.library, p.query)
    values = p.library if same_series else np.concatenate([p.library.astype(kind), p.query.astype(kind)])
    search: SearchProblem
    if p.library.shape[1] == 1:
        ready = condition(values, dtype, p.extent if same_series else None).values
        search = delay_problem(p.lags, p.tau, p.k, p.Tp, p.exclusion_radius, n, m, dtype)
        if same_series:
            return search, *lay_out_in_itself(ready, search)
        return search, lay_out(ready[:n], search, n, search.library_end), lay_out(ready[n:], search, m, m)
    ready = condition_together(values, dtype)
    states = embed(ready[:n], p.lags, p.tau)
    search_of_states = coordinate_problem(states.shape[1], p.k, p.Tp, p.exclusion_radius, n, m, dtype)
    library = lay_out_states(states, search_of_states, n, search_of_states.library_end)
    if same_series and search_of_states.library_end == n:
        return search_of_states, library, library
    query_states = states if same_series else embed(ready[n:], p.lags, p.tau)
    return search_of_states, library, lay_out_states(query_states, search_of_states, m, m)


def together(p: Projection) -> tuple[Any, ...] | None:
    """What must be equal for projections to share a search; None for one that cannot."""
    if p.query is not p.library or p.library.shape[1] != 1 or p.library_mask is not None or p.layout is not None:
        return None
    if not (np.isfinite(p.library).all() and np.isfinite(p.target_values).all()):
        return None
    return len(p.library), p.library.dtype, p.lags, p.tau, p.Tp, p.k, p.exclusion_radius


def project_alike(
    executor: Executor, projections: Sequence[Projection], dtype: str, request: SearchRequest | None = None
) -> tuple[list[Forecast], Record]:
    """Predict the rows of projections that :func:`together` finds alike, with the bits of :func:`project`."""
    p, n = projections[0], len(projections[0].library)
    ready = condition(np.concatenate([one.library for one in projections], axis=1), dtype).values
    search = delay_problem(p.lags, p.tau, p.k, p.Tp, p.exclusion_radius, n, n, dtype)
    library, query = lay_out_in_itself(ready, search)
    targets = future(np.array([one.target_values for one in projections], np.float64), p.Tp)
    predicted, searcher = project_each(executor, search, targets, library, query, request)
    means = [own.mean[one.rows] for one, own in zip(projections, predicted, strict=True)]
    spreads = [own.variance[one.rows] for one, own in zip(projections, predicted, strict=True)]
    if len({len(mean) for mean in means}) > 1:
        forecasts = [
            _measured(one, mean, spread, own.shift, own.noise)
            for one, mean, spread, own in zip(projections, means, spreads, predicted, strict=True)
        ]
        return forecasts, Record.of(searcher)
    observed = np.array([one.observed for one in projections])
    shifted = np.array([mean - own.shift for mean, own in zip(means, predicted, strict=True)])
    rho = scores.pearson(shifted, observed, np.array([own.noise for own in predicted]))
    wrong = scores.errors_of_rows(np.array(means), observed)
    measured = zip(means, spreads, rho.tolist(), wrong, strict=True)
    return [Forecast(mean, spread, r, *off) for mean, spread, r, off in measured], Record.of(searcher)


def _measured(p: Projection, at: Doubles, spread: Doubles, shift: float, noise: float) -> Forecast:
    mae, rmse = scores.errors(at, p.observed)
    # Predictions of a constant differ by rounding only, which is no skill; an offset of the data is no part of it.
    return Forecast(at, spread, float(scores.pearson(at - shift, p.observed, noise)), mae, rmse)


def project(
    executor: Executor, p: Projection, dtype: str, request: SearchRequest | None = None
) -> tuple[Forecast, Record]:
    """Predict the rows of a projection."""
    problem, library, query = laid_out(p, dtype)
    future_target = future(p.target_values, p.Tp)
    predicted, record = project_once(executor, problem, future_target, library, query, p.library_mask, request)
    return _measured(p, predicted.mean[p.rows], predicted.variance[p.rows], predicted.shift, predicted.noise), record


def generate(
    executor: Executor, p: Projection, steps: int, dtype: str, request: SearchRequest | None = None
) -> tuple[Projection, Forecast, Record]:
    """Continue the predicted series after its end, each prediction being the next step's newest value.

    The library does not grow. Returns the projection of the generated rows and their forecast. Of each search the
    record is that of the step with the lowest recall, with the number of its steps.
    """
    n, reach = len(p.query), (p.lags - 1) * p.tau + 1
    series = p.query[:, 0].astype(np.float64)
    window = series[-reach:]
    predicted, variance = np.full((2, steps), np.nan)
    record = Record()
    of_search: dict[str, list[Mapping[str, Any]]] = {}
    library_mask = np.ones(len(p.library), bool) if p.library_mask is None else p.library_mask
    for step in range(steps):
        # The query is a series of its own; rows near its true place in time are no neighbours, as they would be there.
        near = np.abs(np.arange(len(p.library)) - (n - 1 + step)) <= p.exclusion_radius
        next_step = replace(
            p, query=window[:, None], library_mask=library_mask & ~near, exclusion_radius=-1,
            rows=np.array([reach - 1]), observed=np.array([np.nan]),
        )  # fmt: skip
        forecast, record = project(executor, next_step, dtype, request)
        for entry in record.searched:
            of_search.setdefault(entry["used"], []).append(entry)
        predicted[step], variance[step] = forecast.predicted[0], forecast.variance[0]
        window = np.append(window[1:], predicted[step])
    searched = tuple(
        {**min(entries, key=lambda entry: entry["recall"]), "steps": len(entries)} for entries in of_search.values()
    )
    rows = np.arange(n - 1, n - 1 + steps)
    made = replace(p, rows=rows, observed=np.full(steps, np.nan))
    nothing, errors = float("nan"), _errors_of_steps(executor, p, steps, dtype, request)
    return made, Forecast(predicted, variance, nothing, nothing, nothing, errors), replace(record, searched=searched)


def _errors_of_steps(
    executor: Executor, p: Projection, steps: int, dtype: str, request: SearchRequest | None
) -> Doubles:
    """Sorted absolute errors (steps, n) of the same steps from each state of the series, NaN behind the last.

    A state that came to a row may use neither what is near that row in time nor the rows from where it set out on.
    """
    values = p.query[:, 0].astype(np.float64)
    n, errors = len(values), np.full((steps, len(values)), np.nan)
    if p.query is not p.library:
        return errors
    known = embed(p.library[:, :1].astype(np.float64), p.lags, p.tau)
    states, paths = known, np.empty((0, n))
    for step in range(min(steps, n)):
        asked = np.flatnonzero(np.isfinite(states).all(axis=1)[: n - 1])
        if not len(asked):
            break
        of_step = replace(
            p, library=known, query=states, lags=1, tau=1, exclusion_radius=max(p.exclusion_radius, step),
            rows=asked, observed=np.append(values[1:], np.nan)[asked], extent=None,
        )  # fmt: skip
        predicted = np.full(n, np.nan)
        predicted[asked + 1] = project(executor, of_step, dtype, request)[0].predicted
        errors[step] = np.sort(np.abs(values - predicted))
        paths = np.concatenate([predicted[None], paths])
        states = _states_of_paths(values, paths, p.lags, p.tau)
    return errors


def _states_of_paths(values: Doubles, paths: Doubles, lags: int, tau: int) -> Doubles:
    """States (n, lags) of paths at the rows that they came to: what they made, and before it values of the series.

    ``paths`` (n_made, n) holds predictions by the row that they are of: those of the last step first.
    """
    n, made = len(values), len(paths)
    states = np.full((n, lags), np.nan)
    for lag in range(lags):
        back = lag * tau
        source = paths[back] if back < made else values
        states[back:, lag] = source[: n - back]
    states[:made] = np.nan
    return states


def check_generation(p: Projection, other_target: bool, options: PredictionOptions, steps: int) -> None:
    """Refuse what cannot feed itself, naming why."""
    reasons = (
        (options.embedded, "embedded=True: coordinates cannot be continued by a prediction of one of them"),
        (other_target, "target=...: the predicted series must be the embedded one"),
        (p.library.shape[1] > 1, "lib has several columns; a single series is needed"),
        (p.layout is not None, "groups=...: continue one group at a time"),
        (p.Tp != 1, f"Tp={p.Tp}: each prediction must be the next value, Tp=1"),
        (options.pred_range is not None, "pred_range=...: what is predicted follows the end of the series"),
    )
    for applies, why in reasons:
        if applies:
            raise InputError(f"generate_steps={steps} cannot be used with {why}")
