"""Cells near the radius, decided on the host where the device has no double precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..metrics import metric_named
from .data import Floats, SweepData

if TYPE_CHECKING:
    from ...device.executor import Buffer, Executor
    from ..problem import RqaProblem

_RUNS_MOST = 1 << 21  # of a launch: 32 MB
_CELLS = 1 << 20  # decided at a time


class OpenCells:
    """Collects runs of cells that a launch left open, and counts what recurs in them.

    Parameters
    ----------
    problem : RqaProblem
    data : SweepData
        With what float64 needs.
    across : int
        Columns of pixels.
    symmetric : bool
        Pixels whose column is less than their row are not counted.

    Attributes
    ----------
    counts : ndarray of int64 (pixel rows, pixel columns)
        Of the rows of pixels that were begun last.
    """

    def __init__(self, problem: RqaProblem, data: SweepData, across: int, symmetric: bool) -> None:
        self._problem, self._data, self._symmetric = problem, data, symmetric
        self._across = across
        self._capacity = 0
        self.begin(0)

    def begin(self, rows: int) -> None:
        """Count from here on what recurs in ``rows`` rows of pixels."""
        self.counts = np.zeros((rows, self._across), np.int64)

    def room(self, columns: int) -> int:
        """Runs that the list must hold, given the columns of a launch: at least one for each of them."""
        self._capacity = max(_RUNS_MOST, columns)
        return self._capacity

    def fitting(self, at: int, end: int, steps: NDArray[np.int64], columns: int) -> int:
        """The end of the pieces from ``at``, at most ``end``, whose runs surely fit; one piece of one step does."""
        most = max(self._capacity // max(columns, 1), 1)
        return at + max(int(np.searchsorted(np.cumsum(steps[at:end]), most, side="right")), 1)

    def take(self, executor: Executor, listed: Buffer, counter: Buffer) -> None:
        """Decide what a launch has left open, and empty the list."""
        n = np.empty(1, np.uint32)
        executor.download(counter, n)
        if not n[0]:
            return
        runs = executor.download(listed, np.empty((int(n[0]), 4), np.int32))
        executor.upload(np.zeros(1, np.uint32), counter)
        pixel = ((runs[:, 2].astype(np.int64) + 1) * self._across - 1) // self._problem.n_columns
        if self._symmetric:
            kept = pixel >= runs[:, 3]
            runs, pixel = runs[kept], pixel[kept]
        step = max(_CELLS // max(int(runs[:, 1].max(initial=1)), 1), 1)
        for a in range(0, len(runs), step):
            part = runs[a : a + step]
            np.add.at(self.counts, (part[:, 3], pixel[a : a + step]), self._recurrent(part))

    def _recurrent(self, runs: NDArray[np.int32]) -> NDArray[np.int64]:
        """Recurrent cells of each run (first row, rows, column): each operation rounded on its own."""
        longest = int(runs[:, 1].max())
        down = np.arange(longest)
        inside = down[None, :] < runs[:, 1:2]
        i = np.where(inside, runs[:, 0:1] + down[None, :], runs[:, 0:1])
        j = runs[:, 2]
        with np.errstate(over="ignore", under="ignore"):
            differences = (rows - columns[:, None] for rows, columns in self._coordinates(i, j))
            total = metric_named(self._problem.metric).compared(differences)
        outer, *inner = (limit if limit.ndim == 0 else limit[j][:, None] for limit in self._data.limits64)
        recurrent = (total < outer) & inside
        for limit in inner:
            recurrent &= ~(total < limit)
        counts: NDArray[np.int64] = recurrent.sum(axis=1)
        return counts

    def _coordinates(self, i: NDArray[np.int_], j: NDArray[np.int32]) -> Iterator[tuple[Floats, Floats]]:
        rows, columns = self._data.rows64, self._data.columns64
        assert rows is not None and columns is not None
        for e in range(self._problem.coordinates):
            if self._problem.embedded:
                yield rows[e][i], columns[e][j]
            else:
                yield rows[0][i + e * self._problem.tau], columns[0][j + e * self._problem.tau]
