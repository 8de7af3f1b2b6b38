"""Heat maps of a cross map, and of the edges that were kept of one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..data.arguments import boolean
from ..errors import InputError
from ..io.edges import blank_itself, own_targets
from ..io.export import checked_map
from .figure import as_label, colours, finished, new_figure
from .names import short_names
from .order import likeness_order
from .reduce import block_maxima, block_means

_NAMED = 40  # names are written at the ticks up to this number of series
_FEW, _LETTERS, _FEWER_LETTERS = 12, 24, 16  # of a name, where there are few series and where there are more
_NUMBERED = 8  # series whose cells have numbers
_MISSING = "#b8b8b8"
_LONGEST = 8  # times as long as wide, beyond which cells are no squares


def heat_map(
    rho: Any,
    names: Sequence[str],
    path: str | os.PathLike[str] | None = None,
    *,
    targets: Sequence[str] | None = None,
    title: str | None = None,
    links: Any = None,
    max_cells: int = 2000,
    ax: Any = None,
    dpi: int = 150,
    marks: Any = None,
    label: str = "cross-map skill rho",
    cluster: bool = False,
) -> Any:
    """Heat map of cross-map skill.

    Row = library (the effect), column = target (the cause): a bright cell [i, j] says that series j left its trace in
    series i, which is evidence that j drives i. Colours run from -1 over white at 0 to 1; the diagonal and NaN are
    grey. Up to eight series have numbers in their cells.

    Parameters
    ----------
    rho : array_like
        Shape (N, N) or (N, targets). Anything with ``shape`` that can be sliced over rows is read in parts.
    names : sequence of str
        N names, written at the ticks where there are few.
    path : path, optional
        Also write the picture there; the suffix chooses the format.
    targets : sequence of str, optional
        Names of the targets, where these are not the N series.
    title : str, optional
    links : array_like of bool, optional
        Of the map's shape, ``links[i, j]``: i is known to drive j. Those cells get a frame.
    max_cells : int
        Larger maps are reduced to at most ``max_cells`` cells per side by means over square blocks.
    ax : matplotlib.axes.Axes, optional
        Draw here instead of in a new figure.
    dpi : int
        Dots per inch of the file.
    marks : array_like of bool, optional
        Of the map's shape: cells that get a star.
    label : str
        What the colours mean.
    cluster : bool
        Put series that are alike side by side, see :func:`pyedmcl.plot.order.likeness_order`. Needs SciPy.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        Shapes do not fit, there are too many series for ``cluster``, or the suffix of ``path`` names no format of
        pictures.
    StoreWriteError
        The file cannot be written.
    MissingExtraError
        matplotlib is not installed.
    """
    if not hasattr(rho, "shape"):
        rho = np.asarray(rho)
    if max_cells < 1:
        raise InputError(f"max_cells={max_cells}: at least 1 is needed")
    if boolean("cluster", cluster):
        rows, across = likeness_order(rho, names, targets)
        place = np.ix_(rows, across)
        rho, marks, links = (None if cells is None else np.asarray(cells[:])[place] for cells in (rho, marks, links))
        names = [names[i] for i in rows]
        targets = None if targets is None else [targets[i] for i in across]
    rho, names, columns, _ = checked_map(rho, names, 1, targets)
    cells, size = block_means(rho, max_cells)
    heading = [] if title is None else [title]
    if size > 1:
        heading.append(f"{_counted(names, targets)}; each cell is the mean of {size} x {size} pairs")
    ax = _picture(cells, size, names, columns, heading, ax, label=label, marks=marks)
    if links is not None:
        _frames(ax, np.asarray(links, bool), rho.shape)
    return finished(ax.figure, path, dpi=dpi)


def edge_map(
    parts: Callable[[], Iterable[Any]],
    names: Sequence[str],
    path: str | os.PathLike[str] | None = None,
    *,
    keep: str,
    targets: Sequence[str] | None = None,
    title: str | None = None,
    max_cells: int = 2000,
    dpi: int = 150,
) -> Any:
    """Heat map of the edges that were kept of a map; what was not kept is grey.

    Parameters
    ----------
    parts : callable
        Gives arrays with the fields library, target (positions) and rho.
    names : sequence of str
    path : path, optional
    keep : str
        The rule by which they were kept, for the caption.
    targets : sequence of str, optional
        Names of the targets, where these are not the libraries.
    title : str, optional
    max_cells : int
        Larger maps are reduced to at most ``max_cells`` cells per side by maxima over square blocks.
    dpi : int

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    StoreWriteError, MissingExtraError
        As for :func:`heat_map`.
    """
    libraries = [str(name) for name in names]
    columns = libraries if targets is None else [str(name) for name in targets]
    cells, size = block_maxima(parts(), (len(libraries), len(columns)), max_cells)
    heading = [*([] if title is None else [title]), f"{_counted(names, targets)}; kept pairs ({keep}), others are grey"]
    if size > 1:
        heading.append(f"each cell is the largest kept rho of {size} x {size} pairs")
    ax = _picture(cells, size, libraries, columns, heading, None)
    return finished(ax.figure, path, dpi=dpi)


def _counted(names: Sequence[str], targets: Sequence[str] | None) -> str:
    return f"{len(names):,} series" if targets is None else f"{len(names):,} libraries, {len(targets):,} targets"


def _picture(cells: Any, size: int, names: list[str], columns: list[str], heading: list[str], ax: Any,
             *, label: str = "cross-map skill rho", marks: Any = None) -> Any:  # fmt: skip
    """Axes, new ones if None, with the picture of blocks of ``size`` x ``size`` pairs; the diagonal is grey."""
    if ax is None:
        ax = new_figure(8.2, 6.4).add_subplot()
    shades = colours("RdBu_r").with_extremes(bad=_MISSING)
    if size == 1:  # what a series says of itself is no link, and would be the brightest of all
        cells = np.array(cells, np.float64)
        blank_itself(cells, own_targets(names, None if names == columns else columns), 0)
    edges = [length * size - 0.5 for length in cells.shape]  # the last block may reach beyond the last series
    image = ax.imshow(
        np.ma.masked_invalid(cells),
        cmap=shades,
        vmin=-1.0,
        vmax=1.0,
        extent=(-0.5, edges[1], edges[0], -0.5),
        aspect="equal" if max(cells.shape) <= _LONGEST * min(cells.shape) else "auto",
        interpolation="nearest" if max(cells.shape) <= 500 else "antialiased",
        interpolation_stage="data",  # else a mean of two colours may be no colour of the scale
    )
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel("cause (target)")
    ax.set_ylabel("effect (library)")
    if heading:
        ax.set_title("\n".join(heading), fontsize=11)
    _ticks(ax, names, columns)
    if size == 1 and max(cells.shape) <= _NUMBERED:
        _numbers(ax, cells, marks)
    elif marks is not None and size == 1:
        _dots(ax, marks)
    scale = ax.inset_axes([1.03, 0, 0.04, 1])  # as high as the map, whatever its shape
    ax.figure.colorbar(image, cax=scale, label=label)
    return ax


def _numbers(ax: Any, cells: Any, marks: Any) -> None:
    for place in np.argwhere(np.isfinite(cells)):
        row, column = map(int, place)
        value = float(cells[row, column])
        star = "*" if marks is not None and marks[row, column] else ""
        ax.text(column, row, f"{value:.2f}{star}", ha="center", va="center", fontsize=8,
                color="white" if abs(value) > 0.7 else "black")  # fmt: skip


def _dots(ax: Any, marks: Any) -> None:
    rows, columns = np.nonzero(marks)
    ax.plot(columns, rows, "*", color="black", markersize=max(2.0, min(7.0, 140 / max(marks.shape))), linestyle="none")


def _ticks(ax: Any, names: list[str], columns: list[str]) -> None:
    for axis, side in ((ax.xaxis, columns), (ax.yaxis, names)):
        n = len(side)
        if n > _NAMED:
            from matplotlib.ticker import MaxNLocator

            axis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=2, steps=(1, 2, 5, 10)))
            continue
        short = [as_label(name) for name in short_names(side, _LETTERS if n <= _FEW else _FEWER_LETTERS)]
        widest = max((len(one) + len(other) for one, other in pairwise(short)), default=0) / 2
        upright = axis is ax.yaxis or (widest + 2) * n <= 70  # else names of columns would overlap
        axis.set_ticks(range(n), short, fontsize=9.0 if n <= 20 else 6.5, rotation=0 if upright else 90)
        axis.set_tick_params(length=2)


def _frames(ax: Any, links: Any, shape: tuple[int, int]) -> None:
    if links.shape != tuple(shape):
        raise InputError(f"links have shape {links.shape}, the map has {tuple(shape)}")
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    cells = [Rectangle((cause - 0.5, effect - 0.5), 1, 1) for cause, effect in np.argwhere(links)]
    width = max(0.5, min(1.6, 60 / max(shape)))
    ax.add_collection(PatchCollection(cells, facecolor="none", edgecolor="#1a1a1a", linewidth=width))
