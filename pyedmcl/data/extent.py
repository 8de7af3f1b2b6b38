"""Least and largest value of each series, in one pass over the data."""

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
