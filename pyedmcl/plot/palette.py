"""Colours that stay apart for colour-blind readers and in grey, and legends that stay legible over curves."""

from __future__ import annotations

from typing import Any

DARK, MIDDLE, PALE, RED, GREY = "#21526b", "#2a788e", "#9aa5ab", "#d1495b", "#b8b8b8"
# Of two curves each has a colour and a mark of its own.
PAIR = ((MIDDLE, "o", "-"), (RED, "s", "--"))
# Okabe and Ito, https://jfly.uni-koeln.de/color/, without the yellow that white paper swallows.
_SEVERAL = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000")


def several(i: int) -> dict[str, Any]:
    """Colour and dashes of the i-th of several lines."""
    return {"color": _SEVERAL[i % len(_SEVERAL)], "linestyle": ("-", "--", ":")[i // len(_SEVERAL) % 3]}


def legend(ax: Any, **options: Any) -> None:
    """A small legend with a pale ground, so that a curve behind it does not cross its text."""
    ax.legend(**{"fontsize": 8, "loc": "best", "framealpha": 0.85, "edgecolor": "none", **options})


def legend_above(ax: Any) -> None:
    """A legend in one line between the title and the curves, which it cannot cover."""
    entries = len(ax.get_legend_handles_labels()[0])
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "borderaxespad": 0.3, "frameon": False}
    ax.legend(fontsize=8, ncols=max(entries, 1), **place)


def whole_steps(axis: Any, most: int = 12) -> None:
    """Ticks at integers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=most, integer=True, min_n_ticks=1))
