"""Cross-map skill within many windows: one search of all their libraries, one upload, a lookup for each window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..launch.invariants import require_rho
from ..launch.pool import Pool
from ..launch.staging import Staging
from ..neighbors.choose import SearchRequest
from ..neighbors.plan import SearchProblem
from ..neighbors.searcher import Searcher, open_searcher
from ..neighbors.tables import Tables
from ..neighbors.window_search import Overlapping, WindowSearch, windows_share
from .lookup_request import LookupRequest, Piece, RhoRows, TargetColumns
from .lookups import Lookups
from .target_layout import columns_of_rho, layout_of_lookup

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

Numbers = NDArray[np.int_]


@dataclass(frozen=True)
class WindowData:
    """Windows without gaps.

    Attributes
    ----------
    values : ndarray (width, n_windows * n_libraries)
        From :func:`pyedmcl.data.condition.condition`, window by window.
    targets : ndarray (width, n_windows * n_targets)
    E : ndarray of int (n_windows, n_targets)
        Embedding dimension of each target.
    tau, Tp, exclusion_radius : int
    k : int or None
        Neighbours; E + 1 if None.
    search : SearchRequest
    overlapping : Overlapping or None
        The libraries' rows, where all windows hold the same numbers of them.
    """

    values: NDArray[Any]
    targets: NDArray[Any]
    E: Numbers
    tau: int
    Tp: int
    exclusion_radius: int
    k: int | None
    search: SearchRequest
    overlapping: Overlapping | None = None


def window_skill(executor: Executor, data: WindowData) -> tuple[NDArray[Any], dict[str, Any], list[dict[str, Any]]]:
    """rho (n_windows, n_libraries, n_targets), tuned parameters, and what searched for neighbours."""
    return _Sweep(executor, data).run()


@dataclass(frozen=True)
class _EachWindow:
    """A searcher that takes the windows of series for series of their own."""

    searcher: Searcher
    data: Staging
    n: int

    def tables(self) -> Iterator[Tables]:
        """Tables of all windows."""
        yield from self.searcher.tables(self.searcher.load(self.data, 0, self.n), None)

    @property
    def parameters(self) -> dict[str, Any]:
        """Tuned parameters of the search."""
        return self.searcher.parameters

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """Records of searches, where there was a choice."""
        return self.searcher.decisions


class _Sweep:
    def __init__(self, executor: Executor, data: WindowData) -> None:
        self._executor, self._data = executor, data
        self._windows, self._n_targets = data.E.shape
        self._n = data.values.shape[1] // self._windows
        self._width, self._pool = len(data.values), Pool(executor)
        self._lookups = Lookups(executor, self._width, data.values.dtype.name, self._n)
        self._searcher: Searcher | None = None

    def run(self) -> tuple[NDArray[Any], dict[str, Any], list[dict[str, Any]]]:
        data, dims = self._data, np.unique(self._data.E).tolist()
        problem = SearchProblem(
            tuple(dims), tuple(data.k or E + 1 for E in dims), data.tau, data.Tp, data.exclusion_radius, self._width,
            self._width, data.values.dtype.name,
        )  # fmt: skip
        libraries = Staging(self._executor, data.values)
        targets = libraries if data.targets is data.values else Staging(self._executor, data.targets)
        rho = np.empty((self._windows, self._n, self._n_targets), data.values.dtype)
        try:
            columns, placed = self._stage(targets)
            held = self._pool.get("rho", rho.nbytes)
            search = self._search(problem, libraries)
            for tables in search.tables():
                for E in tables.problem.dims:
                    self._look_up(tables, E, columns, placed, held)
            self._executor.download(held, rho)
            require_rho(self._executor, rho.reshape(-1, self._n_targets), "lookup")
            lookup = self._lookups.chosen(problem.k(dims[-1]), self._n_targets)
            used = {"knn": search.parameters, "lookup": dict(lookup.parameters)}
            return rho, used, list(search.decisions)
        finally:
            if self._searcher is not None:
                self._searcher.release()
            self._pool.release()
            libraries.release()
            targets.release()

    def _search(self, problem: SearchProblem, libraries: Staging) -> WindowSearch | _EachWindow:
        """Of all windows together where that pays, else of each by itself."""
        data, overlapping = self._data, self._data.overlapping
        if overlapping is not None and windows_share(
            self._executor.info, problem, data.search, self._windows, len(overlapping.values)
        ):
            return WindowSearch(
                self._executor, problem, overlapping, data_bytes=data.values.nbytes, pool=self._pool
            )  # fmt: skip
        self._searcher = open_searcher(
            self._executor, problem, "weights", data.search, data_bytes=data.values.nbytes, pool=self._pool
        )
        return _EachWindow(self._searcher, libraries, data.values.shape[1])

    def _rows(self, E: Any) -> tuple[Any, int]:
        """First row that is predicted in dimension ``E``, one or several, and one past the last."""
        tau, Tp = self._data.tau, self._data.Tp
        return np.maximum((np.asarray(E) - 1) * tau, -Tp), min(self._width, self._width - Tp)

    def _stage(self, targets: Staging) -> tuple[TargetColumns, Numbers]:
        """Targets on the device, those of a window side by side, by dimension; and the dimension of each column."""
        E = self._data.E
        order = np.argsort(E, axis=1, kind="stable")
        column_of = np.empty(E.shape, np.int32)
        np.put_along_axis(column_of, order, np.arange(E.size, dtype=np.int32).reshape(E.shape), axis=1)
        layout = layout_of_lookup(self._width, E.size)
        first, end = self._rows(E.ravel())
        targets.score(first + self._data.Tp, end + self._data.Tp)  # targets are centred on what is predicted
        values = self._pool.get("targets", layout.elements * targets.values.itemsize)
        targets.targets(column_of.ravel(), layout.stride, values, layout.rows)
        target_of = columns_of_rho(order.ravel())
        on_device = self._executor.upload(target_of, self._pool.get("target_of", target_of.nbytes))
        return TargetColumns(values, on_device, layout.stride), np.take_along_axis(E, order, axis=1)

    def _look_up(self, tables: Tables, E: int, columns: TargetColumns, placed: Numbers, rho: Buffer) -> None:
        """Each window's targets of one dimension, in the tables of the window's libraries."""
        first, end = tables.first, tables.first + tables.n_libraries
        t_begin, t_end = (int(row) for row in self._rows(E))
        d = self._data
        pieces: dict[bool, list[Piece]] = {False: [], True: []}
        widest = self._width - abs(d.Tp) - 2 * d.exclusion_radius - 1
        windows = range(first // self._n, -(-end // self._n))
        mine = placed[windows.start : windows.stop] == E
        # Columns of a window are in the order of dimensions.
        starts, counts = mine.argmax(axis=1).tolist(), mine.sum(axis=1).tolist()
        gaps = (widest - (placed[windows.start : windows.stop].max(axis=1) - 1) * d.tau < 1).tolist()
        for window, start, count, some in zip(windows, starts, counts, gaps, strict=True):
            if count:
                begin = window * self._n_targets + start
                libraries = max(window * self._n, first) - first, min((window + 1) * self._n, end) - first
                pieces[some].append(((begin, begin + count), libraries))
        for some, alike in pieces.items():
            request = LookupRequest(E, columns, (t_begin, t_end), some)
            self._lookups.run_each(tables, request, alike, RhoRows(rho, first, self._n_targets))
