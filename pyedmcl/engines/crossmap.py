"""Computes the cross-map skill of some libraries for all targets on a device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build_ahead
from ..codegen.spec import KernelSpec
from ..device.memory import budget
from ..kernels import spec
from ..launch.delivery import DeviceRows, deliver_skill
from ..launch.invariants import require_rho
from ..launch.pool import Pool
from ..launch.staging import Staging
from ..neighbors.choose import SearchRequest
from ..neighbors.plan import SearchProblem
from ..neighbors.searcher import Searcher, open_searcher, searches_of
from .compact import GAPS, TOO_WIDE, CompactTargets
from .lookup_request import LookupRequest, PlannedLookup, RhoRows, TargetColumns
from .lookups import Lookups
from .target_layout import columns_of_rho, layout_of_lookup, require_room

if TYPE_CHECKING:
    from ..device.executor import Executor


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
    """What a cross map is computed from. A map may have several layers, which differ in E only.

    Attributes
    ----------
    values : ndarray (n_steps, n_series)
        All libraries, from :func:`pyedmcl.data.condition.condition`.
    E : ndarray of int (n_targets,) or (n_layers, n_targets)
        Embedding dimension of each target, in each layer.
    tau, Tp, exclusion_radius : int
    k : int or None
        Number of neighbours; E + 1 if None.
    gap_pattern : ndarray of int (n_targets,) or (n_layers, n_targets), optional
        0 where no library row is ruled out by gaps of the target, else the number of its pattern.
    library_masks : mapping
        Number of a pattern to the library rows (n_steps,) that may be neighbours; see :mod:`pyedmcl.edm.shared.masks`.
    gaps : bool or ndarray of bool (n_layers,)
        Whether any prediction or observation may be missing.
    search : SearchRequest, optional
        How neighbours are searched.
    n_libraries : int, optional
        Number of libraries of the whole map, of which this device may compute a part; by default the number of series.
    targets : ndarray (n_steps, n_targets), optional
        All targets, conditioned as the libraries are; by default the targets are the libraries.
    predicted : (int, int), optional
        The first row that is predicted, and one past the last; by default all rows are predicted.
    hidden : ndarray of int32, optional
        Rows within ``predicted`` that are left out all the same. Where there are any, ``gaps`` must be true.
    compact : bool
        Whether targets are looked up in 16 bits where that is precise enough (:mod:`.compact`).
    """

    values: NDArray[Any]
    E: NDArray[np.int_]
    tau: int = 1
    Tp: int = 0
    exclusion_radius: int = 0
    k: int | None = None
    gap_pattern: NDArray[np.int_] | None = None
    library_masks: Mapping[int, NDArray[np.bool_]] = field(default_factory=dict)
    gaps: bool | NDArray[np.bool_] = False
    search: SearchRequest | None = None
    n_libraries: int | None = None
    targets: NDArray[Any] | None = None
    predicted: tuple[int, int] | None = None
    hidden: NDArray[np.int32] | None = None
    compact: bool = False

    def rows(self, E: Any) -> tuple[Any, int]:
        """First row that is predicted in dimension ``E``, one or several, and one past the last."""
        n = len(self.values)
        begin, end = self.predicted or (0, n)
        first = np.maximum((np.asarray(E) - 1) * self.tau, max(-self.Tp, begin))
        return first, min(end, n, n - self.Tp)


class CrossMap:
    """Computes the skill of all pairs. The neighbour table of a library serves all targets of the table's dimension.

    Parameters
    ----------
    executor : Executor
    data : MapData
    """

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
        self.compact = np.zeros(self._E.shape, bool)
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
            if self._compact_targets is None:
                self._compact_targets = CompactTargets(self.executor, self._pool, self.n_steps, self._layout)
            self._stage_targets(layer)
            before = self._orders[layer]
            self.compact[layer][before] = self._compact_targets.allowed(self.n)
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
        whys = np.where(self._gaps, GAPS, TOO_WIDE)
        for compact, why in zip(self.compact, whys.tolist(), strict=True):
            full = self.n - int(compact.sum())
            entry: dict[str, Any] = {
                "for": "precision", "asked": "compact", "targets": self.n, "full": full, "why": why if full else "",
            }  # fmt: skip
            searches += [entry] if entry not in searches else []
        return searches

    def skill(
        self, a: int, b: int, out: Any = None, report: Callable[[int], None] | None = None
    ) -> Any:
        """rho (b - a, n_targets) of libraries a to b for all targets, written to ``out`` where it is given.

        ``out`` is a contiguous array, or rows of one on the device (:class:`pyedmcl.launch.delivery.DeviceRows`).

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
                deliver_skill(self.executor, rho, layer * rows.size, rows)
            else:
                self.executor.download(rho, rows, layer * nbytes)
                require_rho(self.executor, rows, "lookup")

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
