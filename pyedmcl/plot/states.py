"""States and their neighbours: the path through delay coordinates, and how far neighbours are over time."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..io.style import told_units, unit_of
from .figure import as_label, finished, new_figure, with_unit
from .palette import DARK, MIDDLE, PAIR, legend

_PATH = 20_000  # rows of a path; more would only blacken it


def delay_path(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """The first two or three coordinates as a path; one coordinate over time.

    Parameters
    ----------
    result : EmbedResult
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
    """
    values, names = np.asarray(result.values)[:_PATH], [with_unit(name) for name in result.names]
    figure = new_figure(5.6, 5.2)
    style = {"color": MIDDLE, "linewidth": 0.6, "marker": ".", "markersize": 2.5, "markerfacecolor": DARK,
             "markeredgecolor": "none"}  # fmt: skip
    if values.shape[1] > 2:
        ax = figure.add_subplot(projection="3d")
        ax.plot(*values[:, :3].T, **style)
        ax.set_zlabel(names[2])
        ax.tick_params(labelsize=7)
        ax.set_box_aspect(None, zoom=0.86)  # else the third axis' label lies outside the picture
    else:
        ax = figure.add_subplot()
        columns = values.T if values.shape[1] == 2 else (np.arange(len(values)), values[:, 0])
        ax.plot(*columns, **style)
    ax.set_xlabel(names[0] if values.shape[1] > 1 else "time (row)")
    ax.set_ylabel(names[1] if values.shape[1] > 1 else names[0])
    words = [title] if title else []
    if values.shape[1] > 3:
        words.append(f"the first 3 of {values.shape[1]} coordinates")
    if len(result.values) > _PATH:
        words.append(f"the first {_PATH:,} of {len(result.values):,} rows")
    if words:
        ax.set_title(", ".join(words), fontsize=10)
    return finished(figure, path, dpi=dpi)


def neighbour_distances(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Distances to the nearest and to the last neighbour over time; gaps where a row has none.

    Arguments as for :func:`delay_path`.

    Parameters
    ----------
    result : KnnResult
    """
    distances = np.asarray(result.distances, np.float64)
    figure = new_figure(8.4, 3.4)
    ax = figure.add_subplot()
    k = distances.shape[1]
    for place, label in ((0, "nearest neighbour"), (k - 1, f"neighbour {k}"))[: min(k, 2)]:
        color, _, line = PAIR[min(place, 1)]
        row = distances[:, place]
        ax.plot(np.where(np.isfinite(row), row, np.nan), color=color, linestyle=line, linewidth=1, label=label)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("time (row)")
    units = set((told_units(result) or {}).values()) if not unit_of("") else {unit_of("")}
    ax.set_ylabel(f"distance [{as_label(units.pop())}]" if len(units) == 1 else "distance (unit of the data)")
    legend(ax)
    if title:
        ax.set_title(title, fontsize=10)
    return finished(figure, path, dpi=dpi)
