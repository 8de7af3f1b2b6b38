"""All nearest neighbours of one series as a job of a single block: the problem, and its engine."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...data.condition import condition
from ...data.extent import bounds
from ...data.series import Series
from ...jobs.blocks import Block, BlockResult, Record, Report, cut
from ...launch.delivery import DeviceRows, deliver_neighbours
from ...launch.invariants import require_rows
from ...launch.pool import Pool
from ...launch.replay import replayed
from ...launch.staging import Staging
from ...neighbors.choose import SearchRequest
from ...neighbors.plan import SearchProblem
from ...neighbors.searcher import open_searcher, sure_of
from ..shared.effort import operations
from ..shared.masks import library_mask_of

if TYPE_CHECKING:
    from ...device.executor import Executor
    from ...neighbors.tables import Tables

# Distances of data whose range is between these are numbers of float32, with room for sums and for small differences.
_LEAST, _MOST = 2.0**-100, 2.0**100


@dataclass(frozen=True)
class KnnProblem:
    """The k nearest library rows of each query row.

    Attributes
    ----------
    library : Series
        One series.
    query : Series or None
        Another series whose rows are looked up; the library itself if None.
    E, tau, Tp, k, exclusion_radius : int
    search : SearchRequest
        How neighbours are searched.
    dtype : str
        What kernels compute in.
    """

    library: Series
    query: Series | None
    E: int
    tau: int
    Tp: int
    k: int
    exclusion_radius: int
    search: SearchRequest
    dtype: str

    kernels: ClassVar[tuple[str, ...]] = ("knn",)
    unit: ClassVar[str] = ""  # the search itself reports

    @property
    def total(self) -> int:
        """Query rows."""
        return (self.query or self.library).n_steps

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """All query rows; layers are their neighbours' rows and distances."""
        return cut(self.total, self.total, 2)

    @property
    def operations(self) -> float:
        return operations((self.E,), n_library=self.library.n_steps, n_query=self.total)

    def result(self) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Room for rows and distances (query rows, k). These are float64 where float32 may not hold them."""
        shape = self.total, self.k
        return np.empty(shape, np.int32), np.empty(shape, self.result_dtype)

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """Of distances."""
        sides = [side for side in (self.library, self.query) if side is not None]
        low, high = np.array([bounds(side.values, side.extent)[:2] for side in sides])[..., 0].T
        spread = float(high.max() - low.min())
        fits = spread == 0 or _LEAST < spread < _MOST
        return np.dtype(self.dtype if fits else np.float64)

    def open(self, executor: Executor) -> KnnEngine:
        return KnnEngine(self, executor)


class KnnEngine:
    """The search on a device; a small one goes through the copies and launches of the one before."""

    def __init__(self, problem: KnnProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        p, n = problem, problem.library.n_steps
        # One shift and scale for both: they are put behind each other.
        both = p.library.values if p.query is None else np.concatenate([p.library.values, p.query.values])
        conditioned = condition(both, p.dtype)
        self._exponent = int(conditioned.exponent[0])
        self._series = {"library": conditioned.values[:n]}
        if p.query is not None:
            self._series["query"] = conditioned.values[n:]
        self._library_mask = library_mask_of(p.library.values[:, 0], p.Tp) if p.Tp else None
        radius = p.exclusion_radius if p.query is None else -1
        self._search = SearchProblem((p.E,), (p.k,), p.tau, p.Tp, radius, n, p.total, p.dtype)

    def block(self, block: Block, into: Any, progress: Report) -> BlockResult:
        """Rows of the library and distances, (query rows, k); -1 and infinity where there are fewer neighbours."""
        distances: Any
        indices, distances = into or self._problem.result()
        if isinstance(indices, DeviceRows):
            return BlockResult([], self._searched(self._executor, functools.partial(self._deliver, indices, distances)))
        fits = distances.dtype == self._problem.dtype
        squared = distances if fits else np.empty(distances.shape, self._problem.dtype)
        record = self._downloaded(indices, squared)
        require_rows(self._executor, indices, self._problem.library.n_steps, "knn")
        squared[indices < 0] = np.inf
        np.sqrt(squared, out=squared)  # here: the host's root is correctly rounded, the device's may not be
        # After the root: squares may be no numbers where distances are. A power of two is exact.
        np.ldexp(squared, self._exponent, out=distances, dtype=distances.dtype)
        return BlockResult([indices, distances], record)

    def _downloaded(self, indices: NDArray[np.int32], squared: NDArray[Any]) -> Record:
        """Write rows and squared distances."""

        def download(executor: Executor, tables: Tables) -> None:
            executor.download(tables.rows, indices)
            executor.download(tables.values, squared)

        search = self._problem.search
        sure = None if self._library_mask is not None else sure_of(search, self._executor.info, self._search)
        if sure is None:
            return self._searched(self._executor, download)
        key = "knn", self._search, search, sure
        outputs = {"indices": indices, "squared": squared}
        return replayed(self._executor, key, self._series, outputs, lambda executor: self._searched(executor, download))

    def _deliver(self, indices: DeviceRows, distances: DeviceRows, executor: Executor, tables: Tables) -> None:
        """Write rows and distances to arrays of the caller on the device."""
        deliver_neighbours(
            executor, tables.rows, tables.values, (indices, distances), exponent=self._exponent,
            n_library=self._problem.library.n_steps,
        )  # fmt: skip

    def _searched(self, executor: Executor, use: Callable[[Executor, Tables], None]) -> Record:
        """Search, and let ``use`` read the tables."""
        stagings = [Staging(executor, values) for values in self._series.values()]
        pool = Pool(executor, "knn", self._search)
        searcher = None
        try:
            searcher = open_searcher(executor, self._search, "neighbours", self._problem.search, pool=pool)
            series = searcher.load(stagings[0], 0, 1, *stagings[1:])
            use(executor, next(searcher.tables(series, self._library_mask)))
            return Record.of(searcher)
        finally:
            for held in (searcher, *stagings, pool):
                if held is not None:
                    held.release()

    def release(self) -> None:
        """Give the device memory back: nothing is held between blocks."""
