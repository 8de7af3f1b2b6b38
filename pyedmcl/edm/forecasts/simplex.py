"""Simplex projection: prediction by nearest neighbours."""

from __future__ import annotations

from typing import Any

from ...data.dates import times_at
from ...data.series import name_of, time_of
from ...device.select import DeviceNames
from ...errors import InputError
from ...jobs.function import public_function
from ...jobs.sinks import ListSink
from ...launch.progress import Progress
from ..shared import arguments
from ..shared.measures import check_skill, measure
from ..shared.options import PredictionOptions
from .simplex_fit import check_generation, prepare
from .simplex_problem import SimplexProblem
from .simplex_result import SimplexResult
from .simplex_windows import windowed_forecast
from .simplex_windows_result import WindowedForecast


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
    E, tau : int
        Embedding dimension and lag, at least 1.
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
    lib_range, pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library and rows that are predicted: ranges begin <= t < end, 0-based. Lags and targets of a library
        row lie inside its own range. A mask's rows are taken as they are.
    valid_lib : mask of bool (n,), optional
        Library rows that may be used, in addition to ``lib_range`` (conditional embedding).
    groups : str, sequence of str, or labels (n,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: a column of ``lib`` or a level of its
        index, or a label for each row. No state and no target crosses a border between groups. Predictions
        are of each row with all its lags, group by group. With ``pred``, that is in groups where it has that column
        or level.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    windows : (int, int), optional
        Width of windows that move along the rows, and rows from one to the next: a projection of each window's rows by
        themselves. A window without a neighbour has NaN. For a library that predicts itself, in its whole length.
    skill : {"pearson", "spearman", "rmse", "mae", "nrmse"}
        Which measure the result has as ``skill``, beside its rho, mae and rmse; see :func:`pyedmcl.xmap`.
    generate_steps : int
        Continue the series instead: predict the step after its last one, append it, and so on, with an unchanging
        library. For a single series with Tp = 1. ``interval()`` of the result says how far such paths go astray; for
        that, each state of the series is continued as well.
    neighbors, recall
        How neighbours are searched; as for :func:`pyedmcl.knn`.
    progress : callable or True, optional
        Called within a long search as ``progress(done, total, "queries")``, and with unit "states" while an index is
        built.
    dtype, device, tune
        As for :func:`pyedmcl.knn`.

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
    measured = check_skill(skill)
    steps = arguments.integer("generate_steps", generate_steps, 0, most=arguments.MOST_GENERATED)
    search = arguments.neighbor_search(neighbors, recall)
    arguments.reporter(progress)
    dtype = arguments.precision(dtype)
    options = PredictionOptions(
        E, tau, Tp, knn, exclusion_radius, embedded, lib_range, pred_range, valid_lib, groups, state
    )
    if windows is not None:
        refused = {"pred": pred, "lib_range": lib_range, "pred_range": pred_range, "valid_lib": valid_lib,
                 "groups": groups, "generate_steps": steps or None}  # fmt: skip
        for name in (name for name, value in refused.items() if value is not None):
            raise InputError(f"windows={arguments.shown(windows)} cannot be used with {name}=: leave one of them out")
        runner = arguments.runner_on(device, dtype)
        return windowed_forecast(lib, target, options, windows, measured, dtype, search, runner)
    projection = prepare(lib, pred, target, options)
    if steps:
        check_generation(projection, target is not None, options, steps)
    problem = SimplexProblem((projection,), dtype, search, steps)
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
