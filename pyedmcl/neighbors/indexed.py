"""Neighbour tables from an index on the host, or from the pruned search, in the layout of the exhaustive search.

:class:`IndexedSearch` is an :class:`~pyedmcl.neighbors.exact.ExactSearch` whose tables come about another way, so that
lookups, predictions and scores are the same. Rows the index cannot rule out (the exclusion radius, ties) are met by
asking for more candidates; what stays open after that is searched exhaustively.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..codegen.sentinels import FAR, NOWHERE
from ..device.memory import host_available
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..launch.pacing import Pacer
from ..launch.pool import Pool
from ..launch.sizes import round_up
from .choose import Choice, decide, make_index
from .coordinates import CoordinateSearch
from .costs import Decision
from .exact import ExactSearch, Tables
from .index import Index, asked_sizes, enough, index_bytes
from .indexed_rows import Rows, query_blocks, rows_with_states, unlaid
from .plan import Pass, Search
from .pruned import PrunedSearch
from .recall import Measured, measure
from .searched import add, record
from .shared_sums import SharedSearch, pays

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

_CELLS = 1 << 22  # candidates handled at a time: some 100 MB on the host
_BLOCK_BYTES = 32 * _CELLS
_MOST_OPEN = 1 << 26  # candidates of open rows beyond which the exhaustive search is the shorter way
_Kind = TypeVar("_Kind", PrunedSearch, SharedSearch)


class IndexedSearch(ExactSearch):
    """All-kNN by another search than the exhaustive one; see :class:`ExactSearch` for the parameters.

    Parameters
    ----------
    choice : Choice
        Which search, and the recall that is asked for.

    Attributes
    ----------
    decisions : list of dict
        What ran for each library and dimension, why, and its recall; equal ones once.
    """

    def __init__(self, executor: Executor, search: Search, emit: str, choice: Choice, **options: Any) -> None:
        super().__init__(executor, search, emit, **options)
        self.choice = choice
        self.decisions = []
        self._own = Pool(executor)
        self._held: PrunedSearch | None = None

    def spare(self) -> None:
        """Give back the memory that nothing but the search itself needs; tables that are there stay."""
        self._let_go()
        self._own.release()

    def release(self) -> None:
        self.spare()
        super().release()

    def _sweep(
        self, sweep: Pass, pacer: Pacer, library: Buffer, query: Buffer, first: int, n: int, penalty: Buffer | None
    ) -> Tables:
        s, whole = sweep.search, self.search
        tables = Tables(*self._room_for_tables(sweep, n), first, n, sweep)
        barred = None
        if penalty is not None:
            held = self.executor.download(penalty, np.empty(s.n_library, s.dtype))
            barred = held > 0
        strides = whole.stride(s.n_library), whole.stride(s.n_query)
        for i in range(n):
            x = self.executor.download(library, np.empty(strides[0], s.dtype), (first + i) * strides[0] * s.itemsize)
            q = self.executor.download(query, np.empty(strides[1], s.dtype), (first + i) * strides[1] * s.itemsize)
            for E in s.dims:
                if not self._one(tables, i, E, x, q, library, query, barred):
                    return super()._sweep(sweep, pacer, library, query, first, n, penalty)
        return tables

    def _one(
        self, tables: Tables, place: int, E: int, x: NDArray[Any], q: NDArray[Any], library: Buffer, query: Buffer,
        barred: NDArray[np.bool_] | None,
    ) -> bool:  # fmt: skip
        """The table of one library and dimension; False where the exhaustive search is to be taken."""
        one, front = self.search.restrict((E,)), self.search.front
        legal = rows_with_states(x, front, one, one.library_begin, one.library_end)[: one.n_library]
        if barred is not None:
            legal &= ~barred
        asked = rows_with_states(q, front, one, 0, one.n_query)[: one.n_query]
        states = Rows(x, front, np.flatnonzero(legal).astype(np.int32), E, one.tau)
        queries = Rows(q, front, np.flatnonzero(asked).astype(np.int32), E, one.tau)
        plain = not isinstance(one, CoordinateSearch)
        decision = decide(self.choice, self.executor.info, one, len(states.rows), len(queries.rows), plain,
                          states.sample, lambda most: self._pruner(states, queries, legal).probe(E, most))  # fmt: skip
        shared = plain and len(self.search.dims) == 1 and pays(
            self.executor.info, one, len(states.rows), len(queries.rows)
        )  # fmt: skip
        if decision.search == "exact" and not shared:
            self._let_go()
            return self._told(E, decision, None, False)
        # The raw series of this library alone: the kernel knows no stride.
        self._library = self.executor.upload(x, self._own.get("one library", x.nbytes))
        self._query = self.executor.upload(q, self._own.get("one query", q.nbytes))
        if decision.search == "exact":
            self._let_go()
            ran = self._summed(tables, place, E, states, queries, legal)
            why = f"{decision.why}; sums shared along diagonals" if ran else decision.why
            return self._told(E, Decision("exact", why), None, ran)
        if decision.search == "pruned":
            return self._prune(tables, place, E, states, queries, legal, decision)
        self._let_go()  # held where a probe did not fit the device
        need, free = index_bytes(decision.search, len(states.rows), E) + _BLOCK_BYTES, host_available()
        if free is not None and need > free // 2:
            why = f"{decision.search} needs {need:,} bytes on the host, where {free:,} are free"
            return self._told(E, Decision("exact", why), None, False)
        index = make_index(decision.search, states.points(states.rows))
        measured = None
        if not index.exact:
            measured = measure(index, states, queries, one, self.choice.recall)
            if not measured.reached:
                low, high = measured.interval
                why = (f"{decision.search} showed a recall of {measured.recall:.4f} ({low:.4f} to {high:.4f}), and "
                       f"{self.choice.recall:g} or more is to be sure")  # fmt: skip
                return self._told(E, Decision("exact", why), measured, False)
        if not self._fill(tables, place, one, index, states, queries):
            why = f"too many rows tie or are excluded for {decision.search}"
            return self._told(E, Decision("exact", why), None, False)
        return self._told(E, decision, measured, True)

    def _told(self, E: int, decision: Decision, measured: Measured | None, ran: bool) -> bool:
        add(self.decisions, [record(E, self.choice, decision, measured)])
        return ran

    def _fill(self, tables: Tables, place: int, one: Search, index: Index, states: Rows, queries: Rows) -> bool:
        E, k, radius = states.E, one.counts[0], one.exclusion_radius
        every = np.arange(one.n_query, dtype=np.int32)
        idle = np.setdiff1d(every, queries.rows, assume_unique=True)
        n = len(states.rows)
        if len(idle) or not n:
            waiting = every if not n else idle
            for a in range(0, len(waiting), _CELLS):
                part = waiting[a : a + _CELLS]
                self.emit(tables, place, E, part, np.full((len(part), 1), -1, np.int32), np.full(len(part), np.inf))
        waiting = queries.rows if n else queries.rows[:0]
        for again, m in enumerate(asked_sizes(k, radius, n, index.exact)):
            if not len(waiting):
                break
            if again and len(waiting) * m > _MOST_OPEN:
                return False
            still = []
            for part in query_blocks(waiting, max(min(_CELLS, self._budget.largest // 8) // m, 64), index.exact):
                candidates, limit = self.candidates(index, states, queries.points(part), m, min(enough(k, radius), n))
                still.append(part[self.emit(tables, place, E, part, candidates, limit)])
            waiting = np.concatenate(still)
        return True

    def candidates(
        self, index: Index, states: Rows, points: NDArray[Any], m: int, least: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Candidate rows (n, m) of queries, and what other rows are at least away from them, squared.

        Where all rows are asked for, an approximate index is passed over: the ``least`` nearest of them are found.
        """
        if m >= len(states.rows) and not index.exact:
            from .index_faiss import brute_force

            place = brute_force(states.points(states.rows), points, least)
            return states.rows[place], np.full(len(points), np.inf)
        place, last = index.search(points, m)
        rows = states.rows[np.maximum(place, 0)]
        rows[place < 0] = -1
        if m >= len(states.rows):
            return rows, np.full(len(points), np.inf)
        if not index.exact:
            return rows, np.full(len(points), FAR)  # open only if there are fewer than k
        # In the device's arithmetic a sum of E squares may be this much nearer than in double precision.
        eps = float(np.finfo(states.x.dtype).eps)
        return rows, np.maximum(last * (1 - (states.E + 8) * eps) - 1e-36, 0.0)

    def emit(
        self, tables: Tables, place: int, E: int, which: NDArray[np.int32], rows: NDArray[np.int32],
        limit: NDArray[np.float64],
    ) -> NDArray[np.bool_]:  # fmt: skip
        """Write the k nearest candidates of query rows ``which`` into the tables; which of them are open."""
        held = self.executor.upload(np.ascontiguousarray(rows, np.int32), self._own.get("candidates", rows.nbytes))
        return self._emit(tables, place, E, which, held, rows.shape[1], limit)

    def _emit(
        self, tables: Tables, place: int, E: int, which: NDArray[np.int32], rows: Buffer, m: int,
        limit: NDArray[np.float64],
    ) -> NDArray[np.bool_]:  # fmt: skip
        executor, own, i = self.executor, self._own, np.int32
        sweep, s = tables.sweep, self.search
        stride, n = sweep.strides[sweep.search.dims.index(E)], len(which)
        bounds = np.minimum(limit, NOWHERE).astype(s.dtype)
        kernel = build(executor, spec("candidates"), {"dtype": s.dtype, "emit": sweep.emit})
        arguments = (
            self._library, self._query, i(s.front), i(s.tau), i(E), i(0), i(n), i(m),
            i(min(s.exclusion_radius, s.n_library)), rows, own.get("squared", n * m * s.itemsize),
            executor.upload(bounds, own.get("limit", bounds.nbytes)), own.get("open", n),
            executor.upload(np.ascontiguousarray(which), own.get("which", which.nbytes)),
            i(sweep.search.counts[sweep.search.dims.index(E)]), i(stride), i(sweep.table_tile),
            i(sweep.search.library_begin), np.uint64(tables.begin(E) + place * sweep.table_rows * stride),
            tables.rows, tables.values,
        )  # fmt: skip
        executor.launch(kernel, (round_up(n, 64),), None, arguments)
        return executor.download(own.get("open", n), np.empty(n, np.uint8)).astype(bool)

    def _prune(
        self, tables: Tables, place: int, E: int, states: Rows, queries: Rows, legal: NDArray[np.bool_],
        decision: Decision,
    ) -> bool:  # fmt: skip
        which = np.arange(self.search.n_query, dtype=np.int32)
        try:
            found = self._pruner(states, queries, legal).find(E)
            self._emit(tables, place, E, which, found.rows, found.k, np.full(len(which), np.inf))
        finally:
            self._let_go()
        share = f"{decision.why}; {found.visited:.1%} of all pairs were computed"
        return self._told(E, Decision("pruned", share), None, True)

    def _summed(
        self, tables: Tables, place: int, E: int, states: Rows, queries: Rows, legal: NDArray[np.bool_]
    ) -> bool:
        """The exhaustive search that shares sums; False where it has not the memory."""
        engine = self._of_series(SharedSearch, states, queries, legal)
        which = np.arange(self.search.n_query, dtype=np.int32)
        try:
            found = engine.find(E)
            self._emit(tables, place, E, which, found.rows, found.k, np.full(len(which), np.inf))
        except DeviceMemoryError:
            return False
        finally:
            engine.release()
        return True

    def _pruner(self, states: Rows, queries: Rows, legal: NDArray[np.bool_]) -> PrunedSearch:
        """The pruned search of one library and dimension: probed first, it keeps its order for the search."""
        if self._held is None:
            self._held = self._of_series(PrunedSearch, states, queries, legal)
        return self._held

    def _of_series(self, kind: type[_Kind], states: Rows, queries: Rows, legal: NDArray[np.bool_]) -> _Kind:
        """A search of one library and dimension that takes the series as they were."""
        one = self.search.restrict((states.E,))
        asked = unlaid(queries.x, one.n_query, self.search.front)
        own = one.exclusion_radius >= 0
        library = asked if own else unlaid(states.x, one.n_library, self.search.front)
        # The mask knows the target's gaps; the library of its own series must not lose rows that are queries.
        return kind(self.executor, one, library, None if own else asked, library_rows=legal)

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.release()
            self._held = None
