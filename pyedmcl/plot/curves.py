"""Curves: skill against embedding dimension, and predictions against observations."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..errors import InputError
from .figure import new_figure, save_figure

_NAMED = 10  # series in the legend; more are drawn as one bundle
_SHOWN = 200  # steps of a prediction; more cannot be told apart
_DARK, _MIDDLE = "#21526b", "#2a788e"


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
    path : path, optional
        Also write the picture there; the suffix chooses the format.
    title : str, optional
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
    skill = np.atleast_2d(np.asarray(result.rho, np.float64))
    best = np.atleast_1d(np.asarray(result.E))
    names = [str(name) for name in result.names]
    if skill.ndim != 2 or not skill.size or len(names) != len(skill):
        raise InputError(f"skill has shape {skill.shape}: one row for each of the {len(names)} names is needed")
    if best.shape != (len(skill),) or best.min() < 1 or best.max() > skill.shape[1]:
        raise InputError(f"E must hold one dimension of 1 to {skill.shape[1]} for each of the {len(skill)} series")
    many = len(skill) > _NAMED
    figure = new_figure(7.2, 5.8 if many else 4.2)
    if many:
        ax, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        lower.bar(np.arange(1, skill.shape[1] + 1), np.bincount(best, minlength=skill.shape[1] + 1)[1:], color=_MIDDLE)
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
    ax.legend(fontsize=8, frameon=False, loc="best")
    if title:
        ax.set_title(title, fontsize=11)
    if path is not None:
        save_figure(figure, path, dpi=dpi)
    return figure


def _lines(ax: Any, skill: Any, names: list[str], best: Any) -> None:
    steps = np.arange(1, skill.shape[1] + 1)
    for i, name in enumerate(names):
        (line,) = ax.plot(steps, skill[i], linewidth=1.4, label=f"{name} (E = {best[i]})")
        ax.plot(best[i], skill[i, best[i] - 1], "o", color=line.get_color(), markersize=6)


def _bundle(ax: Any, skill: Any) -> None:
    from matplotlib.collections import LineCollection

    steps = np.arange(1, skill.shape[1] + 1)
    drawn = skill[:: -(-len(skill) // 500)]  # more lines than this show nothing more
    strands = [np.column_stack([steps, row]) for row in drawn]
    faint = max(0.05, min(0.5, 20 / len(drawn)))
    ax.add_collection(LineCollection(strands, colors="#7f7f7f", linewidths=0.5, alpha=faint))
    known = ~np.isnan(skill).all(axis=0)
    low, middle, high = np.full((3, len(steps)), np.nan)
    if known.any():
        low[known], middle[known], high[known] = np.nanpercentile(skill[:, known], (25, 50, 75), axis=0)
    ax.fill_between(steps, low, high, color=_MIDDLE, alpha=0.3, linewidth=0, label="middle half")
    ax.plot(steps, middle, color=_DARK, linewidth=2, label=f"median of {len(skill):,} series")
    ax.autoscale_view()


def predictions(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Observed and predicted values over time, and against each other.

    Parameters
    ----------
    result : SimplexResult
        Its ``time``, ``observed``, ``predicted`` and ``variance`` have shape (n,); ``rho`` and ``E`` go into the title.
    path : path, optional
        Also write the picture there; the suffix chooses the format.
    title : str, optional
    dpi : int
        Dots per inch of the file.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        The suffix of ``path`` names no format of pictures.
    StoreWriteError
        The file cannot be written.
    MissingExtraError
        matplotlib is not installed.
    """
    time, observed, predicted = (np.asarray(getattr(result, name)) for name in ("time", "observed", "predicted"))
    spread = np.sqrt(np.maximum(np.asarray(result.variance, np.float64), 0))
    figure = new_figure(9.6, 3.6)
    course, against = figure.subplots(1, 2, width_ratios=(2.4, 1))
    shown = slice(-_SHOWN, None)
    course.plot(time[shown], observed[shown], color="#9aa5ab", linewidth=2.6, label="observed")
    course.plot(time[shown], predicted[shown], color="#d1495b", linewidth=1, label="predicted")
    low, high = (predicted - spread)[shown], (predicted + spread)[shown]
    course.fill_between(time[shown], low, high, color="#d1495b", alpha=0.2, linewidth=0, label="± 1 standard deviation")
    course.set_xlabel("time (row)" if len(time) <= _SHOWN else f"time (row), the last {_SHOWN} steps")
    course.legend(fontsize=8, frameon=False, loc="best")
    course.set_title(title or f"simplex projection, E = {result.E}, rho = {result.rho:.3f}", fontsize=11)
    many = len(time) > 5000
    against.plot(observed, predicted, ".", markersize=1 if many else 3, alpha=0.3 if many else 0.6, color=_MIDDLE,
                 rasterized=True)  # fmt: skip
    pairs = np.concatenate([observed, predicted])
    if np.isfinite(pairs).any():
        ends = (float(np.nanmin(pairs)), float(np.nanmax(pairs)))
        against.plot(ends, ends, color="#999999", linewidth=0.8, zorder=0)
    against.set_xlabel("observed")
    against.set_ylabel("predicted")
    if path is not None:
        save_figure(figure, path, dpi=dpi)
    return figure
