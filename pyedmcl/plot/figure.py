"""Figures without a window system and without a global state, and saving them whole or not at all."""

from __future__ import annotations

import functools
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, missing_extra, shown
from ..files import output_path, writing
from ..io.style import style, titled, unit_of

FORMATS = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".webp", ".tif", ".tiff")


def new_figure(width: float, height: float) -> Any:
    """An empty figure of ``width`` x ``height`` inches.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("matplotlib", "plot", "a picture") from error
    if style().ax is not None:
        return Place(style().ax)
    # Not through pyplot: that would choose a window system, and keep every figure until it is closed.
    # "compressed" is "constrained" that also measures the labels of axes with a fixed shape, such as squares.
    figure: Any = Figure(figsize=style().figsize or (width, height), layout="compressed")
    FigureCanvasAgg(figure)
    figure._repr_png_ = functools.partial(_shown, figure)
    return figure


def _shown(figure: Any) -> bytes:
    """The picture as a notebook shows it; without this a cell shows text unless pyplot was imported before."""
    memory = io.BytesIO()
    figure.savefig(memory, format="png")
    return memory.getvalue()


class Place:
    """Axes of the caller in place of a figure: one panel is drawn on them, several in their space.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    """

    def __init__(self, ax: Any) -> None:
        self._ax = ax
        self.axes = [ax]

    @property
    def whole(self) -> Any:
        """The caller's figure."""
        return self._ax.figure

    def add_subplot(self, projection: str | None = None) -> Any:
        """The axes themselves. Raises InputError where they have not the projection that is needed."""
        if projection is not None and self._ax.name != projection:
            raise InputError(f"ax: this picture needs axes with projection={projection!r}; make them with it")
        return self._ax

    def subplots(
        self, nrows: int = 1, ncols: int = 1, *, squeeze: bool = True, sharex: bool = False, sharey: bool = False,
        **ratios: Any,
    ) -> Any:  # fmt: skip
        """Panels in the space of the axes, which are hidden."""
        spec = self._ax.get_subplotspec()
        if spec is None:
            raise InputError("ax: this picture has several panels; axes of a grid are needed, as plt.subplots() gives")
        self._ax.set_axis_off()
        grid = spec.subgridspec(nrows, ncols, **ratios)
        panels = grid.subplots(sharex=sharex, sharey=sharey, squeeze=squeeze)
        self.axes = list(np.ravel(panels))
        return panels

    def subfigures(self, *_: Any, **__: Any) -> Any:
        """Never: raises InputError."""
        raise InputError("ax: this picture has several parts and cannot lie in other axes; leave ax out")

    def colorbar(self, image: Any, **options: Any) -> Any:
        """Beside the axes."""
        return self.whole.colorbar(image, **options)

    def suptitle(self, text: str, **options: Any) -> Any:
        """Over the first panel, above its own title."""
        return self._ax.set_title(text, pad=24 if len(self.axes) > 1 else 6, **options)


def colours(default: str) -> Any:
    """The colour map that was asked for, or the picture's own. Raises InputError for one that is not there."""
    from matplotlib import colormaps
    from matplotlib.colors import Colormap

    cmap = style().cmap
    if cmap is None:
        return colormaps[default]
    if isinstance(cmap, Colormap):
        return cmap
    if not isinstance(cmap, str) or cmap not in colormaps:
        raise InputError(f"cmap={shown(cmap)}: a colour map of matplotlib is needed, such as 'magma', or its name")
    return colormaps[cmap]


def as_label(name: object) -> str:
    """The name of a series as a text of a picture: never a formula, and without control characters."""
    text = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in str(name))
    return text.replace("$", r"\$")


def with_unit(name: object) -> str:
    """The label of an axis of values of a series: its name, also that of a coordinate such as x(t-1), and its unit."""
    base, lag, _ = str(name).rpartition("(t-")
    unit = unit_of(base if lag else str(name))
    return as_label(f"{name} [{unit}]" if unit else name)


def moments(result: Any) -> tuple[Any, str]:
    """Where predictions lie on an axis of time, and the axis' label: dates as the data have them, or rows."""
    dates: Any = getattr(result, "dates", None)
    if dates is not None and dates.dtype.kind in "iufM" and not np.isnan(dates).any():
        return dates, "date" if dates.dtype.kind == "M" else "time"
    return np.asarray(result.time), "time (row)"


def short_dates(axis: Any, where: Any) -> None:
    """Dates of an axis in few words that do not overlap."""
    if np.asarray(where).dtype.kind == "M":
        from matplotlib import dates

        locator: Any = dates.AutoDateLocator(minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def check_format(path: str | os.PathLike[str]) -> Path:
    """``path`` as a Path. Raises OutputError where no picture can be written there."""
    return output_path(path, FORMATS, "a picture")


def finished(figure: Any, path: str | os.PathLike[str] | None, *, dpi: int = 150) -> Any:
    """Write a picture to ``path`` where one is named: what all functions do in the end that draw a figure.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    path : path, optional
        Where the picture is also written; the suffix chooses the format. Functions that draw also take a ``title``.
    dpi : int
        Dots per inch of the file.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    OutputError, InputError, StoreWriteError
        See :func:`save_figure`.
    MissingExtraError
        matplotlib is not installed.
    """
    if path is not None:
        save_figure(figure, path, dpi=dpi)
    return figure


def save_figure(figure: Any, path: str | os.PathLike[str], *, dpi: int = 150) -> Path:
    """Write a figure; the suffix chooses the format. A file that is there is replaced once the new one is complete.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    path : path
    dpi : int
        Dots per inch.

    Returns
    -------
    pathlib.Path
        Where it was written.

    Raises
    ------
    OutputError
        The suffix names no format of pictures, or there is no such folder.
    InputError
        matplotlib cannot draw it.
    StoreWriteError
        The file cannot be written; a file that was there is kept then.
    """
    path = check_format(path)
    memory = io.BytesIO()
    titled(figure)
    try:
        getattr(figure, "whole", figure).savefig(memory, format=path.suffix.lower()[1:], dpi=style().dpi or dpi)
    except Exception as error:  # of matplotlib, about a title, say, which it cannot typeset
        raise InputError(f"{path}: matplotlib cannot draw this picture ({type(error).__name__}: {error})") from error
    with writing(path, "the picture") as draft:
        draft.write(memory.getbuffer())
    return path
