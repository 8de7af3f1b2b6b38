"""Exhaustive search that shares sums along diagonals: for states of many dimensions, where boxes prune nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..launch.pacing import Pacer
from ..launch.pool import Pool
from ..launch.progress import report_part
from ..tuning.parameters import adjusted, parameters
from .library_searcher import NeighborLists, NotSearchedError, SearchOutcome
from .plan import TILE_LAGS, SearchProblem
from .series import LibraryStates

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo
    from .tables import Tables

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
    executor : Executor
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
        """Write the table; see :class:`~pyedmcl.neighbors.library_searcher.LibrarySearcher`.

        Raises
        ------
        NotSearchedError
            There is not the memory; the exhaustive search needs less.
        """
        try:
            self.find().tabulate(self.executor, tables, place, self.states.E)
        except DeviceMemoryError as error:
            raise NotSearchedError from error
        return SearchOutcome("sums shared along diagonals")

    def find(self) -> NeighborLists:
        """Neighbours of all queries.

        Raises
        ------
        DeviceMemoryError
            They do not fit; the message holds the numbers.
        """
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
