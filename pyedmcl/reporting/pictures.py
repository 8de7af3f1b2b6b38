"""Drawings of matplotlib as bytes that a page can hold: vectors, or pixels where these take less room."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import missing_extra
from ..io.style import style
from ..plot.palette import MIDDLE
from .content import Picture

_LARGEST = 400_000  # bytes of a drawing as vectors
_DPI = 150


def require_matplotlib() -> None:
    """Raises MissingExtraError where matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise missing_extra("matplotlib", "report", "a report") from error


def picture(title: str, alt: str, draw: Callable[[], Any]) -> Picture:
    """What ``draw`` gives, a figure, as bytes that are the same each time."""
    import matplotlib

    require_matplotlib()
    # Names within the drawing would be random, and its date that of today.
    with matplotlib.rc_context({"svg.hashsalt": "pyedmcl"}):
        figure = draw()
        vectors = io.BytesIO()
        figure.savefig(vectors, format="svg", metadata={"Date": None, "Creator": None})
    if vectors.tell() <= _LARGEST:
        return Picture(title, vectors.getvalue(), "svg+xml", alt)
    pixels = io.BytesIO()
    figure.savefig(pixels, format="png", dpi=style().dpi or _DPI, metadata={"Software": None})
    return Picture(title, pixels.getvalue(), "png", alt)


def histogram(values: Any, name: str, what: str) -> Picture:
    """Bars of how many of ``what`` have each integer value, such as E."""
    from ..plot.figure import new_figure
    from ..plot.palette import whole_steps

    numbers, counts = np.unique(np.asarray(values).astype(int), return_counts=True)

    def draw() -> Any:
        figure = new_figure(5.2, 2.8)
        ax = figure.add_subplot()
        ax.bar(numbers, counts, width=0.8, color=MIDDLE)
        ax.set_xlim(min(numbers[0], 1) - 0.6, max(numbers[-1], 5) + 0.6)
        ax.set_xlabel(name)
        ax.set_ylabel(what)
        whole_steps(ax.xaxis)
        whole_steps(ax.yaxis, 6)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        return figure

    listed = ", ".join(f"{name} = {number}: {count}" for number, count in zip(numbers, counts, strict=True))
    return picture(f"Histogram of {name}", f"Number of {what} by {name}. {listed}", draw)


def colour_table(name: str, steps: int) -> bytes:
    """Colours of matplotlib from the low to the high end: red, green and blue of each, a byte each."""
    import matplotlib

    shades = matplotlib.colormaps[name](np.linspace(0, 1, steps))[:, :3]
    return bytes(np.rint(255 * shades).astype(np.uint8))
