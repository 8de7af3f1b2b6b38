"""Recurrence and distance plots: the matrix of a short series, an image of a long one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...data.series import time_of
from ...errors import InputError, shown
from ...io.on_device import OnDevice
from ...jobs.device_results import arrays_of, runner_at
from ...jobs.function import public_function
from ...launch.delivery import DeviceRows
from .. import arguments, common, remarks
from ..categories import coded
from ..common import Device, Progress
from ..points import Embedding, Points, embedding_of, near_one, points_of, same_coordinates
from ..problem import RqaProblem
from ..thresholds import passes_for
from .plots import DistancePlot, RecurrencePlot, Times
from .problem import image_problem
from .render import rendered

_PIXELS = 2000  # of the longer side where none are asked for


@public_function
def recurrence_plot(
    x: Any,
    y: Any = None,
    *,
    m: int = 1,
    tau: int = 1,
    radius: Any,
    metric: str = "euclidean",
    theiler: int | str | None = None,
    convention: str = "pyrqa",
    threshold: str = "fixed",
    normalize: str | None = None,
    radius_unit: str = "data",
    state: Any = None,
    embedded: bool = False,
    pixels: int | Sequence[int] | None = None,
    dtype: str = "float32",
    exact: bool = True,
    regular: str | None = None,
    progress: Progress | None = None,
    out: Any = None,
    device: Device = None,
    tune: str | None = None,
) -> RecurrencePlot:
    """Which states come back when: the recurrence matrix, or, for a long series, an image of it.

    The image counts the recurrent cells behind each pixel, so that nothing is lost between samples, and needs memory
    for the series and the image only (Eckmann et al., Europhysics Letters 4, 973, 1987).

    Parameters
    ----------
    x, y, m, tau, radius, metric, threshold, normalize, radius_unit, state, embedded, dtype, exact, device, tune
        As for :func:`pyedmcl.rqa`, with one radius; ``out`` takes one device. The cells are those that it counts.
    theiler : int or "auto", optional
        Only for what a threshold by rate or by neighbours is chosen from; all cells are drawn.
    convention : str
        Whether a distance equal to the radius recurs (not with "pyrqa").
    pixels : int or (int, int), optional
        Pixels of the longer side, or of (y, x). By default a cell each up to 2,000 points, else 2,000. Never more than
        points.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    progress : callable or True, optional
        Called as ``progress(done, total, "rows")``.
    out : array, optional
        An array on the device for the counts (pixel rows, pixel columns) of int64: of PyOpenCL, or in memory of SYCL.
        The result has it, and is not copied to the host until it is looked at; see ``docs/pipeline.md``.

    Returns
    -------
    RecurrencePlot

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.
    DeviceMemoryError
        Image and series do not fit.

    See Also
    --------
    rqa : measures of the same matrix.
    distance_plot : distances instead of a threshold.

    Notes
    -----
    Cost: about n^2 * m / 2 multiply-adds; memory for the series and the image only.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> result = pyedmcl.recurrence_plot(x, m=2, tau=8, radius=0.2, pixels=100)
    >>> result.density.shape
    (100, 100)
    """
    x, y = coded(radius if threshold == "fixed" else 0.5, x, y)
    threshold = arguments.threshold_named(threshold)
    options = common.options_of(
        convention=convention, lmin=2, vmin=2, wmin=2, dtype=dtype, exact=exact, tile=None,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    arguments.reporter(progress, "rows")
    radii, several = arguments.radii_of(
        radius, threshold, strict=options.convention.strict, unit=options.radius_unit
    )
    if several:
        raise InputError(f"radius={shown(radius)}: a plot has one radius")
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize, state=state)
    rows, columns = _sides(x, y, embedding, options)
    window = arguments.window(
        theiler, options.convention, rows.n, columns.n, cross=y is not None, series=(rows.given,), lines=False
    )
    problem = common.problem_of(rows, None if y is None else columns, options, theiler=window)
    size = _size(pixels, rows.n, columns.n)
    arrays = [] if out is None else arrays_of(out, {"counts": (size, np.int64)})
    runner = runner_at(arrays, device, options.dtype) if arrays else common.runner_of(device, options)
    into = DeviceRows.of(arrays[0], runner.executor) if arrays else None
    sweep = passes_for(
        runner, problem, options.convention, rows, columns, threshold, radii, unit=options.radius_unit
    )[0]
    other = None if sweep.problem.symmetric else columns.values
    image = rendered(runner, image_problem(sweep.problem, rows.values, other, pixels=size), into=into)
    record = common.provenance(
        runner, columns, options, threshold=threshold, wanted=radii[0], cross=y is not None,
        parameters=image.parameters, grade=image.grade,
    )  # fmt: skip
    counts = OnDevice(arrays[0].array) if arrays else image.values
    if not arrays:
        black, rate = _shares(int(image.values.sum()), rows, columns, sweep.problem)
        remarks.tell_of_links(black, rate, sweep.radii[0], threshold, radii[0], columns.given)
    return RecurrencePlot(counts, rows.n, columns.n, sweep.radii[0], record, _times(x, y, rows, columns))


@public_function
def distance_plot(
    x: Any,
    y: Any = None,
    *,
    m: int = 1,
    tau: int = 1,
    metric: str = "euclidean",
    normalize: str | None = None,
    state: Any = None,
    embedded: bool = False,
    pixels: int | Sequence[int] | None = None,
    dtype: str = "float32",
    regular: str | None = None,
    progress: Progress | None = None,
    out: Any = None,
    device: Device = None,
    tune: str | None = None,
) -> DistancePlot:
    """How far apart states are: the matrix of distances, or, for a long series, an image of their means.

    Also called an unthresholded recurrence plot. With float32, distances and their means are within a relative 1e-5
    or so of float64's.

    Parameters
    ----------
    x, y, m, tau, metric, normalize, state, embedded, pixels, dtype, regular, progress, device, tune
        As for :func:`pyedmcl.recurrence_plot`.
    out : array, optional
        An array on the device for the means (pixel rows, pixel columns) of float64, as for that function; the device
        needs double precision.

    Returns
    -------
    DistancePlot
        ``means`` (pixel rows, pixel columns).

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; the series or the image do not fit on it.

    See Also
    --------
    recurrence_plot : the same with a threshold.

    Notes
    -----
    Cost: about n^2 * m multiply-adds; memory for the series and the image only.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> pyedmcl.distance_plot(x, m=2, tau=8, pixels=50).means.shape
    (50, 50)
    """
    options = common.options_of(
        convention="pyrqa", lmin=2, vmin=2, wmin=2, dtype=dtype, exact=False, tile=None
    )
    arguments.reporter(progress, "rows")
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize, state=state)
    rows, columns = _sides(x, y, embedding, options)
    problem: RqaProblem = common.problem_of(rows, None if y is None else columns, options, theiler=0)
    size = _size(pixels, rows.n, columns.n)
    arrays = [] if out is None else arrays_of(out, {"means": (size, np.float64)})
    runner = runner_at(arrays, device, "float64") if arrays else common.runner_of(device, options)
    into = DeviceRows.of(arrays[0], runner.executor) if arrays else None
    other = None if y is None else columns.values
    drawn = image_problem(problem, rows.values, other, pixels=size, mean=True, exponent=rows.exponent)
    image = rendered(runner, drawn, into=into)
    record = common.provenance(
        runner, columns, options, cross=y is not None, parameters=image.parameters, grade=image.grade
    )
    means = OnDevice(arrays[0].array) if arrays else image.values
    return DistancePlot(means, rows.n, columns.n, record, _times(x, y, rows, columns))


def _times(x: Any, y: Any, rows: Points, columns: Points) -> Times:
    """When the points of both sides begin."""
    parts = []
    for data, what, side in ((x if y is None else y, "y", rows), (x, "x", columns)):
        time = time_of(data, what)
        parts.append(None if time is None else time[: side.n])
    return parts[0], parts[1]


def _sides(x: Any, y: Any, embedding: Embedding, options: common.Options) -> tuple[Points, ...]:
    """Rows, which are points of y (of x where there is no y), and columns, which are points of x."""
    rows = columns = points_of(x, "x", embedding)
    if y is not None:
        rows = points_of(y, "y", embedding)
        same_coordinates(columns, rows)
    return near_one(options.arithmetic, rows, columns)


def _shares(points: int, rows: Points, columns: Points, problem: RqaProblem) -> tuple[float, float]:
    """Shares of recurrent cells: off the main diagonal where there is one, and of all."""
    n, m = (int(np.count_nonzero(side.complete)) for side in (rows, columns))
    main = n if rows is columns and problem.inner is None else 0
    return (points - main) / max(n * m - main, 1), points / max(n * m, 1)


def _size(pixels: int | Sequence[int] | None, n_rows: int, n_columns: int) -> tuple[int, int]:
    """Rows and columns of pixels."""
    if isinstance(pixels, (Sequence, np.ndarray)) and not isinstance(pixels, str):
        if len(pixels) != 2:
            raise InputError(f"pixels={shown(pixels)}: a number, or a pair (of y, of x), is needed")
        down, across = (arguments.integer("pixels", p, 1) for p in pixels)
    else:
        longer = max(n_rows, n_columns)
        most = min(_PIXELS if pixels is None else arguments.integer("pixels", pixels, 1), longer)
        down, across = (max(round(most * n / longer), 1) for n in (n_rows, n_columns))
    return min(down, n_rows), min(across, n_columns)
