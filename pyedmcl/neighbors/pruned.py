"""Exact search on the device that does not look at every pair: leaves too far from the queries are left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..errors import DeviceMemoryError, InputError
from ..kernels import spec
from ..launch.pacing import Pacer
from ..launch.pool import Pool
from ..launch.progress import report_part
from ..launch.sizes import open_size
from ..tuning.parameters import ParameterChoice, parameters
from .library_searcher import NeighborLists, SearchOutcome
from .pruned_axes import AXES_MOST, principal_axes
from .pruned_order import Order, Orderer, OrderShape
from .rates import probed
from .series import LibraryStates

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from .tables import Tables

_ROWS_MOST = 1 << 29  # places in an order are 32-bit


@dataclass(frozen=True)
class _Orders:
    """Orders of library and query states; the same one twice where the same rows take part."""

    library: Order
    query: Order

    @property
    def leaves(self) -> int:
        """Leaves of the library."""
        return -(-self.library.shape.n // self.library.shape.leaf)

    def tiles(self, tile: int) -> int:
        """How many query tiles of ``tile`` rows there are."""
        return -(-self.query.shape.n // tile)


class PrunedSearcher:
    """All nearest neighbours of one series, by boxes around leaves of its states; the bits are those of all pairs.

    The states are projected onto a few principal axes, put into the order of a k-d tree, and cut into leaves with boxes
    around them. Queries that lie side by side walk the boxes together, nearest first (after Friedman, Bentley & Finkel
    1977).

    Parameters
    ----------
    executor : Executor
    states : LibraryStates
        Lags of a series.
    room : int, optional
        Bytes of device memory that may be used; else the device's budget.
    pool : Pool, optional
        Device memory to share with searches that do not run at the same time.
    """

    def __init__(
        self, executor: Executor, states: LibraryStates, *, room: int | None = None, pool: Pool | None = None
    ) -> None:
        self.executor, self.states, self.problem = executor, states, states.problem
        self._budget = budget(executor.info)
        self._room = self._budget.total if room is None else min(self._budget.total, room)
        self._pool, self._owns_pool = pool or Pool(executor), pool is None
        self._pacer = Pacer(executor.info)  # what a walk leaves out depends on the data
        self._orders: _Orders | None = None
        self._axes = 1

    @cached_property
    def _choice(self) -> ParameterChoice:
        """Parameters of the walk, for whose leaves the order is made."""
        sizes = {"rows": self.problem.n_query, "library": self.problem.n_library}
        return parameters(spec("pruned"), self._specialisation, self.executor.info, sizes)

    @property
    def parameters(self) -> dict[str, Any]:
        """Tuned parameters of the walk."""
        return dict(self._choice.parameters)

    @property
    def grade(self) -> str:
        return self._choice.grade

    def release(self) -> None:
        """Give the device memory back; a pool that was given is released by its owner."""
        self._orders = None
        if self._owns_pool:
            self._pool.release()

    @property
    def need(self) -> int:
        """Bytes of device memory that the search takes, the series included."""
        problem, shapes = self.problem, self._shapes()
        series = problem.stride(problem.n_library)
        if self.states.library.series is not self.states.query.series:
            series += problem.stride(problem.n_query)
        return (
            series * problem.itemsize + sum(s.kept_bytes for s in shapes) + max(s.scratch_bytes for s in shapes)
            + self._cells * (4 + problem.itemsize) + 5 * problem.n_query
        )  # fmt: skip

    def probe(self, limit: float = 1.0) -> float:
        """Share of pairs that a search would evaluate, from a sample of the queries; the order is kept for it.

        A probe of states that cannot be pruned is long. Therefore a tile of queries is given up beyond a share of
        ``limit``, and counts as one that computes all pairs.
        """
        orders = self._prepare()
        if orders is None:
            return 0.0
        tiles = orders.tiles(self._tile)
        step = tiles * self._tile // probed(tiles * self._tile)
        most = max(int(limit * orders.leaves), 1)
        counts = self._launch(orders, 0, step, -(-tiles // step), most)[1]
        visited = self._counted(counts, tiles)[::step]
        return _share(orders, np.where(visited > most, orders.leaves, visited))

    def fill(self, tables: Tables, place: int) -> SearchOutcome:
        """Write the table; see :class:`~pyedmcl.neighbors.library_searcher.LibrarySearcher`."""
        lists = self.find()
        lists.tabulate(self.executor, tables, place, self.states.E)
        return SearchOutcome(f"{lists.visited:.1%} of all pairs were computed")

    def find(self) -> NeighborLists:
        """Neighbours of all queries.

        Raises
        ------
        DeviceMemoryError
            They do not fit; the message holds the numbers.
        InputError
            The series are too long.
        """
        orders, problem = self._prepare(), self.problem
        rows, values = self._lists()
        self._fill_idle(rows, values)
        visited = 0.0
        if orders is not None:
            tiles = orders.tiles(self._tile)
            cost = (2.0 * self.states.E + 8) * orders.library.shape.n * self._tile
            begin, counts = 0, None
            while begin < tiles:
                n = min(self._pacer.units(cost), tiles - begin)
                event, counts = self._launch(orders, begin, 1, n)
                self._pacer.launched(event, cost * n)
                report_part(begin + n, tiles, orders.query.shape.n, begin)
                begin += n
            assert counts is not None
            visited = _share(orders, self._counted(counts, tiles))
        return NeighborLists(rows, values, problem.n_query, self.states.k, problem.dtype, visited)

    def _fill_idle(self, rows: Buffer, values: Buffer) -> None:
        """Say that rows that are not searched have no neighbours."""
        library, query = self.states.library.rows, self.states.query.rows
        idle = np.ones(self.problem.n_query, np.bool_)
        if len(library):
            idle[query] = False
        which = np.flatnonzero(idle).astype(np.int32)
        if len(which):
            specialisation = {"dtype": self.problem.dtype, "emit": "neighbours"}
            kernel = build(self.executor, spec("candidates"), specialisation, "nothing")
            on_device = self.executor.upload(which, self._pool.get("pruned idle", which.nbytes))
            self.executor.launch(
                kernel, open_size(len(which)), None, query_rows=on_device, n=len(which), k=self.states.k,
                out_row=rows, out_value=values,
            )  # fmt: skip

    @property
    def _cells(self) -> int:
        return self.problem.n_query * self.states.k

    @property
    def _specialisation(self) -> dict[str, Any]:
        problem = self.problem
        return {
            "E": self.states.E, "tau": problem.tau, "k": self.states.k, "dtype": problem.dtype,
            "excluding": problem.exclusion_radius >= 0,
        }  # fmt: skip

    @property
    def _values(self) -> dict[str, Any]:
        # How many axes there are follows from the states.
        return {**self._specialisation, "axes": self._axes, **self.parameters}

    @property
    def _tile(self) -> int:
        """Query rows of a work-group."""
        return int(self.parameters["wg"]) * int(self.parameters["lanes"])

    def _shapes(self) -> list[OrderShape]:
        """Sizes of the orders: one where the same rows are library and query, with as many axes as there may be."""
        library, query = self.states.library.rows, self.states.query.rows
        axes, leaf = min(self.states.E, AXES_MOST), int(self.parameters["leaf"])
        sides = [library] if library is query else [library, query]
        return [OrderShape(max(len(rows), 1), leaf, axes, self.problem.itemsize) for rows in sides]

    def _lists(self) -> tuple[Buffer, Buffer]:
        item = self.problem.itemsize
        return self._pool.get("pruned out rows", self._cells * 4), self._pool.get(
            "pruned out values", self._cells * item
        )

    def _prepare(self) -> _Orders | None:
        """Put the states in order, once; None where there is no query or no library row."""
        if self._orders is not None:
            return self._orders
        self._check_size()
        states, problem = self.states, self.problem
        if not len(states.library.rows) or not len(states.query.rows):
            return None
        axes = principal_axes(states.library)
        self._axes = axes.n_axes
        leaf = int(self.parameters["leaf"])
        orderer = Orderer(self.executor, self._pool, states.E, problem.tau, problem.dtype, leaf)
        library = orderer.make("pruned library order", states.library_on_device, states.library.rows, axes)
        query = library
        if states.query.rows is not states.library.rows:
            query = orderer.make("pruned query order", states.query_on_device, states.query.rows, axes)
        self._orders = _Orders(library, query)
        return self._orders

    def _check_size(self) -> None:
        for name, n in (("library", self.problem.n_library), ("query", self.problem.n_query)):
            if n > _ROWS_MOST:
                raise InputError(f"{name}: {n:,} steps; the pruned search takes {_ROWS_MOST:,} at most")
        need, cells = self.need, self._cells * max(self.problem.itemsize, 4)
        n = max(len(self.states.library.rows), len(self.states.query.rows))
        largest = max(cells, *(shape.largest_bytes for shape in self._shapes()))
        if need > self._room or largest > self._budget.largest:
            raise DeviceMemoryError(
                f"the pruned search of {n:,} states with E = {self.states.E}, k = {self.states.k} needs {need:,} "
                f"bytes, {largest:,} of them in one piece; {self._room:,} and {self._budget.largest:,} may be used on "
                f"{self.executor.info.name}. Ask for fewer neighbours or rows, or raise PYEDMCL_MEMORY_LIMIT."
            )

    def _launch(
        self, orders: _Orders, begin: int, step: int, n: int, most_leaves: int = _ROWS_MOST
    ) -> tuple[Any, Buffer]:
        """Launch ``n`` query tiles, from ``begin`` on, every ``step``-th, each with up to ``most_leaves`` leaves."""
        problem, wg = self.problem, int(self.parameters["wg"])
        library, query = self.states.library_on_device, self.states.query_on_device
        rows, values = self._lists()
        counts = self._pool.get("pruned visited", orders.tiles(self._tile) * 4)
        event = self.executor.launch(
            build(self.executor, spec("pruned"), self._values), (n * wg,), (wg,), library=library.buffer,
            query=query.buffer, library_first=library.first, query_first=query.first,
            library_row=orders.library.rows, n_library=orders.library.shape.n, boxes=orders.library.boxes,
            first_row=orders.library.first_rows, query_row=orders.query.rows, query_at=orders.query.places,
            n_padded=orders.query.shape.padded, exclusion_radius=min(problem.exclusion_radius, problem.n_library),
            begin=begin, step=step, most_leaves=most_leaves, out_row=rows, out_value=values, visited=counts,
        )  # fmt: skip
        return event, counts

    def _counted(self, counts: Buffer, tiles: int) -> NDArray[np.int32]:
        return self.executor.download(counts, np.empty(tiles, np.int32))


def _share(orders: _Orders, visited: NDArray[np.int32]) -> float:
    """Share of the library's leaves that query tiles have visited."""
    return float(visited.mean(dtype=np.float64) / orders.leaves)
