"""Windows along a series as a job: the problem, and the engine that counts the lines of some windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from .counts import Counts
from .engine import identity_line, operations, require_consistent
from .points import Points
from .problem import RqaProblem, require_precision
from .sweep import TileSweep
from .windows import WindowSweep, part_size, windows_together

if TYPE_CHECKING:
    from ..device.executor import Executor

# Where windows are long and overlap little, dividing each like any matrix takes less time than sharing distances: by
# measurement on two CPU cores both are as fast for 4,000 points every 400 and for 16,000 every 400.
_SHORT, _CLOSE = 2048, 400


@dataclass(frozen=True)
class WindowsProblem:
    """The lines of the recurrence matrix of each window, which are to be counted; blocks are ranges of windows.

    Attributes
    ----------
    matrix : RqaProblem
        Of one window, with one radius.
    points : Points
        Of the whole series.
    step, windows : int
        Points between the starts of two windows; their number.
    tile : int or None
        Edge of a tile where each window is counted by itself; the tuned one if None.
    """

    matrix: RqaProblem
    points: Points
    step: int
    windows: int
    tile: int | None

    @property
    def unit(self) -> str:
        return "windows"

    @property
    def total(self) -> int:
        return self.windows

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """As many windows as are worth counting together."""
        return cut(self.windows, windows_together(self.matrix.n_rows, self.step, self.windows))

    @property
    def operations(self) -> float:
        return self.windows * operations(self.matrix)

    def values(self, number: int) -> NDArray[Any]:
        """The values that a window is made of, delays included."""
        points, begin = self.points, number * self.step
        lag = 0 if points.embedded else (points.m - 1) * points.tau
        return points.values[begin : begin + self.matrix.n_rows + lag]

    def complete(self, number: int) -> NDArray[np.bool_]:
        """Which points of a window have no gap."""
        begin = number * self.step
        return self.points.complete[begin : begin + self.matrix.n_rows]

    def open(self, executor: Executor) -> WindowsEngine:
        return WindowsEngine(self, executor)


class WindowsEngine:
    """The engine of :class:`WindowsProblem`; it holds no memory on the device between blocks."""

    def __init__(self, problem: WindowsProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        p, size, values = problem, problem.matrix.n_rows, problem.points.values
        require_precision(executor.info, p.matrix)
        self._shared: WindowSweep | None = None
        near = size <= _SHORT or p.step <= _CLOSE
        if near:
            self._together = part_size(executor, size, p.step, p.windows, values.nbytes)
            if self._together:
                self._shared = WindowSweep(executor, p.matrix, values, p.step)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """A list of Counts, one for each window of the block."""
        counts: list[Counts] = []
        while len(counts) < len(block):
            first = block.begin + len(counts)
            if self._shared is not None:
                counts += self._shared.counts(first, min(self._together, block.end - first))
            else:
                counts.append(self._alone(first))
            report(len(counts))
        return BlockResult(counts, Record())

    def _alone(self, number: int) -> Counts:
        p = self._problem
        values = np.ascontiguousarray(p.values(number))
        sweep = TileSweep(self._executor, p.matrix, values, None, p.tile)
        try:
            counts = sweep.counts(lambda radius: identity_line(p.matrix, values, radius))
            return require_consistent([self._executor.info], p.matrix, counts)[0]
        finally:
            sweep.release()

    def release(self) -> None:
        """Nothing is held."""
