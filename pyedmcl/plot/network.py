"""Which series drives which: cross maps as arrows from cause to effect."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..data.columns import many
from ..errors import InputError, shown
from ..io.edges import Strongest, between_series, own_targets
from .figure import as_label, colours, finished, new_figure
from .names import short_names
from .palette import DARK, GREY, cluster_mark, legend
from .places import LAYOUTS, by_forces, clusters_of, on_circle

_NODES = 60  # series that can be told apart on a circle
_ARROWS = 400
_LETTERS, _LETTER = 16, 0.035  # of a name; the width of one, of font size 10, where the circle has radius 1
_PALEST = 0.3  # of the colours: paler ones are lost on white paper


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
    names : sequence of str
    path : path, optional
        Also write the picture there; the suffix chooses the format.
    targets : sequence of str, optional
        Names of the targets, where these are not the N series; one of equal name is the same series.
    keep : array_like of bool, optional
        Of the map's shape: draw these links only, significant ones, say.
    top : int
        Draw at most this many links, the strongest; of 1 to 400. Series without a link are left out where more than 60
        would have to share the circle.
    title : str, optional
    dpi : int
        Dots per inch of the file.
    layout : {"circle", "force"}
        "force" puts series near those that they are linked to.
    clusters : "auto", mapping of names to labels, or sequence of labels, optional
        Series of a cluster have one colour and stand together; "auto" finds clusters from the links that are drawn.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        Shapes do not fit, ``top``, ``layout`` or ``clusters`` cannot be used, or the links join more than 60 series.
    StoreWriteError
        The file cannot be written.
    MissingExtraError
        matplotlib is not installed.
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
    if layout not in LAYOUTS:
        raise InputError(f"layout={shown(layout)}: one of {', '.join(map(repr, LAYOUTS))} is needed")
    links, strength = held.sorted()
    n = len(names)
    drawn = np.arange(n) if n <= _NODES else np.unique(links)
    if len(drawn) > _NODES:
        raise InputError(
            f"top={held.top}: these links join {len(drawn)} series, at most {_NODES} fit; take a smaller top"
        )
    figure = new_figure(7.6, 7.0)
    ax = figure.add_subplot()
    texts, ends = [str(name) for name in names], np.searchsorted(drawn, links)
    weights = np.zeros((len(drawn), len(drawn)))
    weights[ends[:, 0], ends[:, 1]] = strength
    labels = clusters_of(clusters, texts, drawn.tolist(), weights)
    _Picture([texts[i] for i in drawn.tolist()], labels, weights, layout).draw(figure, ax, ends, strength)
    heading = [title] if title else []
    counted = many(len(links), "link") if len(links) else "no link"
    heading.append(f"{counted}, cause → effect" if len(links) == held.total
                   else f"the strongest {len(links):,} of {held.total:,} links, cause → effect")  # fmt: skip
    ax.set_title("\n".join(heading), fontsize=11)
    return finished(figure, path, dpi=dpi)


class _Picture:
    """Series of a network at their places."""

    def __init__(self, names: Sequence[str], labels: Sequence[str], weights: Any, layout: str) -> None:
        self._names = [as_label(name) for name in short_names(names, _LETTERS)]
        self._labels, self._circle = labels, layout == "circle"
        self._font = 10 if len(names) <= 20 else 7.5 if len(names) <= 40 else 6
        self._widths = _LETTER * self._font / 10 * np.array([len(name) for name in self._names], float)
        self._angles = on_circle(labels)
        self._at = (np.column_stack([np.cos(self._angles), np.sin(self._angles)]) if self._circle
                    else by_forces(labels, weights, self._widths))  # fmt: skip

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
        reach = 1.14 / (1 - 0.7 * longest) if self._circle else 1.14 + longest / 2
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
        for name, angle, (x, y) in zip(self._names, self._angles, self._at, strict=True):
            if self._circle:
                left = np.cos(angle) < -1e-9
                ax.text(1.07 * x, 1.07 * y, name, fontsize=font, rotation_mode="anchor",
                        rotation=np.degrees(angle) + (180 if left else 0), ha="right" if left else "left",
                        va="center")  # fmt: skip
            else:
                ax.annotate(name, (x, y), (0, 6), textcoords="offset points", fontsize=font, ha="center", va="bottom")
