"""The share of false nearest neighbours against embedding dimension: the problem, and its engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...data.condition import Prepared, near_one
from ...device.memory import budget
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, series_of_a_block
from ...launch.pool import Pool
from ...launch.staging import Staging
from ...neighbors.choose import SearchRequest
from ...neighbors.plan import SearchProblem
from ...neighbors.searcher import open_searcher
from ..shared.effort import operations

if TYPE_CHECKING:
    from ...device.executor import Executor


@dataclass(frozen=True)
class FalseNeighborsProblem:
    """Share of states whose nearest neighbour in E = 1 to E_max coordinates is far away in one more.

    Attributes
    ----------
    data : Prepared
        The series without their first ``tau`` values, so that every state has a further coordinate.
    whole : ndarray (n_steps, n_series)
        The series.
    E_max, tau, exclusion_radius : int
    ratio, size : float
        Bounds of the criteria; see :func:`pyedmcl.false_neighbors`.
    search : SearchRequest
    """

    data: Prepared
    whole: NDArray[Any]
    E_max: int
    tau: int
    exclusion_radius: int
    ratio: float
    size_most: float
    search: SearchRequest

    kernels: ClassVar[tuple[str, ...]] = ("knn",)
    unit: ClassVar[str] = "series"

    @property
    def dims(self) -> range:
        """Embedding dimensions."""
        return range(1, self.E_max + 1)

    @property
    def total(self) -> int:
        return self.data.series.n_series

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self, devices: int = 1) -> list[Block]:
        """Ranges of series."""
        return cut(self.total, series_of_a_block(self.total, self.data.series.n_steps, devices))

    @property
    def operations(self) -> float:
        n = self.data.series.n_steps
        return operations(self.dims, n_library=n, n_query=n, n_series=self.total)

    def open(self, executor: Executor) -> FalseNeighborsEngine:
        return FalseNeighborsEngine(self, executor)


class FalseNeighborsEngine:
    """Neighbours are found on the device, and judged on the host in float64."""

    def __init__(self, problem: FalseNeighborsProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        n, dims, room = problem.data.series.n_steps, problem.dims, budget(executor.info).total
        dtype, conditioned = problem.data.dtype, problem.data.conditioned
        ones = (1,) * len(dims)
        search = SearchProblem(tuple(dims), ones, problem.tau, 0, problem.exclusion_radius, n, n, dtype)
        self._pool = Pool(executor)
        self._data = Staging(executor, conditioned.values, room=room // 8)
        self._batch = max(room // 4 // (4 * search.stride(n) * search.itemsize), 1)
        self._searcher = open_searcher(
            executor, search, "neighbours", problem.search, data_bytes=conditioned.values.nbytes, pool=self._pool
        )

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Shares (series of the block, E_max)."""
        share = np.empty((len(block), self._problem.E_max)) if into is None else into[0]
        for begin in range(block.begin, block.end, self._batch):
            end = min(begin + self._batch, block.end)
            for tables in self._searcher.tables(self._searcher.load(self._data, begin, end)):
                for E in tables.problem.dims:
                    rows, _ = tables.read(self._executor, E, tables.n_libraries)
                    for place in range(tables.n_libraries):
                        series = begin + tables.first + place
                        share[series - block.begin, E - 1] = self._judge(series, E, rows[place, :, 0])
            report(end - block.begin)
        return BlockResult([share], Record.of(self._searcher))

    def _judge(self, series: int, E: int, nearest: NDArray[np.int32]) -> float:
        """Share of false neighbours; NaN where no state has a neighbour."""
        p = self._problem
        x, _ = near_one(p.whole[:, series].astype(np.float64))
        first = (E - 1) * p.tau
        rows = np.flatnonzero(nearest[first:] >= 0) + first
        t, j = rows + p.tau, nearest[rows] + p.tau  # rows of the whole series
        squares = np.zeros(len(rows))
        for lag in range(0, first + 1, p.tau):
            squares += (x[t - lag] - x[j - lag]) ** 2
        apart = np.abs(x[t - E * p.tau] - x[j - E * p.tau])
        finite = ~np.isnan(apart)
        squares, apart = squares[finite], apart[finite]
        if not len(apart):
            return np.nan
        spread = np.nanstd(x)
        false = (apart > p.ratio * np.sqrt(squares)) | (np.sqrt(squares + apart * apart) > p.size_most * spread)
        return float(false.mean())

    def release(self) -> None:
        """Give the device memory back."""
        self._searcher.release()
        self._data.release()
        self._pool.release()
