"""Grey pictures as PNG files with the standard library alone, written whole or not at all."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import OutputError
from ..files import output_path, path_of, writing

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

    Raises
    ------
    OutputError
        Another suffix, or no such folder.
    StoreWriteError
        The file cannot be written; one that was there is kept.
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
