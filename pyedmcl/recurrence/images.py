"""Recurrence and distance plots: the matrix of a short series, an image of a long one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import real
from ..atomic_files import path_of
from ..errors import InputError, shown
from ..jobs.runner import arrays_of, public_function, runner_at
from ..launch.staging import DeviceRows
from ..results.result import Label, Result, labelled
from ..results.saved import SUFFIX
from ..series.arrays import OnDevice
from ..series.series import as_series, time_of
from . import arguments, remarks, rqa
from .image_problem import image_problem, pixel_edges, rendered
from .points import Embedding, Points, coded, embedding_of, near_one, points_of, same_coordinates
from .problem import RqaProblem
from .rqa import Device, Progress
from .thresholds import passes_for

# What recurrence and distance plots return: pixels that can be looked at, saved and computed with.


Times = tuple[NDArray[Any] | None, NDArray[Any] | None]
_ROOM = 4  # inches, about, that the longer side of a picture with axes is drawn on
_PIXELS = {name: Label("1", f"the pixel's first point of {name}, counted from 0") for name in "yx"}
_FAR = 99.0  # percentile of the distances that is drawn white


@dataclass(frozen=True, eq=False, repr=False)
class RecurrencePlot(Result):
    """Recurrent cells, counted per pixel. Row p holds points of y (of x where there is no y), column q points of x.

    Attributes
    ----------
    counts : ndarray of int64 (pixel rows, pixel columns)
        With ``out=`` it stands for the caller's array on the device (``counts.array``), which any use of it as NumPy's
        copies to the host.
    n_rows, n_columns : int
        Points, hence cells, of the whole matrix; pixel p of P holds rows floor(p n / P), ..., floor((p+1) n / P) - 1.
    radius : float or tuple
        In the unit of the data; (inner, outer) for a corridor; NaN where each column has its own.
    provenance : mapping
    times : tuple of (ndarray or None)
        When the points of the rows and of the columns begin, where the series have a time.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> image = pyedmcl.recurrence_plot(x, m=2, tau=8, radius=0.2, pixels=100)
    >>> image.counts.shape, image.n_rows  # of 492 x 492 cells
    ((100, 100), 492)
    >>> bool((image.density.diagonal() > 0).all())  # share of cells that recur: each point is near itself
    True
    """

    column_labels: ClassVar = {"density": Label("1", "share of the pixel's cells that are recurrent"), **_PIXELS}

    counts: Any
    n_rows: int
    n_columns: int
    radius: Any
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    times: Times = (None, None)

    @property
    def _pixels(self) -> NDArray[np.int64]:
        """The counts on the host."""
        return np.asarray(self.counts)

    @property
    def density(self) -> NDArray[np.float64]:
        """Share of each pixel's cells that are recurrent, in [0, 1]."""
        return self._pixels / _cells(self.counts.shape, self.n_rows, self.n_columns)

    def to_xarray(self) -> Any:
        """An xarray.DataArray of the density (y, x): points of the series that the pixels begin with."""
        return _image_array(self.density, (self.n_rows, self.n_columns), "density")

    @property
    def matrix(self) -> NDArray[np.bool_]:
        """The recurrence matrix itself, where each pixel is a cell. Raises InputError where it is not."""
        _require_cells(self.counts.shape, self.n_rows, self.n_columns)
        return self._pixels > 0

    def save(self, path: str | os.PathLike[str], *, black: float | None = None) -> Path:
        """Write the pixels as a grey PNG file: no axes, time to the right and upwards, dark where much recurs.

        Parameters
        ----------
        path : path
            Ends in .png, or in .edm for the result itself, which :func:`pyedmcl.open_result` opens. A file that is
            there is replaced.
        black : float, optional
            Density that is drawn black, in (0, 1]; lower ones are shades of grey in proportion. By default 1 for single
            cells, else the 99th percentile of the densities above 0.

        Raises
        ------
        InputError
            Another suffix, or ``black`` out of range.
        StoreWriteError
            The file cannot be written.
        """
        from ..plot.figure import save_png
        from ..plot.recurrence import shades

        if path_of(path).suffix.lower() == SUFFIX:
            return super().save(path)
        density = self.density
        return save_png(shades(density, 0.0, _black(black, density)), path)

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, series: Any = None, black: float | None = None,
        title: str | None = None, dpi: int = 150,
    ) -> Any:  # fmt: skip
        """The plot with axes; saved to ``path`` if given. Needs matplotlib. ``black`` as for :meth:`save`.

        ``series`` are drawn along both axes: the one that was compared with itself, or a pair (horizontal, vertical).
        An image of more pixels than the picture has room for (four per unit of ``dpi``) is averaged before ``black`` is
        chosen.
        """
        from ..plot.recurrence import plot_image

        density = _drawn_density(self, _ROOM * dpi)
        single = density.shape == (self.n_rows, self.n_columns)
        return plot_image(
            density, (self.n_rows, self.n_columns), path, label="" if single else "share of recurrent cells",
            title=title or _title(self.radius), white=0.0, black=_black(black, density),
            same=not self.provenance.get("cross", False), times=self.times,
            beside=_beside(series, (self.n_columns, self.n_rows)), dpi=dpi,
        )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class DistancePlot(Result):
    """Mean distances per pixel, without a threshold; rows and columns as in :class:`RecurrencePlot`.

    Attributes
    ----------
    means : ndarray of float64 (pixel rows, pixel columns)
        In the unit of the data; the distance itself where a pixel is a cell. NaN where no cell is without a gap. With
        ``out=`` it stands for the caller's array on the device, as in :class:`RecurrencePlot`.
    n_rows, n_columns : int
        Points of the whole matrix.
    provenance : mapping
    times : tuple of (ndarray or None)
        When the points of the rows and of the columns begin, where the series have a time.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> image = pyedmcl.distance_plot(x, m=2, tau=8, pixels=50)
    >>> image.means.shape, image.n_rows  # of 492 x 492 cells
    ((50, 50), 492)
    >>> bool(image.means[0, 0] < image.means[0, 1])  # states are nearer to those of the same pixel
    True
    """

    column_labels: ClassVar = {"means": Label("data", "mean distance of the pixel's cells"), **_PIXELS}

    means: Any
    n_rows: int
    n_columns: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    times: Times = (None, None)

    @property
    def _pixels(self) -> NDArray[np.float64]:
        """The means on the host."""
        return np.asarray(self.means)

    def to_xarray(self) -> Any:
        """An xarray.DataArray of the mean distances (y, x): points that the pixels begin with."""
        return _image_array(self._pixels, (self.n_rows, self.n_columns), "means")

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The distance matrix itself, where each pixel is a cell. Raises InputError where it is not."""
        _require_cells(self.means.shape, self.n_rows, self.n_columns)
        return self._pixels

    def save(self, path: str | os.PathLike[str], *, white: float | None = None) -> Path:
        """Write the pixels as a grey PNG file: no axes, time to the right and upwards, dark where states are near.

        Parameters
        ----------
        path : path
            Ends in .png, or in .edm for the result itself, which :func:`pyedmcl.open_result` opens. A file that is
            there is replaced.
        white : float, optional
            Distance that is drawn white, positive; 0 is black. By default the 99th percentile. NaN is white.

        Raises
        ------
        InputError
            Another suffix, or ``white`` out of range.
        StoreWriteError
            The file cannot be written.
        """
        from ..plot.figure import save_png
        from ..plot.recurrence import shades

        if path_of(path).suffix.lower() == SUFFIX:
            return super().save(path)
        means = self._pixels
        return save_png(shades(means, _white(white, means), 0.0), path)

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, series: Any = None, white: float | None = None,
        title: str | None = None, dpi: int = 150,
    ) -> Any:  # fmt: skip
        """The plot with axes; saved to ``path`` if given. Needs matplotlib. ``white`` as for :meth:`save`.

        ``series`` as for :meth:`RecurrencePlot.plot`.
        """
        from ..plot.recurrence import plot_image

        means = self._pixels
        single = means.shape == (self.n_rows, self.n_columns)
        return plot_image(
            means, (self.n_rows, self.n_columns), path, label="distance" if single else "mean distance",
            title=title, white=_white(white, means), black=0.0,
            same=not self.provenance.get("cross", False), times=self.times,
            beside=_beside(series, (self.n_columns, self.n_rows)), dpi=dpi,
        )  # fmt: skip


def _beside(series: Any, points: tuple[int, int]) -> tuple[NDArray[np.float64], ...] | None:
    """Values (points, columns) that are drawn along the horizontal and the vertical axis."""
    if series is None:
        return None
    pair = series if isinstance(series, tuple) and len(series) == 2 else (series, series)
    sides = [as_series(one, what="series").values for one in pair]
    for values, n in zip(sides, points, strict=True):
        if len(values) < n:
            raise InputError(
                f"series: {len(values):,} rows, and the plot has {n:,} points; give a pair (horizontal, vertical)"
            )
    return tuple(np.asarray(values[:n], np.float64) for values, n in zip(sides, points, strict=True))


def _cells(shape: tuple[int, ...], n_rows: int, n_columns: int) -> NDArray[np.float64]:
    sides = zip((n_rows, n_columns), shape, strict=True)
    return np.outer(*(np.diff(pixel_edges(n, p)).astype(np.float64) for n, p in sides))


def _drawn_density(plot: RecurrencePlot, room: int) -> NDArray[np.float64]:
    """Densities of at most ``room`` pixels on each side, of nearly equal numbers of the plot's own pixels.

    A black that is chosen from more pixels than are drawn is too dense: where lines are thinner than a drawn pixel,
    averages never come near it, and the picture is all but white.
    """
    shape = plot.counts.shape
    factor = -(-max(shape) // room)
    if factor <= 1:
        return plot.density
    counts, cells = plot._pixels.astype(np.float64), _cells(shape, plot.n_rows, plot.n_columns)
    for axis, length in enumerate(shape):
        starts = pixel_edges(length, -(-length // factor))[:-1]
        counts, cells = (np.add.reduceat(values, starts, axis=axis) for values in (counts, cells))
    return counts / cells


def _require_cells(shape: tuple[int, ...], n_rows: int, n_columns: int) -> None:
    if shape != (n_rows, n_columns):
        raise InputError(
            f"a pixel of this {shape[0]:,} x {shape[1]:,} image holds several of the {n_rows:,} x {n_columns:,} cells; "
            f"for the matrix itself ask for pixels={max(n_rows, n_columns)}"
        )


def _image_array(values: NDArray[Any], cells: tuple[int, int], name: str) -> Any:
    axes = [(axis, pixel_edges(n, pixels)[:-1]) for axis, n, pixels in zip("yx", cells, values.shape, strict=True)]
    return labelled(values, axes, name)


def _black(black: float | None, density: NDArray[np.float64]) -> float:
    if black is None:
        from ..plot.recurrence import darkest

        return darkest(density)
    return real("black", black, "the density to draw black, above 0 and at most 1,", lambda share: 0 < share <= 1)


def _white(white: float | None, means: NDArray[np.float64]) -> float:
    if white is None:
        finite = means[np.isfinite(means)]
        return (float(np.percentile(finite, _FAR)) if finite.size else 0.0) or 1.0
    return real("white", white, "the distance to draw white, a positive number,", lambda length: 0 < length < np.inf)


def _title(radius: Any) -> str | None:
    if isinstance(radius, tuple):
        return "radius " + " to ".join(f"{part:.4g}" for part in radius)
    return None if np.isnan(radius) else f"radius {radius:.4g}"


# Recurrence and distance plots: the matrix of a short series, an image of a long one.


_RECURRENCE_PLOT_PIXELS = 2000  # of the longer side where none are asked for


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
    x : array_like (n,) or (n, d)
        A series; d series, whose values at one time are one state; or, with ``embedded``, n points of d coordinates.
        NaN marks gaps: a point that touches one recurs with no point and belongs to no cell.
    y : array_like, optional
        A second series, of another length perhaps: cross recurrence of the points of x and y. The plot has x along its
        horizontal axis, so that vertical lines stay at one point of x (of y with convention "recurrenceanalysis").
    m : int
        Embedding dimension: coordinates of a point, at least 1.
    tau : int
        Lag between the coordinates of a point, in steps; at least 1.
    radius : float or sequence
        One radius: by ``threshold`` in the unit of the data, a pair (inner, outer), a recurrence rate in (0, 1), or a
        number of neighbours. The cells that recur are those that :func:`pyedmcl.rqa` counts.
    metric : str
        How far apart two points are: "euclidean", "maximum", "manhattan", or another row of the table "Metrics" in
        ``docs/recurrence.md``.
    theiler : "auto" or int, optional
        Only for what a threshold by rate or by neighbours is chosen from; all cells are drawn.
    convention : {"pyrqa", "accrqa", "recurrenceanalysis", "crqa", "crqa-2.1"}
        Which tool's rules for the main diagonal, the Theiler window, the threshold at equality and the denominators.
        "crqa" has those of crqa up to 2.0.7, and "crqa-2.1" its newer denominator of the recurrence rate. Here only
        whether a distance equal to the radius recurs (not with "pyrqa").
    threshold : {"fixed", "corridor", "recurrence_rate", "neighbours"}
        What ``radius`` holds. "corridor": recurrent is inner < d < outer. "recurrence_rate": the smallest radius at
        which the rate is reached. "neighbours": each column has its own radius, which holds as many recurrent points
        outside the Theiler window (outside the main diagonal for theiler = 0), and more only where distances tie.
    normalize : {"zscore", "range"}, optional
        Each column of x, and of y, is brought to mean 0 and standard deviation 1, or to 0, ..., 1, by itself, before
        anything else. Missing values do not count; a constant column becomes 0.
    radius_unit : {"data", "std", "range", "max_distance", "mean_distance"}
        What a radius, or a corridor, is a multiple of: 1; the standard deviation; greatest minus least value; the
        largest, or the mean, distance of two points. All are those of the values that are compared, hence after
        ``normalize``, and standard deviations divide by the number of values. With several columns, or with y, "std" is
        the root of the mean variance of all columns and "range" the largest range. The result's ``radius`` is in the
        unit of the data (of the normalised ones, with ``normalize``). Other thresholds have no radius, and take "data"
        only.
    state : sequence of str or int, optional
        Columns of ``x`` that together are one state, by name or position; of ``y`` too, where it is a table.
    embedded : bool
        ``x`` (and ``y``) hold points: the columns are the coordinates themselves.
    pixels : int or (int, int), optional
        Pixels of the longer side, or of (y, x). By default a cell each up to 2,000 points, else 2,000. Never more than
        points.
    dtype : {"float32", "float64"}
        What the device computes in.
    exact : bool
        Cells too close to the radius for ``dtype`` are decided in float64: the counts are those of float64 arithmetic,
        the same integers on every device. Otherwise series and radius are rounded to ``dtype``.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    out : array, optional
        An array on the device for the counts (pixel rows, pixel columns) of int64: of PyOpenCL, or in memory of SYCL.
        The result has it, and is not copied to the host until it is looked at; see ``docs/pipeline.md``.
    device : str, optional
        Which device; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

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
    x, y = coded(radius, threshold, x, y, metric=metric, normalize=normalize, radius_unit=radius_unit)
    threshold = arguments.threshold_named(threshold)
    options = rqa.options_of(
        convention=convention, lmin=2, vmin=2, wmin=2, dtype=dtype, exact=exact, tile=None,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
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
    problem = rqa.problem_of(rows, None if y is None else columns, options, theiler=window)
    size = _size(pixels, rows.n, columns.n)
    arrays = [] if out is None else arrays_of(out, {"counts": (size, np.int64)})
    runner = runner_at(arrays, device, options.dtype) if arrays else rqa.runner_of(device, options)
    into = DeviceRows.of(arrays[0], runner.executor) if arrays else None
    sweep = passes_for(
        runner, problem, options.convention, rows, columns, threshold, radii, unit=options.radius_unit
    )[0]
    other = None if sweep.problem.symmetric else columns.values
    image = rendered(runner, image_problem(sweep.problem, rows.values, other, pixels=size), into=into)
    record = rqa.provenance(
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
    x : array_like (n,) or (n, d)
        A series; d series, whose values at one time are one state; or, with ``embedded``, n points of d coordinates.
        NaN marks gaps: a point that touches one recurs with no point and belongs to no cell.
    y : array_like, optional
        A second series, of another length perhaps: cross recurrence of the points of x and y. The plot has x along its
        horizontal axis, so that vertical lines stay at one point of x (of y with convention "recurrenceanalysis").
    m : int
        Embedding dimension: coordinates of a point, at least 1.
    tau : int
        Lag between the coordinates of a point, in steps; at least 1.
    metric : str
        How far apart two points are: "euclidean", "maximum", "manhattan", or another row of the table "Metrics" in
        ``docs/recurrence.md``.
    normalize : {"zscore", "range"}, optional
        Each column of x, and of y, is brought to mean 0 and standard deviation 1, or to 0, ..., 1, by itself, before
        anything else. Missing values do not count; a constant column becomes 0.
    state : sequence of str or int, optional
        Columns of ``x`` that together are one state, by name or position; of ``y`` too, where it is a table.
    embedded : bool
        ``x`` (and ``y``) hold points: the columns are the coordinates themselves.
    pixels : int or (int, int), optional
        Pixels of the longer side, or of (y, x). By default a cell each up to 2,000 points, else 2,000. Never more than
        points.
    dtype : {"float32", "float64"}
        What the device computes in.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    out : array, optional
        An array on the device for the means (pixel rows, pixel columns) of float64, as for that function; the device
        needs double precision.
    device : str, optional
        Which device; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

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
    options = rqa.options_of(
        convention="pyrqa", lmin=2, vmin=2, wmin=2, dtype=dtype, exact=False, tile=None
    )
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize, state=state)
    rows, columns = _sides(x, y, embedding, options)
    problem: RqaProblem = rqa.problem_of(rows, None if y is None else columns, options, theiler=0)
    size = _size(pixels, rows.n, columns.n)
    arrays = [] if out is None else arrays_of(out, {"means": (size, np.float64)})
    runner = runner_at(arrays, device, "float64") if arrays else rqa.runner_of(device, options)
    into = DeviceRows.of(arrays[0], runner.executor) if arrays else None
    other = None if y is None else columns.values
    drawn = image_problem(problem, rows.values, other, pixels=size, mean=True, exponent=rows.exponent)
    image = rendered(runner, drawn, into=into)
    record = rqa.provenance(
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


def _sides(x: Any, y: Any, embedding: Embedding, options: rqa.Options) -> tuple[Points, ...]:
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
        most = min(_RECURRENCE_PLOT_PIXELS if pixels is None else arguments.integer("pixels", pixels, 1), longer)
        down, across = (max(round(most * n / longer), 1) for n in (n_rows, n_columns))
    return min(down, n_rows), min(across, n_columns)
