"""From PyRQA's settings to matrices, counted or drawn cell by cell, and PyRQA's measures of lines."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrence import arguments, rqa
from ...recurrence.counts import Counts
from ...recurrence.image_problem import image_problem, rendered
from ...recurrence.points import Points, embedding_of, points_of, same_coordinates
from ...recurrence.problem import RqaProblem
from .analysis_type import Classic, Cross
from .exceptions import InvalidTimeSeriesInputException, UnsupportedAnalysisTypeException
from .metric import Metric
from .neighbourhood import RadiusCorridor, Unthresholded
from .settings import JointSettings, Series, Settings
from .time_series import TimeSeries

# Measures of lines from their numbers by length (index 0: length 1), in PyRQA's definitions.


def ratio(a: float, b: float) -> float:
    """a / b; NaN for 0 / 0, infinity for other divisions by zero."""
    if b == 0:
        return float("nan") if a == 0 or a != a else float("inf")
    return float(a) / float(b)


def _long(frequencies: Any, least: int) -> Any:
    return np.asarray(frequencies)[least - 1 :].astype(np.int64)


def count(frequencies: Any, least: int) -> int:
    """Lines of at least a length; 0 where that is below 1."""
    return int(_long(frequencies, least).sum()) if least > 0 else 0


def points(frequencies: Any, least: int) -> int:
    """Cells on lines of at least a length; 0 where that is below 1."""
    if least < 1:
        return 0
    numbers = _long(frequencies, least)
    return int((numbers * np.arange(least, least + len(numbers))).sum())


def share(frequencies: Any, least: int) -> float:
    """Cells on long enough lines over cells on all lines."""
    return ratio(points(frequencies, least), points(frequencies, 1))


def average(frequencies: Any, least: int) -> float:
    """Mean length of long enough lines."""
    return ratio(points(frequencies, least), count(frequencies, least))


def longest(frequencies: Any) -> int:
    """Length of the longest line; 0 where there is none."""
    filled = np.flatnonzero(frequencies)
    return int(filled[-1]) + 1 if len(filled) else 0


def entropy(frequencies: Any, least: int) -> float:
    """Shannon entropy of the lengths of long enough lines, in nats; 0 where there are none."""
    numbers = _long(frequencies, least) if least > 0 else np.zeros(0, np.int64)
    shares = numbers[numbers > 0] / max(numbers.sum(), 1)
    return float(-(shares * np.log(shares)).sum()) + 0.0  # no negative zero


def persist(frequencies: Any, path: str | os.PathLike[str]) -> None:
    """Write a line ``length: number`` for each length."""
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{length}: {number:d}\n" for length, number in enumerate(np.asarray(frequencies), 1))


Devices = list[str] | None


def _options(settings: Any, edge: int | None = None) -> rqa.Options:
    # The arithmetic is PyRQA's: that of the series' type, radii rounded to it.
    dtype = "float64" if settings.dtype is np.float64 else "float32"
    return rqa.options_of(convention="pyrqa", lmin=2, vmin=2, wmin=2, dtype=dtype, exact=False, tile=edge)


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
    settings: Settings, options: rqa.Options, rows: Points, columns: Points | None, theiler: int
) -> RqaProblem:
    other = rows if columns is None else columns
    window = arguments.window(theiler, options.convention, rows.n, other.n)
    problem = rqa.problem_of(rows, columns, options, theiler=window)
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
    runner = rqa.runner_of(devices, options)
    return rqa.count(runner, problem, rows, columns or rows, options, None)[0]


def count_joint(settings: JointSettings, edge: int | None, devices: Devices) -> Counts:
    """Counts of the cells that recur in both matrices."""
    options = _options(settings, edge)
    theiler = settings.theiler_corrector  # refuses different ones
    both = (settings.settings_1, settings.settings_2)
    sides = [_sides(one) for one in both]
    if not settings.is_matrix_symmetric:  # then neither is taken for one
        sides = [(rows, rows if columns is None else columns) for rows, columns in sides]
    first, second = (_problem(one, options, *side, theiler) for one, side in zip(both, sides, strict=True))
    runner = rqa.runner_of(devices, options)
    rows = tuple(side[0] for side in sides)
    columns = tuple(side[1] or side[0] for side in sides)
    return rqa.count(runner, replace(first, joint=second), rows, columns, options, None)[0]


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
    matrix: NDArray[Any] = rendered(rqa.runner_of(devices, options), image, dtype=kind).values
    return matrix
