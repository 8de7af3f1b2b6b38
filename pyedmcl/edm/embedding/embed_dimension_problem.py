"""Forecast skill of many series against embedding dimension: the problem, and its engine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...data.condition import Prepared
from ...device.memory import budget
from ...engines.self_projection import SelfProjection
from ...engines.skill import SUMS, Doubles, added, chunks_of, scores, skill_sums
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, series_of_a_block
from ...launch.pool import Pool
from ...launch.replay import FEW_BYTES, replayed
from ...launch.staging import Staging
from ...neighbors.choose import SearchRequest
from ...neighbors.plan import SearchProblem
from ...neighbors.searcher import open_searcher, sure_of
from ..shared.effort import operations
from ..shared.masks import library_mask_of

if TYPE_CHECKING:
    from ...device.executor import Executor


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
        Of the predicted rows: also the skill of each of this many parts; 0 for none.
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
        """Ranges of series, to be shared by ``devices``."""
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

    Few series go through the copies and launches of the call before.
    """

    def __init__(self, problem: EmbedDimensionProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        dims, L = problem.dims, problem.data.series.n_steps
        ks = tuple(problem.knn or E + 1 for E in dims)
        self._search = SearchProblem(tuple(dims), ks, problem.tau, problem.Tp, problem.exclusion_radius, L, L,
                                     problem.data.dtype)  # fmt: skip
        self._conditioned = problem.data.conditioned
        self._opened: _SeriesOnDevice | None = None

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (series of the block, E_max), and that of parts (series of the block, E_max, parts) where they are asked
        for."""
        shape = len(block), self._problem.E_max
        arrays = [np.empty(shape), np.empty((*shape, self._problem.parts))] if into is None else list(into)
        arrays = arrays[: 2 if self._problem.parts else 1]
        for array in arrays:
            array[...] = np.nan
        record = self._repeated(block, arrays)
        if record is not None:
            report(len(block))
            return BlockResult(arrays, record)
        opened = self._opened = self._opened or _SeriesOnDevice(self._problem, self._search, self._executor)
        for part, sums in self._sums(opened, block, report=report):
            part.write(sums, arrays, self._problem)
        return BlockResult(arrays, Record.of(opened.searcher))

    def _sums(
        self, opened: _SeriesOnDevice, block: Block, into: NDArray[Any] | None = None, report: Report | None = None
    ) -> Iterator[tuple[_Part, Doubles]]:
        """Sums of predictions of as many series at a time as fit on the device and share a pattern of gaps.

        Those of chunks go ``into`` an array, one behind the other.
        """
        values, gaps = (held[..., block.begin : block.end] for held in
                        (self._problem.data.series.values, self._conditioned.gaps))  # fmt: skip
        done = 0
        for a, b in _runs(values, gaps, opened.batch):
            mask = library_mask_of(values[:, a], self._problem.Tp) if gaps[a] else None
            room = None if into is None else into[done:]
            for part, sums in opened.sums(block.begin + a, block.begin + b, mask, room):
                done += part.pairs
                yield replace(part, first=a + part.first), sums
            if report is not None:
                report(b)

    def _repeated(self, block: Block, arrays: list[NDArray[Any]]) -> Record | None:
        """Compute few series without gaps as the call before did; None where that is not the same for all data."""
        p, search, values = self._problem, self._search, self._conditioned.values
        pairs = len(block) * p.E_max * (1 + p.parts)
        shape = pairs, chunks_of(search.n_query), len(SUMS)
        few = max(values.nbytes, math.prod(shape) * values.itemsize) <= FEW_BYTES
        sure = sure_of(p.search, self._executor.info, search) if few else None
        if sure is None or self._conditioned.gaps[block.begin : block.end].any():
            return None
        parts_of_sums = np.empty(shape, p.data.dtype)

        def work(executor: Executor) -> tuple[Record, list[_Part]]:
            opened = _SeriesOnDevice(p, search, executor)
            try:
                computed = [part for part, _ in self._sums(opened, block, parts_of_sums)]
                return Record.of(opened.searcher), computed
            finally:
                opened.release()

        key = "embed_dimension", search, p.search, sure, p.parts, block.begin, block.end
        record, computed = replayed(self._executor, key, {"values": values}, {"sums": parts_of_sums}, work)
        first = 0
        for part in computed:
            part.write(added(parts_of_sums[first : first + part.pairs]), arrays, p)
            first += part.pairs
        return record

    def release(self) -> None:
        """Give the device memory back."""
        if self._opened is not None:
            self._opened.release()


@dataclass(frozen=True)
class _Part:
    """Which skills come from sums that were computed together.

    Attributes
    ----------
    dims : ndarray of int
    first, libraries : int
        The first series of the block, and how many there are.
    number : int
        Of the part of the predicted rows; -1 for all rows.
    """

    dims: NDArray[np.int_]
    first: int
    libraries: int
    number: int

    @property
    def pairs(self) -> int:
        return len(self.dims) * self.libraries

    def write(self, sums: Doubles, arrays: Sequence[NDArray[Any]], problem: EmbedDimensionProblem) -> None:
        """Write the skill of ``sums`` (pairs, 8) where it belongs."""
        rho = np.asarray(scores(sums, problem.data.dtype)[0]).reshape(len(self.dims), -1).T
        at = slice(self.first, self.first + self.libraries), self.dims - problem.dims.start
        if self.number < 0:
            arrays[0][at] = rho
        else:
            arrays[1][(*at, self.number)] = rho


class _SeriesOnDevice:
    """Series and their search on a device.

    Raw, padded and centred copies of the series that are on the device together, and their predictions, take a quarter
    of its memory.

    Attributes
    ----------
    batch : int
        Series that are computed together.
    """

    def __init__(self, problem: EmbedDimensionProblem, search: SearchProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        self._dims, self._L = np.array(search.dims), search.n_library
        room, values = budget(executor.info).total, problem.data.conditioned.values
        series_bytes = (4 * search.stride(self._L) + 2 * len(search.dims) * self._L) * search.itemsize
        self.batch = max(room // 4 // series_bytes, 1)
        begin, end = self._first(problem.E_max), min(self._L, self._L - problem.Tp)
        self._data = Staging(executor, values, scored=(begin + problem.Tp, end + problem.Tp), room=room // 8)
        self._pool = Pool(executor, "embed_dimension", search, min(self.batch, values.shape[1]))
        self.searcher = open_searcher(
            executor, search, "weights", problem.search, data_bytes=values.nbytes, pool=self._pool
        )

    def _first(self, E: Any) -> Any:
        """First row that is predicted in dimension ``E``, one or several."""
        return np.maximum((E - 1) * self._problem.tau, -self._problem.Tp)

    def sums(
        self, a: int, b: int, library_mask: NDArray[np.bool_] | None, into: NDArray[Any] | None = None
    ) -> Iterator[tuple[_Part, Doubles]]:
        """Sums of predictions of series a to b, which share a pattern of gaps; their chunks go ``into`` an array."""
        p, L = self._problem, self._L
        end, first = min(L, L - p.Tp), int(self._first(p.E_max))
        # The same parts for all dimensions.
        edges: Any = np.linspace(first, end, p.parts + 1).astype(int) if p.parts else ()
        projection = SelfProjection(self._executor, self._data, a, b, len(self._dims))
        done = 0
        try:
            for tables in self.searcher.tables(self.searcher.load(self._data, a, b), library_mask):
                predicted, _ = projection.predict(tables)
                dims, libraries = np.array(tables.problem.dims), tables.n_libraries
                series = np.arange(tables.first, tables.first + libraries)
                rows = [(np.repeat(self._first(dims), libraries), end), *itertools.pairwise(edges)]
                for number, (begin, until) in enumerate(rows, -1):
                    part = _Part(dims, tables.first, libraries, number)
                    yield part, skill_sums(
                        self._executor, predicted, projection.targets, dtype=p.data.dtype, n_rows=L, observed_stride=L,
                        observed_offset=p.Tp, observed_of=np.tile(series, len(dims)), t_begin=begin, t_end=until,
                        into=None if into is None else into[done : done + part.pairs],
                    )  # fmt: skip
                    done += part.pairs
        finally:
            projection.release()

    def release(self) -> None:
        """Give the device memory back."""
        self.searcher.release()
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
