"""Maps as the cells that a page holds: reduced to what a screen can show, put in order, and packed as text."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..io.edges import blank_itself, own_targets
from ..io.optional import need
from ..plot.reduce import block_means

CELLS = 1_400_000  # of all layers of a map together: two bytes each, four letters for three bytes
SIDE = 700  # cells along a side, beyond which they are smaller than a pixel
_ORDERED = 5_000  # series that can be put in order by likeness
_EXACT = 1_000  # series whose order in the tree is the best one

Positions = NDArray[np.int_]


def side_limit(layers: int) -> int:
    """Cells along the longer side of each of so many layers."""
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


def likeness_order(matrix: Any, names: Sequence[str], targets: Sequence[str] | None) -> tuple[Positions, Positions]:
    """Rows and columns in the order of the leaves of a tree in which series with like profiles are neighbours.

    Of a square map series are alike in what they drive and in what drives them, and both sides get one order. The tree
    is that of average linkage over Euclidean distances; NaN counts as no skill.

    Raises
    ------
    InputError
        There are too many series.
    MissingExtraError
        SciPy is not installed.
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


def packed(cells: NDArray[np.float64]) -> dict[str, Any]:
    """Cells as text: 16 bits each from the least to the largest value, little end first; the lowest number is NaN."""
    known = cells[np.isfinite(cells)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    steps = np.full(cells.shape, -32768, "<i2")
    finite = np.isfinite(cells)
    step = (high - low) / 65534 or 1e-9
    steps[finite] = np.rint((cells[finite] - low) / step).astype(np.int64) - 32767
    return {"low": low, "step": step, "cells": base64.b64encode(steps.tobytes()).decode()}
