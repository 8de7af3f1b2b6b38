"""Least and largest value of each series, in one pass over the data; series that never change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .side_by_side import n_threads, side_by_side

_BLOCK_CELLS = 1 << 19  # what both reductions find in the cache, and enough to keep threads from waiting for each other
_LEAST_BYTES = 1 << 20  # that repay handing them to another thread
_WIDE = 512  # NumPy reduces rows as short as a few numbers some hundred times slower


def extent(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Minimum and maximum of each column.

    Parameters
    ----------
    values : ndarray (n_steps, n_series)
        C-contiguous, of at least one step.

    Returns
    -------
    low, high : ndarray (n_series,)
        NaN where a column has a NaN.
    """
    n_steps, most = len(values), values.nbytes // _LEAST_BYTES
    if most < 2:
        return _extent(values)
    rows = -(-n_steps // min(most, n_threads(), n_steps))
    several = side_by_side(_extent, [values[a : a + rows] for a in range(0, n_steps, rows)])
    return np.minimum.reduce([low for low, _ in several]), np.maximum.reduce([high for _, high in several])


def _extent(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    n_steps, n = values.shape
    fold = min(max(_WIDE // n, 1), n_steps)
    folded_steps = n_steps // fold * fold
    wide = values[:folded_steps].reshape(-1, fold * n)  # several steps side by side
    low, high = wide[0].copy(), wide[0].copy()
    rows = max(1, _BLOCK_CELLS // wide.shape[1])
    for start in range(0, len(wide), rows):
        block = wide[start : start + rows]
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
    rest = values[folded_steps:]
    low = np.concatenate([low.reshape(fold, n), rest]).min(axis=0)
    high = np.concatenate([high.reshape(fold, n), rest]).max(axis=0)
    return low, high


def bounds(
    values: NDArray[Any], known: tuple[NDArray[Any], NDArray[Any]] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Minimum and maximum of what is present of each column, 0 and 0 where nothing is, and which columns have gaps.

    Parameters
    ----------
    values : ndarray (n_steps, n_series)
    known : (ndarray, ndarray), optional
        Their :func:`extent`, where it has been found before.
    """
    low, high = (bound.astype(np.float64) for bound in known or extent(values))
    gaps = np.isnan(low)
    for column in np.flatnonzero(gaps):
        present = values[~np.isnan(values[:, column]), column]
        low[column], high[column] = (present.min(), present.max()) if present.size else (0.0, 0.0)
    return low, high, gaps


def present_extent(values: NDArray[Any]) -> tuple[float, float]:
    """Minimum and maximum of all values that are present; NaN and NaN where none is.

    Parameters
    ----------
    values : ndarray
        C-contiguous, of at least one value.
    """
    flat = values.reshape(-1)
    if values.nbytes <= _LEAST_BYTES:
        return float(np.fmin.reduce(flat)), float(np.fmax.reduce(flat))
    blocks = [flat[a : a + _BLOCK_CELLS] for a in range(0, len(flat), _BLOCK_CELLS)]
    several = side_by_side(lambda block: (np.fmin.reduce(block), np.fmax.reduce(block)), blocks)
    return float(np.fmin.reduce([low for low, _ in several])), float(np.fmax.reduce([high for _, high in several]))
