"""Colours that stay apart for colour-blind readers and in grey, and legends that stay legible over curves."""

from __future__ import annotations

import textwrap
from typing import Any

from ..io.style import style

_LINE = 80  # letters of a line of a legend
_LEGEND_LINE, _FEW_LINES = 0.16, 3  # inches of such a line; lines that find room in any figure
_BELOW = 0.5  # inches that tick labels and the label of an axis take
DARK, MIDDLE, PALE, RED, GREY = "#21526b", "#2a788e", "#9aa5ab", "#d1495b", "#b8b8b8"
# Of two curves each has a colour and a mark of its own.
PAIR = ((MIDDLE, "o", "-"), (RED, "s", "--"))
# Okabe and Ito, https://jfly.uni-koeln.de/color/, without the yellow that white paper swallows.
_SEVERAL = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000")


def several(i: int) -> dict[str, Any]:
    """Colour and dashes of the i-th of several lines."""
    return {"color": _SEVERAL[i % len(_SEVERAL)], "linestyle": ("-", "--", ":")[i // len(_SEVERAL) % 3]}


def cluster_mark(i: int) -> dict[str, Any]:
    """Colour and mark of the i-th of several clusters of nodes."""
    return {"color": _SEVERAL[i % len(_SEVERAL)], "marker": "os^D"[i // len(_SEVERAL) % 4]}


def folded(text: str, letters: int) -> str:
    """A text in lines of at most ``letters`` letters."""
    return "\n".join(textwrap.fill(line, letters) for line in text.split("\n"))


def legend(ax: Any, **options: Any) -> None:
    """A small legend below the axes, where it covers no data, and for which the figure grows.

    With ``options`` it lies within the axes, on a pale ground.
    """
    if options or style().ax is not None:
        ax.legend(**{"fontsize": 8, "loc": "best", "framealpha": 0.85, "edgecolor": "none", **options})
        return
    from matplotlib.transforms import ScaledTranslation

    drawn, said = ax.get_legend_handles_labels()
    labels = [folded(label, _LINE - 6) for label in said]
    columns = max(min(len(labels), _LINE // (max(map(len, said), default=0) + 6)), 1)
    below = ax.transAxes + ScaledTranslation(0, -_BELOW, ax.figure.dpi_scale_trans)
    ax.legend(drawn, labels, fontsize=8, loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below, borderaxespad=0,
              frameon=False, ncols=columns)  # fmt: skip
    # Without this a long legend takes its room from the curves. A part of a figure cannot grow.
    if style().figsize is None and hasattr(ax.figure, "set_figheight"):
        lines = sum(label.count("\n") + 1 for label in labels) / columns
        ax.figure.set_figheight(ax.figure.get_figheight() + _LEGEND_LINE * max(lines - _FEW_LINES, 0))


def legend_above(ax: Any) -> None:
    """A legend in one line between the title and the curves, which it cannot cover."""
    entries = len(ax.get_legend_handles_labels()[0])
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "borderaxespad": 0.3, "frameon": False}
    ax.legend(fontsize=8, ncols=max(entries, 1), **place)


def whole_steps(axis: Any, most: int = 12) -> None:
    """Ticks at integers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=most, integer=True, min_n_ticks=1))
