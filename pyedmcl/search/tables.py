"""Neighbour tables on the device, and the series whose states are searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError, InputError
from ..kernels import spec
from ..kernels.texts import GAP, GAP_SQUARED, PRESENT
from ..launch.staging import Pool, round_up
from ..tuning.parameters import adjusted, parameters
from .plan import KnnPass, SearchProblem, split_dims, with_enough_groups

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..launch.staging import Staging


# States with any coordinates in the layouts of the neighbour search, which reads a row's e-th one e lags before.
#
# Delay coordinates of one series are read where they are. Other coordinates (those of several series, or ones that a
# user brings) are laid one behind another, a "lag" apart that is longer than the series: the same kernels then search
# them.


def coordinate_problem(
    n_coordinates: int, k: int, Tp: int, exclusion_radius: int, n_library: int, n_query: int, dtype: str
) -> SearchProblem:
    """Search for the k nearest among rows of ``n_coordinates``; see :class:`SearchProblem` for the other parameters."""
    lag = round_up(max(n_library, n_query) + 64, 256)  # one compiled kernel serves lengths that differ little
    return SearchProblem(
        (n_coordinates,), (k,), lag, Tp, exclusion_radius, n_library, n_query, dtype, coordinates=True
    )  # fmt: skip


def delay_problem(
    E: int, tau: int, k: int, Tp: int, exclusion_radius: int, n_library: int, n_query: int, dtype: str
) -> SearchProblem:
    """Search for the k nearest among delay embeddings of single series; see :class:`SearchProblem`."""
    return SearchProblem((E,), (k,), tau, Tp, exclusion_radius, n_library, n_query, dtype)


def lay_out(series: NDArray[Any], problem: SearchProblem, n_steps: int, end: int) -> NDArray[Any]:
    """Series in the layout of a search of their delay coordinates: (n_series, stride).

    Parameters
    ----------
    series : ndarray (n_steps, n_series), conditioned, NaN for gaps
    n_steps : int
        Rows that the problem counts for them, as library or as query.
    end : int
        Rows from here on are left out.
    """
    out = np.full((series.shape[1], problem.stride(n_steps)), GAP, problem.dtype)
    out[:, problem.front : problem.front + end] = series[:end].T
    out[np.isnan(out)] = GAP
    return out


def lay_out_in_itself(series: NDArray[Any], problem: SearchProblem) -> tuple[NDArray[Any], NDArray[Any]]:
    """Series (n_steps, n_series) in the layouts of a library and of a query; one object where both are alike."""
    n = problem.n_query
    query = lay_out(series, problem, n, n)
    if problem.library_end == n:
        return query, query
    library = query.copy()
    library[:, problem.front + problem.library_end : problem.front + n] = GAP
    return library, query


def lay_out_states(states: NDArray[Any], problem: SearchProblem, n_steps: int, end: int) -> NDArray[Any]:
    """States (n_steps, n_coordinates) in the layout of a search among coordinates: (1, stride)."""
    out = np.full((1, problem.stride(n_steps)), GAP, problem.dtype)
    for e in range(states.shape[1]):
        begin = problem.front - e * problem.tau
        out[0, begin : begin + end] = states[:end, e]
    out[np.isnan(out)] = GAP
    return out


# What is searched: series on the device in the layout of the search, and their states as the host lists them.
#
# A searcher loads series once. Kernels read them on the device; which rows have a state, and what an index on the host
# holds, follows from the values that the host has had from the beginning.


Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class HostSeries:
    """Values on the host: coordinate e of the state at row t is ``values[first + t - e * tau]``."""

    # NaN, or a magnitude from 1e15 on, marks a gap.
    values: NDArray[Any]
    # Place of row 0.
    first: int

    def raw(self, n: int) -> NDArray[Any]:
        """The first ``n`` rows, NaN for gaps."""
        values = self.values[self.first : self.first + n]
        return np.where(np.abs(values) < PRESENT, values, values.dtype.type(np.nan))


@dataclass(frozen=True)
class HostStates:
    """States of one series and one dimension on the host."""

    series: HostSeries
    # Rows with a state that takes part, ascending.
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
    """A series on the device, with gaps enough before row 0 for the oldest lag."""

    buffer: Buffer
    # Element of row 0.
    first: int


@dataclass(frozen=True)
class LibraryStates:
    """The states of one library and those of its queries, in one dimension: what one search of an index takes."""

    # Of one dimension.
    problem: SearchProblem
    library: HostStates
    query: HostStates
    # library_on_device, query_on_device: The whole series, whichever of their rows take part.
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
    """Library series and query series of a search, loaded."""

    problem: SearchProblem
    # library, query: (n, stride) with row 0 at column ``problem.front``, gaps before it and behind the last row.
    library: Buffer
    query: Buffer
    # Libraries, each with its query series.
    n: int
    # Gives library and query of a place; the same object twice where a series is searched in itself.
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
        query_rows = library_rows = rows_with_states(query, problem, 0, problem.n_query, query_mask)
        in_itself = library is query and library_mask is query_mask and problem.Tp == 0
        if not (in_itself and end == problem.n_query):
            library_rows = rows_with_states(library, problem, begin, end, library_mask)
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
    problem : SearchProblem
        Of one dimension.
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
    problem : SearchProblem
        Of one dimension.
    library : ndarray (n_library,)
        Of the problem's dtype, from :func:`pyedmcl.series.scaling.condition`, NaN for gaps.
    query : ndarray (n_query,), optional
        Conditioned together with the library; the exclusion radius must then be -1.
    library_mask, query_mask : ndarray of bool, optional
        Rows that may be neighbours, and rows whose neighbours are searched.
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


# Working memory grows with the data. The least amounts are such that a small job on a shared device can afford them.
_SCRATCH_LEAST, _TABLE_LEAST = 160 << 20, 112 << 20
# Many libraries a pass fill all units of a device. Processors, which gain nothing by it, take a part of that.
_TIMES_DATA, _PART_ON_HOST = 192, 6
_BUSY_GROUPS = 2  # per compute unit: with fewer, fewer dimensions per pass are the better use of scratch memory
_PENALTY_PADDING = 32  # a kernel reads rows in steps


@dataclass(frozen=True)
class Tables:
    """Neighbour tables on the device, of one pass. They are valid until the next tables are filled."""

    # rows, values: int32 rows; squared distances or weights.
    rows: Buffer
    values: Buffer
    # first, n_libraries: The loaded libraries that these tables belong to.
    first: int
    n_libraries: int
    knn_pass: KnnPass

    @property
    def problem(self) -> SearchProblem:
        """The search, restricted to the dimensions of the pass."""
        return self.knn_pass.problem

    def begin(self, E: int, place: int = 0) -> int:
        """Element at which the table of dimension ``E`` begins of library number ``place`` of these tables."""
        knn_pass = self.knn_pass
        return knn_pass.table_begin(E, self.n_libraries) + place * knn_pass.table_rows * knn_pass.stride(E)

    def arguments_of(self, place: int, E: int) -> dict[str, Any]:
        """Arguments of a kernel that writes the table of one library, number ``place`` of these tables.

        ``spare`` is the row that is named, with weight 0, where there is no neighbour.
        """
        knn_pass = self.knn_pass
        return {
            "stride": knn_pass.stride(E), "tile": knn_pass.table_tile, "spare": self.problem.library_begin,
            "table": self.begin(E, place), "out_row": self.rows, "out_value": self.values,
        }  # fmt: skip

    def read(self, executor: Executor, E: int, libraries: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Rows and values (libraries, n_query, k) of dimension ``E`` and the first libraries, as host arrays."""
        knn_pass, problem = self.knn_pass, self.problem
        tile, n = knn_pass.table_tile, min(libraries, self.n_libraries)
        shape = (n, knn_pass.table_rows // tile, knn_pass.stride(E), tile)
        arrays = []
        for buffer, dtype in ((self.rows, np.dtype(np.int32)), (self.values, np.dtype(problem.dtype))):
            table = executor.download(buffer, np.empty(shape, dtype), self.begin(E) * dtype.itemsize)
            by_row = table.transpose(0, 1, 3, 2).reshape(n, knn_pass.table_rows, shape[2])
            arrays.append(by_row[:, : problem.n_query, : problem.k(E)])
        return arrays[0], arrays[1]


class TableSpace:
    """The passes of a search and the device memory of its tables. All searchers of a search share one.

    Parameters
    ----------
    emit : str
        "neighbours" or "weights".
    data_bytes : int
        Size of all data of the job. Working memory may be a multiple of it.
    room : int, optional
        Bytes of device memory that are left for the search; by default the budget of the device.
    pool : Pool, optional
        A pool to share with other searches that do not run at the same time.
    """

    def __init__(
        self, executor: Executor, problem: SearchProblem, emit: str, *, data_bytes: int = 0, room: int | None = None,
        pool: Pool | None = None,
    ) -> None:  # fmt: skip
        self.executor, self.problem = executor, problem
        self.pool, self._owns_pool = pool or Pool(executor), pool is None
        self.budget = budget(executor.info)
        self._room = room if room is not None else self.budget.total
        self.scratch_limit = self._share(_SCRATCH_LEAST, data_bytes)
        self._table_limit = self._share(_TABLE_LEAST, data_bytes)
        self.grade = ""
        libraries = max(data_bytes // (problem.n_library * problem.itemsize), 1)
        self.passes = self._split(emit, libraries)
        self.parameters = dict(self.passes[-1].parameters)
        self._penalty: tuple[NDArray[np.bool_], Buffer] | None = None

    def _share(self, least: int, data_bytes: int) -> int:
        wanted = _TIMES_DATA * data_bytes // (_PART_ON_HOST if quirks_for(self.executor.info).on_host else 1)
        return min(max(least, wanted), max(self._room // 4, 1 << 16), self.budget.largest)

    def _split(self, emit: str, libraries: int) -> list[KnnPass]:
        """Passes with as many dimensions each as pay.

        Dimensions that share a sweep share its arithmetic, but each needs scratch memory in each work-group.
        """
        info, dims = self.executor.info, self.problem.dims
        most = min(len(dims), quirks_for(info).most_dimensions or len(dims))
        while True:
            passes = []
            for part in split_dims(dims, most):
                problem = self.problem.restrict(part)
                specialisation = {"dtype": problem.dtype, "dims": part, "tau": problem.tau,
                                  "simplexes": problem.simplexes}  # fmt: skip
                sizes = {"rows": problem.n_query, "library": problem.n_library}
                choice = parameters(spec("knn"), specialisation, info, sizes)
                self.grade = choice.grade
                grouped = with_enough_groups(choice.parameters, problem)
                why = "far more neighbours than E + 1 need more groups of rows for their bound"
                passes.append(KnnPass(problem, emit, adjusted(choice, grouped, why)))
            allowed = min(int(p.parameters["dims_per_pass"]) for p in passes)
            busy = info.compute_units * _BUSY_GROUPS
            scratch = max(p.scratch_bytes * min(p.tiles * libraries, busy) for p in passes)
            if most == 1 or (most <= allowed and scratch <= self.scratch_limit):
                return passes
            most = min(allowed, most - 1)

    def tables(self, n_libraries: int, fill: Callable[[Tables], None]) -> Iterator[Tables]:
        """Tables of each pass in turn, for as many libraries as there is memory for; ``fill`` computes each of them."""
        for knn_pass in self.passes:
            first = 0
            while first < n_libraries:
                n = min(self.at_once(knn_pass, n_libraries), n_libraries - first)
                try:
                    tables = Tables(*self._allocate(knn_pass, n), first, n, knn_pass)
                    fill(tables)
                except DeviceMemoryError:
                    if not self._shrink(knn_pass, n):
                        raise
                    continue
                yield tables
                first += n

    def at_once(self, knn_pass: KnnPass, n_libraries: int) -> int:
        """How many of ``n_libraries`` libraries share tables, in even shares."""
        fitting = max(self._table_limit // knn_pass.table_bytes(1), 1)
        return -(-n_libraries // -(-n_libraries // fitting))

    def _shrink(self, knn_pass: KnnPass, n: int) -> bool:
        """Plan with half of the memory, since the device refused some. False if there is nothing left to halve."""
        if n == 1 and self.scratch_limit // 2 < knn_pass.scratch_bytes:
            return False
        if n > 1:
            self._table_limit = knn_pass.table_bytes(n) // 2
        self.scratch_limit = max(self.scratch_limit // 2, knn_pass.scratch_bytes)
        self.pool.drop("rows", "values", "scratch")
        return True

    def _allocate(self, knn_pass: KnnPass, n: int) -> tuple[Buffer, Buffer]:
        """Rows and values of ``n`` libraries. Raises DeviceMemoryError where they are too large for the device."""
        problem = knn_pass.problem
        cells = sum(knn_pass.strides) * knn_pass.table_rows * n
        if cells * problem.itemsize > self.budget.largest:
            raise DeviceMemoryError(
                f"the neighbour table of {n} series of {problem.n_query:,} rows with k = {problem.ks} needs "
                f"{cells * problem.itemsize:,} bytes in one piece; {self.budget.largest:,} may be used on "
                f"{self.executor.info.name}. Ask for fewer neighbours or raise PYEDMCL_MEMORY_LIMIT."
            )
        return self.pool.get("rows", cells * 4), self.pool.get("values", cells * problem.itemsize)

    def penalty(self, library_mask: NDArray[np.bool_]) -> Buffer:
        """The library mask as kernels read it. It is uploaded once as long as the array is the same object."""
        if self._penalty is None or self._penalty[0] is not library_mask:
            values = np.zeros(self.problem.n_library + _PENALTY_PADDING, self.problem.dtype)
            values[: self.problem.n_library][~library_mask] = GAP_SQUARED
            buffer = self.executor.upload(values, None if self._penalty is None else self._penalty[1])
            self._penalty = library_mask, buffer
        return self._penalty[1]

    def release(self) -> None:
        """Give the device memory of the search back, but for a pool that was passed in, which its owner releases."""
        if self._penalty is not None:
            self._penalty[1].release()
            self._penalty = None
        if self._owns_pool:
            self.pool.release()
