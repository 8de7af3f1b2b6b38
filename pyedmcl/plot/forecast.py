"""Predictions against observations: over time and against each other, and the views that were averaged."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..errors import InputError
from .figure import as_label, finished, moments, new_figure, short_dates, with_unit
from .palette import MIDDLE, PALE, RED, folded, legend, legend_above

_LEVEL = 0.95  # of the band around forecasts
_SHOWN = 200  # steps of a prediction; more cannot be told apart
_PANEL = 28  # letters beside a panel
_VIEWS = 15  # views that get a bar


def predictions(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Observed and predicted values over time, and against each other.

    Parameters
    ----------
    result : SimplexResult, SmapResult (of one theta) or MultiviewResult
        Its ``time``, ``observed``, ``predicted`` and ``variance`` have shape (n,); ``rho`` and ``E`` go into the title.
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
        Of generated steps, which nobody has observed, without the second panel.
    """
    pairs = np.isfinite(np.asarray(result.observed)) & np.isfinite(np.asarray(result.predicted))
    figure = new_figure(9.6, 3.6)
    if pairs.any():
        course, against = figure.subplots(1, 2, width_ratios=(2.4, 1))
        _against(against, result)
    else:
        course = figure.add_subplot()
    _course(course, result, title)
    return finished(figure, path, dpi=dpi)


def views(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """As :func:`predictions`, above the skill by which each of the best views was chosen.

    Parameters
    ----------
    result : MultiviewResult
    """
    shown = result.views[:_VIEWS]
    figure = new_figure(9.6, 3.9 + 0.22 * len(shown))
    upper, lower = figure.subfigures(2, 1, height_ratios=(3.6, 0.6 + 0.22 * len(shown)))
    course, against = upper.subplots(1, 2, width_ratios=(2.4, 1))
    _course(course, result, title)
    _against(against, result)
    ax = lower.add_subplot()
    ax.barh(range(len(shown)), np.nan_to_num(result.view_rho[: len(shown)]), color=MIDDLE, height=0.7)
    if np.isfinite(result.rho):
        ax.axvline(result.rho, color=RED, linewidth=1.4, label=f"their average, rho = {result.rho:.3f}")
        legend(ax, loc="lower right", bbox_to_anchor=(1, 1.0), borderaxespad=0.1)
    ax.set_yticks(range(len(shown)), [as_label(", ".join(view)) for view in shown], fontsize=7)
    ax.invert_yaxis()
    more = "" if len(result.views) <= _VIEWS else f", the best {_VIEWS} of {len(result.views):,} that were averaged"
    ax.set_xlabel(f"rho of each view among the rows of the library{more}")
    return finished(figure, path, dpi=dpi)


def _course(ax: Any, result: Any, title: str | None) -> None:
    observed, predicted = np.asarray(result.observed), np.asarray(result.predicted)
    time, label = moments(result)
    if getattr(result, "group", None) is not None:  # one behind the other
        time, label = np.arange(len(time)), "time (row)"
    low, high, words = _band(result, predicted)
    shown = slice(-_SHOWN, None)
    if np.isfinite(observed).any():
        ax.plot(time[shown], observed[shown], color=PALE, linewidth=2.6, label="observed")
    ax.plot(time[shown], predicted[shown], color=RED, linewidth=1, label="predicted")
    ax.fill_between(time[shown], low[shown], high[shown], color=RED, alpha=0.2, linewidth=0, label=words)
    short_dates(ax.xaxis, time)
    ax.set_xlabel(label if len(time) <= _SHOWN else f"{label}, the last {_SHOWN} steps")
    ax.set_ylabel(folded(_name(result) or "value", _PANEL))
    legend_above(ax)
    ax.set_title(title or _heading(result), fontsize=11, pad=26)


def _band(result: Any, predicted: Any) -> tuple[Any, Any, str]:
    """The ends of a band around predictions, and what it is."""
    if hasattr(result, "interval"):
        try:
            return *result.interval(_LEVEL), f"{_LEVEL:.0%} interval"
        except InputError:  # too few rows for it
            pass
    spread = np.sqrt(np.maximum(np.asarray(result.variance, np.float64), 0))
    return predicted - spread, predicted + spread, "± 1 standard deviation of neighbours"


def _against(ax: Any, result: Any) -> None:
    observed, predicted = np.asarray(result.observed), np.asarray(result.predicted)
    many = len(observed) > 5000
    ax.plot(observed, predicted, ".", markersize=1 if many else 3, alpha=0.3 if many else 0.6, color=MIDDLE,
            rasterized=True)  # fmt: skip
    pairs = np.concatenate([observed, predicted])
    if np.isfinite(pairs).any():
        ends = (float(np.nanmin(pairs)), float(np.nanmax(pairs)))
        ax.plot(ends, ends, color="#999999", linewidth=0.8, zorder=0)
    ax.set_xlabel(folded(f"observed {_name(result)}".strip(), _PANEL))
    ax.set_ylabel(folded(f"predicted {_name(result)}".strip(), _PANEL))


def _name(result: Any) -> str:
    """What was predicted, with its unit; empty where that has no name."""
    name = getattr(result, "name", "")
    return with_unit(name) if name else ""


def _heading(result: Any) -> str:
    if hasattr(result, "views"):
        words = [f"mean of {len(result.views):,} view{'' if len(result.views) == 1 else 's'} of D = {result.E}"]
    elif hasattr(result, "theta"):
        words = [f"S-map, E = {result.E}, theta = {float(result.theta):g}"]
    else:
        words = [f"simplex projection, E = {result.E}"]
    if np.isfinite(result.rho):
        words.append(f"rho = {result.rho:.3f}")
    return ", ".join(words)
