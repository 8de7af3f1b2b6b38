"""Neighbour tables from an index on the host, which proposes rows whose distances the device computes.

What the index cannot rule out (the exclusion radius, ties) is met by asking it for more candidates.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..codegen.sentinels import FAR
from ..device.memory import budget, host_available
from ..launch.pacing import LAUNCH_SECONDS
from ..launch.pool import Pool
from ..launch.progress import report_progress
from .candidates import CandidateKernel
from .index import Index, candidate_counts, index_bytes, make_index, sufficient_count
from .index_faiss import brute_force
from .library_searcher import NotSearchedError, SearchOutcome
from .recall import measure
from .series import HostStates, LibraryStates
from .tables import Tables

if TYPE_CHECKING:
    from ..device.executor import Executor

_CELLS = 1 << 22  # candidates handled at a time: some 100 MB on the host
_CELLS_BYTES = 32 * _CELLS
_MOST_OPEN = 1 << 26  # candidates of open rows beyond which the exhaustive search is the shorter way
_FIRST_QUERIES, _QUERIES = 1 << 10, 1 << 14  # that an index is asked at a time


class IndexedSearcher:
    """Nearest neighbours of one library by a k-d tree, inverted lists or a graph.

    Parameters
    ----------
    executor : Executor
    states : LibraryStates
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
        """Build the index and write the table; see :class:`~pyedmcl.neighbors.library_searcher.LibrarySearcher`.

        Raises
        ------
        NotSearchedError
            The index does not fit into the host's memory, misses too much, or cannot tell ties apart.
        MissingExtraError
            The index's package is not there.
        """
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
