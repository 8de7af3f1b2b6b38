"""Exact search on the device that does not look at every pair: blocks too far from the queries are left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..codegen.sentinels import GAP
from ..device.memory import budget
from ..errors import DeviceMemoryError, InputError
from ..kernels import spec
from ..launch.pacing import Pacer
from ..launch.pool import Pool
from ..launch.progress import told_part
from ..launch.sizes import round_up
from ..tuning.parameters import parameters
from .plan import Search
from .pruned_basis import AXES_MOST, Basis, basis_of, states_of
from .pruned_order import Order, Orderer, Shape

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

Mask = NDArray[np.bool_]
_ROWS_MOST = 1 << 29  # places in an order are 32-bit
# Queries that a probe looks at: of short series a share, since where nothing can be pruned each costs a whole row.
_PROBED_LEAST, _PROBED_MOST, _PROBED_SHARE = 256, 4096, 32


@dataclass(frozen=True)
class Found:
    """Neighbours on the device, valid until the next search.

    Attributes
    ----------
    rows, values : Buffer
        int32 rows and squared distances, (n_query, k); -1 and 3e38 where there is none.
    n_query, k : int
    dtype : str
    visited : float
        Share of all pairs of query and library states whose distance was computed.
    """

    rows: Buffer
    values: Buffer
    n_query: int
    k: int
    dtype: str
    visited: float

    def read(self, executor: Executor) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Rows and squared distances (n_query, k) as host arrays."""
        shape = (self.n_query, self.k)
        rows = executor.download(self.rows, np.empty(shape, np.int32))
        return rows, executor.download(self.values, np.empty(shape, self.dtype))


@dataclass(frozen=True)
class _Ready:
    """Orders of the states of one embedding dimension; the same one twice where all library rows are asked for."""

    E: int
    library: Order
    query: Order


class PrunedSearch:
    """All-kNN of one series, by boxes around blocks of its states; the result has the bits of the exact search.

    The states are projected onto a few principal axes, put into the order of a k-d tree, and cut into blocks with
    boxes. Queries that lie side by side walk the boxes together, nearest first (after Friedman, Bentley & Finkel 1977).

    Parameters
    ----------
    executor : Executor
    search : Search
        Any of its dimensions can be searched, one at a time.
    library : ndarray (n_library,)
        From :func:`pyedmcl.data.condition.condition`, of the search's dtype, NaN for gaps.
    query : ndarray (n_query,), optional
        Another series, conditioned together with the library; the exclusion radius must then be -1.
    library_rows : ndarray of bool (n_library,), optional
        Rows that may be neighbours.
    query_rows : ndarray of bool (n_query,), optional
        Rows whose neighbours are asked for.
    room : int, optional
        Bytes of device memory that may be used; else the device's budget.
    pool : Pool, optional
        Device memory to share with searches that do not run at the same time.

    Raises
    ------
    InputError
        Shapes or numbers that contradict each other.
    """

    def __init__(
        self, executor: Executor, search: Search, library: NDArray[Any], query: NDArray[Any] | None = None, *,
        library_rows: Mask | None = None, query_rows: Mask | None = None, room: int | None = None,
        pool: Pool | None = None,
    ) -> None:  # fmt: skip
        self.executor, self.search = executor, search
        asked = library if query is None else query
        check_problem(search, library, asked, query is not None, library_rows, query_rows)
        self._library, self._query, self._same = library, asked, query is None
        self._library_rows, self._query_rows = library_rows, query_rows
        self._budget = budget(executor.info)
        self._room = min(self._budget.total, room) if room is not None else self._budget.total
        self._pool, self._pacer = pool or Pool(executor), Pacer(executor.info)
        self._states: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}
        self._ready: _Ready | None = None
        self._axes: dict[int, int] = {}
        self._series: tuple[Buffer, Buffer] | None = None
        self._chosen: dict[int, dict[str, Any]] = {}
        self.parameters: dict[str, Any] = {}
        self.grade = ""

    def release(self) -> None:
        """Give the device memory back."""
        self._ready = self._series = None
        self._pool.release()

    def need(self, E: int) -> int:
        """Bytes of device memory that a search of dimension ``E`` takes."""
        library, query = self._rows(E)
        item, axes, leaf = self.search.itemsize, min(E, AXES_MOST), self._leaf(E)
        shapes = [Shape(max(len(library), 1), leaf, axes, item)]
        if not np.array_equal(library, query):
            shapes.append(Shape(max(len(query), 1), leaf, axes, item))
        series = self.search.stride(self.search.n_library) + self.search.stride(self.search.n_query) * (not self._same)
        return (
            series * item + sum(s.kept_bytes for s in shapes) + max(s.scratch_bytes for s in shapes)
            + self._cells(E) * (4 + item) + 5 * self.search.n_query
        )  # fmt: skip

    def probe(self, E: int, hopeless: float = 1.0) -> float:
        """Share of pairs that a search would evaluate, from a sample of the queries; the order is kept for it.

        A share above ``hopeless`` is not found out exactly, where that saves time: a probe of states that cannot be
        pruned is long.
        """
        ready = self._prepare(E)
        if ready is None:
            return 0.0
        kernel, tile, values = self._kernel(ready)
        tiles = -(-ready.query.shape.n // tile)
        wanted = max(min(tiles * tile // _PROBED_SHARE, _PROBED_MOST), _PROBED_LEAST)
        step = max(tiles * tile // wanted, 1)
        blocks = -(-ready.library.shape.n // ready.library.shape.leaf)
        for most in (max(int(2 * hopeless * blocks), 1), blocks):
            # Tiles of queries are given up at twice the share that is of interest; if few of them are, they count.
            counts = self._start(ready, kernel, tile, values, 0, step, -(-tiles // step), most)[1]
            looked_at = self._counted(counts, tiles)[::step]
            share = self._share(ready, tile, np.minimum(looked_at, most))
            if looked_at.max() <= most or share > hopeless:
                break
        return share

    def find(self, E: int) -> Found:
        """Neighbours of all queries for dimension ``E``.

        Raises
        ------
        DeviceMemoryError
            They do not fit; the message holds the numbers.
        """
        ready = self._prepare(E)
        k, s = self._k(E), self.search
        rows, values = self._tables(E)
        self._fill(E, rows, values)
        visited = 0.0
        if ready is not None:
            kernel, tile, chosen = self._kernel(ready)
            tiles = -(-ready.query.shape.n // tile)
            cost = (2.0 * E + 8) * ready.library.shape.n * tile
            begin, counts = 0, None
            while begin < tiles:
                n = min(self._pacer.units(cost), tiles - begin)
                event, counts = self._start(ready, kernel, tile, chosen, begin, 1, n)
                self._pacer.launched(event, cost * n)
                told_part(begin + n, tiles, ready.query.shape.n, begin)
                begin += n
            assert counts is not None
            visited = self._share(ready, tile, self._counted(counts, tiles))
        return Found(rows, values, s.n_query, k, s.dtype, visited)

    def _fill(self, E: int, rows: Buffer, values: Buffer) -> None:
        """Say that rows that are not searched have no neighbours."""
        library, query = self._rows(E)
        idle = np.ones(self.search.n_query, np.bool_)
        if len(library):
            idle[query] = False
        which = np.flatnonzero(idle).astype(np.int32)
        if len(which):
            kernel = build(self.executor, spec("pruned"), self._values(E), "nothing")
            given = self.executor.upload(which, self._pool.get("pruned idle", which.nbytes))
            self.executor.launch(kernel, (round_up(len(which), 64),), None, (given, np.int32(len(which)), rows, values))

    def _k(self, E: int) -> int:
        return self.search.counts[self.search.dims.index(E)]

    def _cells(self, E: int) -> int:
        return self.search.n_query * self._k(E)

    def _rows(self, E: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Library rows and query rows of dimension ``E``; the same object where they are the same."""
        if E not in self._states:
            one = self.search.restrict((E,))
            library = states_of(
                self._library, E, one.tau, one.library_begin, one.library_end, self._library_rows
            )  # fmt: skip
            query = states_of(self._query, E, one.tau, 0, one.n_query, self._query_rows)
            self._states = {E: (library, library if self._same and np.array_equal(library, query) else query)}
        return self._states[E]

    def _tables(self, E: int) -> tuple[Buffer, Buffer]:
        cells = self._cells(E)
        return self._pool.get("pruned out rows", cells * 4), self._pool.get(
            "pruned out values", cells * self.search.itemsize
        )

    def _values(self, E: int) -> dict[str, Any]:
        return {**self._given(E), "axes": self._axes.get(E, 1), **self._tuned(E)}

    def _given(self, E: int) -> dict[str, Any]:
        s = self.search
        return {"E": E, "tau": s.tau, "k": self._k(E), "dtype": s.dtype, "excluding": s.exclusion_radius >= 0}

    def _tuned(self, E: int) -> dict[str, Any]:
        """Parameters of the walk, asked for once: the order was made for their blocks. Axes follow from the states."""
        if E not in self._chosen:
            sizes = {"rows": self.search.n_query, "library": self.search.n_library}
            choice = parameters(spec("pruned"), self._given(E), self.executor.info, sizes)
            self._chosen[E], self.grade = dict(choice.parameters), choice.grade
        self.parameters = self._chosen[E]
        return self._chosen[E]

    def _leaf(self, E: int) -> int:
        return int(self._tuned(E)["leaf"])

    def _upload(self) -> tuple[Buffer, Buffer]:
        """Both series with row 0 behind gaps enough for the longest lag."""
        if self._series is None:
            s, out = self.search, []
            pairs = [("pruned library", self._library)] + ([] if self._same else [("pruned query", self._query)])
            for name, x in pairs:
                laid = np.full(s.stride(len(x)), GAP, s.dtype)
                laid[s.front : s.front + len(x)] = np.where(np.isnan(x), x.dtype.type(GAP), x)
                out.append(self.executor.upload(laid, self._pool.get(name, laid.nbytes)))
            self._series = out[0], out[-1]
        return self._series

    def _prepare(self, E: int) -> _Ready | None:
        """Orders for ``E``; None where no state is asked for or can be found."""
        if E not in self.search.dims:
            raise InputError(f"E={E} is none of the dimensions of this search, {self.search.dims}")
        if self._ready is not None and self._ready.E == E:
            return self._ready
        self._check_memory(E)
        library_rows, query_rows = self._rows(E)
        if not len(library_rows) or not len(query_rows):
            return None
        s = self.search
        library, query = self._upload()
        basis: Basis = basis_of(self._library, library_rows, E, s.tau)
        self._axes[E] = basis.n_axes
        orderer = Orderer(self.executor, self._pool, E, s.tau, s.dtype, self._leaf(E))
        self._ready = None
        first = orderer.make("pruned library order", library, s.front, library_rows, basis)
        second = first
        if query_rows is not library_rows:
            second = orderer.make("pruned query order", query, s.front, query_rows, basis)
        self._ready = _Ready(E, first, second)
        return self._ready

    def _check_memory(self, E: int) -> None:
        need, cells = self.need(E), self._cells(E) * max(self.search.itemsize, 4)
        n = max(len(rows) for rows in self._rows(E))
        largest = max(cells, Shape(max(n, 1), self._leaf(E), min(E, AXES_MOST), self.search.itemsize).largest_bytes)
        if need > self._room or largest > self._budget.largest:
            raise DeviceMemoryError(
                f"the pruned search of {n:,} states with E = {E}, k = {self._k(E)} needs {need:,} bytes, "
                f"{largest:,} of them in one piece; {self._room:,} and {self._budget.largest:,} may be used on "
                f"{self.executor.info.name}. Ask for fewer neighbours or rows, or raise PYEDMCL_MEMORY_LIMIT."
            )

    def _kernel(self, ready: _Ready) -> tuple[Any, int, dict[str, Any]]:
        values = self._values(ready.E)
        return build(self.executor, spec("pruned"), values), int(values["wg"]) * int(values["lanes"]), values

    def _start(
        self, ready: _Ready, kernel: Any, tile: int, values: dict[str, Any], begin: int, step: int, n: int,
        most_blocks: int = _ROWS_MOST,
    ) -> tuple[Any, Buffer]:  # fmt: skip
        """Launch ``n`` tiles of queries, from ``begin`` on, every ``step``-th, each up to ``most_blocks`` blocks."""
        s, i, wg = self.search, np.int32, int(values["wg"])
        library, query = self._upload()
        rows, out = self._tables(ready.E)
        tiles = -(-ready.query.shape.n // tile)
        counts = self._pool.get("pruned visited", tiles * 4)
        event = self.executor.launch(
            kernel, (n * wg,), (wg,),
            (library, query, i(s.front), i(s.front), ready.library.rows, i(ready.library.shape.n), ready.library.boxes,
             ready.library.first_rows, ready.query.rows, ready.query.places, i(ready.query.shape.padded),
             i(min(s.exclusion_radius, s.n_library)), i(begin), i(step), i(most_blocks), rows,
             out, counts),
        )  # fmt: skip
        return event, counts

    def _counted(self, counts: Buffer, tiles: int) -> NDArray[np.int32]:
        return self.executor.download(counts, np.empty(tiles, np.int32))

    def _share(self, ready: _Ready, tile: int, counts: NDArray[np.int32]) -> float:
        blocks = -(-ready.library.shape.n // ready.library.shape.leaf)
        return float(counts.mean(dtype=np.float64) / blocks)


def check_problem(
    search: Search, library: NDArray[Any], query: NDArray[Any], cross: bool, library_rows: Mask | None,
    query_rows: Mask | None,
) -> None:  # fmt: skip
    """Raise InputError where series, masks and search contradict each other."""
    for name, x, n in (("library", library, search.n_library), ("query", query, search.n_query)):
        if x.shape != (n,) or x.dtype != np.dtype(search.dtype):
            raise InputError(f"{name}: shape {x.shape} of {x.dtype}; the search has ({n},) of {search.dtype}")
        if n > _ROWS_MOST:
            raise InputError(f"{name}: {n:,} steps; the pruned search takes {_ROWS_MOST:,} at most")
    for name, mask, n in (("library_rows", library_rows, len(library)), ("query_rows", query_rows, len(query))):
        if mask is not None and (mask.shape != (n,) or mask.dtype != np.bool_):
            raise InputError(f"{name}: shape {mask.shape} of {mask.dtype}; ({n},) of bool is needed")
    if cross and search.exclusion_radius >= 0:
        raise InputError(
            f"exclusion_radius={search.exclusion_radius} with another series as query; -1 (none) is needed"
        )  # fmt: skip
