"""Block means, so that a picture of a very large map stays small and needs little memory."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

_READ_BYTES = 16 << 20  # of the map held at a time


def block_means(matrix: Any, limit: int) -> tuple[NDArray[np.float64], int]:
    """``matrix`` reduced to at most ``limit`` rows and columns by means over square blocks.

    Parameters
    ----------
    matrix : array_like
        Shape (N, N); anything with ``shape`` that can be sliced over rows is read in parts.
    limit : int
        At least 1.

    Returns
    -------
    means : ndarray of float64
        Shape (ceil(N / size), ceil(N / size)). NaN cells are left out of a mean; a block of NaN only is NaN.
    size : int
        Edge of a block; 1 where nothing had to be reduced. The last blocks may be narrower.
    """
    shape = tuple(matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise InputError(f"a map has shape (N, N), this one {shape}")
    n = shape[0]
    size = -(-n // limit)
    if size == 1:
        return np.asarray(matrix[:], np.float64), 1
    starts = np.arange(0, n, size)
    means = np.empty((len(starts), len(starts)))
    step = max(1, _READ_BYTES // (8 * n * size))  # rows of the answer that are made together
    for first in range(0, len(starts), step):
        part = np.asarray(matrix[first * size : min((first + step) * size, n)], np.float64)
        known = ~np.isnan(part)
        inner = np.arange(0, len(part), size)
        total = np.add.reduceat(np.add.reduceat(np.where(known, part, 0), starts, axis=1), inner, axis=0)
        count = np.add.reduceat(np.add.reduceat(known.astype(np.int64), starts, axis=1), inner, axis=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # 0 / 0 is the NaN that is meant
            means[first : first + len(inner)] = total / count
    return means, size
