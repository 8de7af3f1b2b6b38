"""Simplex projection within windows along a series: those without gaps share one search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...data.same_rows import require_same_rows
from ...data.series import Series, as_series
from ...data.windows import Windows, windows_of
from ...errors import InputError, shown
from ...jobs.runner import Runner
from ...jobs.sinks import ListSink
from ...neighbors.choose import SearchRequest
from ..shared import arguments
from ..shared.measures import measure
from ..shared.options import PredictionOptions
from ..shared.ranges import observed_at
from .simplex_fit import Projection, prepare
from .simplex_problem import SimplexProblem
from .simplex_windows_result import WindowedForecast


def windowed_forecast(
    lib: Any, target: Any, options: PredictionOptions, windows: Any, skill: str, dtype: str, search: SearchRequest,
    runner: Runner,
) -> WindowedForecast:  # fmt: skip
    """Projections of each window's rows by themselves.

    Raises
    ------
    InputError
        Windows are longer than the series, or an argument cannot be used.
    """
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
