"""Exact search on the device: neighbour tables of many libraries and several dimensions at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
from ..launch.progress import told_part
from ..tuning.parameters import adjusted, parameters
from .plan import Pass, Search, split_dims, with_enough_groups

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..launch.staging import Staging

# Working memory grows with the data, from a floor that a small job on a shared device can afford.
_SCRATCH_LEAST, _TABLE_LEAST = 160 << 20, 112 << 20
_TIMES_DATA = 32
_BUSY_GROUPS = 2  # per compute unit: with fewer, fewer dimensions per sweep are the better use of scratch memory


@dataclass(frozen=True)
class Tables:
    """Neighbour tables on the device for one pass; valid until the next one.

    Attributes
    ----------
    rows, values : Buffer
        int32 rows; squared distances or weights.
    first, n_libraries : int
        Which of the uploaded libraries.
    sweep : Pass
    """

    rows: Buffer
    values: Buffer
    first: int
    n_libraries: int
    sweep: Pass

    def begin(self, E: int) -> int:
        """Element where the table of dimension ``E`` begins."""
        return self.sweep.table_begin(E, self.n_libraries)

    def read(self, executor: Executor, E: int, libraries: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Rows and values (libraries, n_query, k) of dimension ``E`` and the first libraries, as host arrays."""
        sweep, s = self.sweep, self.sweep.search
        place = s.dims.index(E)
        tile, n = sweep.table_tile, min(libraries, self.n_libraries)
        shape = (n, sweep.table_rows // tile, sweep.strides[place], tile)
        found = []
        for buffer, dtype in ((self.rows, np.dtype(np.int32)), (self.values, np.dtype(s.dtype))):
            table = executor.download(buffer, np.empty(shape, dtype), self.begin(E) * dtype.itemsize)
            by_row = table.transpose(0, 1, 3, 2).reshape(n, sweep.table_rows, shape[2])
            found.append(by_row[:, : s.n_query, : s.counts[place]])
        return found[0], found[1]


class ExactSearch:
    """All-kNN for one :class:`~pyedmcl.neighbors.plan.Search` on one device; buffers and kernels are reused.

    Parameters
    ----------
    executor : Executor
    search : Search
    emit : str
        "neighbours" or "weights".
    masked : bool
        Whether :meth:`tables` will be given penalties.
    data_bytes : int
        Size of all the data of the job; working memory may be a multiple of it.
    room : int, optional
        Bytes of device memory that are left for the search; else the device's budget.
    pool : Pool, optional
        Device memory to share with other searches that do not run at the same time.
    """

    def __init__(self, executor: Executor, search: Search, emit: str, *, masked: bool = False,
                 data_bytes: int = 0, room: int | None = None, pool: Pool | None = None) -> None:
        self.executor = executor
        self.search = search
        self._budget = budget(executor.info)
        self._room = room if room is not None else self._budget.total
        self._scratch_limit = self._share(_SCRATCH_LEAST, data_bytes)
        self._table_limit = self._share(_TABLE_LEAST, data_bytes)
        libraries = max(data_bytes // (search.n_library * search.itemsize), 1)
        self.passes = self._split(emit, masked, libraries)
        self.parameters = dict(self.passes[-1].parameters)
        self.decisions: list[dict[str, Any]] = []  # records of searches, where not simply this one was asked for
        self._pacers = [Pacer(executor.info) for _ in self.passes]
        self._pool = pool or Pool(executor)

    def _share(self, least: int, data_bytes: int) -> int:
        return min(max(least, _TIMES_DATA * data_bytes), max(self._room // 4, 1 << 16), self._budget.largest)

    def _split(self, emit: str, masked: bool, libraries: int) -> list[Pass]:
        """Passes of as many dimensions as pay: sharing a sweep saves arithmetic and costs scratch memory per group."""
        dims, units = self.search.dims, self.executor.info.compute_units
        most = min(len(dims), quirks_for(self.executor.info).most_dimensions or len(dims))
        while True:
            passes = []
            for part in split_dims(dims, most):
                asked = self.search.restrict(part)
                given = {"dtype": asked.dtype, "dims": part, "tau": asked.tau, "simplexes": asked.simplexes}
                sizes = {"rows": asked.n_query, "library": asked.n_library}
                chosen = parameters(spec("knn"), given, self.executor.info, sizes)
                self.grade = chosen.grade
                grouped = with_enough_groups(chosen.parameters, asked)
                why = "far more neighbours than E + 1 need more groups of rows for their bound"
                passes.append(Pass(asked, emit, masked, adjusted(chosen, grouped, why)))
            allowed = min(int(p.parameters["dims_per_pass"]) for p in passes)
            scratch = max(p.scratch_bytes * min(p.tiles * libraries, units * _BUSY_GROUPS) for p in passes)
            if most == 1 or (most <= allowed and scratch <= self._scratch_limit):
                return passes
            most = min(allowed, most - 1)

    def release(self) -> None:
        """Give all device memory of this search back."""
        self._pool.release()

    def load(self, data: Staging, a: int, b: int, query: Staging | None = None) -> tuple[Buffer, Buffer, int]:
        """Put series a to b of ``data`` into the layout of the search; returns (library, query, n).

        A search of series in themselves with no future to cut shares one buffer.
        """
        s = self.search
        stride = s.stride(s.n_library)
        library = self._pool.get("library", (b - a) * stride * s.itemsize)
        data.series(a, b, s.front, s.library_end, stride, library)
        if query is None and s.library_end == s.n_query:
            return library, library, b - a
        stride = s.stride(s.n_query)
        asked = self._pool.get("query", (b - a) * stride * s.itemsize)
        (query or data).series(a, b, s.front, s.n_query, stride, asked)
        return library, asked, b - a

    def _groups(self, sweep: Pass, tasks: int) -> int:
        wanted = self.executor.info.compute_units * int(sweep.parameters["groups_per_unit"])
        fit = self._scratch_limit // sweep.scratch_bytes
        if fit < 1:
            raise DeviceMemoryError(
                f"a work-group of the neighbour search needs {sweep.scratch_bytes:,} bytes of scratch memory for "
                f"E = {sweep.search.dims} and k = {sweep.search.counts}; {self._scratch_limit:,} may be used on "
                f"{self.executor.info.name}. Ask for fewer neighbours or raise PYEDMCL_MEMORY_LIMIT."
            )
        most = max(min(wanted, fit, tasks), 1)
        return -(-tasks // -(-tasks // most))  # even shares

    def tables(
        self, library: Buffer, query: Buffer, n_libraries: int, penalty: Buffer | None = None
    ) -> Iterator[Tables]:
        """Tables of each pass in turn.

        Parameters
        ----------
        library, query : Buffer
            From :meth:`load`.
        n_libraries : int
        penalty : Buffer, optional
            Per library row 0, or GAP_SQUARED where the row's target is a gap.

        Raises
        ------
        DeviceMemoryError
            A table or the scratch memory does not fit; the message holds the numbers.
        """
        for sweep, pacer in zip(self.passes, self._pacers, strict=True):
            first = 0
            while first < n_libraries:
                each = max(self._table_limit // sweep.table_bytes(1), 1)
                n = -(-n_libraries // -(-n_libraries // each))  # even shares
                n = min(n, n_libraries - first)
                try:
                    tables = self._sweep(sweep, pacer, library, query, first, n, penalty)
                except DeviceMemoryError:
                    if not self._shrink(sweep, n):
                        raise
                    continue
                yield tables
                first += n

    def _shrink(self, sweep: Pass, n: int) -> bool:
        """After the device refused memory: plan with half as much; False if there is nothing left to halve."""
        if n == 1 and self._scratch_limit // 2 < sweep.scratch_bytes:
            return False
        if n > 1:
            self._table_limit = sweep.table_bytes(n) // 2
        self._scratch_limit = max(self._scratch_limit // 2, sweep.scratch_bytes)
        self._pool.drop("rows", "values", "scratch")
        return True

    def _room_for_tables(self, sweep: Pass, n: int) -> tuple[Buffer, Buffer]:
        """Rows and values of ``n`` libraries. Raises DeviceMemoryError where they are too large for the device."""
        s = sweep.search
        cells = sum(sweep.strides) * sweep.table_rows * n
        if cells * s.itemsize > self._budget.largest:
            raise DeviceMemoryError(
                f"the neighbour table of {n} series of {s.n_query:,} rows with k = {s.counts} needs "
                f"{cells * s.itemsize:,} bytes in one piece; {self._budget.largest:,} may be used on "
                f"{self.executor.info.name}. Ask for fewer neighbours or raise PYEDMCL_MEMORY_LIMIT."
            )
        return self._pool.get("rows", cells * 4), self._pool.get("values", cells * s.itemsize)

    def _sweep(
        self, sweep: Pass, pacer: Pacer, library: Buffer, query: Buffer, first: int, n: int, penalty: Buffer | None
    ) -> Tables:
        executor, whole, s = self.executor, self.search, sweep.search
        rows, values = self._room_for_tables(sweep, n)
        kernel = build(executor, spec("knn"), sweep.values)
        tasks, cost, wg = sweep.tiles * n, sweep.task_cost(), int(sweep.parameters["wg"])
        # Never fewer groups than the device takes at once: side by side they take no longer than one.
        groups = self._groups(sweep, tasks)
        scratch = self._pool.get("scratch", groups * sweep.scratch_bytes)
        i = np.int32
        # The padding in front is that of the whole search, so that one upload serves every pass.
        fixed = (
            library, query, penalty or library, i(whole.stride(s.n_library)), i(whole.stride(s.n_query)),
            i(whole.front), i(s.n_query), i(s.library_begin), i(s.library_end), i(sweep.groups_per_tile),
            i(sweep.groups_per_round), i(min(s.exclusion_radius, s.n_library)), i(sweep.tiles), i(first),
        )  # fmt: skip
        behind = (rows, values, i(sweep.table_rows), np.uint64(sweep.table_rows * n), scratch)
        begin = 0
        while begin < tasks:
            end = min(begin + max(pacer.units(cost), groups), tasks)
            event = executor.launch(kernel, (groups * wg,), (wg,), (*fixed, i(begin), i(end), *behind))
            pacer.launched(event, cost * (end - begin))
            told_part(end, tasks, s.n_query * n, begin)
            begin = end
        return Tables(rows, values, first, n, sweep)
