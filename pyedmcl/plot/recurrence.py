"""Pictures of recurrence analysis: recurrence and distance plots with axes, histograms of lines, measures by radius."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import several
from ..errors import InputError
from ..results.result import style
from .figure import colours, finished, legend, new_figure, pt, short_dates

if TYPE_CHECKING:
    PathLike = str | os.PathLike[str]

_PANELS = (
    ("diagonal_lines", "diagonal lines", "lmin", ("DET", "L", "Lmax", "ENTR"), "#21526b"),
    ("vertical_lines", "vertical lines", "vmin", ("LAM", "TT", "Vmax", "VENTR"), "#2a788e"),
    ("white_vertical_lines", "white vertical lines", "wmin", ("W", "Wmax", "WENTR", "T2"), "#9aa5ab"),
)
_BARS = 64  # bars of a histogram; longer lines are put together in bins of equal width in the logarithm
_DARKEST = 99.0  # percentile of the densities that is drawn black
_GAP = "#e8d3a2"  # sand: neither near nor far
_EVEN = 0.005  # share of an axis by which points may lie apart from even ones


def darkest(density: NDArray[np.float64]) -> float:
    """The density to draw black: 1 for single cells, else one that few pixels exceed."""
    drawn = density[density > 0]
    if not drawn.size or bool((drawn == 1).all()):
        return 1.0
    return float(np.percentile(drawn, _DARKEST))


def shades(values: NDArray[np.float64], white: float, black: float) -> NDArray[np.uint8]:
    """Values as grey (0 black, 255 white) on a linear scale, upside down: row 0 is the lowest line; NaN is white."""
    with np.errstate(invalid="ignore", divide="ignore"):
        dark = np.clip((values - white) / (black - white), 0.0, 1.0)
    dark[np.isnan(dark)] = 0.0
    return np.ascontiguousarray(np.rint(255 * (1 - dark)).astype(np.uint8)[::-1])


def plot_image(
    values: NDArray[np.float64],
    cells: tuple[int, int],
    path: PathLike | None = None,
    *,
    label: str,
    title: str | None,
    white: float,
    black: float,
    same: bool,
    times: tuple[Any, Any] = (None, None),
    beside: tuple[NDArray[np.float64], ...] | None = None,
    dpi: int = 150,
) -> Any:
    """An image of a recurrence matrix with axes: columns to the right, rows upwards.

    Parameters
    ----------
    values : ndarray (pixel rows, pixel columns)
    cells : (int, int)
        Rows and columns of the matrix.
    path : path, optional
        Also write the picture there; the suffix chooses the format.
    label : str
        What the shades mean; "" for a picture of single cells, which needs no scale.
    white, black : float
        Values drawn so.
    same : bool
        Both axes are the same series.
    times : tuple
        When points begin, of the rows and of the columns; None where that is not known. Axes show it where points are
        evenly spaced, and count points elsewhere.
    beside : (ndarray, ndarray), optional
        Values (points, columns) that are drawn below and to the left, along the axes.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows, columns = cells
    longer = max(rows, columns)
    width, height = 4.8 * max(columns / longer, 0.4), 4.8 * max(rows / longer, 0.3)
    more = 0.0 if beside is None else 0.8
    figure = new_figure(width + (1.6 if label else 0.8) + more, height + 0.6 + more)
    across, up = _axis(times[1], columns), _axis(times[0], rows)
    ax = figure.add_subplot()
    dark = np.clip((values - white) / (black - white), 0.0, 1.0)
    gaps = bool(np.isnan(values).any())
    image = ax.imshow(
        white + dark * (black - white),
        cmap=colours("Greys" if white <= black else "Greys_r").with_extremes(bad=_GAP),
        vmin=min(white, black),
        vmax=max(white, black),
        origin="lower",
        extent=(*across[0], *up[0]),
        aspect=(across[0][1] - across[0][0]) / (up[0][1] - up[0][0]) * rows / columns,
        interpolation="nearest" if max(values.shape) <= 400 else "antialiased",
        interpolation_stage="data",
    )
    for axis, (_, label_of, dates), side in ((ax.xaxis, across, "x"), (ax.yaxis, up, "y")):
        axis.set_label_text(label_of if same else f"{label_of} of {side}")
        if dates is not None:
            axis.axis_date()
            short_dates(axis, dates)
    if title:
        ax.set_title(title, fontsize=pt(10))
    if beside is not None:
        _series_along(ax, beside, (across[0], up[0]))
    if label:
        beyond = bool(np.nanmax(values, initial=0.0) > max(white, black))
        extend = "max" if beyond else "neither"
        label = f"{label} (gaps: sand)" if gaps else label
        figure.colorbar(image, ax=ax, shrink=0.9, pad=0.02, label=label, extend=extend)
    return finished(figure, path, dpi=dpi)


def _series_along(ax: Any, beside: tuple[NDArray[np.float64], ...], ends: tuple[tuple[float, float], ...]) -> None:
    """Draw series below an image and to its left, which take over its labels."""
    width, height = ax.get_window_extent().size
    thin = 0.16 * max(width, height)
    lower = ax.inset_axes([0, -1.15 * thin / height, 1, thin / height], sharex=ax)
    left = ax.inset_axes([-1.15 * thin / width, 0, thin / width, 1], sharey=ax)
    for values, (first, last), panel in zip(beside, ends, (lower, left), strict=True):
        half = (last - first) / len(values) / 2
        where = np.linspace(first + half, last - half, len(values))
        panel.plot(*((where, values) if panel is lower else (values, where)), color="#21526b", linewidth=0.8)
    lower.set_xlabel(ax.get_xlabel())
    left.set_ylabel(ax.get_ylabel())
    lower.yaxis.tick_right()  # away from the corner, where both have numbers
    left.xaxis.tick_top()
    ax.set(xlabel="", ylabel="", xlim=ends[0], ylim=ends[1])
    ax.tick_params(labelbottom=False, labelleft=False)


def _axis(time: Any, points: int) -> tuple[tuple[float, float], str, Any]:
    """Ends of an axis, its label, and the dates along it, if there are any."""
    half = 0.5 / max(points - 1, 1)
    if time is not None and points > 1 and time.dtype.kind in "iufM":
        if time.dtype.kind == "M":
            from matplotlib.dates import date2num

            where = np.asarray(date2num(time))  # type: ignore[no-untyped-call]
        else:
            where = time.astype(np.float64)
        span = where[-1] - where[0]
        even = np.abs(where - np.linspace(where[0], where[-1], points))
        if span > 0 and even.max() <= _EVEN * span:  # months differ by some days; a gap in the rows is not even
            ends = float(where[0] - half * span), float(where[-1] + half * span)
            return ends, "date" if time.dtype.kind == "M" else "time", time if time.dtype.kind == "M" else None
    return (-0.5, points - 0.5), "point", None


def line_histograms(result: Any, path: PathLike | None = None, *, title: str | None = None, dpi: int = 150) -> Any:
    """How many diagonal, vertical and white vertical lines there are of each length, with the measures beside them.

    Lines below the least length are drawn faint. Where lengths are many, they are put together in bins of equal width
    in the logarithm, and the bar is the mean number of lines per length.

    Parameters
    ----------
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(10.5, 3.6)
    for ax, panel in zip(figure.subplots(1, 3), _PANELS, strict=True):
        name, words, least_name, measures, colour = panel
        histogram = np.asarray(getattr(result, name), np.float64)
        least = int(getattr(result, least_name))
        ax.set_title(words, fontsize=pt(10))
        ax.set_xlabel("length")
        edges, heights = _bars(histogram)
        if heights.size and heights.max() > 0:
            kept = edges[:-1] + 0.5 >= least  # bars begin half a step before their first length
            widths = np.diff(edges)
            for part, alpha in ((kept, 1.0), (~kept, 0.35)):
                ax.bar(edges[:-1][part], heights[part], widths[part], align="edge", color=colour, alpha=alpha,
                       linewidth=0)  # fmt: skip
            ax.set_yscale("log")
            if edges[-1] > 50:
                ax.set_xscale("log")
        else:
            ax.text(0.5, 0.5, "none", transform=ax.transAxes, ha="center", va="center", color="#777777")
        told = [f"{measure} = {result[measure]:.5g}" for measure in measures]
        if style().ax is not None:  # a small panel has no room for them
            ax.set_title(f"{words}: {', '.join(told)}", fontsize=pt(8))
            continue
        text = "\n".join(told)
        ax.text(0.97, 0.96, text, transform=ax.transAxes, ha="right", va="top", fontsize=pt(8), linespacing=1.4,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8})  # fmt: skip
    figure.axes[0].set_ylabel("lines of that length")
    figure.suptitle(title or _heading(result), fontsize=pt(11))
    return finished(figure, path, dpi=dpi)


def _bars(histogram: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges and heights of bars for lengths 1, 2, ...: one per length, or means over bins where they are many."""
    longest = len(histogram) - 1
    if longest < 1:
        return np.empty(1), np.empty(0)
    if longest <= _BARS:
        lengths = np.arange(1, longest + 2)
    else:
        lengths = np.unique(np.rint(np.geomspace(1, longest + 1, _BARS)).astype(np.int64))
    totals = np.add.reduceat(histogram, lengths[:-1])
    edges: NDArray[np.float64] = lengths.astype(np.float64) - 0.5
    return edges, totals / np.diff(edges)


def _heading(result: Any) -> str:
    radius = result.radius
    shown = ", ".join(f"{part:.4g}" for part in radius) if isinstance(radius, tuple) else f"{radius:.4g}"
    return f"{result.counts.n_rows:,} x {result.counts.n_columns:,} points, radius {shown}, RR = {result['RR']:.4g}"


def measure_curves(
    table: Any, names: Sequence[str], path: PathLike | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Measures of several matrices over what tells these apart: the radius, or where a window starts.

    Parameters
    ----------
    names : sequence of str
        Short or long names of measures, a panel each.
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names = several("names", names)
    if not names:
        raise InputError(f"names={names!r}: a list of measures is needed, such as ['RR', 'DET']")
    values = [np.asarray(table.measure(name), np.float64) for name in names]
    labels = list(table.labels)
    where = np.array([label[-1] if isinstance(label, tuple) else label for label in labels], np.float64)
    axis = "first point of the window" if table.label == "start" else table.label
    if table.time is not None:
        where, axis = table.time, "date" if table.time.dtype.kind == "M" else "time"
    figure = new_figure(7.6, 1.4 + 1.5 * len(names))
    panels = np.atleast_1d(figure.subplots(len(names), 1, sharex=True))
    for ax, name, row in zip(panels, names, values, strict=True):
        ax.plot(where, row, ".-" if len(where) <= 100 else "-", color="#21526b", linewidth=1.2, markersize=4)
        ax.set_ylabel(name)
        ax.grid(alpha=0.25)
    panels[-1].set_xlabel(axis)
    short_dates(panels[-1].xaxis, where)
    if title:
        panels[0].set_title(title, fontsize=pt(11))
    return finished(figure, path, dpi=dpi)


def tested_curves(
    tested: Any, path: PathLike | None = None, *, band: str = "95 % of surrogates", title: str | None = None,
    dpi: int = 150,
) -> Any:  # fmt: skip
    """Measures of windows with their bands, or those of their surrogates, a panel each.

    Parameters
    ----------
    tested : RqaSignificance or RqaBands
    band : str
        What the legend calls the band.
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(7.6, 1.4 + 1.3 * len(tested.measures))
    panels = np.atleast_1d(figure.subplots(len(tested.measures), 1, sharex=True))
    low, high = tested.band
    for at, (ax, name) in enumerate(zip(panels, tested.measures, strict=True)):
        middle = (low[:, at] + high[:, at]) / 2
        reach = np.stack([middle - low[:, at], high[:, at] - middle])
        ax.errorbar(tested.starts, middle, reach, fmt="none", ecolor="#9aa5ab", elinewidth=5, alpha=0.6,
                    label=band)  # fmt: skip
        ax.plot(tested.starts, tested.value[:, at], ".", color="#21526b", markersize=7, label="series")
        ax.set_ylabel(name)
        ax.grid(alpha=0.25)
    panels[-1].set_xlabel("first row of the window")
    panels[0].legend(fontsize=8, frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    if title:
        panels[0].set_title(title, fontsize=11, loc="left")
    return finished(figure, path, dpi=dpi)


def lag_curve(
    profile: Any, path: PathLike | None = None, *, several: int = 1, title: str | None = None, dpi: int = 150
) -> Any:
    """A lag profile with the band of its surrogates.

    Parameters
    ----------
    profile : LagProfile
        Of one dyad, or the mean of ``several``.
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(6.4, 3.8)
    ax = figure.add_subplot()
    if profile.surrogates is not None:
        (low,), (high,) = profile.band
        ax.fill_between(profile.lags, low, high, color="#9aa5ab", alpha=0.35, linewidth=0,
                        label=f"{profile.level:.0%} of surrogates at each lag")  # fmt: skip
    ax.plot(profile.lags, profile.rate[0], color="#21526b", linewidth=1.4)
    ax.axvline(0, color="#777777", linewidth=0.6)
    ax.set_xlabel("lag (rows): y leads < 0 < x leads")
    ax.set_ylabel("recurrence rate" if several == 1 else f"recurrence rate, mean of {several:,}")
    ax.set_title(title or f"highest at lag {profile.max_lag[0]}", fontsize=pt(11))
    if profile.surrogates is not None:
        legend(ax)
    return finished(figure, path, dpi=dpi)
