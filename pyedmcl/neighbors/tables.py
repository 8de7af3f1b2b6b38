"""Neighbour tables on the device: the passes of a search, their memory, and the loop that fills them part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.sentinels import GAP_SQUARED
from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..launch.pool import Pool
from ..tuning.parameters import adjusted, parameters
from .plan import KnnPass, SearchProblem, split_dims, with_enough_groups

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

# Working memory grows with the data. The least amounts are such that a small job on a shared device can afford them.
_SCRATCH_LEAST, _TABLE_LEAST = 160 << 20, 112 << 20
_TIMES_DATA = 32
_BUSY_GROUPS = 2  # per compute unit: with fewer, fewer dimensions per pass are the better use of scratch memory
_PENALTY_PADDING = 32  # a kernel reads rows in steps


@dataclass(frozen=True)
class Tables:
    """Neighbour tables on the device, of one pass. They are valid until the next tables are filled.

    Attributes
    ----------
    rows, values : Buffer
        int32 rows; squared distances or weights.
    first, n_libraries : int
        The loaded libraries that these tables belong to.
    knn_pass : KnnPass
    """

    rows: Buffer
    values: Buffer
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
    executor : Executor
    problem : SearchProblem
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
        return min(max(least, _TIMES_DATA * data_bytes), max(self._room // 4, 1 << 16), self.budget.largest)

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
        """Tables of each pass in turn, for as many libraries as there is memory for; ``fill`` computes each of them.

        Raises
        ------
        DeviceMemoryError
            A table does not fit, or ``fill`` raised it for a single library; the message holds the numbers.
        """
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
