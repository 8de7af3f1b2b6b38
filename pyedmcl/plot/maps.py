"""Heat maps of a cross map, and of the edges that were kept of one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..io.export import checked_map
from .figure import as_label, new_figure, save_figure
from .reduce import block_maxima, block_means

_NAMED = 40  # names are written at the ticks up to this number of series
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
) -> Any:
    """Heat map of cross-map skill.

    Row = library (the effect), column = target (the cause): a bright cell [i, j] says that series j left its trace in
    series i, which is evidence that j drives i. Colours run from 0 to 1; skill below 0 is drawn as 0, since it is no
    evidence of a link, and NaN is grey.

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
        Larger maps are reduced to at most so many cells per side by means over square blocks.
    ax : matplotlib.axes.Axes, optional
        Draw here instead of in a new figure.
    dpi : int
        Dots per inch of the file.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        Shapes do not fit, or the suffix of ``path`` names no format of pictures.
    StoreWriteError
        The file cannot be written.
    MissingExtraError
        matplotlib is not installed.
    """
    if not hasattr(rho, "shape"):
        rho = np.asarray(rho)
    if max_cells < 1:
        raise InputError(f"max_cells={max_cells}: at least 1 is needed")
    rho, names, columns, _ = checked_map(rho, names, 1, targets)
    cells, size = block_means(rho, max_cells)
    heading = [] if title is None else [title]
    if size > 1:
        heading.append(f"{_counted(names, targets)}; each cell is the mean of {size} x {size} pairs")
    ax = _picture(cells, size, names, columns, heading, ax)
    if links is not None:
        _frames(ax, np.asarray(links, bool), rho.shape)
    if path is not None:
        save_figure(ax.figure, path, dpi=dpi)
    return ax.figure


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
        Larger maps are reduced to at most so many cells per side by maxima over square blocks.
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
    if path is not None:
        save_figure(ax.figure, path, dpi=dpi)
    return ax.figure


def _counted(names: Sequence[str], targets: Sequence[str] | None) -> str:
    return f"{len(names):,} series" if targets is None else f"{len(names):,} libraries, {len(targets):,} targets"


def _picture(cells: Any, size: int, names: list[str], columns: list[str], heading: list[str], ax: Any) -> Any:
    """Axes, new ones if None, with the picture of blocks of ``size`` x ``size`` pairs."""
    if ax is None:
        ax = new_figure(7.2, 6.4).add_subplot()
    from matplotlib import colormaps

    colours = colormaps["viridis"].with_extremes(bad=_MISSING)
    edges = [length * size - 0.5 for length in cells.shape]  # the last block may reach beyond the last series
    image = ax.imshow(
        np.ma.masked_invalid(cells),
        cmap=colours,
        vmin=0.0,
        vmax=1.0,
        extent=(-0.5, edges[1], edges[0], -0.5),
        aspect="equal" if max(cells.shape) <= _LONGEST * min(cells.shape) else "auto",
        interpolation="nearest" if max(cells.shape) <= 500 else "antialiased",
        interpolation_stage="data",  # else a mean of two colours may be no colour of the scale
    )
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel("target (cause)")
    ax.set_ylabel("library (effect)")
    if heading:
        ax.set_title("\n".join(heading), fontsize=11)
    _ticks(ax, names, columns)
    below = bool(np.any(cells < 0))
    extend = "min" if below else "neither"
    ax.figure.colorbar(image, ax=ax, shrink=0.9, pad=0.02, label="cross-map skill rho", extend=extend)
    return ax


def _ticks(ax: Any, names: list[str], columns: list[str]) -> None:
    for axis, side in ((ax.xaxis, columns), (ax.yaxis, names)):
        n = len(side)
        if n > _NAMED:
            from matplotlib.ticker import MaxNLocator

            axis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=2, steps=(1, 2, 5, 10)))
            continue
        short = [as_label(name if len(name) <= 16 else name[:15] + "…") for name in side]
        upright = axis is ax.yaxis or sum(map(len, short)) + 2 * n <= 70  # else names of columns would overlap
        axis.set_ticks(range(n), short, fontsize=9.0 if n <= 20 else 6.5, rotation=0 if upright else 90)
        axis.set_tick_params(length=2)


def _frames(ax: Any, links: Any, shape: tuple[int, int]) -> None:
    if links.shape != tuple(shape):
        raise InputError(f"links have shape {links.shape}, the map has {tuple(shape)}")
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    cells = [Rectangle((cause - 0.5, effect - 0.5), 1, 1) for cause, effect in np.argwhere(links)]
    width = max(0.5, min(1.6, 60 / max(shape)))
    ax.add_collection(PatchCollection(cells, facecolor="none", edgecolor="#ff4d3d", linewidth=width))
