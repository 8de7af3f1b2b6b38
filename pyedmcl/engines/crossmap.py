"""Cross-map skill of libraries for all targets, over all rows or within many windows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..jobs.blocks import Record
from ..kernels import spec
from ..kernels.build import build_ahead
from ..kernels.kernel_spec import KernelSpec
from ..launch.replay import replayed
from ..launch.staging import DeviceRows, Pool, Staging, deliver_skill, require_rho
from ..search.choose import SearchRequest
from ..search.plan import SearchProblem
from ..search.searcher import Overlapping, Searcher, WindowSearch, open_searcher, searches_of, sure_of, windows_share
from ..search.tables import Tables
from .lookup import LookupRequest, Lookups, Piece, PlannedLookup, RhoRows, TargetColumns
from .targets import (
    COMPACT_LEAST,
    GAPS,
    TOO_FEW,
    TOO_WIDE,
    CompactTargets,
    columns_of_rho,
    layout_of_lookup,
    require_room,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..device.executor import Buffer, Executor


@dataclass(frozen=True)
class TargetClass:
    """Targets that are looked up together: the adjacent columns ``begin`` to ``end - 1``.

    They share an embedding dimension, a pattern of gaps, and whether they are looked up in 16 bits (``compact``).
    """

    E: int
    begin: int
    end: int
    compact: bool = False


@dataclass
class _Group:
    """Targets for which the same library rows may be neighbours, with the search that they share.

    ``lookups`` says which targets of which layer are looked up in the tables of each dimension.
    """

    searcher: Searcher
    lookups: dict[int, list[tuple[int, TargetClass]]]  # dimension -> layer and class
    library_mask: NDArray[np.bool_] | None


@dataclass(frozen=True)
class MapData:
    """What a cross map is computed from. A map may have several layers, which differ in E only."""

    # ndarray (n_steps, n_series). All libraries, from :func:`pyedmcl.series.scaling.condition`.
    values: NDArray[Any]
    # ndarray of int (n_targets,) or (n_layers, n_targets). Embedding dimension of each target, in each layer.
    E: NDArray[np.int_]
    tau: int = 1
    Tp: int = 0
    exclusion_radius: int = 0
    # Number of neighbours; E + 1 if None.
    k: int | None = None
    # ndarray of int (n_targets,) or (n_layers, n_targets), optional. 0 where no library row is ruled out by gaps of the
    # target, else the number of its pattern.
    gap_pattern: NDArray[np.int_] | None = None
    # Number of a pattern to the library rows (n_steps,) that may be neighbours; see :mod:`pyedmcl.states.rows`.
    library_masks: Mapping[int, NDArray[np.bool_]] = field(default_factory=dict)
    # bool or ndarray of bool (n_layers,). Whether any prediction or observation may be missing.
    gaps: bool | NDArray[np.bool_] = False
    # How neighbours are searched.
    search: SearchRequest | None = None
    # Number of libraries of the whole map, of which this device may compute a part; by default the number of series.
    n_libraries: int | None = None
    # ndarray (n_steps, n_targets), optional. All targets, conditioned as the libraries are; by default the targets are
    # the libraries.
    targets: NDArray[Any] | None = None
    # (int, int), optional. The first row that is predicted, and one past the last; by default all rows are predicted.
    predicted: tuple[int, int] | None = None
    # Rows within ``predicted`` that are left out all the same. Where there are any, ``gaps`` must be true.
    hidden: NDArray[np.int32] | None = None
    # Whether targets are looked up in 16 bits where that is precise enough (:mod:`.targets`).
    compact: bool = False
    # ndarray of bool (n_series,), optional. Libraries that never change: rho of their states is NaN.
    stateless: NDArray[np.bool_] | None = None

    def rows(self, E: Any) -> tuple[Any, int]:
        """First row that is predicted in dimension ``E``, one or several, and one past the last."""
        n = len(self.values)
        begin, end = self.predicted or (0, n)
        first = np.maximum((np.asarray(E) - 1) * self.tau, max(-self.Tp, begin))
        return first, min(end, n, n - self.Tp)


class CrossMap:
    """Computes the skill of all pairs. The neighbour table of a library serves all targets of the table's dimension."""

    def __init__(self, executor: Executor, data: MapData) -> None:
        self.executor, self._data = executor, data
        values = data.values
        targets = values if data.targets is None else data.targets
        self.n_steps, self.n = targets.shape
        self.tau, self.Tp = data.tau, data.Tp
        self.dtype = values.dtype.name
        self._E = np.atleast_2d(data.E)
        self.layers = len(self._E)
        n_libraries = data.n_libraries or values.shape[1]
        self._gaps = np.broadcast_to(data.gaps, self.layers)
        shape = values.shape, targets.shape, self._E.tobytes(), data.tau, data.Tp, data.k, data.search, data.compact
        self._pool = Pool(executor, "crossmap", self.dtype, *shape)
        self._lookups = Lookups(executor, self.n_steps, self.dtype, n_libraries, self._pool)
        self._groups: list[_Group] = []
        self._compact_targets: CompactTargets | None = None
        room = self._allocate_targets(values.itemsize)
        self.data = self._observed = Staging(executor, values, room=room // 8)
        if data.targets is not None:
            self._observed = Staging(executor, targets, room=room // 8)
        try:
            self._group_targets(data, room)
            # A batch has as many libraries as have padded series (which may be needed twice) in an eighth of the room,
            # and rows of rho in another eighth.
            wide = max(group.searcher.problem.stride(self.n_steps) for group in self._groups)
            row = self.layers * self.n * values.itemsize
            self._batch = max(min(room // 8 // (2 * wide * values.itemsize), room // 8 // row), 1)
            build_ahead(executor, self._kernels(min(self._batch, values.shape[1])))
            self._stage_targets(0)
        except BaseException:
            self.release()
            raise

    def _group_targets(self, data: MapData, room: int) -> None:
        """Put targets of one gap pattern and dimension side by side, and open a search for each pattern."""
        pattern = np.zeros(self.n, int) if data.gap_pattern is None else data.gap_pattern
        pattern = np.broadcast_to(pattern, self._E.shape)
        self._orders = [
            np.lexsort((np.arange(self.n), E, pattern_of)) for E, pattern_of in zip(self._E, pattern, strict=True)
        ]
        self.compact, self._too_few = np.zeros(self._E.shape, bool), np.zeros(self._E.shape, bool)
        if data.compact:
            self._choose_compact(pattern)
        for number in sorted(set(pattern.ravel().tolist())):
            lookups: dict[int, list[tuple[int, TargetClass]]] = defaultdict(list)
            for layer, order in enumerate(self._orders):
                E, in_pattern = self._E[layer][order], pattern[layer][order] == number
                compact = self.compact[layer][order]
                for dim, short in sorted({*zip(E[in_pattern].tolist(), compact[in_pattern].tolist(), strict=True)}):
                    columns = np.flatnonzero(in_pattern & np.equal(E, dim) & (compact == short))
                    lookups[dim].append((layer, TargetClass(dim, int(columns[0]), int(columns[-1]) + 1, short)))
            dims = tuple(sorted(lookups))
            ks = tuple(data.k or dim + 1 for dim in dims)
            problem = SearchProblem(
                dims, ks, self.tau, self.Tp, data.exclusion_radius, self.n_steps, self.n_steps, self.dtype
            )
            searcher = open_searcher(
                self.executor, problem, "weights", data.search, data_bytes=data.values.nbytes, room=room,
                pool=self._pool,
            )  # fmt: skip
            self._groups.append(_Group(searcher, dict(lookups), data.library_masks.get(int(number))))

    def _choose_compact(self, pattern: NDArray[np.int_]) -> None:
        """Find which targets are looked up in 16 bits, and put them side by side."""
        for layer in np.flatnonzero(~self._gaps).tolist():
            classes = np.column_stack([pattern[layer], self._E[layer]])
            _, class_of, sizes = np.unique(classes, axis=0, return_inverse=True, return_counts=True)
            self._too_few[layer] = sizes[class_of.ravel()] < COMPACT_LEAST
            if self._too_few[layer].all():
                continue
            if self._compact_targets is None:
                self._compact_targets = CompactTargets(self.executor, self._pool, self.n_steps, self._layout)
            self._stage_targets(layer)
            before = self._orders[layer]
            self.compact[layer][before] = self._compact_targets.allowed(self.n) & ~self._too_few[layer][before]
            keys = np.arange(self.n), ~self.compact[layer], self._E[layer], pattern[layer]
            self._orders[layer] = np.lexsort(keys)
            if not np.array_equal(before, self._orders[layer]):
                self._staged.clear()

    def _allocate_targets(self, itemsize: int) -> int:
        """Plan the memory of the targets; returns the bytes that are left for everything else."""
        limit = budget(self.executor.info)
        self._layout = layout_of_lookup(self.n_steps, self.n)
        self._target_bytes = self._layout.elements * itemsize
        nbytes = self._target_bytes
        nbytes += CompactTargets.nbytes(self._layout) if self._data.compact else 0
        require_room(self.executor.info, limit, (self.n_steps, self.n), nbytes)
        # Layers differ in the order of their targets, so that each needs a copy of them. As many copies are kept as
        # there is room for, one where targets have 16 bits; with fewer copies than layers, targets are laid out again
        # for each batch of libraries.
        fit = (limit.total - nbytes) // 8 // self._target_bytes
        self._places = 1 if self._data.compact else max(min(self.layers, fit), 1)
        self._staged: dict[int, tuple[int, TargetColumns]] = {}  # by place: layer and its targets
        return int(limit.total - nbytes - (self._places - 1) * self._target_bytes)

    def _stage_targets(self, layer: int) -> TargetColumns:
        """Targets of a layer on the device.

        They lie time-major, so that the values of a neighbour are one contiguous load for a whole vector of targets.
        """
        place = min(layer, self._places - 1)
        staged, columns = self._staged.get(place, (-1, None))
        if columns is not None and staged == layer:
            return columns
        order = self._orders[layer]
        first, end = self._data.rows(self._E[layer])
        self._observed.score(first + self.Tp, end + self.Tp)  # targets are centred on what is predicted
        column_of = np.empty(self.n, np.int32)
        column_of[order] = np.arange(self.n)
        values = self._pool.get(f"targets {place}", self._target_bytes)
        self._observed.targets(column_of, self._layout.stride, values, self._layout.rows)
        on_device = self._pool.constant(f"target_of {place}", columns_of_rho(order))
        codes = None
        if self._compact_targets is not None and not self._gaps[layer]:
            codes = self._compact_targets.encode(values, int(np.max(first)) + self.Tp, end + self.Tp)
        columns = TargetColumns(values, on_device, self._layout.stride, codes)
        self._staged[place] = layer, columns
        return columns

    @property
    def parameters(self) -> dict[str, Any]:
        """Tuned parameters of the search and of the widest lookup."""
        group = self._groups[0]
        classes = [targets for lookups in group.lookups.values() for _, targets in lookups]
        widest = max(classes, key=lambda targets: targets.end - targets.begin)
        lookup = self._lookups.chosen(group.searcher.problem.k(widest.E), widest.end - widest.begin)
        return {"knn": group.searcher.parameters, "lookup": dict(lookup.parameters)}

    @property
    def searched(self) -> list[dict[str, Any]]:
        """Which search found the neighbours, why, and how good it was; with ``compact``, which targets had 16 bits."""
        searches = searches_of(*(group.searcher for group in self._groups))
        if not self._data.compact:
            return searches
        whys = np.where(self._gaps, GAPS, TOO_WIDE).tolist()
        for compact, too_few, why in zip(self.compact, self._too_few, whys, strict=True):
            n_few = int(too_few.sum())
            full_by_why = {why: self.n - int(compact.sum()) - n_few, TOO_FEW: n_few}
            for why, full in [each for each in full_by_why.items() if each[1]] or [("", 0)]:
                entry: dict[str, Any] = {
                    "for": "precision", "asked": "compact", "targets": self.n, "full": full, "why": why,
                }  # fmt: skip
                searches += [entry] if entry not in searches else []
        return searches

    def skill(
        self, a: int, b: int, out: Any = None, report: Callable[[int], None] | None = None
    ) -> Any:
        """rho (b - a, n_targets) of libraries a to b for all targets, written to ``out`` where it is given.

        ``out`` is a contiguous array, or rows of one on the device (:class:`pyedmcl.launch.staging.DeviceRows`).

        ``report`` is called after each batch with the number of libraries that are done.
        """
        if out is None:
            out = np.empty((b - a, self.n), np.dtype(self.dtype))
        return self.skills(a, b, [out], report)[0]

    def skills(
        self, a: int, b: int, out: Sequence[NDArray[Any]], report: Callable[[int], None] | None = None
    ) -> Sequence[NDArray[Any]]:
        """rho (b - a, n_targets) of libraries a to b in each layer, in the arrays of ``out`` (contiguous)."""
        for first in range(a, b, self._batch):
            begin, end = first - a, min(first - a + self._batch, b - a)
            self._skill(first, [layer[begin:end] for layer in out])
            if report is not None:
                report(end)
        return out

    def _skill(self, a: int, out: Sequence[NDArray[Any]]) -> None:
        n, nbytes = len(out[0]), out[0].nbytes
        rho = self._pool.get("rho", self.layers * nbytes)
        for group in self._groups:
            series = group.searcher.load(self.data, a, a + n)
            for tables in group.searcher.tables(series, group.library_mask):
                if self._data.hidden is not None:
                    self._lookups.hide(tables, self._data.hidden)
                self._lookups.compile_ahead(tables, self._planned_lookups(group, tables.problem.dims))
                for dim in tables.problem.dims:
                    begin, end = (int(row) for row in self._data.rows(dim))
                    for layer, targets in group.lookups[dim]:
                        columns, gaps = self._stage_targets(layer), bool(self._gaps[layer])
                        request = LookupRequest(dim, columns, (begin, end), gaps, targets.compact)
                        into = RhoRows(rho, layer * n + tables.first, self.n)
                        self._lookups.run(tables, request, (targets.begin, targets.end), into)
        for layer, rows in enumerate(out):
            if isinstance(rows, DeviceRows):
                for row in _stateless(self._data, a, n):
                    nothing = np.full(self.n, np.nan, self.dtype)
                    self.executor.upload(nothing, rho, (layer * n + row) * nothing.nbytes)
                deliver_skill(self.executor, rho, layer * rows.size, rows)
            else:
                self.executor.download(rho, rows, layer * nbytes)
                require_rho(self.executor, rows, "lookup")
                rows[_stateless(self._data, a, n)] = np.nan

    def _kernels(self, n_libraries: int) -> Iterator[tuple[KernelSpec, dict[str, Any]]]:
        """The kernels that ``n_libraries`` are sure to need, each with the values that its text is specialised by."""
        yield spec("stage"), {"dtype": self.dtype}
        for group in self._groups:
            for knn_pass, n in group.searcher.sure_passes(n_libraries):
                yield spec("knn"), knn_pass.values(group.library_mask is not None)
                yield from self._lookups.kernels_for(knn_pass, n, self._planned_lookups(group, knn_pass.problem.dims))

    def _planned_lookups(self, group: _Group, dims: Sequence[int]) -> Iterator[PlannedLookup]:
        """The lookups of tables of these dimensions."""
        for dim in dims:
            begin, end = (int(row) for row in self._data.rows(dim))
            for layer, targets in group.lookups[dim]:
                yield dim, targets.end - targets.begin, (begin, end), bool(self._gaps[layer]), targets.compact

    def release(self) -> None:
        """Give the device memory back."""
        for group in self._groups:
            group.searcher.release()
        self._lookups.release()
        self._pool.release()
        self.data.release()
        self._observed.release()


# A cross map that is computed in one go; small ones go through the copies and launches of the one before.


def whole_map(
    executor: Executor, data: MapData, rho: NDArray[Any], report: Callable[[int], None] | None = None
) -> Record:
    """Write the skill of all libraries for all targets to ``rho`` (n_libraries, n_targets); see :class:`CrossMap`."""

    def work(executor: Executor) -> Record:
        mapping = CrossMap(executor, data)
        try:
            mapping.skill(0, len(rho), rho, report)
            return Record(mapping.parameters, "", tuple(mapping.searched))
        finally:
            mapping.release()

    key = _key(executor, data)
    if key is None:
        return work(executor)
    inputs = {"values": data.values} if data.targets is None else {"values": data.values, "targets": data.targets}
    record = replayed(executor, key, inputs, {"rho": rho}, work)
    require_rho(executor, rho, "lookup")
    rho[_stateless(data, 0, len(rho))] = np.nan
    return record


def _stateless(data: MapData, first: int, n: int) -> NDArray[np.int_]:
    """Which of ``n`` libraries never change."""
    return np.flatnonzero([] if data.stateless is None else data.stateless[first : first + n])


def _key(executor: Executor, data: MapData) -> Hashable | None:
    """What a map's launches follow from beside the shape of its series; None where its data have a say, too."""
    some_left_out = data.gap_pattern is not None and np.any(data.gap_pattern)
    if some_left_out or data.library_masks or data.hidden is not None or data.compact:
        return None
    dims = tuple(sorted(set(np.asarray(data.E).ravel().tolist())))
    n = len(data.values)
    problem = SearchProblem(
        dims, tuple(data.k or E + 1 for E in dims), data.tau, data.Tp, data.exclusion_radius, n, n,
        data.values.dtype.name,
    )  # fmt: skip
    sure = sure_of(data.search, executor.info, problem)
    if sure is None:
        return None
    E, gaps = np.asarray(data.E), np.asarray(data.gaps)
    return (
        "whole_map", problem, E.shape, E.tobytes(), gaps.tobytes(), data.k, data.search, data.n_libraries,
        data.predicted, sure,
    )  # fmt: skip


# Cross-map skill within many windows: one search of all their libraries, one upload, a lookup for each window.


Numbers = NDArray[np.int_]


@dataclass(frozen=True)
class WindowData:
    """Windows without gaps."""

    # ndarray (width, n_windows * n_libraries). From :func:`pyedmcl.series.scaling.condition`, window by window.
    values: NDArray[Any]
    # ndarray (width, n_windows * n_targets)
    targets: NDArray[Any]
    # ndarray of int (n_windows, n_targets). Embedding dimension of each target.
    E: Numbers
    tau: int
    Tp: int
    exclusion_radius: int
    # Neighbours; E + 1 if None.
    k: int | None
    search: SearchRequest
    # The libraries' rows, where all windows hold the same numbers of them.
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
