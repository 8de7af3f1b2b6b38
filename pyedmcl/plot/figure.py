"""Figures without a window system, saved whole or not at all: palette, names, and grey PNG files."""

from __future__ import annotations

import functools
import io
import os
import struct
import textwrap
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atomic_files import output_path, path_of, writing
from ..errors import InputError, OutputError, missing_extra, shown
from ..results.result import printable, style, titled, unit_of

# Grey pictures as PNG files with the standard library alone, written whole or not at all.


_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EFFORT = 6  # of the compression: 1 to 9


def png_bytes(grey: NDArray[np.uint8]) -> bytes:
    """An 8-bit grey picture as the bytes of a PNG file (ISO/IEC 15948).

    Parameters
    ----------
    grey : ndarray of uint8 (height, width)
        The first row is the uppermost; 0 is black.
    """
    height, width = grey.shape
    # Each line begins with the number of its filter: 0, none, compresses plots of few shades best.
    lines = np.zeros((height, width + 1), np.uint8)
    lines[:, 1:] = grey
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), _EFFORT)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def save_png(grey: NDArray[Any], path: str | os.PathLike[str]) -> Path:
    """Write a grey picture; a file that is there is replaced once the new one is complete.

    Parameters
    ----------
    grey : ndarray of uint8 (height, width)
    path : path
        Ends in .png.

    Returns
    -------
    pathlib.Path
    """
    path = check_png(path)
    with writing(path, "the picture") as draft:
        draft.write(png_bytes(np.asarray(grey, np.uint8)))
    return path


def check_png(path: str | os.PathLike[str]) -> Path:
    """``path`` as a Path. Raises OutputError where it does not end in .png, or there is no such folder."""
    path = path_of(path)
    if path.suffix.lower() != ".png":
        raise OutputError(f"{path}: the pixels are saved as .png; plot(path) draws them with axes in other formats too")
    return output_path(path)


# Colours that stay apart for colour-blind readers and in grey, and legends that stay legible over curves.


_LINE = 80  # letters of a line of a legend
_LEGEND_LINE, _FEW_LINES = 0.16, 3  # inches of such a line; lines that find room in any figure
_GAP, _BELOW = 0.1, 0.45  # inches of marks, and of tick labels and the label of an axis at letters of 10 points
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
    if options:
        ax.legend(**{"fontsize": pt(8), "loc": "best", "framealpha": 0.85, "edgecolor": "none", **options})
        return
    from matplotlib.transforms import ScaledTranslation

    line = min(_LINE, int(72 * inches(ax) / (_LETTER_WIDTH * pt(8)))) if style().ax is not None else _LINE
    drawn, said = ax.get_legend_handles_labels()
    labels = [folded(label, max(line - 6, 12)) for label in said]
    columns = max(min(len(labels), line // (max(map(len, said), default=0) + 6)), 1)
    below = ax.transAxes + ScaledTranslation(0, -_GAP - _BELOW * pt(1), ax.figure.dpi_scale_trans)
    ax.legend(drawn, labels, fontsize=pt(8), loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below,
              borderaxespad=0, frameon=False, ncols=columns)  # fmt: skip
    # Without this a long legend takes its room from the curves. A part of a figure cannot grow.
    if style().figsize is None and style().ax is None and hasattr(ax.figure, "set_figheight"):
        lines = sum(label.count("\n") + 1 for label in labels) / columns
        ax.figure.set_figheight(ax.figure.get_figheight() + _LEGEND_LINE * max(lines - _FEW_LINES, 0))


def legend_above(ax: Any) -> None:
    """A legend in one line between the title and the curves, or in several lines where the axes are narrow."""
    said = ax.get_legend_handles_labels()[1]
    room = 72 * inches(ax) / (_LETTER_WIDTH * pt(8))
    columns = max(len(said), 1) if style().ax is None or sum(len(one) + 6 for one in said) <= room else 1
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "borderaxespad": 0.3, "frameon": False}
    ax.legend(fontsize=pt(8), ncols=columns, **place)
    # Room for it below the title, which stands above.
    size = ax.title.get_fontsize()
    ax.set_title(ax.get_title(), fontsize=size, pad=pt(8) * (1 + 1.45 * -(-len(said) // columns)) + 4)


def whole_steps(axis: Any, most: int = 12) -> None:
    """Ticks at integers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=most, integer=True, min_n_ticks=1))


# Names of series that are too long for a picture, shortened so that they still differ.


_MARK = "…"
_BEFORE = 3  # letters before the first that differs


def short_names(names: Sequence[str], letters: int) -> list[str]:
    """Names of at most ``letters``: cut at their ends, or, where several then read alike, before they differ."""
    shortened = [name if len(name) <= letters else name[: letters - 1] + _MARK for name in names]
    for text in {text for text in shortened if shortened.count(text) > 1}:
        alike = [place for place, own in enumerate(shortened) if own == text]
        first, last = min(names[place] for place in alike), max(names[place] for place in alike)
        same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        head = letters // 4
        begin = max(same - _BEFORE, head)
        for place in alike:
            tail = names[place][begin:]
            room = letters - head - 1
            tail = tail if len(tail) <= room else tail[: room - 1] + _MARK
            shortened[place] = names[place][:head] + _MARK + tail
    return shortened


FORMATS = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".webp", ".tif", ".tiff")


def new_figure(width: float, height: float) -> Any:
    """An empty figure of ``width`` x ``height`` inches."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("matplotlib", "plot", "a picture") from error
    if style().ax is not None:
        given = style().ax
        return given if hasattr(given, "subfigures") else Place(np.ravel(np.array(given, object)).tolist())
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


def pt(size: float) -> float:
    """A size of letters, of a page whose text has the size that ``font.size`` of matplotlib says (10 by default)."""
    from matplotlib import rcParams

    return size * float(rcParams["font.size"]) / 10


class Place:
    """Axes of the caller in place of a figure: one panel is drawn on them, several on as many, or in their space."""

    def __init__(self, axes: Sequence[Any]) -> None:
        self.axes = list(axes)

    @property
    def whole(self) -> Any:
        """The caller's figure."""
        return self.axes[0].figure

    def add_subplot(self, projection: str | None = None) -> Any:
        """The axes themselves. Raises InputError where they have not the projection that is needed."""
        (ax,) = self._of(1)
        if projection is not None and ax.name != projection:
            raise InputError(f"ax: this picture needs axes with projection={projection!r}; make them with it")
        return ax

    def subplots(
        self, nrows: int = 1, ncols: int = 1, *, squeeze: bool = True, sharex: bool = False, sharey: bool = False,
        **ratios: Any,
    ) -> Any:  # fmt: skip
        """As many axes as panels, or panels in the space of one, which is hidden; in a narrow one below each other."""
        if len(self.axes) > 1 or nrows * ncols == 1:
            panels = np.array(self._of(nrows * ncols), object).reshape(nrows, ncols)
            return panels if not squeeze else panels.ravel() if panels.size > 1 else panels[0, 0]
        (ax,) = self.axes
        spec = ax.get_subplotspec()
        if spec is None:
            raise InputError("ax: this picture has several panels; axes of a grid are needed, as plt.subplots() gives")
        ax.set_axis_off()
        narrow = ncols > 1 and inches(ax) < _PANEL_INCHES * ncols
        if narrow:
            nrows, ncols, ratios = nrows * ncols, 1, {}
        panels = spec.subgridspec(nrows, ncols, **ratios).subplots(sharex=sharex, sharey=sharey, squeeze=False)
        self.axes = list(panels.ravel())
        return panels.T if narrow and not squeeze else panels if not squeeze else panels.ravel()

    def _of(self, count: int) -> list[Any]:
        if len(self.axes) != count:
            raise InputError(
                f"ax: this picture has {count} panel{'s' if count > 1 else ''}, and {len(self.axes)} axes were given; "
                "give as many, or a SubFigure"
            )
        return self.axes

    def subfigures(self, *_: Any, **__: Any) -> Any:
        """Never: raises InputError."""
        raise InputError("ax: this picture has several parts; a SubFigure is needed, as figure.subfigures() gives")

    def colorbar(self, image: Any, **options: Any) -> Any:
        """Beside the axes."""
        return self.whole.colorbar(image, **options)

    def suptitle(self, text: str, **options: Any) -> Any:
        """Over the first panel, in the lines above its own title."""
        first = self.axes[0]
        side = next((side for side in ("left", "center") if first.get_title(loc=side)), "center")
        own = first.get_title(loc=side)
        return first.set_title(f"{text}\n{own}" if own else text, loc=side, **options)


_PANEL_INCHES = 2.2  # of each of several panels side by side


def inches(ax: Any) -> float:
    """How wide axes are, as far as that is known before a picture is laid out."""
    return float(ax.get_window_extent().width / ax.figure.dpi)


def fold_titles(axes: Sequence[Any]) -> None:
    """Break titles into lines that are not longer than their axes are wide."""
    for ax in axes:
        for title in (ax.title, ax._left_title):
            if title.get_text():
                letters = int(72 * inches(ax) / (_LETTER_WIDTH * title.get_fontsize()))
                title.set_text(folded(title.get_text(), max(letters, 12)))


_LETTER_WIDTH = 0.6  # of a letter, for one of its height


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
    return printable(name).replace("$", r"\$")


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
    path : path, optional
        Where the picture is also written; the suffix chooses the format. Functions that draw also take a ``title``.
    dpi : int
        Dots per inch of the file.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if style().ax is not None:
        fold_titles(figure.axes)
        above = getattr(figure, "_suptitle", None)
        if above is not None:
            letters = int(72 * figure.bbox.width / figure.dpi / (_LETTER_WIDTH * above.get_fontsize()))
            above.set_text(folded(above.get_text(), letters))
    if path is not None:
        save_figure(figure, path, dpi=dpi)
    return figure


def save_figure(figure: Any, path: str | os.PathLike[str], *, dpi: int = 150) -> Path:
    """Write a figure; the suffix chooses the format. A file that is there is replaced once the new one is complete.

    Parameters
    ----------
    dpi : int
        Dots per inch.

    Returns
    -------
    pathlib.Path
        Where it was written.
    """
    path = check_format(path)
    memory = io.BytesIO()
    titled(figure)
    try:
        whole = getattr(figure, "whole", figure).figure
        whole.savefig(memory, format=path.suffix.lower()[1:], dpi=style().dpi or dpi)
    except Exception as error:  # of matplotlib, about a title, say, which it cannot typeset
        raise InputError(f"{path}: matplotlib cannot draw this picture ({type(error).__name__}: {error})") from error
    with writing(path, "the picture") as draft:
        draft.write(memory.getbuffer())
    return path
