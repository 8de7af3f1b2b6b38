"""Which library rows a target's gaps rule out, and how many are left where these are fewest."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray


def library_mask_of(target: NDArray[Any], Tp: int) -> NDArray[np.bool_] | None:
    """Library rows j (n,) whose ``target[j + Tp]`` is no gap; None if no target is a gap.

    Rows whose target lies outside the series are in the mask: the search leaves them out by itself.

    Parameters
    ----------
    target : ndarray (n,)
    Tp : int
    """
    n, missing = len(target), np.isnan(target)
    if not missing.any():
        return None
    mask = np.ones(n, bool)
    if Tp >= 0:
        mask[: max(n - Tp, 0)] = ~missing[Tp:]
    else:
        mask[-Tp:] = ~missing[: max(n + Tp, 0)]
    return mask


def fewest(library_mask: NDArray[np.bool_], asked: NDArray[np.bool_], radius: int) -> int:
    """Library rows farther than ``radius`` from an asked one, where these are fewest; 0 where none is asked."""
    if not asked.any():
        return 0
    n = len(library_mask)
    upto = np.concatenate([[0], np.cumsum(library_mask)])
    rows = np.flatnonzero(asked)
    near = upto[np.minimum(rows + radius + 1, n)] - upto[np.maximum(rows - radius, 0)]
    return int(upto[-1] - near.max())


@functools.lru_cache(maxsize=64)
def fewest_of_all(n: int, radius: int) -> int:
    """:func:`fewest` where all of n rows are in the library, and are asked."""
    rows = np.ones(n, bool)
    return fewest(rows, rows, radius)
