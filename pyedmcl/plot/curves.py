"""Curves: skill against dimension, lag, library size, theta or time, coefficients, forecasts, and paths of states."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..results.edges import blank_itself, own_targets
from ..results.result import style, told_units, unit_of
from .figure import (
    DARK,
    GREY,
    MIDDLE,
    PAIR,
    PALE,
    RED,
    as_label,
    colours,
    finished,
    folded,
    inches,
    legend,
    legend_above,
    moments,
    new_figure,
    pt,
    several,
    short_dates,
    whole_steps,
    with_unit,
)

if TYPE_CHECKING:
    PathLike = str | os.PathLike[str]


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
        ax.set_title(title, fontsize=pt(11))
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


# Pictures for the choice of an embedding: skill over dimension and lag, and curves against lag or dimension.


_EMBEDDING_NAMED = 10  # series that are told apart; the others are faint


def skill_surface(scan: Any, path: PathLike | None = None, *, title: str | None = None, dpi: int = 150) -> Any:
    """Skill of an :class:`EmbeddingScan` over E and tau, a panel for each Tp; the best place of each is marked.

    Parameters
    ----------
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rho = scan.rho[None] if scan.single else scan.rho
    finite = np.isfinite(rho).any(axis=0)
    median = np.full(rho.shape[1:], np.nan)
    median[finite] = np.nanmedian(rho[:, finite], axis=0)
    n = len(scan.Tp)
    figure = new_figure(min(3.2 * n + 1.4, 16.0), 3.8)
    axes = figure.subplots(1, n, squeeze=False)[0]
    low, high = (float(of(median[finite])) if finite.any() else 0.0 for of in (np.min, np.max))
    for at, (ax, Tp) in enumerate(zip(axes, scan.Tp, strict=True)):
        panel = median[..., at]
        image = ax.imshow(np.ma.masked_invalid(panel.T), origin="lower", aspect="auto", cmap=colours("viridis"),
                          vmin=low, vmax=high, interpolation="nearest")  # fmt: skip
        if np.isfinite(panel).any():
            dimension, lag = np.unravel_index(int(np.nanargmax(panel)), panel.shape)
            ax.plot(dimension, lag, "o", color="white", markeredgecolor="black")
        ax.set_xticks(range(len(scan.E)), [str(E) for E in scan.E], fontsize=pt(7))
        ax.set_yticks(range(len(scan.tau)), [str(tau) for tau in scan.tau], fontsize=pt(7))
        ax.set_xlabel("E")
        ax.set_title(f"Tp = {Tp}", fontsize=pt(9))
    axes[0].set_ylabel("tau")
    figure.colorbar(image, ax=list(axes), label="rho" if len(rho) == 1 else f"rho (median of {len(rho)} series)")
    if title:
        figure.suptitle(title)
    return finished(figure, path, dpi=dpi)


def curves(
    at: Sequence[int], values: NDArray[np.float64], names: Sequence[str], x_label: str, y_label: str,
    path: PathLike | None = None, *, dpi: int = 150,
) -> Any:  # fmt: skip
    """A line for each series, ten at most with their names; more are faint, with their median.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = np.atleast_2d(values)
    figure = new_figure(6.4, 3.8)
    ax = figure.add_subplot()
    many = len(rows) > _EMBEDDING_NAMED
    for row, name in zip(rows, names, strict=True):
        ax.plot(at, row, linewidth=1.0, **({"color": "0.8"} if many else {"label": as_label(name)}))
    if many:
        ax.plot(at, np.nanmedian(rows, axis=0), color="#21526b", linewidth=2.0, label=f"median of {len(rows)} series")
    whole_steps(ax.xaxis)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.set_ylim(bottom=0)
    legend(ax)
    return finished(figure, path, dpi=dpi)


# Skill against what was varied: library size with its spread over samples, Tp, theta, radius, or surrogates.


_LEAST_SPAN = 0.05  # of rho on an axis: smaller differences must not look like much
_PANEL = 46  # letters above one of two panels
_MEANING = {"Tp": "steps ahead, Tp", "exclusion_radius": "exclusion radius (steps)",
            "theta": "localisation of S-map, theta"}  # fmt: skip


def skill_against_library(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Median skill of both directions with bands that hold the middle half and nine tenths of the samples.

    Parameters
    ----------
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(6.4, 4.2)
    ax = figure.add_subplot()
    order = np.argsort(result.lib_sizes)
    sizes, spread = result.lib_sizes[order], result.quantiles((0.05, 0.25, 0.5, 0.75, 0.95))[:, order]
    for d, (library, target) in enumerate(map(as_label, link) for link in result.links):
        color, mark, line = PAIR[d]
        ax.plot(sizes, spread[d, :, 2], color=color, marker=mark, linestyle=line, markersize=3.5, linewidth=1.4,
                label=f"{library} predicts {target} ({target} drives {library}?)")  # fmt: skip
        for low, high, alpha in ((0, 4, 0.12), (1, 3, 0.22)):
            ax.fill_between(sizes, spread[d, :, low], spread[d, :, high], color=color, alpha=alpha, linewidth=0)
    ax.set_xlabel("library size (states)")
    ax.set_ylabel("cross-map skill rho")
    ax.grid(alpha=0.25)
    legend(ax)
    ax.set_title(title or f"median of {result.rho.shape[2]} samples, middle 50 and 90 %", fontsize=pt(10))
    return finished(figure, path, dpi=dpi)


def skill_against_Tp(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Skill of both directions against Tp with the best of each; arguments as for :func:`skill_against_library`."""
    figure = new_figure(6.4, 4.2)
    ax = figure.add_subplot()
    order = np.argsort(result.Tp)
    for d, (library, target) in enumerate(map(as_label, link) for link in result.links):
        color, mark, line = PAIR[d]
        ax.plot(result.Tp[order], result.rho[d][order], color=color, marker=mark, linestyle=line, markersize=3.5,
                linewidth=1.4, label=f"{library} predicts {target} (best at Tp = {result.best[d]})")  # fmt: skip
        ax.axvline(result.best[d], color=color, linewidth=0.8, linestyle=":")
    whole_steps(ax.xaxis)
    ax.set_xlabel("steps from state to target, Tp")
    ax.set_ylabel("cross-map skill rho")
    ax.grid(alpha=0.25)
    legend(ax)
    if title:
        ax.set_title(title, fontsize=pt(10))
    return finished(figure, path, dpi=dpi)


def skill_against_parameter(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Forecast skill against a parameter with its best value; arguments as for :func:`skill_against_library`.

    Parameters
    ----------
    result : SkillResult, NonlinearResult or SmapResult
        Of the last, a sweep over theta.
    """
    figure = new_figure(6.4, 4.0)
    ax = figure.add_subplot()
    name = getattr(result, "parameter", "theta")
    values, rho = np.atleast_1d(result.values if name != "theta" else result.theta), np.atleast_1d(result.rho)
    order = np.argsort(values)
    ax.plot(values[order], rho[order], "o-", color=MIDDLE, markersize=3.5, linewidth=1.4)
    if np.isfinite(rho).any():
        best = values[np.where(np.isnan(rho), -np.inf, rho).argmax()]
        ax.axvline(best, color=RED, linewidth=1, linestyle=":", label=f"best at {best:g}")
        legend(ax)
        low, high = ax.get_ylim()
        room = max(_LEAST_SPAN - (high - low), 0) / 2
        ax.set_ylim(low - room, high + room)
    if name != "theta":
        whole_steps(ax.xaxis)
    ax.set_xlabel(_MEANING[name])
    ax.set_ylabel("forecast skill rho")
    ax.grid(alpha=0.25)
    ax.set_title(title or f"{'S-map' if name == 'theta' else 'simplex projection'}, E = {result.E}", fontsize=pt(10))
    return finished(figure, path, dpi=dpi)


def skill_against_surrogates(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Skill of both directions beside the distribution of their surrogates'; arguments as for the others."""
    figure = new_figure(7.2, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    for d, (library, target) in enumerate(map(as_label, link) for link in result.links):
        ax = panels[d]
        finite = result.surrogates[d][np.isfinite(result.surrogates[d])]
        ax.hist(finite, bins=min(max(len(finite) // 8, 5), 40), color=PALE, label=f"{len(finite)} surrogates")
        ax.axvline(result.rho[d], color=RED, linewidth=2, label=f"rho = {result.rho[d]:.3f}")
        question = folded(f"{library} predicts {target} ({target} drives {library}?)", _PANEL)
        ax.set_title(f"{question}\np = {result.p_value[d]:.3g}, q = {result.q_value[d]:.3g}", fontsize=pt(9))
        ax.set_xlabel("cross-map skill rho")
        legend(ax)
    panels[0].set_ylabel("surrogates per bin")
    if title:
        figure.suptitle(title, fontsize=pt(11))
    return finished(figure, path, dpi=dpi)


# Skill within windows over time.


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
    ax.set_title(title or f"{len(result.starts):,} windows of {result.width:,} rows", fontsize=pt(11))
    if curves:
        legend(ax)
    return finished(figure, path, dpi=dpi)


# Coefficients of local linear fits over time.


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
    figure.suptitle(title or f"S-map, {heading}", fontsize=pt(11))
    return finished(figure, path, dpi=dpi)


def _slope(name: str, of: str) -> str:
    """The label of a slope, with its unit where both sides have one."""
    unit = unit_of(name.rpartition("(t-")[0] or name)
    return as_label(f"d / d {name}" + (f" [{of} / {unit}]" if of and unit else ""))


def _panel(ax: Any, time: Any, values: Any, label: str) -> None:
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.plot(time, values, color=MIDDLE, linewidth=1)
    ax.set_title(label, fontsize=pt(8), loc="left", pad=4)
    ax.tick_params(labelsize=pt(8))
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
        ax.text(0.995, 0.95, f"{outside} beyond the axis", transform=ax.transAxes, ha="right", va="top", fontsize=pt(7))


def _map(figure: Any, ax: Any, time: Any, values: Any, labels: list[str]) -> None:
    finite = np.abs(values[np.isfinite(values)])
    most = float(np.percentile(finite, 99)) if finite.size else 1.0
    image = ax.imshow(
        np.ma.masked_invalid(values.T), aspect="auto", interpolation="nearest",
        cmap=colours("RdBu_r").with_extremes(bad=GREY), vmin=-(most or 1.0), vmax=most or 1.0,
        extent=(float(time[0]) - 0.5, float(time[-1]) + 0.5, len(labels) - 0.5, -0.5),
    )  # fmt: skip
    ax.set_yticks(range(len(labels)), labels, fontsize=pt(7))
    figure.colorbar(image, ax=ax, pad=0.02, extend="both", label="slope (target per coordinate)")


# Skill of all pairs of a grid of cross maps over one of its axes.


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
        line_style = several(line)
        ax.plot(grid.axes[name], middle, marker="o", markersize=3, label=label or "median of pairs", **line_style)
        ax.fill_between(grid.axes[name], low, high, color=line_style["color"], alpha=0.15, linewidth=0)
    if all(isinstance(value, int) for value in grid.axes[name]):
        whole_steps(ax.xaxis)
    ax.set_xlabel(name)
    ax.set_ylabel("cross-map skill rho\nmedian and middle half of the pairs")
    ax.grid(alpha=0.25)
    legend(ax)
    if title:
        ax.set_title(title, fontsize=pt(11))
    return finished(figure, path, dpi=dpi)


# States and their neighbours: the path through delay coordinates, and how far neighbours are over time.


_PATH = 20_000  # rows of a path; more would only blacken it


def delay_path(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """The first two or three coordinates as a path; one coordinate over time.

    Parameters
    ----------
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
    """
    values, names = np.asarray(result.values)[:_PATH], [with_unit(name) for name in result.names]
    figure = new_figure(5.6, 5.2)
    path_style = {"color": MIDDLE, "linewidth": 0.6, "marker": ".", "markersize": 2.5, "markerfacecolor": DARK,
                  "markeredgecolor": "none"}  # fmt: skip
    if values.shape[1] > 2:
        ax = figure.add_subplot(projection="3d")
        ax.plot(*values[:, :3].T, **path_style)
        ax.set_zlabel(names[2])
        ax.tick_params(labelsize=pt(7))
        ax.set_box_aspect(None, zoom=0.86)  # else the third axis' label lies outside the picture
    else:
        ax = figure.add_subplot()
        columns = values.T if values.shape[1] == 2 else (np.arange(len(values)), values[:, 0])
        ax.plot(*columns, **path_style)
    ax.set_xlabel(names[0] if values.shape[1] > 1 else "time (row)")
    ax.set_ylabel(names[1] if values.shape[1] > 1 else names[0])
    words = [title] if title else []
    if values.shape[1] > 3:
        words.append(f"the first 3 of {values.shape[1]} coordinates")
    if len(result.values) > _PATH:
        words.append(f"the first {_PATH:,} of {len(result.values):,} rows")
    if words:
        ax.set_title(", ".join(words), fontsize=pt(10))
    return finished(figure, path, dpi=dpi)


def neighbour_distances(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Distances to the nearest and to the last neighbour over time; gaps where a row has none.

    Arguments as for :func:`delay_path`.
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
        ax.set_title(title, fontsize=pt(10))
    return finished(figure, path, dpi=dpi)


# Predictions against observations: over time and against each other, and the views that were averaged.


_LEVEL = 0.95  # of the band around forecasts
_SHOWN = 200  # steps of a prediction; more cannot be told apart
_FORECAST_PANEL = 28  # letters beside a panel
_VIEWS = 15  # views that get a bar
_WIDE_ENOUGH = 1.2  # inches of a panel whose ticks have room


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
    """As :func:`predictions`, above the skill by which each of the best views was chosen."""
    shown = result.views[:_VIEWS]
    figure = new_figure(9.6, 3.9 + 0.22 * len(shown))
    bars = 0.6 + 0.22 * len(shown)
    upper, lower = figure.subfigures(2, 1, height_ratios=(3.6 if style().ax is None else bars, bars))
    course, against = upper.subplots(1, 2, width_ratios=(2.4, 1))
    _course(course, result, title)
    _against(against, result)
    ax = lower.add_subplot()
    ax.barh(range(len(shown)), np.nan_to_num(result.view_rho[: len(shown)]), color=MIDDLE, height=0.7)
    if np.isfinite(result.rho):
        ax.axvline(result.rho, color=RED, linewidth=1.4, label=f"their average, rho = {result.rho:.3f}")
        legend(ax, loc="lower right", bbox_to_anchor=(1, 1.0), borderaxespad=0.1)
    ax.set_yticks(range(len(shown)), [as_label(", ".join(view)) for view in shown], fontsize=pt(7))
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
    ax.set_ylabel(folded(_name(result) or "value", _FORECAST_PANEL))
    ax.set_title(title or _heading(result), fontsize=pt(11))
    legend_above(ax)


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
    from matplotlib.ticker import MaxNLocator

    observed, predicted = np.asarray(result.observed), np.asarray(result.predicted)
    many = len(observed) > 5000
    ax.plot(observed, predicted, ".", markersize=1 if many else 3, alpha=0.3 if many else 0.6, color=MIDDLE,
            rasterized=True)  # fmt: skip
    pairs = np.concatenate([observed, predicted])
    if np.isfinite(pairs).any():
        ends = (float(np.nanmin(pairs)), float(np.nanmax(pairs)))
        ax.plot(ends, ends, color="#999999", linewidth=0.8, zorder=0)
    for axis in (ax.xaxis, ax.yaxis) if inches(ax) < _WIDE_ENOUGH else ():
        axis.set_major_locator(MaxNLocator(nbins=2))
    ax.set_xlabel(folded(f"observed {_name(result)}".strip(), _FORECAST_PANEL))
    ax.set_ylabel(folded(f"predicted {_name(result)}".strip(), _FORECAST_PANEL))


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
