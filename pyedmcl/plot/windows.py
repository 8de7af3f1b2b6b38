"""Skill within windows over time."""

from __future__ import annotations

import os
from typing import Any

from .figure import as_label, finished, new_figure, short_dates
from .palette import legend, several


def skill_over_time(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """A line for each curve of a result of windows, at the middle of each window.

    Parameters
    ----------
    result : WindowedMap or another result of windows
        Its ``curves()`` name the lines.
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(8.4, 4.0)
    ax = figure.add_subplot()
    curves = result.curves()
    for number, (name, values) in enumerate(curves.items()):
        ax.plot(result.time, values, marker="o", markersize=2.5, linewidth=1.2, label=as_label(name), **several(number))
    short_dates(ax.xaxis, result.time)
    ax.set_xlabel("middle of the window")
    ax.set_ylabel("skill rho")
    ax.set_title(title or f"{len(result.starts):,} windows of {result.width:,} rows", fontsize=11)
    if curves:
        legend(ax)
    return finished(figure, path, dpi=dpi)
