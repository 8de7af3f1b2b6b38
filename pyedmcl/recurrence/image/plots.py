"""What recurrence and distance plots return: pixels that can be looked at, saved and computed with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...files import path_of
from ...io.fields import labelled
from ...io.labels import Label
from ...io.result import Result
from ...io.saved import SUFFIX
from .sweep import pixel_edges

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
        from ...plot.png import save_png
        from ...plot.recurrence import shades

        if path_of(path).suffix.lower() == SUFFIX:
            return super().save(path)
        density = self.density
        return save_png(shades(density, 0.0, _black(black, density)), path)

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, black: float | None = None, title: str | None = None,
        dpi: int = 150,
    ) -> Any:  # fmt: skip
        """The plot with axes; saved to ``path`` if given. Needs matplotlib. ``black`` as for :meth:`save`.

        An image of more pixels than the picture has room for (four per unit of ``dpi``) is averaged before ``black`` is
        chosen.
        """
        from ...plot.recurrence import plot_image

        density = _drawn_density(self, _ROOM * dpi)
        single = density.shape == (self.n_rows, self.n_columns)
        return plot_image(
            density, (self.n_rows, self.n_columns), path, label="" if single else "share of recurrent cells",
            title=title or _title(self.radius), white=0.0, black=_black(black, density),
            same=not self.provenance.get("cross", False), times=self.times,
            dpi=dpi,
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
        from ...plot.png import save_png
        from ...plot.recurrence import shades

        if path_of(path).suffix.lower() == SUFFIX:
            return super().save(path)
        means = self._pixels
        return save_png(shades(means, _white(white, means), 0.0), path)

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, white: float | None = None, title: str | None = None,
        dpi: int = 150,
    ) -> Any:  # fmt: skip
        """The plot with axes; saved to ``path`` if given. Needs matplotlib. ``white`` as for :meth:`save`."""
        from ...plot.recurrence import plot_image

        means = self._pixels
        single = means.shape == (self.n_rows, self.n_columns)
        return plot_image(
            means, (self.n_rows, self.n_columns), path, label="distance" if single else "mean distance",
            title=title, white=_white(white, means), black=0.0,
            same=not self.provenance.get("cross", False), times=self.times,
            dpi=dpi,
        )  # fmt: skip


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
        from ...plot.recurrence import darkest

        return darkest(density)
    if not 0 < black <= 1:
        raise InputError(f"black={black!r}: the density to draw black is needed, above 0 and at most 1")
    return float(black)


def _white(white: float | None, means: NDArray[np.float64]) -> float:
    if white is None:
        finite = means[np.isfinite(means)]
        return (float(np.percentile(finite, _FAR)) if finite.size else 0.0) or 1.0
    if not 0 < white < np.inf:
        raise InputError(f"white={white!r}: the distance to draw white is needed, a positive number")
    return float(white)


def _title(radius: Any) -> str | None:
    if isinstance(radius, tuple):
        return "radius " + " to ".join(f"{part:.4g}" for part in radius)
    return None if np.isnan(radius) else f"radius {radius:.4g}"
