"""Skill of libraries at several lags against many targets, which are uploaded once and share every search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..kernels.highest import WG
from ..launch.invariants import MOST_RHO, require_rho, wrong_result
from ..launch.pool import Pool
from ..launch.sizes import open_size
from ..launch.staging import Staging
from ..neighbors.choose import SearchRequest
from ..neighbors.plan import SearchProblem
from ..neighbors.searcher import Searcher, open_searcher
from ..neighbors.tables import Tables
from .lagged_targets import Mask, Numbers, Span, rectangles
from .lookup_request import LookupRequest, Piece, RhoRows, TargetColumns
from .lookups import Lookups
from .target_layout import PADDED_TO, TargetLayout, columns_of_rho, layout_of_lookup

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

# Lookups of a target that take as long as to begin another launch, for each compute unit.
_LAUNCH = 64
# Lookups of a piece of a map, for each compute unit, that fill a device: smaller ones share a launch that looks up what
# is marked.
_FILLS = 2048


@dataclass(frozen=True)
class Libraries:
    """Series whose states predict.

    Attributes
    ----------
    values : ndarray (n_steps, n_libraries)
        From :func:`pyedmcl.data.condition.condition`.
    E : ndarray of int (n_libraries,)
    tau, exclusion_radius : int
    k : int or None
        Neighbours; E + 1 if None.
    gaps : bool
        Whether any prediction or observation may be missing, those of targets too.
    search : SearchRequest, optional
        How neighbours are searched.
    """

    values: NDArray[Any]
    E: Numbers
    tau: int = 1
    exclusion_radius: int = 0
    k: int | None = None
    gaps: bool = False
    search: SearchRequest | None = None


class LaggedMap:
    """Skill at any lag; tables of neighbours are kept, as far as there is memory, and serve all targets.

    Parameters
    ----------
    executor : Executor
    libraries : Libraries
    """

    def __init__(self, executor: Executor, libraries: Libraries) -> None:
        self.executor, self._libraries = executor, libraries
        self.n_steps, self.n = libraries.values.shape
        self.dtype = libraries.values.dtype.name
        # Libraries of one dimension lie side by side.
        self._order = np.argsort(libraries.E, kind="stable")
        self._dims = libraries.E[self._order]
        self._lookups = Lookups(executor, self.n_steps, self.dtype, self.n)
        self._limit = budget(executor.info)
        self._pool = Pool(executor)
        self._data = Staging(executor, np.ascontiguousarray(libraries.values[:, self._order]))
        self._kept: dict[tuple[Any, ...], tuple[Tables, _TablePool]] = {}
        self._kept_bytes = 0
        self.parameters: dict[str, Any] = {}

    def layout_of(self, spans: Sequence[Span]) -> TargetLayout:
        """How targets lie on the device."""
        return layout_of_lookup(self.n_steps, spans[-1].end)

    @property
    def most_targets(self) -> int:
        """Columns of targets that there is room for."""
        item = np.dtype(self.dtype).itemsize
        rows = layout_of_lookup(self.n_steps, 1).rows  # as many as any number of targets needs
        most = min(self._limit.largest, self._limit.total // 4) // (rows * item)
        skills = min(self._limit.largest, self._limit.total // 16) // (self.n * item)
        return int(min(most, skills)) // PADDED_TO * PADDED_TO

    def load(self, values: NDArray[Any], spans: Sequence[Span]) -> None:
        """Put targets on the device.

        Parameters
        ----------
        values : ndarray (rows, stride)
            As :meth:`layout_of` the spans says; from :func:`.lagged_targets.room_for`.
        spans : sequence of Span
            One behind another, from column 0 on.
        """
        self.executor.upload(values, self.room(spans))

    def room(self, spans: Sequence[Span]) -> Buffer:
        """Memory for targets, laid out as :meth:`layout_of` the spans says.

        Who asks for it fills it; what is beside and below the targets is 0.
        """
        layout, width = self.layout_of(spans), spans[-1].end
        nbytes = layout.elements * np.dtype(self.dtype).itemsize
        if width > self.most_targets:
            raise DeviceMemoryError(
                f"{width:,} targets of {self.n_steps:,} steps need {nbytes:,} bytes on the device, and their skill for "
                f"{self.n:,} libraries {2 * self.n * width * np.dtype(self.dtype).itemsize:,}: there is room for "
                f"{self.most_targets:,} targets on {self.executor.info.name} (raise PYEDMCL_MEMORY_FRACTION or "
                "PYEDMCL_MEMORY_LIMIT, or take fewer surrogates at a time by n=)"
            )
        on_device = self._pool.get("targets", nbytes)
        itself = columns_of_rho(np.arange(layout.stride))
        target_of = self.executor.upload(itself, self._pool.get("target_of", itself.nbytes))
        self._targets, self._spans, self._width = TargetColumns(on_device, target_of, layout.stride), list(spans), width
        self._masks: dict[bytes, list[int]] = {}
        self._pieces: dict[tuple[Any, ...], list[Piece]] = {}  # what is wanted, as launches: the same at all lags
        for number, span in enumerate(spans):
            self._masks.setdefault(b"" if span.missing is None else span.missing.tobytes(), []).append(number)
        return on_device

    def skill(self, Tp: int, wanted: Mask) -> NDArray[Any]:
        """rho (n_libraries, n_columns) at a lag; NaN where (n_libraries, n_spans) a span is not wanted."""
        out = np.empty((self.n, self._width), self.dtype)
        rho = self._pool.get("rho", out.nbytes)
        ordered = wanted[self._order]
        self._look_up(Tp, ordered, rho)
        self.executor.download(rho, out)
        widths = [span.end - span.begin for span in self._spans]
        out[~np.repeat(ordered, widths, axis=1)] = np.nan
        require_rho(self.executor, out, "lookup")
        in_order = np.empty_like(out)
        in_order[self._order] = out
        return in_order

    def highest(self, lags: Sequence[int], wanted: Mask) -> tuple[NDArray[Any], Numbers, Numbers]:
        """The highest rho of several lags, of the first column of each span, and how the others compare.

        Parameters
        ----------
        lags : sequence of int
        wanted : ndarray of bool (n_libraries, n_spans)
            What is not wanted takes no time, but for a map that most of is wanted.

        Returns
        -------
        rho, reached, valid : ndarray (n_libraries, n_spans)
            That rho, NaN where it is not wanted; of the other columns, how many have as much at lags of their own, and
            how many have a rho. See :func:`pyedmcl.edm.shared.exceedance.counts`.
        """
        n_spans, ordered = len(self._spans), wanted[self._order]
        begins = np.array([*(span.begin for span in self._spans), self._width], np.int32)
        item, room = np.dtype(self.dtype).itemsize, self.n * self._width
        pairs = {"wanted": self._pool.put("wanted", ordered.astype(np.uint8)), "n_spans": n_spans}
        cells = {"best": self._pool.get("best", room * item), "width": self._width}
        rho = self._pool.get("rho", room * item)
        span_of = self._pool.put("span_of", np.repeat(np.arange(n_spans, dtype=np.int32), np.diff(begins)))
        size = open_size(self._width, self.n)
        self._launch("highest_begin", size, None, **pairs, **cells, span_of=span_of, rho=rho)
        marked = self._marks_pay(ordered)
        for Tp in lags:
            self._look_up(Tp, ordered, rho, marked=marked)
            self._launch("highest_keep", size, None, **cells, most=MOST_RHO, rho=rho)
        sorted_out = np.empty((self.n, n_spans), self.dtype), *np.empty((2, self.n, n_spans), np.int32)
        names = "own", "reached", "valid"
        counted = {name: self._pool.get(name, out.nbytes) for name, out in zip(names, sorted_out, strict=True)}
        wrong = self._pool.put("wrong", np.zeros(1, np.uint32))
        self._launch(
            "highest_count", (n_spans * WG, self.n), (WG, 1), **pairs, **cells, **counted, wrong=wrong,
            span_begins=self._pool.put("span_begins", begins),
        )  # fmt: skip
        for name, out in zip(names, sorted_out, strict=True):
            self.executor.download(counted[name], out)
        if self.executor.download(wrong, np.empty(1, np.uint32))[0]:
            raise wrong_result(self.executor.info, f"correlations beyond {MOST_RHO} (kernel lookup)")
        own_skill, reached, valid = (np.empty_like(out) for out in sorted_out)
        own_skill[self._order], reached[self._order], valid[self._order] = sorted_out
        return own_skill, reached.astype(int), valid.astype(int)

    def _launch(self, entry: str, size: tuple[int, ...], group: tuple[int, ...] | None, /, **arguments: Any) -> None:
        kernel = build(self.executor, spec("highest"), {"dtype": self.dtype}, entry)
        self.executor.launch(kernel, size, group, **arguments)

    def _marks_pay(self, ordered: Mask) -> bool:
        """Whether a launch over all pairs, which looks up those that are MARKED, is faster than one for each piece."""
        quirks, units = quirks_for(self.executor.info), self.executor.info.compute_units
        if self._libraries.gaps or not quirks.scalar_work_items:
            return False
        pieces = int((ordered[1:] & ~ordered[:-1]).sum() + ordered[0].sum())
        lookups = int(ordered.sum(axis=0) @ [span.end - span.begin for span in self._spans])
        return lookups < pieces * _FILLS * units

    def _look_up(self, Tp: int, ordered: Mask, rho: Buffer, *, marked: bool = False) -> None:
        """Write rho of what is wanted; ``marked``: where it is MARKED."""
        for E in np.unique(self._dims).tolist():
            a, b = (int(np.searchsorted(self._dims, E, side=side)) for side in ("left", "right"))
            for numbers in self._masks.values():
                asked = ordered[a:b][:, numbers]
                if asked.any():
                    self._look_up_alike(E, a, b, Tp, numbers, asked, rho, marked=marked)

    def _look_up_alike(
        self, E: int, a: int, b: int, Tp: int, numbers: Sequence[int], asked: Mask, rho: Buffer, *, marked: bool
    ) -> None:
        """Write rho of libraries ``a`` to ``b - 1`` and of spans that have the same gaps."""
        missing, launch = self._spans[numbers[0]].missing, _LAUNCH * self.executor.info.compute_units
        predicted = max((E - 1) * self._libraries.tau, -Tp), min(self.n_steps, self.n_steps - Tp)
        spans = [self._spans[number] for number in numbers]
        widths = [span.end - span.begin for span in spans]
        for tables in self._tables(E, a, b, Tp, missing):
            pairs = asked[tables.first : tables.first + tables.n_libraries]
            self.parameters["lookup"] = dict(self._lookups.chosen(tables.problem.k(E), max(widths)).parameters)
            row = a + tables.first
            request = LookupRequest(E, self._targets, predicted, self._libraries.gaps)
            into = RhoRows(rho, row, self._width)
            if marked:
                n_marked = int((pairs * widths).sum())
                self._lookups.run_marked(tables, request, self._width, into, marked=n_marked)
                continue
            key = row, tables.n_libraries, numbers[0], pairs.tobytes()
            if key not in self._pieces:
                self._pieces[key] = [((begin, end), rows) for rows, begin, end in rectangles(pairs, spans, launch)]
            self._lookups.run_each(tables, request, self._pieces[key], into)

    def _tables(self, E: int, a: int, b: int, Tp: int, missing: Mask | None) -> Iterator[Tables]:
        """Neighbours of libraries ``a`` to ``b - 1``, which lead to values of the targets."""
        key = E, Tp, b"" if missing is None else missing.tobytes()
        if key in self._kept:
            yield self._kept[key][0]
            return
        data, n = self._libraries, self.n_steps
        problem = SearchProblem((E,), (data.k or E + 1,), data.tau, Tp, data.exclusion_radius, n, n, self.dtype)
        pool = _TablePool(self.executor, self._pool)
        searcher = open_searcher(
            self.executor, problem, "weights", data.search, data_bytes=self._data.values.nbytes,
            room=self._limit.total // 2, pool=pool,
        )  # fmt: skip
        kept = None
        try:
            self.parameters["knn"] = searcher.parameters
            for tables in searcher.tables(searcher.load(self._data, a, b), _library_mask(missing, Tp)):
                kept = tables if tables.n_libraries == b - a else None
                yield tables
            self._keep(key, kept, pool, searcher)
        finally:
            searcher.release()
            if key not in self._kept:
                pool.release()

    def _keep(self, key: tuple[Any, ...], tables: Tables | None, pool: _TablePool, searcher: Searcher) -> None:
        """Keep tables for other targets, as long as all that are kept take a quarter of the memory at most."""
        if tables is not None and self._kept_bytes + pool.own_bytes <= self._limit.total // 4:
            self._kept[key] = tables, pool
            self._kept_bytes += pool.own_bytes

    def release(self) -> None:
        """Give the device memory back."""
        for _, pool in self._kept.values():
            pool.release()
        self._kept.clear()
        self._pool.release()
        self._data.release()


class _TablePool(Pool):
    """Tables of its own, and what a search works with beside them from a pool that searches share."""

    _OWN = ("rows", "values")

    def __init__(self, executor: Executor, shared: Pool) -> None:
        super().__init__(executor)
        self._shared = shared

    def get(self, name: str, nbytes: int) -> Buffer:
        return super().get(name, nbytes) if name in self._OWN else self._shared.get(name, nbytes)

    def drop(self, *names: str) -> None:
        super().drop(*names)
        self._shared.drop(*(name for name in names if name not in self._OWN))

    @property
    def own_bytes(self) -> int:
        return sum(held.buffer.nbytes for held in self._held.values())


def _library_mask(missing: Mask | None, Tp: int) -> Mask | None:
    """Rows j whose target at j + Tp is there; rows that lead outside the series are left out by the search itself."""
    if missing is None:
        return None
    mask = np.ones(len(missing), bool)
    if Tp >= 0:
        mask[: max(len(mask) - Tp, 0)] = ~missing[Tp:]
    else:
        mask[-Tp:] = ~missing[: max(len(mask) + Tp, 0)]
    return mask
