"""How many cells there are: denominators, with the gaps of the series taken into account."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .counts import Histogram, trimmed

Mask = NDArray[np.bool_]


def cells_within(rows: Mask, columns: Mask, theiler: int) -> int:
    """Cells (i, j) of complete points with |i - j| < theiler.

    Parameters
    ----------
    rows, columns : ndarray of bool
        Points without a gap.
    theiler : int
    """
    if theiler == 0:
        return 0
    if rows.all() and columns.all():
        return int(_complete_cells(len(rows), len(columns), np.arange(1 - theiler, theiler)).sum())
    before = np.concatenate([[0], np.cumsum(columns, dtype=np.int64)])
    at = np.flatnonzero(rows)
    first = np.clip(at - theiler + 1, 0, len(columns))
    end = np.clip(at + theiler, 0, len(columns))
    return int((before[end] - before[first]).sum())


def cells_of_columns(rows: Mask, columns: Mask, theiler: int) -> NDArray[np.int64]:
    """Cells of complete points with |i - j| >= theiler in each column."""
    before = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
    j = np.arange(len(columns))
    first, end = (np.clip(j + at, 0, len(rows)) for at in (1 - theiler, theiler))
    within = before[end] - before[first] if theiler else 0
    counted: NDArray[np.int64] = np.where(columns, before[-1] - within, 0)
    return counted


def cells_by_offset(rows: Mask, columns: Mask) -> NDArray[np.int64]:
    """Cells of complete points at each offset j - i = -(rows - 1), ..., columns - 1."""
    n, m = len(rows), len(columns)
    if rows.all() and columns.all():
        return _complete_cells(n, m, np.arange(-(n - 1), m))
    size = 1 << (n + m - 1).bit_length()
    spectrum = np.fft.rfft(columns.astype(np.float64), size) * np.fft.rfft(rows[::-1].astype(np.float64), size)
    return np.rint(np.fft.irfft(spectrum, size)[: n + m - 1]).astype(np.int64)


def _complete_cells(n: int, m: int, offset: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cells at each offset of a matrix of n x m points without gaps."""
    cells: NDArray[np.int64] = np.minimum(n + offset, m - offset)
    np.minimum(cells, min(n, m), out=cells)
    return np.maximum(cells, 0, out=cells)


def cells_of_both_sides(rows: Mask, columns: Mask) -> NDArray[np.int64]:
    """:func:`both_sides` of :func:`cells_by_offset`."""
    n, m = len(rows), len(columns)
    if not (rows.all() and columns.all()):
        return both_sides(cells_by_offset(rows, columns), n)
    d = np.arange(min(n, m))
    cells = _complete_cells(n, m, d)
    cells[1:] += cells[1:] if n == m else _complete_cells(n, m, -d[1:])
    return cells


def both_sides(by_offset: NDArray[np.int64], n_rows: int) -> NDArray[np.int64]:
    """Sums over the offsets d and -d, d = 0, ..., min(rows, columns) - 1."""
    middle = n_rows - 1
    n = min(n_rows, len(by_offset) - middle)
    folded = by_offset[middle : middle + n].copy()
    folded[1:] += by_offset[middle - n + 1 : middle][::-1]
    return folded


def identity_lines(complete: Mask) -> Histogram:
    """Lines of the main diagonal, which gaps interrupt, as a histogram of their lengths."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], complete, [False]]).astype(np.int8)))
    return trimmed(np.bincount(edges[1::2] - edges[::2], minlength=1))


def sum_of(first: Histogram, second: Histogram) -> Histogram:
    """Two histograms of different length added."""
    total = np.zeros(max(len(first), len(second)), np.int64)
    total[: len(first)] += first
    total[: len(second)] += second
    return total
