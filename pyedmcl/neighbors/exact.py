"""Exact search on the device: neighbour tables of many libraries and several dimensions at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..codegen.build import build
from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..plan import Pass, Search, split_dims
from ..tuning.policy import parameters
from .pacing import Pacer

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from .staging import Staging

_SCRATCH_MOST = 160 << 20
_TABLE_MOST = 96 << 20
_GROUPS_PER_UNIT = {"gpu": 12, "cpu": 4}
_DIMS_PER_PASS = {"gpu": 5, "cpu": 10}


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


class ExactSearch:
    """All-kNN for one :class:`~pyedmcl.plan.Search` on one device; buffers and kernels are reused.

    Parameters
    ----------
    executor : Executor
    search : Search
    emit : str
        "neighbours" or "weights".
    masked : bool
        Whether :meth:`tables` will be given penalties.
    buffers : dict, optional
        Device memory to share with other searches that do not run at the same time.
    """

    def __init__(self, executor: Executor, search: Search, emit: str, *, masked: bool = False,
                 buffers: dict[str, Buffer] | None = None) -> None:
        self.executor = executor
        self.search = search
        self._class = quirks_for(executor.info).device_class
        chosen = parameters(spec("knn"), {"dtype": search.dtype, "n": search.n_library}, executor.info)
        self.grade = chosen.grade
        self.parameters = dict(chosen.parameters)
        self._budget = budget(executor.info)
        self._scratch_limit = min(max(self._budget.total // 8, 1 << 20), _SCRATCH_MOST, self._budget.largest)
        most = _DIMS_PER_PASS[self._class]
        self.passes = [
            Pass(search.restrict(dims), emit, masked, self.parameters) for dims in split_dims(search.dims, most)
        ]
        self._pacers = [Pacer(self._class) for _ in self.passes]
        self._buffers: dict[str, Buffer] = {} if buffers is None else buffers

    def _buffer(self, name: str, nbytes: int) -> Buffer:
        held = self._buffers.get(name)
        if held is None or held.nbytes < nbytes:
            if held is not None:
                held.release()
                del self._buffers[name]
            held = self._buffers[name] = self.executor.allocate(nbytes)
        return held

    def release(self) -> None:
        """Give all device memory of this search back."""
        for buffer in self._buffers.values():
            buffer.release()
        self._buffers.clear()

    def load(self, data: Staging, a: int, b: int, query: Staging | None = None) -> tuple[Buffer, Buffer, int]:
        """Put series a to b of ``data`` into the layout of the search; returns (library, query, n).

        A search of series in themselves with no future to cut shares one buffer.
        """
        s = self.search
        stride = s.stride(s.n_library)
        library = self._buffer("library", (b - a) * stride * s.itemsize)
        data.series(a, b, s.front, s.library_end, stride, library)
        if query is None and s.library_end == s.n_query:
            return library, library, b - a
        stride = s.stride(s.n_query)
        asked = self._buffer("query", (b - a) * stride * s.itemsize)
        (query or data).series(a, b, s.front, s.n_query, stride, asked)
        return library, asked, b - a

    def _groups(self, sweep: Pass, tasks: int) -> int:
        wanted = self.executor.info.compute_units * _GROUPS_PER_UNIT[self._class]
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
            Per library row 0, or 1e32 where the row's target is a gap.

        Raises
        ------
        DeviceMemoryError
            A table or the scratch memory does not fit; the message holds the numbers.
        """
        for sweep, pacer in zip(self.passes, self._pacers, strict=True):
            each = max(min(_TABLE_MOST, self._budget.total // 4) // sweep.table_bytes(1), 1)
            each = -(-n_libraries // -(-n_libraries // each))  # even shares
            for first in range(0, n_libraries, each):
                n = min(each, n_libraries - first)
                yield self._sweep(sweep, pacer, library, query, first, n, penalty)

    def _sweep(
        self, sweep: Pass, pacer: Pacer, library: Buffer, query: Buffer, first: int, n: int, penalty: Buffer | None
    ) -> Tables:
        executor, whole, s = self.executor, self.search, sweep.search
        cells = sum(sweep.strides) * s.n_query * n
        if cells * s.itemsize > self._budget.largest:
            raise DeviceMemoryError(
                f"the neighbour table of {n} series of {s.n_query:,} rows with k = {s.counts} needs "
                f"{cells * s.itemsize:,} bytes in one piece; {self._budget.largest:,} may be used on "
                f"{executor.info.name}. Ask for fewer neighbours or raise PYEDMCL_MEMORY_LIMIT."
            )
        rows = self._buffer("rows", cells * 4)
        values = self._buffer("values", cells * s.itemsize)
        kernel = build(executor, spec("knn"), sweep.values)
        tasks, cost, wg = sweep.tiles * n, sweep.task_cost(), int(sweep.parameters["wg"])
        groups = self._groups(sweep, min(tasks, pacer.units(cost)))
        scratch = self._buffer("scratch", groups * sweep.scratch_bytes)
        i = np.int32
        # The padding in front is that of the whole search, so that one upload serves every pass.
        fixed = (
            library, query, penalty or library, i(whole.stride(s.n_library)), i(whole.stride(s.n_query)),
            i(whole.front), i(s.n_query), i(s.library_begin), i(s.library_end), i(sweep.bound_end),
            i(sweep.groups_per_tile), i(s.exclusion_radius), i(sweep.tiles), i(first),
        )  # fmt: skip
        behind = (rows, values, np.uint64(s.n_query * n), scratch)
        begin = 0
        while begin < tasks:
            end = min(begin + max(pacer.units(cost), groups), tasks)
            event = executor.launch(kernel, (groups * wg,), (wg,), (*fixed, i(begin), i(end), *behind))
            pacer.launched(event, cost * (end - begin))
            begin = end
        return Tables(rows, values, first, n, sweep)
