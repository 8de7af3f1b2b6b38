"""Exhaustive search that shares sums along diagonals: for states of many dimensions, where boxes prune nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..codegen.sentinels import GAP
from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..launch.pacing import Pacer
from ..launch.pool import Pool
from ..launch.progress import told_part
from ..launch.sizes import round_up
from ..tuning.parameters import adjusted, parameters
from .plan import Search
from .pruned import Found, check_problem
from .pruned_basis import states_of

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo

Mask = NDArray[np.bool_]
_LEAST_DIMENSION, _LEAST_STATES = 8, 3 << 16
_SIDE = 8  # queries and library rows of a block: 64 pairs are one mask
_LEAST_GROUP = 32  # work-items that run in step


def pays(info: DeviceInfo, search: Search, n_states: int, n_queries: int) -> bool:
    """Whether sharing sums is the faster exhaustive search of one library and one dimension.

    An insertion into a list costs it more than the other search, so that it needs many states and many dimensions.
    Measured on an H200, in turn: E = 20 2.8 s against 1.0 s (2^20 states), 0.15 against 0.11 s (2^18), 49 against
    44 ms (2^17), E = 10 89 against 50 ms (2^18), E = 5 and less no gain. On processors 1.4 times as fast with one
    runtime and slower with another.
    """
    E = search.dims[0]
    if not quirks_for(info).scalar_work_items or E < _LEAST_DIMENSION or search.counts[0] > 2 * E:
        return False
    return min(n_states, n_queries) >= _LEAST_STATES


def operations_per_pair(E: int, side: int) -> float:
    """Arithmetic instructions per pair: a difference and a multiply-add for each square, an addition, a comparison."""
    return 2.0 * ((2 * side - 1) * (E - 1) + side**2) / side**2 + 2.0


class SharedSearch:
    """All-kNN of one series by looking at all pairs; arguments and result are those of :class:`PrunedSearch`.

    Parameters
    ----------
    executor : Executor
    search : Search
    library, query, library_rows, query_rows
        As for :class:`~pyedmcl.neighbors.pruned.PrunedSearch`.
    pool : Pool, optional
    """

    def __init__(
        self, executor: Executor, search: Search, library: NDArray[Any], query: NDArray[Any] | None = None, *,
        library_rows: Mask | None = None, query_rows: Mask | None = None, pool: Pool | None = None,
    ) -> None:  # fmt: skip
        self._query = library if query is None else query
        check_problem(search, library, self._query, query is not None, library_rows, query_rows)
        self.executor, self.search, self._library = executor, search, library
        self._library_rows, self._query_rows = library_rows, query_rows
        self._pool, self._budget = pool or Pool(executor), budget(executor.info)
        self._pacer = Pacer(executor.info)
        self.parameters: dict[str, Any] = {}

    def release(self) -> None:
        """Give the device memory back."""
        self._pool.release()

    def need(self, E: int) -> int:
        """Bytes of device memory that a search of dimension ``E`` takes."""
        s = self.search
        around = (max(s.dims) + 2 * _SIDE) * s.tau + 64
        cells = s.n_query * s.counts[s.dims.index(E)]
        return (s.n_library + s.n_query + 2 * around) * (s.itemsize + 1) + cells * (4 + s.itemsize)

    def find(self, E: int) -> Found:
        """Neighbours of all queries for dimension ``E``.

        Raises
        ------
        DeviceMemoryError
            They do not fit; the message holds the numbers.
        """
        s, i = self.search, np.int32
        k = s.counts[s.dims.index(E)]
        cells = s.n_query * k
        if self.need(E) > self._budget.total or cells * max(s.itemsize, 4) > self._budget.largest:
            raise DeviceMemoryError(
                f"neighbours of {s.n_query:,} rows with k = {k} need {self.need(E):,} bytes; {self._budget.total:,} "
                f"may be used on {self.executor.info.name}, {self._budget.largest:,} of them in one piece. Ask for "
                f"fewer neighbours or raise PYEDMCL_MEMORY_LIMIT."
            )
        one = s.restrict((E,))
        side = min(_SIDE, E)
        given = {"E": E, "tau": s.tau, "k": k, "dtype": s.dtype, "side": side}
        sizes = {"rows": s.n_query, "library": s.n_library}
        choice = parameters(spec("shared_sums"), given, self.executor.info, sizes)
        chosen = dict(choice.parameters)
        units, each = self.executor.info.compute_units, s.tau * side
        items = -(-(-(-s.n_query // each) * s.tau) // int(chosen["lanes"]))
        while chosen["wg"] > _LEAST_GROUP and -(-items // chosen["wg"]) < 3 * units // 4:
            chosen["wg"] //= 2
        self.parameters = dict(adjusted(choice, chosen, "few queries are spread over all units, in smaller groups"))
        kernel = build(self.executor, spec("shared_sums"), {**given, **chosen})
        may = states_of(self._library, E, s.tau, one.library_begin, one.library_end, self._library_rows)
        asked = states_of(self._query, E, s.tau, 0, s.n_query, self._query_rows)
        front = round_up(E * s.tau, 16)
        rows, values = self._pool.get("sweep rows", cells * 4), self._pool.get("sweep values", cells * s.itemsize)
        data = (
            self._lay("library", self._library, front, side), self._lay("query", self._query, front, side), i(front),
            self._flags("may", may, s.n_library, side), self._flags("asked", asked, s.n_query, side),
        )  # fmt: skip
        first = int(may[0]) // each * s.tau if len(may) else 0
        last = (int(may[-1]) // each + 1) * s.tau if len(may) else 0
        numbers = i(s.n_query), i(first), i(last), i(min(s.exclusion_radius, s.n_library))
        wg = int(chosen["wg"])
        groups = -(-items // wg)
        cost = operations_per_pair(E, side) * side**2 * (last - first) * wg * int(chosen["lanes"])
        begin, least = 0, units
        while begin < groups:
            n = min(max(self._pacer.units(cost), least), groups - begin)
            event = self.executor.launch(kernel, (n * wg,), (wg,), (*data, *numbers, i(begin), rows, values))
            self._pacer.launched(event, cost * n)
            told_part(begin + n, groups, s.n_query, begin)
            begin += n
        return Found(rows, values, s.n_query, k, s.dtype, 1.0 if len(may) and len(asked) else 0.0)

    def _lay(self, name: str, x: NDArray[Any], front: int, side: int) -> Any:
        """The series with gaps around it, as many as a block reads beyond its ends."""
        laid = np.full(front + len(x) + (side + 1) * self.search.tau + 16, GAP, x.dtype)
        laid[front : front + len(x)] = np.where(np.isnan(x), x.dtype.type(GAP), x)
        return self.executor.upload(laid, self._pool.get(f"sweep {name}", laid.nbytes))

    def _flags(self, name: str, rows: NDArray[Any], n: int, side: int) -> Any:
        flags = np.zeros(n + side * self.search.tau, np.uint8)
        flags[rows] = 1
        return self.executor.upload(flags, self._pool.get(f"sweep {name}", flags.nbytes))
