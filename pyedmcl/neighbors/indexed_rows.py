"""Rows of an index: where a series' states are on the host, which of its rows have one, and queries block by block."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.sentinels import PRESENT
from ..launch.pacing import LAUNCH_SECONDS
from ..launch.progress import told
from .coordinates import first_row
from .plan import Search

_FIRST_BLOCK, _BLOCK = 1 << 10, 1 << 14  # queries that an index is asked at a time


@dataclass(frozen=True)
class Rows:
    """One series' states for one dimension: where they are on the host and on the device."""

    x: NDArray[Any]
    front: int
    rows: NDArray[np.int32]
    E: int
    tau: int

    def points(self, which: NDArray[np.int32]) -> NDArray[Any]:
        """Coordinates (n, E) of rows."""
        out = np.empty((len(which), self.E), self.x.dtype)
        for e in range(self.E):
            out[:, e] = self.x[which + (self.front - e * self.tau)]
        return out

    def sample(self, most: int) -> NDArray[Any]:
        """Coordinates of about so many rows, evenly spread."""
        return self.points(self.rows[:: max(len(self.rows) // most, 1)])


def query_blocks(rows: NDArray[np.int32], most: int, timed: bool) -> Iterator[NDArray[np.int32]]:
    """Rows in blocks after which progress is told and Ctrl-C heeded.

    A tree may take long for some series, so that blocks are as long as some tenths of a second allow. For approximate
    indices the size is fixed, since it decides last digits of the distances that they compare.
    """
    a, step = 0, min(_FIRST_BLOCK if timed else _BLOCK, most)
    while a < len(rows):
        begun = time.perf_counter()
        yield rows[a : a + step]
        if a or a + step < len(rows):
            told(min(a + step, len(rows)), len(rows))
        a += step
        seconds = time.perf_counter() - begun
        if timed and seconds < LAUNCH_SECONDS / 2:
            step = min(4 * step, most)
        elif timed and seconds > 4 * LAUNCH_SECONDS:
            step = max(step // 2, 64)


def unlaid(x: NDArray[Any], n: int, front: int) -> NDArray[Any]:
    """A laid-out series as it was, NaN for gaps."""
    series = x[front : front + n]
    return np.where(np.abs(series) > PRESENT, series.dtype.type(np.nan), series)


def rows_with_states(x: NDArray[Any], front: int, search: Search, begin: int, end: int) -> NDArray[np.bool_]:
    """Rows that have all their coordinates."""
    n = end
    there = np.zeros(max(search.n_library, search.n_query), np.bool_)
    begin = max(begin, first_row(search))
    if n <= begin:
        return there
    there[begin:n] = True
    for e in range(search.dims[0]):
        at = front - e * search.tau
        there[begin:n] &= np.abs(x[at + begin : at + n]) < PRESENT
    return there
