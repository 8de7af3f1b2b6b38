"""Skill of all pairs of a grid of cross maps over one of its axes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..io.edges import blank_itself, own_targets
from .figure import finished, new_figure
from .palette import legend, several, whole_steps


def skill_over_axis(
    grid: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Median and middle half of the skill of pairs over the first axis, a curve for each combination of the others.

    Folds are no axis where there is another one: their mean is drawn.

    Parameters
    ----------
    grid : XmapGrid
        With one axis at least.
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if len(grid.axes) > 1 and "fold" in grid.axes:
        grid = grid.mean("fold")
    name, *others = grid.axes
    rho = np.array(grid.rho, np.float64)
    itself = own_targets(grid.names, grid.targets)
    for one in rho.reshape(-1, *rho.shape[-2:]):
        blank_itself(one, itself, 0)
    skill = rho.reshape(len(grid.axes[name]), -1, rho.shape[-2] * rho.shape[-1])
    figure = new_figure(6.4, 4.2)
    ax = figure.add_subplot()
    combinations = [()] if not others else list(np.ndindex(*(len(grid.axes[other]) for other in others)))
    for line, places in enumerate(combinations):
        finite = ~np.isnan(skill[:, line]).all(axis=1)
        low, middle, high = np.full((3, len(skill)), np.nan)
        if finite.any():
            low[finite], middle[finite], high[finite] = np.nanpercentile(skill[finite, line], (25, 50, 75), axis=1)
        label = ", ".join(f"{other}={grid.axes[other][at]}" for other, at in zip(others, places, strict=True))
        style = several(line)
        ax.plot(grid.axes[name], middle, marker="o", markersize=3, label=label or "median of pairs", **style)
        ax.fill_between(grid.axes[name], low, high, color=style["color"], alpha=0.15, linewidth=0)
    if all(isinstance(value, int) for value in grid.axes[name]):
        whole_steps(ax.xaxis)
    ax.set_xlabel(name)
    ax.set_ylabel("cross-map skill rho\nmedian and middle half of the pairs")
    ax.grid(alpha=0.25)
    legend(ax)
    if title:
        ax.set_title(title, fontsize=11)
    return finished(figure, path, dpi=dpi)
