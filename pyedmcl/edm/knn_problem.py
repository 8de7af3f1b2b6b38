"""All nearest neighbours of one series as a job of a single block: the problem, and its engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..data.condition import condition
from ..data.series import Series
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..launch.invariants import require_rows
from ..launch.staging import Staging
from ..neighbors.choose import SearchRequest
from ..neighbors.plan import SearchProblem
from ..neighbors.searcher import open_searcher
from .effort import operations
from .masks import library_mask_of

if TYPE_CHECKING:
    from ..device.executor import Executor


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

    def open(self, executor: Executor) -> KnnEngine:
        return KnnEngine(self, executor)


class KnnEngine:
    """Library and query on a device."""

    def __init__(self, problem: KnnProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        p, n = problem, problem.library.n_steps
        # One shift and scale for both: they are put behind each other.
        both = p.library.values if p.query is None else np.concatenate([p.library.values, p.query.values])
        conditioned = condition(both, p.dtype)
        self._exponent = int(conditioned.exponent[0])
        self._library = Staging(executor, conditioned.values[:n])
        self._query = None if p.query is None else Staging(executor, conditioned.values[n:])
        self._library_mask = library_mask_of(p.library.values[:, 0], p.Tp) if p.Tp else None
        radius = p.exclusion_radius if p.query is None else -1
        search = SearchProblem((p.E,), (p.k,), p.tau, p.Tp, radius, n, p.total, p.dtype)
        self._searcher = open_searcher(executor, search, "neighbours", p.search)

    def block(self, block: Block, into: Arrays | None, progress: Report) -> BlockResult:
        """Rows of the library and distances, (query rows, k); -1 and infinity where there are fewer neighbours."""
        shape = self._problem.total, self._problem.k
        dtype = np.dtype(self._problem.dtype)
        indices, distances = into or (np.empty(shape, np.int32), np.empty(shape, dtype))
        series = self._searcher.load(self._library, 0, 1, self._query)
        tables = next(self._searcher.tables(series, self._library_mask))
        self._executor.download(tables.rows, indices)
        require_rows(self._executor, indices, self._problem.library.n_steps, "knn")
        self._executor.download(tables.values, distances)
        distances[indices < 0] = np.inf
        np.ldexp(distances, 2 * self._exponent, out=distances)  # a power of two: exact
        np.sqrt(distances, out=distances)  # here: the host's root is correctly rounded, the device's may not be
        searcher = self._searcher
        searched = tuple(searcher.decisions)
        return BlockResult([indices, distances], Record(searcher.parameters, searcher.grade, searched))

    def release(self) -> None:
        """Give the device memory back."""
        self._searcher.release()
        self._library.release()
        if self._query is not None:
            self._query.release()
