"""Maps as the cells that a page holds: reduced to what a screen can show, put in order, and packed as text."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..io.edges import blank_itself
from ..plot.order import Positions
from ..plot.reduce import block_means

CELLS = 1_400_000  # of all layers of a map together: two bytes each, four letters for three bytes
SIDE = 700  # cells along a side, beyond which they are smaller than a pixel


def side_limit(layers: int) -> int:
    """Cells along the longer side of each of ``layers`` layers."""
    return min(SIDE, int((CELLS / max(layers, 1)) ** 0.5))


def reduced(
    matrix: Any, limit: int, itself: Positions | None, order: tuple[Positions, Positions] | None
) -> tuple[NDArray[np.float64], int]:
    """A map of at most ``limit`` cells a side, and the edge of the blocks whose means they are.

    Parameters
    ----------
    matrix : array_like (rows, columns)
        Anything with ``shape`` that can be sliced over rows.
    itself : ndarray of int or None
        Of each row the column that is the same series, else -1; those cells are blank. None leaves all.
    order : (ndarray, ndarray) or None
        Positions of rows and columns in the order in which they are shown.
    """
    if order is None:
        cells, size = block_means(matrix, limit)
        if size == 1 and itself is not None:
            cells = np.array(cells, np.float64)
            blank_itself(cells, itself, 0)
        return cells, size
    whole = np.array(matrix[:], np.float64)
    if itself is not None:
        blank_itself(whole, itself, 0)
    return block_means(whole[np.ix_(*order)], limit)


def packed(cells: NDArray[np.float64]) -> dict[str, Any]:
    """Cells as text: 16 bits each from the least to the largest value, little end first; the lowest number is NaN."""
    finite_cells = cells[np.isfinite(cells)]
    low, high = (float(finite_cells.min()), float(finite_cells.max())) if finite_cells.size else (0.0, 0.0)
    steps = np.full(cells.shape, -32768, "<i2")
    finite = np.isfinite(cells)
    step = (high - low) / 65534 or 1e-9
    steps[finite] = np.rint((cells[finite] - low) / step).astype(np.int64) - 32767
    return {"low": low, "step": step, "cells": base64.b64encode(steps.tobytes()).decode()}
