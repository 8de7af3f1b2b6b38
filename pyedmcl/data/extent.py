"""Least and largest value of each series, in one pass over the data; series that never change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK_CELLS = 1 << 17  # what both reductions find in the cache
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
    n_steps, n = values.shape
    fold = min(max(_WIDE // n, 1), n_steps)
    whole = n_steps // fold * fold
    wide = values[:whole].reshape(-1, fold * n)  # several steps side by side
    low, high = wide[0].copy(), wide[0].copy()
    rows = max(1, _BLOCK_CELLS // wide.shape[1])
    for start in range(0, len(wide), rows):
        block = wide[start : start + rows]
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
    rest = values[whole:]
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
