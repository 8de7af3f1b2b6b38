"""Pictures of all pairs: heat maps in an order that puts like series side by side, and networks."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import boolean, choice, many
from ..errors import InputError, need, shown
from ..launch.progress import report_progress
from ..results.edges import Strongest, between_series, blank_itself, own_targets
from ..results.result import style
from ..results.tables import checked_map
from .figure import DARK, GREY, as_label, cluster_mark, colours, finished, legend, new_figure, pt, short_names

# Means and maxima of blocks, so that a picture of a very large map stays small and needs little memory.


_READ_BYTES = 16 << 20  # of the map held at a time, in float64


def block_means(matrix: Any, limit: int) -> tuple[NDArray[np.float64], int]:
    """``matrix`` reduced to at most ``limit`` rows and columns by means over square blocks.

    Parameters
    ----------
    matrix : array_like
        Shape (N, M); anything with ``shape`` that can be sliced over rows is read in parts.
    limit : int
        At least 1.

    Returns
    -------
    means : ndarray of float64
        Shape (ceil(N / size), ceil(M / size)). NaN cells are left out of a mean; a block of NaN only is NaN.
    size : int
        Edge of a block; 1 where nothing had to be reduced. The last blocks may be narrower.
    """
    shape = tuple(matrix.shape)
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"a map has libraries and targets, this one shape {shape}")
    n, width = shape
    size = -(-max(shape) // limit)
    if size == 1:
        return np.asarray(matrix[:], np.float64), 1
    starts = np.arange(0, width, size)
    total = np.zeros((-(-n // size), len(starts)))
    count = np.zeros(total.shape, np.int32)
    step = max(1, _READ_BYTES // (8 * width))
    for first in range(0, n, step):
        part = np.asarray(matrix[first : first + step], np.float64)
        blocks = np.arange(first, first + len(part)) // size
        finite = ~np.isnan(part)
        np.add.at(total, blocks, np.add.reduceat(np.where(finite, part, 0), starts, axis=1))
        np.add.at(count, blocks, np.add.reduceat(finite, starts, axis=1, dtype=np.int32))
        report_progress(first + len(part), n, "rows")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # 0 / 0 is the NaN that is meant
        total /= count
    return total, size


def block_maxima(parts: Iterable[NDArray[Any]], shape: tuple[int, int], limit: int) -> tuple[NDArray[np.float64], int]:
    """The largest edge of each square block of a map, of at most ``limit`` rows and columns of blocks.

    Parameters
    ----------
    parts : iterable of ndarray
        With the fields library, target and rho.
    shape : (int, int)
        Libraries and targets.
    limit : int
        At least 1.

    Returns
    -------
    maxima : ndarray of float64
        Libraries and targets divided by ``size``, rounded up; NaN where there is no edge.
    size : int
        Edge of a block.
    """
    size = -(-max(shape) // limit)
    maxima = np.full([-(-n // size) for n in shape], -np.inf)
    for part in parts:
        np.maximum.at(maxima, (part["library"] // size, part["target"] // size), part["rho"])
    maxima[np.isneginf(maxima)] = np.nan
    return maxima, size


# The order of a map's series in which those stand side by side that are alike.


_ORDERED = 5_000  # series that can be put in order by likeness
_EXACT = 1_000  # series whose order in the tree is the best one

Positions = NDArray[np.int_]


def likeness_order(matrix: Any, names: Sequence[str], targets: Sequence[str] | None) -> tuple[Positions, Positions]:
    """Rows and columns in the order of the leaves of a tree in which series with like profiles are neighbours.

    Of a square map series are alike in what they drive and in what drives them, and both sides get one order. The tree
    is that of average linkage over Euclidean distances; NaN counts as no skill.
    """
    if max(matrix.shape) > _ORDERED:
        raise InputError(
            f"cluster: the map has {max(matrix.shape):,} series; at most {_ORDERED:,} can be put in order by likeness. "
            "Leave it out"
        )
    need("scipy.cluster.hierarchy", "putting series in order by likeness", "report")
    cells = np.array(matrix[:], np.float64)
    blank_itself(cells, own_targets(list(names), targets), 0)
    cells = np.nan_to_num(cells, nan=0.0)
    if targets is None:
        both = _leaves(np.hstack([cells, cells.T]))
        return both, both
    return _leaves(cells), _leaves(cells.T)


def _leaves(profiles: NDArray[np.float64]) -> Positions:
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(profiles) < 3:
        return np.arange(len(profiles))
    tree = linkage(profiles, "average", optimal_ordering=len(profiles) <= _EXACT)
    return np.asarray(leaves_list(tree), np.int64)


# Heat maps of a cross map, and of the edges that were kept of one.


_NAMED = 40  # names are written at the ticks up to this number of series
_FEW, _LETTERS, _FEWER_LETTERS = 12, 24, 16  # of a name, where there are few series and where there are more
_NUMBERED = 8  # series whose cells have numbers
FEW_FIELDS = 6  # series beside a field, each of which gets a map
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
    marks: Any = None,
    label: str = "cross-map skill rho",
    cluster: bool = False,
) -> Any:
    """Heat map of cross-map skill.

    Row = library (the effect), column = target (the cause): a bright cell [i, j] says that series j left its trace in
    series i, which is evidence that j drives i. Colours run from -1 over white at 0 to 1; the diagonal and NaN are
    grey. Up to eight series have numbers in their cells.

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
    links : array_like of bool, optional
        Of the map's shape, ``links[i, j]``: i is known to drive j. Those cells get a frame.
    max_cells : int
        Larger maps are reduced to at most ``max_cells`` cells per side by means over square blocks.
    ax : matplotlib.axes.Axes, optional
        Draw here instead of in a new figure.
    dpi : int
        Dots per inch of the file.
    marks : array_like of bool, optional
        Of the map's shape: cells that get a star.
    label : str
        What the colours mean.
    cluster : bool
        Put series that are alike side by side, see :func:`pyedmcl.plot.pairs.likeness_order`. Needs SciPy.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if not hasattr(rho, "shape"):
        rho = np.asarray(rho)
    if max_cells < 1:
        raise InputError(f"max_cells={max_cells}: at least 1 is needed")
    if boolean("cluster", cluster):
        rows, across = likeness_order(rho, names, targets)
        place = np.ix_(rows, across)
        rho, marks, links = (None if cells is None else np.asarray(cells[:])[place] for cells in (rho, marks, links))
        names = [names[i] for i in rows]
        targets = None if targets is None else [targets[i] for i in across]
    rho, names, columns, _ = checked_map(rho, names, 1, targets)
    cells, size = block_means(rho, max_cells)
    heading = [] if title is None else [title]
    if size > 1:
        heading.append(f"{_counted(names, targets)}; each cell is the mean of {size} x {size} pairs")
    ax = _picture(cells, size, names, columns, heading, ax, label=label, marks=marks)
    if links is not None:
        _frames(ax, np.asarray(links, bool), rho.shape)
    return finished(ax.figure, path, dpi=dpi)


def field_maps(
    values: NDArray[np.float64], grid: Any, titles: Sequence[str], path: str | os.PathLike[str] | None = None,
    *, label: str,
) -> Any:  # fmt: skip
    """A map of a field of two dimensions for each of a few other series, by its own coordinates.

    Parameters
    ----------
    values : ndarray (n_others, n_cells)
    grid : Grid
        Where the cells lie; those without a series are grey.
    titles : sequence of str
        One for each map.
    label : str
        What the colours mean.

    Returns
    -------
    matplotlib.figure.Figure
    """
    maps, (down, across) = grid.spread(values, 1), grid.dims
    edges = [_edges(grid.coords.get(dim), n) for dim, n in zip(grid.dims, grid.shape, strict=True)]
    columns = min(len(maps), 3)
    rows = -(-len(maps) // columns)
    figure = new_figure(1.2 + 4.2 * columns, 3.6 * rows)
    panels = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for ax, cells, title in zip(panels, maps, titles, strict=False):
        image = ax.pcolormesh(edges[1], edges[0], np.ma.masked_invalid(cells), vmin=-1.0, vmax=1.0,
                              cmap=colours("RdBu_r"), rasterized=True)  # fmt: skip
        ax.set_facecolor(_MISSING)
        ax.set_title(as_label(title), fontsize=pt(10))
        ax.set_xlabel(as_label(across))
        ax.set_ylabel(as_label(down))
    for ax in panels[len(maps):]:
        ax.set_axis_off()
    figure.colorbar(image, ax=list(panels), label=label)
    return finished(figure, path)


def _edges(labels: Any, n: int) -> NDArray[np.float64]:
    """Where cells end along a dimension: half way between its coordinates, or between numbers where it has none."""
    if labels is None or labels.dtype.kind not in "iuf" or n < 2 or not np.isfinite(labels).all():
        return np.arange(n + 1, dtype=np.float64) - 0.5
    at: NDArray[np.float64] = labels.astype(np.float64)
    middle = (at[1:] + at[:-1]) / 2
    ends = 2 * at[0] - middle[0], 2 * at[-1] - middle[-1]
    return np.array([ends[0], *middle, ends[1]], np.float64)


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
    keep : str
        The rule by which they were kept, for the caption.
    targets : sequence of str, optional
        Names of the targets, where these are not the libraries.
    max_cells : int
        Larger maps are reduced to at most ``max_cells`` cells per side by maxima over square blocks.

    Returns
    -------
    matplotlib.figure.Figure
    """
    libraries = [str(name) for name in names]
    columns = libraries if targets is None else [str(name) for name in targets]
    cells, size = block_maxima(parts(), (len(libraries), len(columns)), max_cells)
    heading = [*([] if title is None else [title]), f"{_counted(names, targets)}; kept pairs ({keep}), others are grey"]
    if size > 1:
        heading.append(f"each cell is the largest kept rho of {size} x {size} pairs")
    ax = _picture(cells, size, libraries, columns, heading, None)
    return finished(ax.figure, path, dpi=dpi)


def _counted(names: Sequence[str], targets: Sequence[str] | None) -> str:
    return f"{len(names):,} series" if targets is None else f"{len(names):,} libraries, {len(targets):,} targets"


def _picture(cells: Any, size: int, names: list[str], columns: list[str], heading: list[str], ax: Any,
             *, label: str = "cross-map skill rho", marks: Any = None) -> Any:  # fmt: skip
    """Axes, new ones if None, with the picture of blocks of ``size`` x ``size`` pairs; the diagonal is grey."""
    if ax is None:
        ax = new_figure(8.2, 6.4).add_subplot()
    shades = colours("RdBu_r").with_extremes(bad=_MISSING)
    if size == 1:  # what a series says of itself is no link, and would be the brightest of all
        cells = np.array(cells, np.float64)
        blank_itself(cells, own_targets(names, None if names == columns else columns), 0)
    edges = [length * size - 0.5 for length in cells.shape]  # the last block may reach beyond the last series
    image = ax.imshow(
        np.ma.masked_invalid(cells),
        cmap=shades,
        vmin=-1.0,
        vmax=1.0,
        extent=(-0.5, edges[1], edges[0], -0.5),
        aspect="equal" if max(cells.shape) <= _LONGEST * min(cells.shape) else "auto",
        interpolation="nearest" if max(cells.shape) <= 500 else "antialiased",
        interpolation_stage="data",  # else a mean of two colours may be no colour of the scale
    )
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel("cause (target)")
    ax.set_ylabel("effect (library)")
    if heading:
        ax.set_title("\n".join(heading), fontsize=pt(11))
    _ticks(ax, names, columns)
    if size == 1 and max(cells.shape) <= _NUMBERED:
        _numbers(ax, cells, marks)
    elif marks is not None and size == 1:
        _dots(ax, marks)
    if style().ax is None:
        scale = ax.inset_axes([1.03, 0, 0.04, 1])  # as high as the map, whatever its shape
        ax.figure.colorbar(image, cax=scale, label=label)
    else:  # the layout of a caller's figure knows nothing of what lies in other axes
        ax.figure.colorbar(image, ax=ax, label=label, pad=0.02)
    return ax


def _numbers(ax: Any, cells: Any, marks: Any) -> None:
    for place in np.argwhere(np.isfinite(cells)):
        row, column = map(int, place)
        value = float(cells[row, column])
        star = "*" if marks is not None and marks[row, column] else ""
        ax.text(column, row, f"{value:.2f}{star}", ha="center", va="center", fontsize=pt(8),
                color="white" if abs(value) > 0.7 else "black")  # fmt: skip


def _dots(ax: Any, marks: Any) -> None:
    rows, columns = np.nonzero(marks)
    ax.plot(columns, rows, "*", color="black", markersize=max(2.0, min(7.0, 140 / max(marks.shape))), linestyle="none")


def _ticks(ax: Any, names: list[str], columns: list[str]) -> None:
    for axis, side in ((ax.xaxis, columns), (ax.yaxis, names)):
        n = len(side)
        if n > _NAMED:
            from matplotlib.ticker import MaxNLocator

            axis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=2, steps=(1, 2, 5, 10)))
            continue
        short = [as_label(name) for name in short_names(side, _LETTERS if n <= _FEW else _FEWER_LETTERS)]
        widest = max((len(one) + len(other) for one, other in pairwise(short)), default=0) / 2
        upright = axis is ax.yaxis or (widest + 2) * n <= 70  # else names of columns would overlap
        axis.set_ticks(range(n), short, fontsize=pt(9.0 if n <= 20 else 6.5), rotation=0 if upright else 90)
        axis.set_tick_params(length=2)


def _frames(ax: Any, links: Any, shape: tuple[int, int]) -> None:
    if links.shape != tuple(shape):
        raise InputError(f"links have shape {links.shape}, the map has {tuple(shape)}")
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    cells = [Rectangle((cause - 0.5, effect - 0.5), 1, 1) for cause, effect in np.argwhere(links)]
    width = max(0.5, min(1.6, 60 / max(shape)))
    ax.add_collection(PatchCollection(cells, facecolor="none", edgecolor="#1a1a1a", linewidth=width))


# Where the series of a network stand, and which of them belong together.


Points = NDArray[np.float64]
LAYOUTS = ("circle", "force")
#: Clusters that can be told apart by colour and mark.
MOST_CLUSTERS = 28
_STEPS = 300
_TOGETHER = 1.0  # pull of all others of the cluster, beside a half for a link of full strength
_HEIGHT, _APART_STEPS = 0.13, 200  # of a mark and the name above it


def clusters_of(clusters: Any, names: Sequence[str], drawn: Sequence[int], weights: Points) -> list[str]:
    """The cluster of each series that is drawn, empty for none.

    Parameters
    ----------
    clusters : None, "auto", mapping of names to labels, or sequence of labels
        "auto" finds series that are linked among themselves more than to others (greedy modularity; Clauset, Newman
        and Moore, Phys. Rev. E 70, 066111, 2004).
    names : sequence of str
        Of all series.
    drawn : sequence of int
        Those that are drawn.
    weights : ndarray (n, n)
        Strength of the links among these, 0 for none.
    """
    if clusters is None:
        return [""] * len(drawn)
    if isinstance(clusters, str):
        if clusters != "auto":
            raise InputError(f"clusters={shown(clusters)}: 'auto', or a label for each series by its name, is needed")
        return _communities(weights)
    if isinstance(clusters, Mapping):
        unknown = sorted(set(map(str, clusters)).difference(names))
        if unknown:
            raise InputError(f"clusters: there is no series {shown(unknown[0])}; there are {shown(', '.join(names))}")
        labels = [str(clusters.get(names[number], "")) for number in drawn]
    else:
        cluster_of = list(clusters) if hasattr(clusters, "__len__") else []
        if len(cluster_of) != len(names):
            raise InputError(f"clusters={shown(clusters)}: a label for each of the {len(names)} series is needed")
        labels = [str(cluster_of[number]) for number in drawn]
    count = len({label for label in labels if label})
    if count > MOST_CLUSTERS:
        raise InputError(f"clusters: there are {count}; at most {MOST_CLUSTERS} can be told apart")
    return labels


def _communities(weights: Points) -> list[str]:
    """Labels of clusters, the largest first; empty for series without a link, or alone."""
    share = weights + weights.T
    if not share.any():
        return [""] * len(weights)
    share = share / share.sum()
    ends = share.sum(axis=1)
    members = [[number] for number in range(len(weights))]
    while len(members) > 1:
        gain = share - np.outer(ends, ends)
        np.fill_diagonal(gain, -np.inf)
        one, other = sorted(divmod(int(gain.argmax()), len(members)))
        if gain[one, other] <= 1e-12:
            break
        members[one] += members.pop(other)
        share[one] += share[other]
        share[:, one] += share[:, other]
        ends[one] += ends[other]
        share, ends = np.delete(np.delete(share, other, 0), other, 1), np.delete(ends, other)
    members = sorted((own for own in members if len(own) > 1), key=lambda own: (-len(own), own[0]))[:MOST_CLUSTERS]
    labels = [""] * len(weights)
    for number, own in enumerate(members, 1):
        for member in own:
            labels[member] = f"cluster {number}"
    return labels


def on_circle(labels: Sequence[str]) -> NDArray[np.float64]:
    """The angle of each series on a circle: clusters side by side, with a gap between them, in the order of series."""
    order = [label for label in dict.fromkeys(labels) if label] + [""]
    rows = sorted(range(len(labels)), key=lambda row: order.index(labels[row]))
    breaks = [labels[a] != labels[b] for a, b in itertools.pairwise(rows)]
    gaps = np.cumsum([0, *breaks])[: len(rows)]
    several = len(set(labels)) > 1  # then there is also a gap between the last and the first
    places = len(labels) + (sum(breaks) + 1 if several else 0)
    angles = np.empty(len(labels))
    angles[rows] = np.pi / 2 - 2 * np.pi * (np.arange(len(rows)) + gaps) / max(places, 1)
    return angles


def by_forces(labels: Sequence[str], weights: Points, widths: Points, height: float = 1.0) -> Points:
    """Places (n, 2) from -1 to 1: linked series near each other, all others apart, clusters together.

    ``widths`` are those of names, ``height`` that of their letters, where 1 is what fits a figure of its own.

    Fruchterman and Reingold, Softw. Pract. Exp. 21, 1129 (1991), from the circle, so that there is nothing random.
    """
    n, angles = len(labels), on_circle(labels)
    at = np.column_stack([np.cos(angles), np.sin(angles)])
    if n < 2:
        return at * 0.0
    pull = (weights + weights.T) / max(float(weights.max()), 1e-300) / 2
    same = np.array([[bool(a) and a == b for b in labels] for a in labels], float)
    pull = pull + _TOGETHER * same / np.maximum(same.sum(axis=1), 1.0)
    length = 1.6 / np.sqrt(n)  # between neighbours
    for step in range(_STEPS):
        apart = at[:, None] - at[None]
        distance = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-6)
        np.fill_diagonal(distance, 1.0)
        force = (apart * ((length / distance) ** 2 - pull * distance / length)[..., None]).sum(axis=1) - at * length
        size = np.maximum(np.sqrt((force**2).sum(axis=1)), 1e-9)
        at = at + force / size[:, None] * np.minimum(size, 0.3 * (1 - step / _STEPS))[:, None]
    return _spread(at, widths, _HEIGHT * height)


def _spread(at: Points, widths: Points, height: float) -> Points:
    """Places that fill a square, with room for a mark and a name of each width, as far as there is any."""
    wide = (widths[:, None] + widths[None]) / 2
    for _ in range(_APART_STEPS):
        at = at - (at.max(axis=0) + at.min(axis=0)) / 2
        at = at / np.maximum(np.abs(at).max(axis=0), 1e-9)
        apart = at[:, None] - at[None]
        lacking = np.stack([wide, np.full_like(wide, height)], axis=2) - np.abs(apart)
        near = (lacking > 0).all(axis=2) & ~np.eye(len(at), dtype=bool)
        if not near.any():
            break
        # Whichever way is shorter; of two at one height the first goes up.
        order = np.arange(len(at))
        way = np.where(apart == 0, np.sign(order[None] - order[:, None])[..., None], np.sign(apart))
        shorter = lacking == lacking.min(axis=2, keepdims=True)
        at = at + np.where(near[..., None] & shorter, 0.3 * lacking * way, 0.0).sum(axis=1)
    return at


# Which series drives which: cross maps as arrows from cause to effect.


_NODES = 60  # series that can be told apart on a circle
_ARROWS = 400
_NETWORK_LETTERS, _LETTER = 16, 0.035  # of a name; the width of one, of font size 10, where the circle has radius 1
_PALEST = 0.3  # of the colours: paler ones are lost on white paper
_SIDE = 5.3  # inches of the axes of a network in a figure of its own
_MOST_NAME, _LEAST_LETTERS = 0.75, 4  # of the radius that names may take


def causal_network(
    rho: Any,
    names: Sequence[str],
    path: str | os.PathLike[str] | None = None,
    *,
    targets: Sequence[str] | None = None,
    keep: Any = None,
    top: int = 40,
    title: str | None = None,
    dpi: int = 150,
    layout: str = "circle",
    clusters: Any = None,
) -> Any:
    """Series on a circle, an arrow from cause to effect for each link, the darker and wider the higher its skill.

    Cell [i, j] of the map, the skill with which series i predicts series j, is the arrow from j to i.

    Parameters
    ----------
    rho : array_like
        Shape (N, N) or (N, targets), as of :func:`pyedmcl.xmap`; links of skill 0 or less, or NaN, are not drawn.
    path : path, optional
        Also write the picture there; the suffix chooses the format.
    targets : sequence of str, optional
        Names of the targets, where these are not the N series; one of equal name is the same series.
    keep : array_like of bool, optional
        Of the map's shape: draw these links only, significant ones, say.
    top : int
        Draw at most this many links, the strongest; of 1 to 400. Series without a link are left out where more than 60
        would have to share the circle.
    dpi : int
        Dots per inch of the file.
    layout : {"circle", "force"}
        "force" puts series near those that they are linked to.
    clusters : "auto", mapping of names to labels, or sequence of labels, optional
        Series of a cluster have one colour and stand together; "auto" finds clusters from the links that are drawn.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if not hasattr(rho, "shape"):
        rho = np.asarray(rho)
    everyone, place = _together(names, targets)
    n, shape = len(everyone), (len(names), len(place))
    if tuple(rho.shape) != shape:
        raise InputError(f"the map has shape {tuple(rho.shape)}: {shape} is needed for these names")
    chosen = None if keep is None else np.asarray(keep, bool)
    if chosen is not None and chosen.shape != shape:
        raise InputError(f"keep has shape {chosen.shape}, the map has {shape}")
    links = _Links(top, n)
    for start, values in between_series(rho, own_targets(names, targets)):
        if chosen is not None:
            values[~chosen[start : start + len(values)]] = np.nan
        cells = np.arange(start, start + len(values))[:, None] * n + place
        links.add(values.reshape(-1), cells.reshape(-1))
    return _network(links, everyone, path, title, dpi, layout, clusters)


def _together(names: Sequence[str], targets: Sequence[str] | None) -> tuple[list[str], Any]:
    """All series of a map, libraries first, and where each target stands among them."""
    everyone = list(dict.fromkeys([*names, *(names if targets is None else targets)]))
    place = {name: i for i, name in enumerate(everyone)}
    return everyone, np.array([place[name] for name in (names if targets is None else targets)], np.int64)


def network_of_edges(
    parts: Callable[[], Iterable[Any]],
    names: Sequence[str],
    path: str | os.PathLike[str] | None = None,
    *,
    targets: Sequence[str] | None = None,
    top: int = 40,
    title: str | None = None,
    dpi: int = 150,
    layout: str = "circle",
    clusters: Any = None,
) -> Any:
    """As :func:`causal_network`, of edges that were kept of a map.

    Parameters
    ----------
    parts : callable
        Gives arrays with the fields library, target (positions) and rho.
    names, path, targets, top, title, dpi, layout, clusters
        As for :func:`causal_network`, and so are what it returns and raises.
    """
    everyone, place = _together(names, targets)
    n = len(everyone)
    links = _Links(top, n)
    for part in parts():
        links.add(part["rho"].astype(np.float64), part["library"].astype(np.int64) * n + place[part["target"]])
    return _network(links, everyone, path, title, dpi, layout, clusters)


class _Links:
    """The strongest links of skill above 0, and how many there are."""

    def __init__(self, top: Any, n: int) -> None:
        if isinstance(top, bool) or not isinstance(top, (int, np.integer)) or not 1 <= top <= _ARROWS:
            raise InputError(f"top={top!r}: an integer of 1 to {_ARROWS} arrows is needed")
        self.top, self._n, self.total = int(top), n, 0
        self._strongest = Strongest(self.top)

    def add(self, values: Any, cells: Any) -> None:
        values[~(values > 0)] = np.nan
        self.total += int(np.count_nonzero(~np.isnan(values)))
        self._strongest.add(values, cells)

    def sorted(self) -> tuple[Any, Any]:
        """(effect, cause) and skill, the weakest first, so that strong arrows lie above weak ones."""
        cells = self._strongest.cells[::-1]
        return np.column_stack([cells // self._n, cells % self._n]), self._strongest.values[::-1]


def _network(
    held: _Links, names: Sequence[str], path: str | os.PathLike[str] | None, title: Any, dpi: int, layout: Any,
    clusters: Any,
) -> Any:  # fmt: skip
    layout = choice("layout", layout, LAYOUTS)
    links, strength = held.sorted()
    n = len(names)
    drawn = np.arange(n) if n <= _NODES else np.unique(links)
    if len(drawn) > _NODES:
        raise InputError(
            f"top={held.top}: these links join {len(drawn)} series, at most {_NODES} fit; take a smaller top"
        )
    figure = new_figure(7.6, 7.0)
    ax = figure.add_subplot()
    side = min(ax.get_window_extent().size) / ax.figure.dpi
    texts, ends = [str(name) for name in names], np.searchsorted(drawn, links)
    weights = np.zeros((len(drawn), len(drawn)))
    weights[ends[:, 0], ends[:, 1]] = strength
    labels = clusters_of(clusters, texts, drawn.tolist(), weights)
    _Picture([texts[i] for i in drawn.tolist()], labels, weights, layout, side).draw(figure, ax, ends, strength)
    heading = [title] if title else []
    counted = many(len(links), "link") if len(links) else "no link"
    heading.append(f"{counted}, cause → effect" if len(links) == held.total
                   else f"the strongest {len(links):,} of {held.total:,} links, cause → effect")  # fmt: skip
    ax.set_title("\n".join(heading), fontsize=pt(11))
    return finished(figure, path, dpi=dpi)


class _Picture:
    """Series of a network at their places."""

    def __init__(
        self, names: Sequence[str], labels: Sequence[str], weights: Any, layout: str, side: float
    ) -> None:  # fmt: skip
        self._labels, self._circle = labels, layout == "circle"
        self._font = pt(10 if len(names) <= 20 else 7.5 if len(names) <= 40 else 6)
        self._height = self._font / 10 * _SIDE / side  # of letters, for those of size 10 in a figure of its own
        letter = _LETTER * self._height
        letters = min(_NETWORK_LETTERS, max(int(_MOST_NAME / letter), _LEAST_LETTERS))
        self._names = [as_label(name) for name in short_names(names, letters)]
        self._widths = letter * np.array([len(name) for name in self._names], float)
        self._angles = on_circle(labels)
        self._at = (np.column_stack([np.cos(self._angles), np.sin(self._angles)]) if self._circle
                    else by_forces(labels, weights, self._widths, self._height))  # fmt: skip
        self._below = self._name_below(weights)

    def _name_below(self, weights: Any) -> NDArray[np.bool_]:
        """Of which series more arrows come from above than from below, so that a name above would be struck."""
        apart = self._at[None] - self._at[:, None]
        steep = np.abs(apart[..., 1]) > 0.5 * np.abs(apart[..., 0])
        linked = (weights + weights.T > 0) & steep
        above, below = ((linked & (sign * apart[..., 1] > 0)).sum(axis=1) for sign in (1, -1))
        return np.asarray(above > below)

    def draw(self, figure: Any, ax: Any, links: Any, strength: Any) -> None:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LinearSegmentedColormap, Normalize
        from matplotlib.patches import FancyArrowPatch

        shades = LinearSegmentedColormap.from_list("links", colours("Blues")(np.linspace(_PALEST, 1, 64)))
        scale, width = Normalize(0, 1), min(1.0, 60 / max(len(links), 1))
        for (effect, cause), value in zip(links, strength.tolist(), strict=True):
            ax.add_patch(FancyArrowPatch(
                self._at[cause], self._at[effect], arrowstyle="-|>", mutation_scale=8 + 3 * width, shrinkA=7, shrinkB=7,
                connectionstyle="arc3,rad=0.12",  # bent, so that both directions of a pair are seen
                color=shades(scale(value)), linewidth=0.6 + 2.2 * value * width, zorder=1,
            ))  # fmt: skip
        self._nodes(ax)
        self._texts(ax, self._font)
        longest = self._widths.max(initial=0.0)
        # Around a circle, the wider the picture the smaller is what stands for 1, and the wider are names.
        reach = (1.05 + 0.09 * self._height) / (1 - 0.7 * longest) if self._circle else 1.14 + longest / 2
        ax.set_xlim(-reach, reach)
        ax.set_ylim(-reach, reach)
        ax.set_aspect("equal")
        ax.set_axis_off()
        if len(links):  # else there is no colour to be read
            figure.colorbar(ScalarMappable(scale, shades), ax=ax, shrink=0.6, pad=0.02, label="cross-map skill rho")

    def _nodes(self, ax: Any) -> None:
        size = 8 if len(self._names) <= 30 else 5
        named = [label for label in dict.fromkeys(self._labels) if label]
        for label in ["", *named]:
            where = self._at[[own == label for own in self._labels]]
            mark = cluster_mark(named.index(label)) if label else {"color": DARK if not named else GREY, "marker": "o"}
            if len(where):
                ax.plot(*where.T, linestyle="none", markersize=size, zorder=2, **mark,
                        label=as_label(label) if label else None)  # fmt: skip
        if named:  # below the network, which it cannot cover
            legend(ax, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=min(len(named), 4))

    def _texts(self, ax: Any, font: float) -> None:
        from matplotlib.patheffects import withStroke

        halo = [withStroke(linewidth=2, foreground=ax.get_facecolor())]  # where an arrow must pass
        for name, angle, (x, y), below in zip(self._names, self._angles, self._at, self._below, strict=True):
            if self._circle:
                left = np.cos(angle) < -1e-9
                ax.text(1.07 * x, 1.07 * y, name, fontsize=font, rotation_mode="anchor",
                        rotation=np.degrees(angle) + (180 if left else 0), ha="right" if left else "left",
                        va="center")  # fmt: skip
            else:
                side = (0, -6) if below else (0, 6)
                ax.annotate(name, (x, y), side, textcoords="offset points", fontsize=font, ha="center",
                            va="top" if below else "bottom", path_effects=halo)  # fmt: skip
