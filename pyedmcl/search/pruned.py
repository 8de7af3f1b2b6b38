"""Exact search on the device that leaves out leaves of a k-d tree too far from the queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..errors import DeviceMemoryError, InputError
from ..kernels import spec
from ..kernels.build import build
from ..launch.progress import report_part
from ..launch.staging import Pacer, Pool, open_size, round_up
from ..tuning.parameters import ParameterChoice, adjusted, parameters
from .rates import AXES_MOST, PrincipalAxes, principal_axes, probed
from .searches import NeighborLists, SearchOutcome
from .tables import DeviceSeries, LibraryStates

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from .tables import Tables


# States of a series in the order of a k-d tree, with boxes around its leaves, made on the device.


FAN = 16  # children of a node, of the templates
PLACES = 128  # an order is padded to whole tiles of queries, of any size that is tuned
LEAST_PER_COUNTER = 8  # states of a part: the counters of all parts take half a byte a state, as memory is planned for
_KEY_BITS = 32
_PLACE_BITS = 16  # of a place along a node's axis at least; ever smaller nodes are cut ever more finely


@dataclass(frozen=True)
class OrderShape:
    """Sizes of an order of ``n`` states in leaves of ``leaf`` states."""

    n: int
    leaf: int
    axes: int
    itemsize: int

    @property
    def padded(self) -> int:
        return round_up(self.n, max(PLACES, self.leaf))

    @property
    def parents(self) -> list[int]:
        """Nodes with up to :data:`FAN` children, level by level, the root last."""
        nodes = -(-self.n // self.leaf)
        out: list[int] = []
        while not out or out[-1] > 1:
            nodes = -(-nodes // FAN)
            out.append(nodes)
        return out

    @property
    def kept_bytes(self) -> int:
        """Rows, coordinates and boxes."""
        parents = sum(self.parents)
        boxes = parents * FAN * (2 * self.axes * self.itemsize + 4)
        return self.padded * (4 + (self.axes + 1) * self.itemsize) + boxes

    @property
    def scratch_bytes(self) -> int:
        """What making it takes besides."""
        return self.n * (4 + 4 * 4 + (self.axes + 1) * self.itemsize) + self.n // 2 + (1 << 20)

    @property
    def largest_bytes(self) -> int:
        return self.padded * (self.axes + 1) * self.itemsize

    def rounds(self) -> list[tuple[int, int]]:
        """(binary logarithm of a node's states, nodes) of each round of sorting.

        A node is cut into four, the first perhaps into two.
        """
        if self.n <= self.leaf:
            return []
        doublings = (-(-self.n // self.leaf) - 1).bit_length()
        log_leaf = self.leaf.bit_length() - 1
        if self.axes == 1:
            return [(log_leaf + doublings, 1)]
        out = [(log_leaf + doublings, 1)] if doublings % 2 else []
        left = doublings - doublings % 2
        for bits in range(left, 0, -2):
            out.append((log_leaf + bits, -(-self.n // (self.leaf << bits))))
        return out


@dataclass(frozen=True)
class Order:
    """An order on the device."""

    shape: OrderShape
    # int32 (padded,), -1 behind the last.
    rows: Buffer
    # Coordinates (axes + 1, padded); the last row holds what each may be off by.
    places: Buffer
    # boxes, first_rows: Of leaves and of nodes above them, level by level.
    boxes: Buffer
    first_rows: Buffer


class Orderer:
    """Makes orders of delay-embedded states.

    Parameters
    ----------
    pool : Pool
        For scratch memory and for the orders, which live until one of the same name is made.
    leaf : int
        States of a leaf, a power of two.
    """

    def __init__(self, executor: Executor, pool: Pool, E: int, tau: int, dtype: str, leaf: int) -> None:
        self.executor, self.pool = executor, pool
        self.E, self.tau, self.dtype, self.leaf = E, tau, np.dtype(dtype), leaf

    def make(self, name: str, series: DeviceSeries, rows: NDArray[np.int32], axes: PrincipalAxes) -> Order:
        """Order the states of some rows; ``rows`` holds at least one."""
        specialisation = {"dtype": self.dtype.name, "axes": axes.n_axes, "leaf": self.leaf}
        info = self.executor.info
        choice = parameters(spec("pruned_order"), specialisation, info, {"rows": len(rows)})
        fitted = in_enough_parts(choice.parameters, len(rows), info.compute_units)
        values = adjusted(choice, fitted, "a short series is sorted in parts for all compute units")
        run = _Kernels(self.executor, {**specialisation, **values})
        shape = OrderShape(len(rows), self.leaf, axes.n_axes, self.dtype.itemsize)
        rows_on_device = self.executor.upload(rows, self.pool.get("pruned rows", rows.nbytes))
        coordinates = self.pool.get("pruned coordinates", shape.n * (shape.axes + 1) * shape.itemsize)
        ids = [self.pool.get(f"pruned id {place}", shape.n * 4) for place in (0, 1)]
        self._project(run, series, rows_on_device, axes, coordinates, ids[0], shape)
        self._sort(run, coordinates, ids, shape)
        order = self._empty(name, shape)
        run(
            "gather", shape.padded, rows=rows_on_device, id=ids[0], coordinates=coordinates, n=shape.n,
            padded=shape.padded, row=order.rows, ordered=order.places,
        )  # fmt: skip
        self._box(run, order)
        return order

    def _empty(self, name: str, shape: OrderShape) -> Order:
        get, nodes = self.pool.get, sum(shape.parents)
        return Order(
            shape,
            get(f"{name} rows", shape.padded * 4),
            get(f"{name} places", shape.padded * (shape.axes + 1) * shape.itemsize),
            get(f"{name} boxes", nodes * FAN * 2 * shape.axes * shape.itemsize),
            get(f"{name} first rows", nodes * FAN * 4),
        )

    def _project(
        self, run: _Kernels, series: DeviceSeries, rows: Buffer, axes: PrincipalAxes, coordinates: Buffer,
        ids: Buffer, shape: OrderShape,
    ) -> None:  # fmt: skip
        """Coordinates of all states along the axes."""
        basis = self.executor.upload(axes.axes, self.pool.get("pruned axes", axes.axes.nbytes))
        run(
            "project", shape.n, series=series.buffer, first=series.first, rows=rows, n=shape.n, E=self.E,
            tau=self.tau, centre=axes.centre, rounding=axes.rounding, basis=basis, coordinates=coordinates, id=ids,
        )  # fmt: skip

    def _sort(self, run: _Kernels, coordinates: Buffer, ids: list[Buffer], shape: OrderShape) -> None:
        """Put ``ids[0]`` into the order of the tree, level by level, by counting sorts."""
        get, n = self.pool.get, shape.n
        keys = [get(f"pruned key {place}", n * 4) for place in (0, 1)]
        wg, bits = int(run.values["wg"]), int(run.values["bits"])
        parts = -(-n // (wg * int(run.values["each"])))
        counts = get("pruned counts", (parts << bits) * 4)
        scanners = 256 if wg >= 128 else wg
        for log_size, nodes in shape.rounds():
            axis, place = get("pruned axis", nodes * 4), get("pruned place", nodes * 2 * shape.itemsize)
            if shape.axes > 1:
                run(
                    "axes_of", nodes, coordinates=coordinates, n=n, id=ids[0], log_size=log_size, nodes=nodes,
                    axis=axis, place=place,
                )  # fmt: skip
            node_bits = (nodes - 1).bit_length()
            axis_bits = _KEY_BITS if shape.axes == 1 else _PLACE_BITS
            total = min(round_up(node_bits + axis_bits, bits), _KEY_BITS)
            run(
                "keys_of", n, coordinates=coordinates, n=n, id=ids[0], log_size=log_size, place_bits=total - node_bits,
                axis=axis, place=place, key=keys[0],
            )  # fmt: skip
            for shift in range(0, total, bits):
                run("count", parts * wg, wg, key=keys[0], n=n, shift=shift, parts=parts, counts=counts)
                run("scan", scanners, scanners, counts=counts, total=parts << bits)
                run(
                    "scatter", parts * wg, wg, key=keys[0], id=ids[0], n=n, shift=shift, parts=parts, counts=counts,
                    new_key=keys[1], new_id=ids[1],
                )  # fmt: skip
                keys.reverse()
                ids.reverse()

    def _box(self, run: _Kernels, order: Order) -> None:
        """Boxes of leaves, then of the nodes above them, level by level."""
        shape, parents = order.shape, order.shape.parents
        run(
            "leaf_boxes", parents[0] * FAN, row=order.rows, ordered=order.places, n=shape.n, padded=shape.padded,
            parents=parents[0], boxes=order.boxes, first_row=order.first_rows,
        )  # fmt: skip
        below = 0
        for level in range(1, len(parents)):
            above = below + parents[level - 1]
            run(
                "upper_boxes", parents[level] * FAN, boxes=order.boxes, first_row=order.first_rows, below=below,
                nodes=parents[level - 1], here=above, parents=parents[level],
            )  # fmt: skip
            below = above


def in_enough_parts(parameters: Mapping[str, Any], n: int, units: int) -> dict[str, Any]:
    """Parameters with smaller parts of ``n`` states, where these would keep less than half of the compute units busy.

    What was tuned on a long series has large parts, since each part costs counters. On an H200 parts of 4,096 states,
    the best for a million of them, sorted 131,072 states in 1.22 times the time of parts of 1,024.
    """
    values = dict(parameters)
    sizes = next(tunable.values for tunable in spec("pruned_order").tunables if tunable.name == "each")
    least = (LEAST_PER_COUNTER << values["bits"]) / values["wg"]
    smaller = [each for each in sizes if least <= each < values["each"]]
    while smaller and 2 * -(-n // (values["wg"] * values["each"])) <= units:
        values["each"] = smaller.pop()
    return values


class _Kernels:
    """The kernels that make an order, by their names.

    Parameters
    ----------
    values : dict
        Specialisation and parameters.
    """

    def __init__(self, executor: Executor, values: dict[str, Any]) -> None:
        self._executor, self.values = executor, values

    def __call__(self, entry: str, work_items: int, group: int = 0, /, **arguments: Any) -> None:
        """Launch a kernel with ``work_items``, in groups of ``group`` or of whatever size the device prefers."""
        kernel = build(self._executor, spec("pruned_order"), self.values, entry)
        size, local = ((work_items,), (group,)) if group else (open_size(work_items), None)
        self._executor.launch(kernel, size, local, **arguments)


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
        """Write the table; see :class:`~pyedmcl.search.searches.LibrarySearcher`."""
        lists = self.find()
        lists.tabulate(self.executor, tables, place, self.states.E)
        return SearchOutcome(f"{lists.visited:.1%} of all pairs were computed")

    def find(self) -> NeighborLists:
        """Neighbours of all queries."""
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
        if len(library) and len(query):
            run = slice(int(query[0]), int(query[-1]) + 1)  # of most series; to name each row takes ten times as long
            idle[run if run.stop - run.start == len(query) else query] = False
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
