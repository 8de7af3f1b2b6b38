"""Searches that fill tables: all pairs of many libraries, sums shared along diagonals, and candidates of an index."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget, host_available
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..kernels.build import build
from ..kernels.texts import FAR, NOWHERE
from ..launch.progress import report_part, report_progress
from ..launch.staging import LAUNCH_SECONDS, Pacer, Pool, open_size
from ..tuning.parameters import adjusted, parameters
from .index import Index, Measured, brute_force, candidate_counts, index_bytes, make_index, measure, sufficient_count
from .plan import TILE_LAGS, KnnPass, SearchProblem
from .tables import HostStates, LibraryStates, SearchSeries, Tables, TableSpace, load_layouts, load_staged

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..device.info import DeviceInfo
    from ..launch.staging import Staging


# What searches of one library in one dimension have in common.


class LibrarySearcher(Protocol):
    """Finds the neighbours of the queries of one library, in one dimension."""

    states: LibraryStates

    def fill(self, tables: Tables, place: int) -> SearchOutcome:
        """Write the table of the library; ``place`` counts those of ``tables``."""

    def release(self) -> None:
        """Give the device memory back."""


@dataclass(frozen=True)
class SearchOutcome:
    """How a search went."""

    # What to add to the reason why it was taken.
    remark: str = ""
    # Recall of an approximate search.
    measured: Measured | None = None


class NotSearchedError(Exception):
    """A search cannot serve after all: the message says why, if there is something to say."""

    def __init__(self, why: str = "", measured: Measured | None = None) -> None:
        super().__init__(why)
        self.measured = measured


@dataclass(frozen=True)
class NeighborLists:
    """Neighbours of all query rows among one library on the device, valid until the next search."""

    # rows, values: int32 rows and squared distances, (n_query, k), the nearest first; -1 and NOWHERE where there is
    # none.
    rows: Buffer
    values: Buffer
    n_query: int
    k: int
    dtype: str
    # Share of all pairs of query and library states whose distance was computed.
    visited: float

    def read(self, executor: Executor) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Rows and squared distances (n_query, k) as host arrays."""
        shape = (self.n_query, self.k)
        rows = executor.download(self.rows, np.empty(shape, np.int32))
        return rows, executor.download(self.values, np.empty(shape, self.dtype))

    def tabulate(self, executor: Executor, tables: Tables, place: int, E: int) -> None:
        """Write the lists into the table of a library; they are used up.

        Their distances have the bits of the exhaustive search already. Only the layout of a table is another, and
        tables of weights hold exponentials of the distances.
        """
        specialisation = {"dtype": self.dtype, "emit": tables.knn_pass.emit}
        executor.launch(
            build(executor, spec("candidates"), specialisation, "tabulate"), open_size(self.n_query), None,
            rows=self.rows, squared=self.values, n=self.n_query, k=self.k, **tables.arguments_of(place, E),
        )  # fmt: skip


# The search that compares all pairs of states, for many libraries and several dimensions at once.


class ExhaustiveSearcher:
    """All nearest neighbours by the kernel ``knn``; buffers and kernels are used again from call to call.

    Parameters
    ----------
    emit : str
        "neighbours" or "weights".
    **options
        Of :class:`~pyedmcl.search.tables.TableSpace`.

    Attributes
    ----------
    decisions : list of dict
        Records of searches, where another one than this was considered.
    """

    def __init__(self, executor: Executor, problem: SearchProblem, emit: str, **options: Any) -> None:
        self.executor, self.problem = executor, problem
        self.space = TableSpace(executor, problem, emit, **options)
        self.decisions: list[dict[str, Any]] = []
        self._pacers = {
            dims: Pacer(executor.info, "knn", dims, problem.dtype)
            for dims in (knn_pass.problem.dims for knn_pass in self.space.passes)
        }

    @property
    def parameters(self) -> dict[str, Any]:
        """Tuned parameters of the last pass."""
        return self.space.parameters

    @property
    def grade(self) -> str:
        return self.space.grade

    def sure_passes(self, n_libraries: int) -> list[tuple[KnnPass, int]]:
        """All passes."""
        at_once = [self.space.at_once(knn_pass, n_libraries) for knn_pass in self.space.passes]
        return [(self._shared(knn_pass, n), n) for knn_pass, n in zip(self.space.passes, at_once, strict=True)]

    def load(self, data: Staging, a: int, b: int, query: Staging | None = None) -> SearchSeries:
        """Put series a to b of ``data`` on the device, with their queries where these are other series."""
        return load_staged(self.problem, self.space.pool, data, a, b, query)

    def load_layouts(self, library: NDArray[Any], query: NDArray[Any]) -> SearchSeries:
        """Upload series that are in the layout of the search already; the same object where both are alike."""
        return load_layouts(self.executor, self.problem, self.space.pool, library, query)

    def tables(self, series: SearchSeries, library_mask: NDArray[np.bool_] | None = None) -> Iterator[Tables]:
        """Tables of each pass in turn.

        Parameters
        ----------
        series : SearchSeries
            From :meth:`load` or :meth:`load_layouts`.
        library_mask : ndarray of bool (n_library,), optional
            Rows of every library that may be neighbours; not to be written to afterwards.
        """
        return self.space.tables(series.n, lambda tables: self.fill(tables, series, library_mask))

    def fill(
        self, tables: Tables, series: SearchSeries, library_mask: NDArray[np.bool_] | None, part: range | None = None
    ) -> None:
        """Write the neighbours in all dimensions of some tables, of all their libraries or those of a ``part``."""
        executor, problem = self.executor, tables.problem
        part = range(tables.n_libraries) if part is None else part
        knn_pass = self._shared(tables.knn_pass, len(part))
        kernel = build(executor, spec("knn"), knn_pass.values(library_mask is not None))
        penalty = series.library if library_mask is None else self.space.penalty(library_mask)
        tiles, cost = knn_pass.tiles * len(part), knn_pass.tile_cost()
        wg, pacer = int(knn_pass.parameters["wg"]), self._pacers[problem.dims]
        # Never fewer groups than the device takes at once: side by side they take no longer than one.
        groups = self._groups(knn_pass, tiles)
        scratch = self.space.pool.get("scratch", groups * knn_pass.scratch_bytes)
        # The padding in front is that of the whole search, so that one upload serves every pass.
        fixed: dict[str, Any] = {
            "library": series.library, "query": series.query, "penalty_of": penalty,
            "library_stride": series.strides[0], "query_stride": series.strides[1], "front": series.problem.front,
            "n_rows": problem.n_query, "j_begin": problem.library_begin, "j_end": problem.library_end,
            "groups_per_tile": knn_pass.groups_per_tile, "groups_per_round": knn_pass.groups_per_round,
            "exclusion_radius": min(problem.exclusion_radius, problem.n_library), "n_tiles": knn_pass.tiles,
            "first_library": tables.first, "out_row": tables.rows, "out_value": tables.values,
            "table_rows": knn_pass.table_rows, "rows_per_slot": knn_pass.table_rows * tables.n_libraries,
            "scratch": scratch,
        }  # fmt: skip
        first, begin = knn_pass.tiles * part.start, 0
        while begin < tiles:
            end = min(begin + max(pacer.units(cost), groups), tiles)
            event = executor.launch(
                kernel, (groups * wg,), (wg,), task_begin=first + begin, task_end=first + end, **fixed
            )  # fmt: skip
            pacer.launched(event, cost * (end - begin))
            report_part(end, tiles, problem.n_query * len(part), begin)
            begin = end

    def _shared(self, knn_pass: KnnPass, n_libraries: int) -> KnnPass:
        """The pass as a launch for ``n_libraries`` libraries has it: work-items share rows where these are few."""
        return knn_pass.shared(n_libraries, self.executor.info.compute_units)

    def _groups(self, knn_pass: KnnPass, tiles: int) -> int:
        """Work-groups of a launch, each with scratch memory of its own."""
        enough = self.executor.info.compute_units * int(knn_pass.parameters["groups_per_unit"])
        fit = self.space.scratch_limit // knn_pass.scratch_bytes
        if fit < 1:
            problem = knn_pass.problem
            raise DeviceMemoryError(
                f"a work-group of the neighbour search needs {knn_pass.scratch_bytes:,} bytes of scratch memory for "
                f"E = {problem.dims} and k = {problem.ks}; {self.space.scratch_limit:,} may be used on "
                f"{self.executor.info.name}. Ask for fewer neighbours or raise PYEDMCL_MEMORY_LIMIT."
            )
        most = max(min(enough, fit, tiles), 1)
        return -(-tiles // -(-tiles // most))  # even shares

    def spare(self) -> None:
        """Give back what tables do not need; here nothing."""

    def release(self) -> None:
        """Give all device memory of this search back."""
        self.space.release()


# Exhaustive search that shares sums along diagonals: for states of many dimensions, where boxes prune nothing.


_LEAST_DIMENSION, _LEAST_STATES = 8, 3 << 16
_SIDE = TILE_LAGS  # queries and library rows of a tile: its 64 pairs are one mask
_LEAST_GROUP = 32  # work-items that run in lockstep


def shared_sums_pay(info: DeviceInfo, problem: SearchProblem, n_states: int, n_queries: int) -> bool:
    """Whether sharing sums along diagonals is the faster exhaustive search: of one library and one dimension, of lags.

    An insertion into a list costs it more than the other search, so that it needs many states and many dimensions.
    Measured on an H200, in turn: E = 20 2.8 s against 1.0 s (2^20 states), 0.15 against 0.11 s (2^18), 49 against
    44 ms (2^17), E = 10 89 against 50 ms (2^18), E = 5 and less no gain. On processors 1.4 times as fast with one
    runtime and slower with another.
    """
    if problem.coordinates or len(problem.dims) != 1:  # several dimensions share their sums better
        return False
    E = problem.dims[0]
    if not quirks_for(info).scalar_work_items or E < _LEAST_DIMENSION or problem.ks[0] > 2 * E:
        return False
    return min(n_states, n_queries) >= _LEAST_STATES


def operations_per_pair(E: int, side: int) -> float:
    """Arithmetic instructions per pair: a difference and a multiply-add for each square, an addition, a comparison."""
    return 2.0 * ((2 * side - 1) * (E - 1) + side**2) / side**2 + 2.0


class SharedSumsSearcher:
    """All nearest neighbours of one series by looking at all pairs, as the exhaustive search does; lags only.

    Parameters
    ----------
    states : LibraryStates
        Lags of a series.
    pool : Pool, optional
        Device memory to share with searches that do not run at the same time.
    """

    def __init__(self, executor: Executor, states: LibraryStates, *, pool: Pool | None = None) -> None:
        self.executor, self.states, self.problem = executor, states, states.problem
        self._pool, self._owns_pool = pool or Pool(executor), pool is None
        self._budget = budget(executor.info)
        self._pacer = Pacer(executor.info, "shared_sums", states.E, states.problem.dtype)
        self.parameters: dict[str, Any] = {}
        self.grade = ""

    def release(self) -> None:
        """Give the device memory back; a pool that was given is released by its owner."""
        if self._owns_pool:
            self._pool.release()

    @property
    def need(self) -> int:
        """Bytes of device memory that the search takes, the series included."""
        problem, E = self.problem, self.states.E
        around = (E + 2 * _SIDE) * problem.tau + 64
        cells = problem.n_query * self.states.k
        return (problem.n_library + problem.n_query + 2 * around) * (problem.itemsize + 1) + cells * (
            4 + problem.itemsize
        )

    def fill(self, tables: Tables, place: int) -> SearchOutcome:
        """Write the table; see :class:`~pyedmcl.search.searches.LibrarySearcher`."""
        try:
            self.find().tabulate(self.executor, tables, place, self.states.E)
        except DeviceMemoryError as error:
            raise NotSearchedError from error
        return SearchOutcome("sums shared along diagonals")

    def find(self) -> NeighborLists:
        """Neighbours of all queries."""
        self._check_memory()
        problem, states = self.problem, self.states
        side = min(_SIDE, states.E)
        values = self._values(side)
        kernel = build(self.executor, spec("shared_sums"), values)
        cells = problem.n_query * states.k
        rows = self._pool.get("shared sums: rows", cells * 4)
        squared = self._pool.get("shared sums: squared distances", cells * problem.itemsize)
        library, query = states.library_on_device, states.query_on_device
        first, last = self._library_tiles(side)
        fixed: dict[str, Any] = {
            "library": library.buffer, "query": query.buffer, "library_first": library.first,
            "query_first": query.first,
            "library_mask": self._flags("library flags", states.library.rows, problem.n_library, side),
            "query_mask": self._flags("query flags", states.query.rows, problem.n_query, side),
            "n_query": problem.n_query, "first": first, "last": last, "out_row": rows, "out_value": squared,
            "exclusion_radius": min(problem.exclusion_radius, problem.n_library),
        }  # fmt: skip
        wg, lanes = int(values["wg"]), int(values["lanes"])
        groups = -(-self._items(side, lanes) // wg)
        cost = operations_per_pair(states.E, side) * side**2 * (last - first) * wg * lanes
        begin, least = 0, self.executor.info.compute_units
        while begin < groups:
            n = min(max(self._pacer.units(cost), least), groups - begin)
            event = self.executor.launch(kernel, (n * wg,), (wg,), begin=begin, **fixed)
            self._pacer.launched(event, cost * n)
            report_part(begin + n, groups, problem.n_query, begin)
            begin += n
        every = 1.0 if len(states.library.rows) and len(states.query.rows) else 0.0
        return NeighborLists(rows, squared, problem.n_query, states.k, problem.dtype, every)

    def _check_memory(self) -> None:
        problem, k = self.problem, self.states.k
        if (
            self.need > self._budget.total
            or problem.n_query * k * max(problem.itemsize, 4) > self._budget.largest
        ):  # fmt: skip
            raise DeviceMemoryError(
                f"neighbours of {problem.n_query:,} rows with k = {k} need {self.need:,} bytes; "
                f"{self._budget.total:,} may be used on {self.executor.info.name}, {self._budget.largest:,} of them in "
                f"one piece. Ask for fewer neighbours or raise PYEDMCL_MEMORY_LIMIT."
            )

    def _values(self, side: int) -> dict[str, Any]:
        """Specialisation and parameters; few queries are spread over all compute units, in smaller groups."""
        problem, info = self.problem, self.executor.info
        specialisation = {
            "E": self.states.E, "tau": problem.tau, "k": self.states.k, "dtype": problem.dtype, "side": side,
        }  # fmt: skip
        sizes = {"rows": problem.n_query, "library": problem.n_library}
        choice = parameters(spec("shared_sums"), specialisation, info, sizes)
        wg, items = int(choice.parameters["wg"]), self._items(side, int(choice.parameters["lanes"]))
        while wg > _LEAST_GROUP and -(-items // wg) < 3 * info.compute_units // 4:
            wg //= 2
        why = "few queries are spread over all units, in smaller groups"
        self.parameters, self.grade = dict(adjusted(choice, {**choice.parameters, "wg": wg}, why)), choice.grade
        return {**specialisation, **self.parameters}

    def _items(self, side: int, lanes: int) -> int:
        """Work-items: each has ``lanes`` tiles of ``side`` query rows that are a lag apart."""
        tau = self.problem.tau
        return -(-(-(-self.problem.n_query // (tau * side)) * tau) // lanes)

    def _library_tiles(self, side: int) -> tuple[int, int]:
        """First tile of library rows that holds a state, and one past the last."""
        rows, tau = self.states.library.rows, self.problem.tau
        if not len(rows):
            return 0, 0
        return int(rows[0]) // (tau * side) * tau, (int(rows[-1]) // (tau * side) + 1) * tau

    def _flags(self, name: str, rows: NDArray[Any], n: int, side: int) -> Any:
        """1 for the rows that take part, 0 for all others that a tile may reach."""
        flags = np.zeros(n + side * self.problem.tau, np.uint8)
        flags[rows] = 1
        return self.executor.upload(flags, self._pool.get(f"shared sums: {name}", flags.nbytes))


# Rows of tables from rows that an index proposes.


class CandidateKernel:
    """The kernel that writes the nearest of candidates into the table of one library and dimension."""

    def __init__(self, executor: Executor, pool: Pool) -> None:
        self.executor, self._pool = executor, pool

    def keep_nearest(
        self, tables: Tables, place: int, states: LibraryStates, queries: NDArray[np.int32], rows: NDArray[np.int32],
        limit: NDArray[np.float64],
    ) -> NDArray[np.bool_]:  # fmt: skip
        """Compute the distances of candidates, as the exhaustive search does, and write the k nearest.

        Parameters
        ----------
        place : int
            Which of their libraries.
        queries : ndarray (n,)
            Query rows.
        rows : ndarray (n, m)
            Candidates of each, -1 for none, in any order.
        limit : ndarray (n,)
            The squared distance that rows which are no candidates have at least; inf where all rows are candidates.

        Returns
        -------
        ndarray of bool (n,)
            Which queries are open: a row that is no candidate could be nearer than the last neighbour.
        """
        executor, get, problem = self.executor, self._pool.get, states.problem
        n, m = rows.shape
        specialisation = {"dtype": problem.dtype, "emit": tables.knn_pass.emit}
        rows, queries = np.ascontiguousarray(rows, np.int32), np.ascontiguousarray(queries)
        bounds = np.minimum(limit, NOWHERE).astype(problem.dtype)
        is_open = get("open", n)
        library, query = states.library_on_device, states.query_on_device
        executor.launch(
            build(executor, spec("candidates"), specialisation), open_size(n), None, library=library.buffer,
            library_first=library.first, query=query.buffer, query_first=query.first, tau=problem.tau, E=states.E,
            begin=0, n=n, m=m, exclusion_radius=min(problem.exclusion_radius, problem.n_library),
            rows=executor.upload(rows, get("candidates", rows.nbytes)),
            squared=get("squared", n * m * problem.itemsize),
            limit=executor.upload(bounds, get("limit", bounds.nbytes)), open=is_open,
            query_rows=executor.upload(queries, get("queries", queries.nbytes)), k=states.k,
            **tables.arguments_of(place, states.E),
        )  # fmt: skip
        return executor.download(is_open, np.empty(n, np.uint8)).astype(bool)


# Neighbour tables from an index on the host, which proposes rows whose distances the device computes.
#
# What the index cannot rule out (the exclusion radius, ties) is met by asking it for more candidates.


_CELLS = 1 << 22  # candidates handled at a time: some 100 MB on the host
_CELLS_BYTES = 32 * _CELLS
_MOST_OPEN = 1 << 26  # candidates of open rows beyond which the exhaustive search is the shorter way
_FIRST_QUERIES, _QUERIES = 1 << 10, 1 << 14  # that an index is asked at a time


class IndexedSearcher:
    """Nearest neighbours of one library by a k-d tree, inverted lists or a graph.

    Parameters
    ----------
    name : str
        "kdtree", "ivf" or "hnsw".
    recall : float
        Share of the neighbours that an approximate index must be shown to find.
    pool : Pool
        Device memory for candidates.
    """

    def __init__(self, executor: Executor, states: LibraryStates, name: str, recall: float, pool: Pool) -> None:
        self.executor, self.states, self.name, self.recall = executor, states, name, recall
        self._kernel = CandidateKernel(executor, pool)
        self._most = min(_CELLS, budget(executor.info).largest // 8)

    def fill(self, tables: Tables, place: int) -> SearchOutcome:
        """Build the index and write the table; see :class:`~pyedmcl.search.searches.LibrarySearcher`."""
        states = self.states
        need, free = index_bytes(self.name, len(states.library.rows), states.E) + _CELLS_BYTES, host_available()
        if free is not None and need > free // 2:
            raise NotSearchedError(f"{self.name} needs {need:,} bytes on the host, where {free:,} are free")
        index = make_index(self.name, states.library.points(states.library.rows))
        measured = None
        if not index.exact:
            measured = measure(index, states.library, states.query, states.problem, self.recall)
            if not measured.reached:
                low, high = measured.interval
                why = (f"{self.name} showed a recall of {measured.recall:.4f} ({low:.4f} to {high:.4f}), and "
                       f"{self.recall:g} or more is to be sure")  # fmt: skip
                raise NotSearchedError(why, measured)
        self._fill_idle(tables, place)
        if not self._search(tables, place, index):
            raise NotSearchedError(f"too many rows tie or are excluded for {self.name}", measured)
        return SearchOutcome(measured=measured)

    def release(self) -> None:
        """Nothing to do: the pool of candidates is its owner's."""

    def _fill_idle(self, tables: Tables, place: int) -> None:
        """Say that rows without a state have no neighbours."""
        every, states = np.arange(self.states.problem.n_query, dtype=np.int32), self.states
        idle = every
        if len(states.library.rows):
            idle = np.setdiff1d(every, states.query.rows, assume_unique=True)
        for a in range(0, len(idle), _CELLS):
            part = idle[a : a + _CELLS]
            nothing = np.full((len(part), 1), -1, np.int32)
            self._kernel.keep_nearest(tables, place, states, part, nothing, np.full(len(part), np.inf))

    def _search(self, tables: Tables, place: int, index: Index) -> bool:
        """Ask the index for ever more candidates until no query is open; False where that takes too many."""
        states, n = self.states, len(self.states.library.rows)
        radius = states.problem.exclusion_radius
        open_queries = states.query.rows if n else states.query.rows[:0]
        for again, m in enumerate(candidate_counts(states.k, radius, n, index.exact)):
            if not len(open_queries):
                break
            if again and len(open_queries) * m > _MOST_OPEN:
                return False
            still_open = []
            for part in query_parts(open_queries, max(self._most // m, 64), index.exact):
                points, least = states.query.points(part), min(sufficient_count(states.k, radius), n)
                rows, limit = candidates(index, states.library, points, m, least)
                still_open.append(part[self._kernel.keep_nearest(tables, place, states, part, rows, limit)])
            open_queries = np.concatenate(still_open)
        return True


def candidates(
    index: Index, library: HostStates, points: NDArray[np.floating], m: int, least: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Candidate rows (n, m) of queries, and what other rows are at least away from them, squared.

    Where all rows are candidates, an approximate index is passed over: the ``least`` nearest of them are found.
    """
    if m >= len(library.rows) and not index.exact:
        place = brute_force(library.points(library.rows), points, least)
        return library.rows[place], np.full(len(points), np.inf)
    place, last = index.search(points, m)
    rows = library.rows[np.maximum(place, 0)]
    rows[place < 0] = -1
    if m >= len(library.rows):
        return rows, np.full(len(points), np.inf)
    if not index.exact:
        return rows, np.full(len(points), FAR)  # open only if there are fewer than k
    # In the device's arithmetic a sum of E squares may be this much nearer than in double precision.
    eps = float(np.finfo(points.dtype).eps)
    return rows, np.maximum(last * (1 - (library.E + 8) * eps) - 1e-36, 0.0)


def query_parts(rows: NDArray[np.int32], most: int, timed: bool) -> Iterator[NDArray[np.int32]]:
    """Rows in parts after which progress is reported and Ctrl-C heeded.

    A tree may take long for some series, so that parts are as long as some tenths of a second allow. For approximate
    indices the size is fixed, since it decides last digits of the distances that they compare.
    """
    a, step = 0, min(_FIRST_QUERIES if timed else _QUERIES, most)
    while a < len(rows):
        begun = time.perf_counter()
        yield rows[a : a + step]
        if a or a + step < len(rows):
            report_progress(min(a + step, len(rows)), len(rows))
        a += step
        seconds = time.perf_counter() - begun
        if timed and seconds < LAUNCH_SECONDS / 2:
            step = min(4 * step, most)
        elif timed and seconds > 4 * LAUNCH_SECONDS:
            step = max(step // 2, 64)
