"""Simplex projection: prediction of a series by its nearest neighbours, over all rows or within windows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..device.select import DeviceNames
from ..engines.predict import project_each, project_once
from ..errors import InputError, pandas_for, shown
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..jobs.runner import ListSink, Runner, public_function
from ..launch.progress import Progress
from ..parallel import bounds
from ..results.result import Answer, Result
from ..search.choose import SearchRequest
from ..search.plan import SearchProblem
from ..search.tables import coordinate_problem, delay_problem, lay_out, lay_out_in_itself, lay_out_states
from ..series.calendar import times_at
from ..series.groups import Entries, Layout
from ..series.regular import Windows, require_same_rows, windows_of
from ..series.scaling import condition
from ..series.series import Series, as_series, check_embedding, name_of, time_of
from ..states import arguments
from ..states.arguments import PredictionOptions, measure, operations
from ..states.rows import library_of, observed_at, sides_of
from ..states.states import condition_together, embed, future
from ..statistics import means

if TYPE_CHECKING:
    from ..device.executor import Executor


# From the arguments of simplex to states, and from states to predictions; shared by all that predicts so.


Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Projection:
    """What is predicted from what."""

    # library, query: ndarray (n, columns), (m, columns). Series, of which each column is embedded; ``query`` is
    # ``library`` where a series predicts itself.
    library: NDArray[Any]
    query: NDArray[Any]
    # ndarray (n,) of float64. The series whose values are predicted.
    target_values: Doubles
    # Lags of each column; 1 where the columns are the coordinates.
    lags: int
    tau: int
    Tp: int
    k: int
    # -1 where library and query are different series.
    exclusion_radius: int
    # ndarray of bool (n,) or None. Library rows that ranges and masks leave.
    library_mask: Mask | None
    # Query rows that are predicted.
    rows: NDArray[np.int64]
    # Value at each row + Tp, NaN where there is none.
    observed: Doubles
    # How groups lie among the query rows.
    layout: Layout | None = None
    # (ndarray, ndarray) or None. Of the library, where it is known.
    extent: tuple[NDArray[Any], NDArray[Any]] | None = None

    @property
    def stateless(self) -> bool:
        """Whether the library never changes: its predictions follow which rows are left out, and are no skill."""
        low, high, _ = bounds(self.library, self.extent)
        return bool((low == high).all())

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
    Tp = options.Tp
    k = options.knn or lags * series.n_series + 1
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
    noise = [math.inf if one.stateless else own.noise for one, own in zip(projections, predicted, strict=True)]
    rho = arguments.pearson(shifted, observed, np.array(noise))
    wrong = arguments.errors_of_rows(np.array(means), observed)
    measured = zip(means, spreads, rho.tolist(), wrong, strict=True)
    return [Forecast(mean, spread, r, *off) for mean, spread, r, off in measured], Record.of(searcher)


def _measured(p: Projection, at: Doubles, spread: Doubles, shift: float, noise: float) -> Forecast:
    mae, rmse = arguments.errors(at, p.observed)
    # Predictions of a constant differ by rounding only, which is no skill; an offset of the data is no part of it.
    rho = math.nan if p.stateless else float(arguments.pearson(at - shift, p.observed, noise))
    return Forecast(at, spread, rho, mae, rmse)


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
    predicted = np.full(steps, np.nan)
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
        predicted[step] = forecast.predicted[0]
        window = np.append(window[1:], predicted[step])
    searched = tuple(
        {**min(entries, key=lambda entry: entry["recall"]), "steps": len(entries)} for entries in of_search.values()
    )
    rows = np.arange(n - 1, n - 1 + steps)
    made = replace(p, rows=rows, observed=np.full(steps, np.nan))
    nothing, errors = float("nan"), _errors_of_steps(executor, p, steps, dtype, request)
    # Neighbours of what was generated agree ever more, and know nothing of how far the path is astray.
    variance = np.maximum.accumulate(means(errors**2))
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


# Simplex projections as a job: the problem, and the engine that computes some of them.


_BLOCK_ROWS = 1 << 18  # of the projections that are made together


@dataclass(frozen=True)
class SimplexProblem:
    """Projections that are made one by one."""

    projections: tuple[Projection, ...]
    # What kernels compute in.
    dtype: str
    # How neighbours are searched.
    search: SearchRequest
    # How far to continue the predicted series instead; 0 to predict the projection's rows.
    steps: int = 0

    kernels: ClassVar[tuple[str, ...]] = ("knn", "predict")
    unit: ClassVar[str] = ""  # the search itself reports

    @property
    def total(self) -> int:
        """Projections."""
        return len(self.projections)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """Projections that are made together, if they are alike."""
        return cut(self.total, max(_BLOCK_ROWS // max(len(self.projections[0].library), 1), 1))

    @property
    def operations(self) -> float:
        p = self.projections[0]
        return operations([p.E] * self.total, n_library=len(p.library), n_query=len(p.query), n_series=self.total)

    def open(self, executor: Executor) -> SimplexEngine:
        return SimplexEngine(self, executor)


class SimplexEngine:
    """The engine of :class:`SimplexProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: SimplexProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """A list of (Projection, Forecast): which rows were predicted in the end, and how."""
        p, record = self._problem, Record()
        results: list[tuple[Projection, Forecast]] = []
        for projections in _alike(p.projections[block.begin : block.end]):
            if len(projections) > 1:
                forecasts, new_record = project_alike(self._executor, projections, p.dtype, p.search)
                results += zip(projections, forecasts, strict=True)
                record = record.joined(new_record)
                continue
            (projection,) = projections
            if p.steps:
                projection, forecast, new_record = generate(self._executor, projection, p.steps, p.dtype, p.search)
            else:
                forecast, new_record = project(self._executor, projection, p.dtype, p.search)
            results.append((projection, forecast))
            record = record.joined(new_record)
        return BlockResult(results, record)

    def release(self) -> None:
        """Nothing is held."""


def _alike(projections: Sequence[Projection]) -> Iterator[list[Projection]]:
    """Projections one after another, those that are alike together."""
    for kind, group in itertools.groupby(projections, together):
        if kind is None:
            yield from ([projection] for projection in group)
        else:
            yield list(group)


# What simplex projection returns.


@dataclass(frozen=True, repr=False)
class SimplexResult(Result):
    """Simplex projection of one series; one entry per embedded query row t = (E-1)*tau, ..., n-1.

    Of groups the entries are those of each group in turn.

    Attributes
    ----------
    time : ndarray
        Row number t + Tp that is predicted; of groups, counted within the group.
    observed : ndarray of float64
        Value there, NaN outside the series.
    predicted, variance : ndarray of float64
        Weighted mean of the neighbours' targets, and the weighted variance around it; NaN where there is no neighbour.
        The variance of a generated step is the mean square error of paths of as many steps, and never falls; NaN for a
        library of another series.
    rho, mae, rmse : float
        Pearson correlation (NaN for fewer than 3 pairs or zero variance), mean absolute error, root mean square error.
    group : ndarray of numbers or text, or None
        Label of each entry's group.
    dates : ndarray or None
        The times that the data have for these rows, continued beyond their ends; None where they have none.
    name : str
        What is predicted.
    skill : float
        The measure that was asked for; rho by default.
    errors : ndarray or None
        Of generated steps: sorted absolute errors (n_steps, n) of such steps from each state of the series.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.simplex(network.values[:, 0], E=3)
    >>> round(result.rho, 2)
    0.99
    >>> result.time[:2].tolist()  # the state of row 2 is the first one, and predicts row 3
    [3, 4]
    >>> result.to_frame().columns.tolist()
    ['time', 'observed', 'predicted', 'variance']
    >>> lower, upper = result.interval(0.9)
    >>> round(float(((lower <= result.observed) & (result.observed <= upper))[:-1].mean()), 1)
    0.9
    """

    row_column: ClassVar = "time"

    time: NDArray[np.int_]
    observed: NDArray[np.float64]
    predicted: NDArray[np.float64]
    variance: NDArray[np.float64]
    rho: float
    mae: float
    rmse: float
    E: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    group: NDArray[Any] | None = None
    dates: NDArray[Any] | None = field(default=None, repr=False)
    name: str = ""
    skill: float = float("nan")
    errors: NDArray[np.float64] | None = field(default=None, repr=False)

    def answer(self) -> Answer:
        """Skill of all predictions; of generated steps, which nobody has observed, there is none."""
        return Answer(("E", "rho", "mae", "rmse", "predictions"), [
            (self.E, self.rho, self.mae, self.rmse, len(self.time))
        ], 1)  # fmt: skip

    def interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper ends (n,) of intervals that hold a share ``level`` of what is predicted.

        Their half width is that quantile of how far off predictions were of rows that did not take part in them
        (conformal prediction; Vovk et al., Algorithmic Learning in a Random World, 2005): the variance among
        neighbours says less. Of generated steps each has a width of its own, that of paths of as many steps.

        Parameters
        ----------
        level : float
            In (0, 1).

        Raises
        ------
        InputError
            There are too few errors for this level: 1 / (1 - level), less one, are needed.
        """
        share = arguments.real("level", level, "a number between 0 and 1", lambda one: 0 < one < 1)
        off = np.sort(np.abs(self.observed - self.predicted))[None] if self.errors is None else self.errors
        known = np.isfinite(off).sum(axis=1)
        place = np.ceil((known + 1) * share).astype(int) - 1
        if (place >= known).any():
            least = int(np.ceil(share / (1 - share)))
            step = "" if self.errors is None else f" of step {int((place >= known).argmax()) + 1}"
            raise InputError(
                f"level={level:g}: the errors{step} of at least {least:,} predictions are needed, and there are "
                f"{int(known.min()):,}; take a lower level, a longer series or fewer generated steps"
            )
        half = np.take_along_axis(off, place[:, None], axis=1)[:, 0]
        return self.predicted - half, self.predicted + half

    def to_frame(self, level: float | None = None) -> Any:
        """A pandas DataFrame with columns (group,) time, observed, predicted, variance; the time as in the data.

        With ``level`` also lower and upper, the ends of :meth:`interval`.
        """
        columns = {} if self.group is None else {"group": self.group}
        columns |= {name: getattr(self, name) for name in ("time", "observed", "predicted", "variance")}
        columns["time"] = self.time if self.dates is None else self.dates
        if level is not None:
            columns["lower"], columns["upper"] = self.interval(level)
        return pandas_for("to_frame()").DataFrame(columns)

    def plot(self, path: str | None = None) -> Any:
        """Observed against predicted over time; saved to ``path`` if given. Needs matplotlib."""
        from ..plot import predictions

        return predictions(self, path)


# What simplex projection within windows returns: skill over time.


@dataclass(frozen=True, repr=False)
class WindowedForecast(Result):
    """Simplex projection within each window.

    Attributes
    ----------
    rho, mae, rmse : ndarray (n_windows,)
    skill : ndarray (n_windows,)
        The measure that was asked for; rho by default.
    predicted, observed, variance : ndarray (n_windows, n)
        As of :class:`SimplexResult`: of each row of the window from the first on that has all its lags.
    E : int
    starts, width, time
        As of :class:`WindowedMap`.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.simplex(network.values[:, 0], E=3, windows=(200, 100))
    >>> result.time.tolist(), bool((result.rho > 0.9).all())
    ([99.5, 199.5, 299.5], True)
    >>> result.to_frame().columns.tolist()
    ['start', 'time', 'rho', 'mae', 'rmse']
    """

    answer_columns = ("time", "rho", "mae", "rmse")

    row_column: ClassVar = "time"

    rho: NDArray[np.float64]
    mae: NDArray[np.float64]
    rmse: NDArray[np.float64]
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    variance: NDArray[np.float64]
    skill: NDArray[np.float64]
    E: int
    starts: NDArray[np.int_]
    width: int
    time: NDArray[Any]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each window: start, time, rho, mae, rmse."""
        columns = {"start": self.starts, "time": self.time, "rho": self.rho, "mae": self.mae, "rmse": self.rmse}
        return pandas_for("to_frame()").DataFrame(columns)

    def curves(self) -> dict[str, NDArray[Any]]:
        """Skill over time."""
        return {f"E = {self.E}": self.rho}

    def plot(self, path: str | None = None) -> Any:
        """Skill over time; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import skill_over_time

        return skill_over_time(self, path)


# Simplex projection within windows along a series: those without gaps share one search.


def windowed_forecast(
    lib: Any, target: Any, options: PredictionOptions, windows: Any, skill: str, dtype: str, search: SearchRequest,
    runner: Runner,
) -> WindowedForecast:  # fmt: skip
    """Projections of each window's rows by themselves."""
    series = as_series(lib, what="lib")
    target_series = None if target is None else arguments.one_series(target, "target")
    if target_series is not None:
        require_same_rows(lib=series, target=target_series)
    cut = windows_of(windows, series.n_steps)
    try:
        projections = _each(series, target_series, options, cut)
    except InputError as error:
        raise InputError(f"windows={shown(windows)}: {error}") from None
    problem = SimplexProblem(tuple(projections), dtype, search)
    sink = ListSink(problem.blocks())
    record = runner.run(problem, sink)
    entries = [entry for block in sink.results() for entry in block]
    predicted = np.array([forecast.predicted for _, forecast in entries])
    observed = np.array([projection.observed for projection, _ in entries])
    rho, mae, rmse = np.array([(forecast.rho, forecast.mae, forecast.rmse) for _, forecast in entries]).T.copy()
    return WindowedForecast(
        rho=rho, mae=mae, rmse=rmse, predicted=predicted, observed=observed,
        variance=np.array([forecast.variance for _, forecast in entries]),
        skill=rho if skill == "pearson" else measure(skill, predicted, observed), E=projections[0].E,
        starts=np.array(cut.starts), width=cut.width, time=cut.times(series.time),
        provenance=runner.provenance(problem.kernels, record),
    )  # fmt: skip


def _each(series: Series, target_series: Series | None, options: PredictionOptions, cut: Windows) -> list[Projection]:
    """The projection of each window: arguments are checked for the first, and the others have other numbers."""
    def checked(window: Series, start: int, *, quiet: bool) -> Projection:
        target = None if target_series is None else _part(target_series, start, cut.width)
        return prepare(window, None, target, options, gaps_only=True, quiet=quiet)

    first = _part(series, 0, cut.width)
    of_first = checked(first, 0, quiet=False)
    if of_first.library is not first.values:  # some of the columns
        later = cut.starts[1:]
        return [of_first, *(checked(_part(series, start, cut.width), start, quiet=True) for start in later)]
    predicted = (series if target_series is None else target_series).values[:, 0].astype(np.float64)
    projections = []
    for start in cut.starts:
        rows = slice(start, start + cut.width)
        library, values_of_window = np.ascontiguousarray(series.values[rows]), predicted[rows]
        observed = observed_at(values_of_window, of_first.rows, of_first.Tp)
        projections.append(
            replace(of_first, library=library, query=library, target_values=values_of_window, observed=observed)
        )
    return projections


def _part(series: Series, start: int, width: int) -> Series:
    return Series(np.ascontiguousarray(series.values[start : start + width]), series.names)


@public_function
def simplex(
    lib: Any,
    pred: Any = None,
    *,
    target: Any = None,
    E: int | None = None,
    tau: int = 1,
    Tp: int = 1,
    knn: int | None = None,
    exclusion_radius: int = 0,
    state: Any = None,
    embedded: bool = False,
    lib_range: Any = None,
    pred_range: Any = None,
    valid_lib: Any = None,
    groups: Any = None,
    regular: str | None = None,
    windows: tuple[int, int] | None = None,
    skill: str = "pearson",
    generate_steps: int = 0,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    tune: str | None = None,
) -> SimplexResult | WindowedForecast:
    """Predict a series by its nearest neighbours in a delay embedding.

    The prediction for row t is the mean of the targets of its k nearest library rows, Tp steps on, with weights
    exp(-d / d_min) (Sugihara and May, Nature 344, 734, 1990).

    Parameters
    ----------
    lib : array_like (n,) or (n, columns)
        The library series, time along the first axis, NaN for gaps. Of several columns each is embedded.
    pred : array_like (m,) or (m, columns), optional
        Another series to predict; by default ``lib`` itself, leaving each row out of its own neighbours.
    target : array_like (n,), optional
        Series of the library's length whose values are predicted; ``lib`` by default, needed where that has several
        columns.
    E : int, optional
        Embedding dimension, at least 1; with ``embedded`` the number of columns.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    Tp : int
        Steps ahead; 0 or negative are allowed.
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself). Without effect with ``pred``.
    state : sequence of str or int, optional
        Columns of ``lib`` that together are one state, by name or position; of ``pred`` too, where it is a table.
    embedded : bool
        The columns of ``lib`` are the coordinates themselves; E is then their number.
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library: ranges begin <= t < end, 0-based, in which lags and targets of a row lie, too; or a mask,
        whose rows are taken as they are.
    pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows that are predicted, in the same form; their lags may lie before them.
    valid_lib : mask of bool (n_steps,), optional
        Rows that may be used, in addition to ``lib_range`` (conditional embedding).
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border. Predictions are of each row with all
        its lags, group by group. With ``pred``, that is in groups where it has that column or level.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    windows : (int, int), optional
        Width of windows that move along the rows, and rows from one to the next: the result of each window's rows by
        themselves. A window without a neighbour has NaN. For a library that predicts itself, in its whole length.
    skill : {"pearson", "spearman", "rmse", "mae", "nrmse"}
        Which measure the result has as ``skill``, beside its rho, mae and rmse; see :func:`pyedmcl.xmap`.
    generate_steps : int
        Continue the series instead: predict the step after its last one, append it, and so on, with an unchanging
        library. For a single series with Tp = 1. ``interval()`` of the result says how far such paths go astray; for
        that, each state of the series is continued as well.
    neighbors : {"exact", "auto", "exhaustive", "pruned", "kdtree", "ivf", "hnsw"}
        How neighbours are searched. "exact" takes the fastest of "exhaustive" (compares all pairs), "pruned" and
        "kdtree", which find the same neighbours; so does "auto", to which an approximate search would be allowed, too.
        "ivf" and "hnsw" may miss some. Where there was a choice, ``provenance["neighbors"]`` says which ran, why, and
        its recall.
    recall : float
        Share of the true neighbours, in (0, 1], that an approximate search must find.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    SimplexResult or, with ``windows``, WindowedForecast
        One entry per predicted row, by default each embedded row of the predicted series.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.

    See Also
    --------
    embed_dimension : choose E.
    smap : linear fits instead of means.
    predict_interval : skill against Tp.

    Notes
    -----
    Cost: one neighbour search (see :func:`knn`) and k multiply-adds for each predicted row.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.simplex(network.values[:, 0], E=3)
    >>> result.rho > 0.8
    True
    >>> len(result.predicted) == 400 - 2
    True
    """
    measured = skill
    search = SearchRequest(neighbors, recall)
    options = PredictionOptions(
        E, tau, Tp, knn, exclusion_radius, embedded, lib_range, pred_range, valid_lib, groups, state
    )
    if windows is not None:
        refused = {"pred": pred, "lib_range": lib_range, "pred_range": pred_range, "valid_lib": valid_lib,
                 "groups": groups, "generate_steps": generate_steps or None}  # fmt: skip
        for name in (name for name, value in refused.items() if value is not None):
            raise InputError(f"windows={arguments.shown(windows)} cannot be used with {name}=: leave one of them out")
        runner = arguments.runner_on(device, dtype)
        return windowed_forecast(lib, target, options, windows, measured, dtype, search, runner)
    projection = prepare(lib, pred, target, options)
    if generate_steps:
        check_generation(projection, target is not None, options, generate_steps)
    problem = SimplexProblem((projection,), dtype, search, generate_steps)
    runner, sink = arguments.runner_on(device, dtype), ListSink(problem.blocks())
    record = runner.run(problem, sink)
    (((projection, forecast),),) = sink.results()
    shown = projection.entries()
    alone = None if shown.group is not None else lib if pred is None else pred  # of groups rows are counted
    return SimplexResult(
        time=shown.time,
        observed=projection.observed[shown.kept],
        predicted=forecast.predicted[shown.kept],
        variance=forecast.variance[shown.kept],
        rho=forecast.rho,
        mae=forecast.mae,
        rmse=forecast.rmse,
        E=projection.E,
        group=shown.group,
        errors=forecast.errors,
        skill=forecast.rho if measured == "pearson" else float(
            measure(measured, forecast.predicted[None], projection.observed)[0]
        ),
        provenance=runner.provenance(problem.kernels, record),
        dates=None if alone is None else times_at(time_of(alone), shown.time),
        name="" if alone is None else name_of(lib if target is None else target),
    )
