"""Skill against the embedding dimension, of a few series or of many."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..errors import InputError
from .figure import as_label, finished, new_figure
from .palette import DARK, MIDDLE, legend, several

_NAMED = 10  # series in the legend; more are drawn as one bundle


def skill_against_E(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Forecast skill of each series for E = 1, 2, ... with the best E.

    Up to ten series get a line each with the best E as a dot. More are drawn as faint lines with the median and the
    middle half, and a second panel counts how many series have which E.

    Parameters
    ----------
    result : EmbedDimensionResult
        Its ``rho`` has shape (E_max,) or (N, E_max), ``E`` one best dimension for each series, ``names`` N names.
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

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
    skill = np.atleast_2d(np.asarray(result.rho, np.float64))
    best = np.atleast_1d(np.asarray(result.E))
    names = [as_label(name) for name in result.names]
    if skill.ndim != 2 or not skill.size or len(names) != len(skill):
        raise InputError(f"skill has shape {skill.shape}: one row for each of the {len(names)} names is needed")
    if best.shape != (len(skill),) or best.min() < 1 or best.max() > skill.shape[1]:
        raise InputError(f"E must hold one dimension of 1 to {skill.shape[1]} for each of the {len(skill)} series")
    many = len(skill) > _NAMED
    figure = new_figure(7.2, 5.8 if many else 4.2)
    if many:
        ax, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        lower.bar(np.arange(1, skill.shape[1] + 1), np.bincount(best, minlength=skill.shape[1] + 1)[1:], color=MIDDLE)
        lower.set_ylabel("series with\nthis best E")
        _bundle(ax, skill)
    else:
        ax = lower = figure.add_subplot()
        _lines(ax, skill, names, best)
    from matplotlib.ticker import MaxNLocator

    lower.set_xlabel("embedding dimension E")
    lower.set_xlim(0.4, skill.shape[1] + 0.6)
    lower.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True, min_n_ticks=1))
    ax.set_ylabel("forecast skill rho")
    ax.grid(alpha=0.25)
    legend(ax)
    if title:
        ax.set_title(title, fontsize=11)
    return finished(figure, path, dpi=dpi)


def _lines(ax: Any, skill: Any, names: list[str], best: Any) -> None:
    steps = np.arange(1, skill.shape[1] + 1)
    for i, name in enumerate(names):
        (line,) = ax.plot(steps, skill[i], linewidth=1.4, label=f"{name} (E = {best[i]})", **several(i))
        ax.plot(best[i], skill[i, best[i] - 1], "o", color=line.get_color(), markersize=6)


def _bundle(ax: Any, skill: Any) -> None:
    from matplotlib.collections import LineCollection

    steps = np.arange(1, skill.shape[1] + 1)
    drawn = skill[:: -(-len(skill) // 500)]  # more lines than this show nothing more
    strands = [np.column_stack([steps, row]) for row in drawn]
    faint = max(0.05, min(0.5, 20 / len(drawn)))
    ax.add_collection(LineCollection(strands, colors="#7f7f7f", linewidths=0.5, alpha=faint))
    finite = ~np.isnan(skill).all(axis=0)
    low, middle, high = np.full((3, len(steps)), np.nan)
    if finite.any():
        low[finite], middle[finite], high[finite] = np.nanpercentile(skill[:, finite], (25, 50, 75), axis=0)
    ax.fill_between(steps, low, high, color=MIDDLE, alpha=0.3, linewidth=0, label="middle half")
    ax.plot(steps, middle, color=DARK, linewidth=2, label=f"median of {len(skill):,} series")
    ax.autoscale_view()
