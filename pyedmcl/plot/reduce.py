"""Means and maxima of blocks, so that a picture of a very large map stays small and needs little memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..launch.progress import report_progress

_READ_BYTES = 16 << 20  # of the map held at a time, in float64


def block_means(matrix: Any, limit: int) -> tuple[NDArray[np.float64], int]:
    """``matrix`` reduced to at most ``limit`` rows and columns by means over square blocks.

    Parameters
    ----------
    matrix : array_like
        Shape (N, M); anything with ``shape`` that can be sliced over rows is read in parts.
    limit : int
        At least 1.

    Returns
    -------
    means : ndarray of float64
        Shape (ceil(N / size), ceil(M / size)). NaN cells are left out of a mean; a block of NaN only is NaN.
    size : int
        Edge of a block; 1 where nothing had to be reduced. The last blocks may be narrower.
    """
    shape = tuple(matrix.shape)
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"a map has libraries and targets, this one shape {shape}")
    n, width = shape
    size = -(-max(shape) // limit)
    if size == 1:
        return np.asarray(matrix[:], np.float64), 1
    starts = np.arange(0, width, size)
    total = np.zeros((-(-n // size), len(starts)))
    count = np.zeros(total.shape, np.int32)
    step = max(1, _READ_BYTES // (8 * width))
    for first in range(0, n, step):
        part = np.asarray(matrix[first : first + step], np.float64)
        blocks = np.arange(first, first + len(part)) // size
        finite = ~np.isnan(part)
        np.add.at(total, blocks, np.add.reduceat(np.where(finite, part, 0), starts, axis=1))
        np.add.at(count, blocks, np.add.reduceat(finite, starts, axis=1, dtype=np.int32))
        report_progress(first + len(part), n, "rows")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # 0 / 0 is the NaN that is meant
        total /= count
    return total, size


def block_maxima(parts: Iterable[NDArray[Any]], shape: tuple[int, int], limit: int) -> tuple[NDArray[np.float64], int]:
    """The largest edge of each square block of a map, of at most ``limit`` rows and columns of blocks.

    Parameters
    ----------
    parts : iterable of ndarray
        With the fields library, target and rho.
    shape : (int, int)
        Libraries and targets.
    limit : int
        At least 1.

    Returns
    -------
    maxima : ndarray of float64
        Libraries and targets divided by ``size``, rounded up; NaN where there is no edge.
    size : int
        Edge of a block.
    """
    size = -(-max(shape) // limit)
    maxima = np.full([-(-n // size) for n in shape], -np.inf)
    for part in parts:
        np.maximum.at(maxima, (part["library"] // size, part["target"] // size), part["rho"])
    maxima[np.isneginf(maxima)] = np.nan
    return maxima, size
