"""Figures without a window system and without a global state, and saving them whole or not at all."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from ..errors import InputError, StoreWriteError, missing_extra

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
    # Not through pyplot: that would choose a window system, and keep every figure until it is closed.
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def check_format(path: str | os.PathLike[str]) -> Path:
    """``path`` as a Path. Raises InputError where its suffix names no format of pictures."""
    path = Path(path).expanduser()
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: a picture is written as {', '.join(FORMATS)}, not {path.suffix or '(no suffix)'!r}")
    return path


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
    InputError
        The suffix names no format of pictures.
    StoreWriteError
        The file cannot be written; a file that was there is kept then.
    """
    path = check_format(path)
    memory = io.BytesIO()
    figure.savefig(memory, format=path.suffix.lower()[1:], dpi=dpi)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            draft.write_bytes(memory.getvalue())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise StoreWriteError(
            f"{path}: the picture could not be written ({error.strerror or error}); choose a folder that exists and "
            "may be written, or free some space"
        ) from error
    return path
