"""What is searched: series on the device in the layout of the search, and their states as the host lists them.

A searcher loads series once. Kernels read them on the device; which rows have a state, and what an index on the host
holds, follows from the values that the host has had from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.sentinels import PRESENT
from ..errors import InputError
from .coordinates import lay_out
from .plan import SearchProblem

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..launch.pool import Pool
    from ..launch.staging import Staging

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class HostSeries:
    """Values on the host: coordinate e of the state at row t is ``values[first + t - e * tau]``.

    Attributes
    ----------
    values : ndarray
        NaN, or a magnitude from 1e15 on, marks a gap.
    first : int
        Place of row 0.
    """

    values: NDArray[Any]
    first: int

    def raw(self, n: int) -> NDArray[Any]:
        """The first ``n`` rows, NaN for gaps."""
        values = self.values[self.first : self.first + n]
        return np.where(np.abs(values) < PRESENT, values, values.dtype.type(np.nan))


@dataclass(frozen=True)
class HostStates:
    """States of one series and one dimension on the host.

    Attributes
    ----------
    series : HostSeries
    rows : ndarray of int32
        Rows with a state that takes part, ascending.
    E, tau : int
    """

    series: HostSeries
    rows: NDArray[np.int32]
    E: int
    tau: int

    def points(self, rows: NDArray[np.int32]) -> NDArray[Any]:
        """Coordinates (n, E) of the states at some rows."""
        values, first = self.series.values, self.series.first
        out = np.empty((len(rows), self.E), values.dtype)
        for e in range(self.E):
            out[:, e] = values[rows + (first - e * self.tau)]
        return out

    def sample(self, most: int) -> NDArray[Any]:
        """Coordinates of about ``most`` states, evenly spread."""
        return self.points(self.rows[:: max(len(self.rows) // most, 1)])


@dataclass(frozen=True)
class DeviceSeries:
    """A series on the device, with gaps enough before row 0 for the oldest lag.

    Attributes
    ----------
    buffer : Buffer
    first : int
        Element of row 0.
    """

    buffer: Buffer
    first: int


@dataclass(frozen=True)
class LibraryStates:
    """The states of one library and those of its queries, in one dimension: what one search of an index takes.

    Attributes
    ----------
    problem : SearchProblem
        Of one dimension.
    library, query : HostStates
    library_on_device, query_on_device : DeviceSeries
        The whole series, whichever of their rows take part.
    """

    problem: SearchProblem
    library: HostStates
    query: HostStates
    library_on_device: DeviceSeries
    query_on_device: DeviceSeries

    @property
    def E(self) -> int:
        return self.problem.dims[0]

    @property
    def k(self) -> int:
        return self.problem.ks[0]


@dataclass(frozen=True)
class SearchSeries:
    """Library series and query series of a search, loaded.

    Attributes
    ----------
    problem : SearchProblem
    library, query : Buffer
        (n, stride) with row 0 at column ``problem.front``, gaps before it and behind the last row.
    n : int
        Libraries, each with its query series.
    on_host : callable
        Gives library and query of a place; the same object twice where a series is searched in itself.
    """

    problem: SearchProblem
    library: Buffer
    query: Buffer
    n: int
    on_host: Callable[[int], tuple[HostSeries, HostSeries]]

    @property
    def strides(self) -> tuple[int, int]:
        """Columns of libraries and of queries."""
        return self.problem.stride(self.problem.n_library), self.problem.stride(self.problem.n_query)

    def states(
        self, place: int, E: int, library_mask: Mask | None = None, query_mask: Mask | None = None
    ) -> LibraryStates:
        """States of one library and dimension, without the rows that masks leave out; InputError for another size."""
        problem = self.problem.restrict((E,))
        _check_masks(problem, library_mask, query_mask)
        begin, end = problem.library_begin, problem.library_end
        library, query = self.on_host(place)
        library_rows = rows_with_states(library, problem, begin, end, library_mask)
        query_rows = rows_with_states(query, problem, 0, problem.n_query, query_mask)
        if library is query and np.array_equal(library_rows, query_rows):
            library_rows = query_rows
        front, strides = self.problem.front, self.strides
        return LibraryStates(
            problem,
            HostStates(library, library_rows, E, problem.tau),
            HostStates(query, query_rows, E, problem.tau),
            DeviceSeries(self.library, place * strides[0] + front),
            DeviceSeries(self.query, place * strides[1] + front),
        )


def rows_with_states(
    series: HostSeries, problem: SearchProblem, begin: int, end: int, mask: Mask | None
) -> NDArray[np.int32]:
    """Rows in [begin, end) that have all their coordinates and are in the mask, ascending int32.

    Parameters
    ----------
    series : HostSeries
    problem : SearchProblem
        Of one dimension.
    begin, end : int
    mask : ndarray of bool (at least ``end``,), optional
    """
    E, begin = problem.dims[0], max(begin, problem.first_state(problem.dims[0]))
    if end <= begin:
        return np.empty(0, np.int32)
    oldest = series.first - (E - 1) * problem.tau
    present = np.abs(series.values[oldest + begin : series.first + end]) < PRESENT
    if mask is None and present.all():
        return np.arange(begin, end, dtype=np.int32)
    complete = np.ones(end - begin, np.bool_) if mask is None else mask[begin:end].copy()
    for e in range(E):
        lag = (E - 1 - e) * problem.tau
        complete &= present[lag : lag + end - begin]
    return (np.flatnonzero(complete) + begin).astype(np.int32)


def load_staged(
    problem: SearchProblem, pool: Pool, data: Staging, a: int, b: int, query: Staging | None = None
) -> SearchSeries:
    """Put series a to b of ``data`` into the layout of a search, on the device.

    A search of series in themselves with no future to cut shares one buffer.
    """
    stride = problem.stride(problem.n_library)
    library = pool.get("library", ((b - a) * stride + problem.overrun) * problem.itemsize)
    data.series(a, b, problem.front, problem.library_end, stride, library)
    queries = library
    if query is not None or problem.library_end != problem.n_query:
        stride = problem.stride(problem.n_query)
        queries = pool.get("query", ((b - a) * stride + problem.overrun) * problem.itemsize)
        (query or data).series(a, b, problem.front, problem.n_query, stride, queries)

    @lru_cache(maxsize=1)  # of one library all dimensions are searched, one after the other
    def on_host(place: int) -> tuple[HostSeries, HostSeries]:
        series = HostSeries(np.ascontiguousarray(data.values[:, a + place]), 0)
        if query is None:
            return series, series
        return series, HostSeries(np.ascontiguousarray(query.values[:, a + place]), 0)

    return SearchSeries(problem, library, queries, b - a, on_host)


def load_layouts(
    executor: Executor, problem: SearchProblem, pool: Pool, library: NDArray[Any], query: NDArray[Any]
) -> SearchSeries:
    """Upload series that are in the layout of a search already, (n, stride); the same object where both are alike."""
    library = np.ascontiguousarray(library)
    behind = problem.overrun * problem.itemsize
    on_device = executor.upload(library, pool.get("library", library.nbytes + behind))
    queries = on_device
    if query is not library:
        query = np.ascontiguousarray(query)
        queries = executor.upload(query, pool.get("query", query.nbytes + behind))

    def on_host(place: int) -> tuple[HostSeries, HostSeries]:
        queries = HostSeries(query[place], problem.front)
        # Of a series in itself the library is the query, but for the end of it that no neighbour may come from.
        same_series = problem.exclusion_radius >= 0
        return queries if same_series else HostSeries(library[place], problem.front), queries

    return SearchSeries(problem, on_device, queries, len(library), on_host)


def load_states(
    executor: Executor, problem: SearchProblem, pool: Pool, library: NDArray[Any], query: NDArray[Any] | None = None, *,
    library_mask: Mask | None = None, query_mask: Mask | None = None,
) -> LibraryStates:  # fmt: skip
    """Upload one series, and another one whose states are the queries: the states of a search of one dimension.

    Parameters
    ----------
    executor : Executor
    problem : SearchProblem
        Of one dimension.
    pool : Pool
    library : ndarray (n_library,)
        Of the problem's dtype, from :func:`pyedmcl.data.condition.condition`, NaN for gaps.
    query : ndarray (n_query,), optional
        Conditioned together with the library; the exclusion radius must then be -1.
    library_mask, query_mask : ndarray of bool, optional
        Rows that may be neighbours, and rows whose neighbours are searched.

    Raises
    ------
    InputError
        Shapes or numbers contradict each other.
    """
    _check_arrays(problem, library, query)
    library_layout = lay_out(library[:, None], problem, problem.n_library, problem.n_library)
    other = library_layout if query is None else lay_out(query[:, None], problem, problem.n_query, problem.n_query)
    loaded = load_layouts(executor, problem, pool, library_layout, other)
    series = HostSeries(library, 0)
    queries = series if query is None else HostSeries(query, 0)
    alone = SearchSeries(problem, loaded.library, loaded.query, 1, lambda place: (series, queries))
    return alone.states(0, problem.dims[0], library_mask, query_mask)


def _check_arrays(problem: SearchProblem, library: NDArray[Any], query: NDArray[Any] | None) -> None:
    sides = [("library", library, problem.n_library), ("query", library if query is None else query, problem.n_query)]
    for name, values, n in sides:
        if values.shape != (n,) or values.dtype != np.dtype(problem.dtype):
            raise InputError(
                f"{name}: shape {values.shape} of {values.dtype}; the search has ({n},) of {problem.dtype}"
            )  # fmt: skip
    if query is not None and problem.exclusion_radius >= 0:
        raise InputError(
            f"exclusion_radius={problem.exclusion_radius} with another series as query; -1 (none) is needed"
        )  # fmt: skip


def _check_masks(problem: SearchProblem, library_mask: Mask | None, query_mask: Mask | None) -> None:
    sides = ("library_mask", library_mask, problem.n_library), ("query_mask", query_mask, problem.n_query)
    for name, mask, n in sides:
        if mask is not None and (mask.shape != (n,) or mask.dtype != np.bool_):
            raise InputError(f"{name}: shape {mask.shape} of {mask.dtype}; ({n},) of bool is needed")
