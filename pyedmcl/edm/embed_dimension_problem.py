"""Forecast skill of many series against embedding dimension: the problem, and its engine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.condition import Prepared
from ..device.memory import budget
from ..engines.self_projection import SelfProjection
from ..engines.skill import scores, skill_sums
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, series_of_a_block
from ..launch.pool import Pool
from ..launch.staging import Staging
from ..neighbors.choose import SearchRequest
from ..neighbors.plan import SearchProblem
from ..neighbors.searcher import open_searcher
from .effort import operations
from .masks import library_mask_of

if TYPE_CHECKING:
    from ..device.executor import Executor


@dataclass(frozen=True)
class EmbedDimensionProblem:
    """Skill of simplex projection of each series by itself, for E = 1 to E_max.

    Attributes
    ----------
    data : Prepared
    E_max, tau, Tp, exclusion_radius : int
    knn : int or None
        Neighbours; E + 1 if None.
    search : SearchRequest
        How neighbours are searched.
    unit : str
        What progress counts; series, under another name where this is the first stage of another job.
    parts : int
        Of the predicted rows: also the skill of each of so many parts; 0 for none.
    """

    data: Prepared
    E_max: int
    tau: int
    Tp: int
    exclusion_radius: int
    knn: int | None
    search: SearchRequest
    unit: str = "series"
    parts: int = 0

    kernels: ClassVar[tuple[str, ...]] = ("knn", "predict", "skill")

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
        """Ranges of series, for so many devices."""
        rows = series_of_a_block(self.total, self.data.series.n_steps, devices)
        return cut(self.total, rows, 2 if self.parts else 1)

    @property
    def operations(self) -> float:
        series = self.data.series
        return operations(self.dims, n_library=series.n_steps, n_query=series.n_steps, n_series=series.n_series)

    def open(self, executor: Executor) -> SelfSkill:
        return SelfSkill(self, executor)


class SelfSkill:
    """rho of each series predicted by itself: the engine of :class:`EmbedDimensionProblem`.

    Raw, padded and centred copies of the series that are on the device together, and their predictions, take a quarter
    of its memory.
    """

    def __init__(self, problem: EmbedDimensionProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        series, dims, Tp = problem.data.series, problem.dims, problem.Tp
        L, room = series.n_steps, budget(executor.info).total
        ks = tuple(problem.knn or E + 1 for E in dims)
        search = SearchProblem(tuple(dims), ks, problem.tau, Tp, problem.exclusion_radius, L, L, problem.data.dtype)
        conditioned = problem.data.conditioned
        self._gaps = conditioned.gaps
        first = max((max(dims) - 1) * problem.tau, -Tp) + Tp
        self._data = Staging(executor, conditioned.values, scored=(first, min(L, L + Tp)), room=room // 8)
        series_bytes = (4 * search.stride(L) + 2 * len(dims) * L) * search.itemsize
        self._batch = max(room // 4 // series_bytes, 1)
        self._pool = Pool(executor)
        self._searcher = open_searcher(
            executor, search, "weights", problem.search, data_bytes=conditioned.values.nbytes, pool=self._pool
        )

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (series of the block, E_max), and that of parts (series of the block, E_max, parts) where they are asked
        for."""
        shape = len(block), self._problem.E_max
        arrays = [np.empty(shape), np.empty((*shape, self._problem.parts))] if into is None else list(into)
        arrays = arrays[: 2 if self._problem.parts else 1]
        for array in arrays:
            array[...] = np.nan
        there = self._problem.data.series.values[:, block.begin : block.end]
        for a, b in _runs(there, self._gaps[block.begin : block.end], self._batch):
            self._skill(block.begin + a, block.begin + b, [array[a:b] for array in arrays])
            report(b)
        return BlockResult(arrays, Record.of(self._searcher))

    def _skill(self, a: int, b: int, arrays: list[NDArray[Any]]) -> None:
        """rho of series a to b, which share a pattern of gaps."""
        executor, p, L = self._executor, self._problem, self._problem.data.series.n_steps
        library_mask = library_mask_of(p.data.series.values[:, a], p.Tp) if self._gaps[a] else None
        projection = SelfProjection(executor, self._data, a, b)
        try:
            for tables in self._searcher.tables(self._searcher.load(self._data, a, b), library_mask):
                predicted, _ = projection.predict(tables)
                dims, libraries = np.array(tables.problem.dims), tables.n_libraries
                at = slice(tables.first, tables.first + libraries), dims - p.dims.start
                observed_of = np.tile(np.arange(tables.first, tables.first + libraries), len(dims))

                def skill_of(
                    begin: Any, end: Any, predicted: Any = predicted, of: Any = observed_of, n: int = len(dims)
                ) -> NDArray[Any]:
                    sums = skill_sums(
                        executor, predicted, projection.targets, dtype=p.data.dtype, n_rows=L, observed_stride=L,
                        observed_offset=p.Tp, observed_of=of, t_begin=begin, t_end=end,
                    )  # fmt: skip
                    return np.asarray(scores(sums, p.data.dtype)[0]).reshape(n, -1).T

                end = min(L, L - p.Tp)
                arrays[0][at] = skill_of(np.repeat(np.maximum((dims - 1) * p.tau, -p.Tp), libraries), end)
                first = max((p.E_max - 1) * p.tau, -p.Tp)  # the same parts for all dimensions
                edges: Any = np.linspace(first, end, p.parts + 1).astype(int) if p.parts else ()
                for part, (begin, until) in enumerate(itertools.pairwise(edges)):
                    arrays[1][(*at, part)] = skill_of(int(begin), int(until))
        finally:
            projection.release()

    def release(self) -> None:
        """Give the device memory back."""
        self._searcher.release()
        self._data.release()
        self._pool.release()


def _runs(values: NDArray[Any], gaps: NDArray[np.bool_], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of series that have the same gaps, which rule out the same rows."""

    def alike(a: int, b: int) -> bool:
        return bool(gaps[a] == gaps[b]) and (
            not gaps[a] or np.array_equal(np.isnan(values[:, a]), np.isnan(values[:, b]))
        )

    a = 0
    while a < len(gaps):
        b = a + 1
        while b < len(gaps) and b - a < most and alike(a, b):
            b += 1
        yield a, b
        a = b
