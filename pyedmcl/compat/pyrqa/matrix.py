"""From PyRQA's settings to matrices: counted, or drawn cell by cell."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrence import arguments, common
from ...recurrence.counts import Counts
from ...recurrence.image.problem import image_problem
from ...recurrence.image.render import rendered
from ...recurrence.points import Points, embedding_of, points_of, same_coordinates
from ...recurrence.problem import RqaProblem
from .analysis_type import Classic, Cross
from .exceptions import InvalidTimeSeriesInputException, UnsupportedAnalysisTypeException
from .metric import Metric
from .neighbourhood import RadiusCorridor, Unthresholded
from .settings import JointSettings, Series, Settings
from .time_series import TimeSeries

Devices = list[str] | None


def _options(settings: Any, edge: int | None = None) -> common.Options:
    # The arithmetic is PyRQA's: that of the series' type, radii rounded to it.
    dtype = "float64" if settings.dtype is np.float64 else "float32"
    return common.options_of(convention="pyrqa", lmin=2, vmin=2, wmin=2, dtype=dtype, exact=False, tile=edge)


def _points(series: Series, what: str, as_vectors: bool, metric: type[Metric]) -> Points:
    kind = np.float64 if np.dtype(series.dtype) == np.float64 else np.float32
    if isinstance(series, TimeSeries) and not as_vectors:
        embedding = embedding_of(
            # PyRQA does not look at the delay of one coordinate.
            m=series.embedding_dimension, tau=series.time_delay if series.embedding_dimension > 1 else 1,
            embedded=False, metric=metric.native,
        )
        return points_of(series.data.astype(kind), what, embedding)
    vectors = series.get_vectors_as_rows().reshape(-1, series.embedding_dimension)
    return points_of(vectors.astype(kind), what, embedding_of(m=1, tau=1, embedded=True, metric=metric.native))


def _alike(x: Series, y: Series) -> bool:
    """Whether both sides are the same vectors."""
    if x is y:
        return True
    return type(x) is type(y) and np.array_equal(x.get_vectors_as_rows(), y.get_vectors_as_rows(), equal_nan=True)


def _sides(settings: Settings) -> tuple[Points, Points | None]:
    """Rows and columns of a matrix; no columns where it is symmetric."""
    x, y, metric = settings.time_series_x, settings.time_series_y, settings.similarity_measure
    if settings.analysis_type is Classic:
        if not _alike(x, y):
            raise InvalidTimeSeriesInputException(
                "time_series: analysis_type Classic takes one series, and two different ones were given; use Cross"
            )
        return _points(x, "time_series", False, metric), None
    if settings.analysis_type is not Cross:
        raise UnsupportedAnalysisTypeException(f"analysis_type={settings.analysis_type!r}: Classic or Cross is needed")
    delays = [series.time_delay if isinstance(series, TimeSeries) else None for series in (x, y)]
    mixed = delays[0] != delays[1]
    columns, rows = _points(x, "time series x", mixed, metric), _points(y, "time series y", mixed, metric)
    same_coordinates(columns, rows)
    return rows, columns


def _problem(
    settings: Settings, options: common.Options, rows: Points, columns: Points | None, theiler: int
) -> RqaProblem:
    other = rows if columns is None else columns
    window = arguments.window(theiler, options.convention, rows.n, other.n)
    problem = common.problem_of(rows, columns, options, theiler=window)
    near = settings.neighbourhood
    if isinstance(near, Unthresholded):
        return problem
    if isinstance(near, RadiusCorridor):
        inner, outer = arguments.radii_of(near.condition, "corridor", "RadiusCorridor")[0][0]
        return replace(problem, radii=(outer,), inner=(inner,))
    radius = 2.0**500 if near.condition == math.inf else near.condition  # farther than any two points
    return replace(problem, radii=(arguments.radii_of(radius, "fixed", "radius")[0][0],))


def count_one(settings: Settings, edge: int | None, devices: Devices) -> Counts:
    """Counts of one matrix."""
    options = _options(settings, edge)
    rows, columns = _sides(settings)
    problem = _problem(settings, options, rows, columns, settings.theiler_corrector)
    runner = common.runner_of(devices, options)
    return common.count(runner, problem, rows, columns or rows, options, None)[0]


def count_joint(settings: JointSettings, edge: int | None, devices: Devices) -> Counts:
    """Counts of the cells that recur in both matrices."""
    options = _options(settings, edge)
    theiler = settings.theiler_corrector  # refuses different ones
    both = (settings.settings_1, settings.settings_2)
    sides = [_sides(one) for one in both]
    if not settings.is_matrix_symmetric:  # then neither is taken for one
        sides = [(rows, rows if columns is None else columns) for rows, columns in sides]
    first, second = (_problem(one, options, *side, theiler) for one, side in zip(both, sides, strict=True))
    runner = common.runner_of(devices, options)
    rows = tuple(side[0] for side in sides)
    columns = tuple(side[1] or side[0] for side in sides)
    return common.count(runner, replace(first, joint=second), rows, columns, options, None)[0]


def draw_one(settings: Settings, devices: Devices) -> NDArray[np.uint8]:
    """The recurrence matrix (vectors of y, vectors of x) of zeros and ones."""
    pixels: NDArray[np.uint8] = _drawn(settings, devices, np.uint8)
    return pixels


def draw_distances(settings: Settings, devices: Devices) -> NDArray[Any]:
    """The matrix of distances, in the series' type."""
    return _drawn(settings, devices, settings.dtype)


def _drawn(settings: Settings, devices: Devices, kind: Any) -> NDArray[Any]:
    options = _options(settings)
    rows, columns = _sides(settings)
    problem = _problem(settings, options, rows, columns, 0)  # plots have no Theiler window
    image = image_problem(
        problem, rows.values, None if columns is None else columns.values, pixels=(problem.n_rows, problem.n_columns),
        mean=isinstance(settings.neighbourhood, Unthresholded),
    )  # fmt: skip
    matrix: NDArray[Any] = rendered(common.runner_of(devices, options), image, dtype=kind).values
    return matrix
