"""Coefficients of local linear fits over time."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..io.style import unit_of
from .figure import as_label, colours, finished, moments, new_figure, short_dates
from .palette import DARK, GREY, MIDDLE

_PANELS = 9  # coefficients that get a panel each; more become a map


def coefficients(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Coefficients of S-map over time: the intercept, and a slope for each coordinate.

    Up to nine get a panel each with their median. More slopes are drawn as a map with a line of colours each, between
    minus and plus the 99th percentile of their sizes.

    Parameters
    ----------
    result : SmapResult
        Of one theta.
    path, title, dpi
        As for :func:`pyedmcl.plot.predictions`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError, StoreWriteError, MissingExtraError
        As for :func:`pyedmcl.plot.predictions`.
    """
    values = np.asarray(result.coefficients, np.float64)
    time, when = moments(result)
    y_unit = unit_of(getattr(result, "name", ""))
    labels = [f"C0 [{as_label(y_unit)}]" if y_unit else "C0", *(_slope(str(name), y_unit) for name in result.names)]
    if len(labels) > _PANELS:
        figure = new_figure(9.0, min(1.6 + 0.22 * len(labels), 12))
        last = figure.add_subplot()
        time, when = np.asarray(result.time), "time (row)"  # an image has rows of equal width
        _map(figure, last, time, values[:, 1:], labels[1:])
    else:
        figure = new_figure(9.0, 1.2 + 1.2 * len(labels))
        panels = figure.subplots(len(labels), 1, sharex=True, squeeze=False)[:, 0]
        for ax, label, one in zip(panels, labels, values.T, strict=True):
            _panel(ax, time, one, label)
        last = panels[-1]
    if last.lines:
        short_dates(last.xaxis, time)
    last.set_xlabel(f"{when} of the prediction" if when != "time (row)" else "time of the prediction (row)")
    heading = f"E = {result.E}, theta = {float(result.theta):g}: coefficients (target per unit of each coordinate)"
    figure.suptitle(title or f"S-map, {heading}", fontsize=11)
    return finished(figure, path, dpi=dpi)


def _slope(name: str, of: str) -> str:
    """The label of a slope, with its unit where both sides have one."""
    unit = unit_of(name.rpartition("(t-")[0] or name)
    return as_label(f"d / d {name}" + (f" [{of} / {unit}]" if of and unit else ""))


def _panel(ax: Any, time: Any, values: Any, label: str) -> None:
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.plot(time, values, color=MIDDLE, linewidth=1)
    ax.set_title(label, fontsize=8, loc="left", pad=4)
    ax.tick_params(labelsize=8)
    finite = values[np.isfinite(values)]
    if not finite.size:
        return
    ax.axhline(float(np.median(finite)), color=DARK, linewidth=1, linestyle="--")
    # A few fits to few neighbours may be steep by orders: they would flatten all others.
    low, high = np.percentile(finite, (10, 90))
    room = 2 * max(float(high - low), 1e-9 * abs(float(high)), 1e-300)
    outside = int(((finite < low - room) | (finite > high + room)).sum())
    if outside:
        ax.set_ylim(low - room, high + room)
        ax.text(0.995, 0.95, f"{outside} beyond the axis", transform=ax.transAxes, ha="right", va="top", fontsize=7)


def _map(figure: Any, ax: Any, time: Any, values: Any, labels: list[str]) -> None:
    finite = np.abs(values[np.isfinite(values)])
    most = float(np.percentile(finite, 99)) if finite.size else 1.0
    image = ax.imshow(
        np.ma.masked_invalid(values.T), aspect="auto", interpolation="nearest",
        cmap=colours("RdBu_r").with_extremes(bad=GREY), vmin=-(most or 1.0), vmax=most or 1.0,
        extent=(float(time[0]) - 0.5, float(time[-1]) + 0.5, len(labels) - 0.5, -0.5),
    )  # fmt: skip
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    figure.colorbar(image, ax=ax, pad=0.02, extend="both", label="slope (target per coordinate)")
