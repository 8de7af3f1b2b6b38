"""Skill of libraries at several lags, and surrogates with random phases as their targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..kernels.build import build
from ..kernels.specs.maps import EDGE, HIGHEST_WG, WAVES_VALUES, WG
from ..kernels.texts import GAP
from ..launch.staging import MOST_RHO, Pool, Staging, open_size, require_rho, round_up, wrong_result
from ..search.choose import SearchRequest
from ..search.plan import SearchProblem
from ..search.searcher import Searcher, open_searcher
from ..search.tables import Tables
from .lookup import LookupRequest, Lookups, Piece, RhoRows, TargetColumns
from .targets import PADDED_TO, TargetLayout, columns_of_rho, layout_of_lookup

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


# Surrogates with random phases, drawn on the device as targets of a lookup: see ``templates/waves.cl.mako``.


Doubles = NDArray[np.float64]
Amplitudes = NDArray[np.complex128]
_AMPLITUDES_BYTES = 256 << 20  # at a time
# What sums of the device and of the host may differ by, in roundings of the standard deviation: the root of the mean
# square of what they differ by is 0.3 times the root of the steps (white, red and periodic series of 997 to 8,192).
_ROUNDINGS, _ROUNDINGS_BESIDE = 4, 16


@dataclass(frozen=True)
class WaveSeries:
    """What the surrogates of a series are made of, and how the device reads them."""

    # ndarray (n_steps,). The series itself as the device reads it.
    values: NDArray[np.float32]
    # ndarray (n_steps // 2 + 1,). Magnitudes of the transform of what is drawn.
    spectrum: Doubles
    # What is added to each surrogate.
    mean: float
    # ndarray (n_steps,) or None. What is added to each step then, NaN in gaps.
    base: Doubles | None
    # shift, exponent: Of the layout: see :func:`laid_out`.
    shift: float
    exponent: int
    # ndarray of uint64 (n_groups, 2). Of the random streams of its surrogates.
    keys: NDArray[np.uint64]

    @property
    def numbers(self) -> list[float]:
        """Those of ``of_series`` in the kernel."""
        n = len(self.values)
        deviation = math.sqrt(2 * float(self.spectrum @ self.spectrum)) / n
        beside = abs(self.mean) + (0.0 if self.base is None else float(np.nanmax(np.abs(self.base), initial=0.0)))
        roundings = _ROUNDINGS * math.sqrt(n) * deviation + _ROUNDINGS_BESIDE * (deviation + beside)
        factor = 2.0**-self.exponent
        return [self.mean, self.shift, factor, roundings * np.finfo(np.float64).eps / 2 * factor, self.base is not None]


class WaveDrawer:
    """Draws surrogates into targets that lie on a device.

    Parameters
    ----------
    turns : ndarray of complex128 (65536,)
        The phases that there are.
    """

    def __init__(self, executor: Executor, n_steps: int, turns: NDArray[np.complex128]) -> None:
        self.executor, self.n_steps = executor, n_steps
        self._pool = Pool(executor, "waves", n_steps)
        self._turns = turns

    def draw(
        self, several: Sequence[WaveSeries], first: int, n: int, targets: Buffer, rows: int, stride: int,
        back: Callable[[int, Amplitudes], NDArray[np.float32]],
    ) -> None:  # fmt: skip
        """Put each series, followed by its surrogates ``first`` to ``first + n - 1``, into columns of targets.

        Parameters
        ----------
        targets : Buffer
            float32 [rows][stride].
        rows, stride : int
            There are zeros behind the last step and the last column.
        back : callable
            Of the place of a series among these, and amplitudes (m, n_steps // 2 + 1) of some of its surrogates: those
            (m, n_steps) as the device reads them. It is asked where rounding could decide about a bit.
        """
        pool, total, steps = self._pool, len(several) * n, self.n_steps
        columns = np.arange(len(several)) * (n + 1)
        self._launch(
            "wave_border", open_size(stride, rows), None, width=total + len(several), target_stride=stride,
            targets=targets,
        )  # fmt: skip
        self._place(np.stack([one.values for one in several]), columns, targets, stride)
        frequencies = steps // 2
        room = min(_AMPLITUDES_BYTES, budget(self.executor.info).total // 8)
        most = max(room // (16 * frequencies) // EDGE, 1) * EDGE
        held = {
            "keys": pool.put("keys", np.stack([one.keys for one in several])),
            "turns": pool.constant("turns", self._turns.view(np.float64)),
            "spectra": pool.put("spectra", np.stack([one.spectrum for one in several])),
        }
        summed = {
            "roots": pool.constant("roots", np.exp(2j * np.pi * np.arange(steps) / steps).view(np.float64)),
            "of_series": pool.put("of_series", np.array([one.numbers for one in several])),
            "bases": pool.put("bases", _stacked([one.base for one in several], steps)),
        }
        for begin in range(0, total, most):
            end = min(begin + most, total)
            padded = round_up(end - begin, EDGE)
            marked = pool.put("marked", np.zeros(padded, np.int32))
            amplitudes = pool.get("amplitudes", 16 * frequencies * padded)
            part = {"begin": begin, "end": end, "each": n, "stride": padded, "amplitudes": amplitudes}
            self._launch(
                "wave_turns", open_size(padded, frequencies), None, **held, **part, n_groups=len(several[0].keys),
                first=first,
            )  # fmt: skip
            self._launch(
                "wave_sums", (padded // EDGE * WG, frequencies // EDGE + 1), (WG, 1), **summed, **part, marked=marked,
                target_stride=stride, targets=targets,
            )  # fmt: skip
            which = np.flatnonzero(self.executor.download(marked, np.empty(padded, np.int32)))
            if len(which):
                series = (begin + which) // n
                picked = self._picked(which, padded, amplitudes)
                again = [back(j, picked[series == j]) for j in np.unique(series).tolist()]
                self._place(np.concatenate(again), begin + which + series + 1, targets, stride)

    def _picked(self, which: NDArray[np.int_], stride: int, amplitudes: Buffer) -> Amplitudes:
        """Amplitudes of some draws of a launch."""
        out = np.empty((len(which), self.n_steps // 2 + 1), np.complex128)
        draws, picked = self._pool.put("draws", which.astype(np.int32)), self._pool.get("picked", out.nbytes)
        self._launch(
            "wave_pick", open_size(out.shape[1], len(which)), None, amplitudes=amplitudes, draws=draws, stride=stride,
            picked=picked,
        )  # fmt: skip
        self.executor.download(picked, out.view(np.float64))
        return out

    def _place(
        self, series: NDArray[np.float32], columns: NDArray[np.int_], targets: Buffer, stride: int
    ) -> None:  # fmt: skip
        """Put series (n, n_steps) into columns of targets."""
        self._launch(
            "wave_place", open_size(self.n_steps, len(columns)), None, series=self._pool.put("series", series),
            columns=self._pool.put("columns", columns.astype(np.int32)), target_stride=stride, targets=targets,
        )  # fmt: skip

    def _launch(self, entry: str, size: tuple[int, ...], group: tuple[int, ...] | None, /, **arguments: Any) -> None:
        kernel = build(self.executor, spec("waves"), WAVES_VALUES, entry)
        self.executor.launch(kernel, size, group, n_steps=self.n_steps, **arguments)

    def release(self) -> None:
        """Give the device memory back."""
        self._pool.release()


def _stacked(bases: Sequence[Doubles | None], n_steps: int) -> Doubles:
    """What is added to each step of each series; a number that nobody reads where there is no such series."""
    if all(base is None for base in bases):
        return np.zeros(1)
    return np.stack([np.zeros(n_steps) if base is None else base for base in bases])


# Targets of maps at several lags: as the device reads them, and what is wanted of them in pieces and ranges.


Mask = NDArray[np.bool_]
Numbers = NDArray[np.int_]
_FAR = 1000  # beyond this binary exponent a power of two is no float64


@dataclass(frozen=True)
class Span:
    """Columns ``begin`` to ``end - 1`` of targets that are gaps in the same rows."""

    begin: int
    end: int
    # ndarray of bool (n_steps,) or None. Those rows; None where there is none.
    missing: Mask | None = None


def room_for(
    n_steps: int, width: int, dtype: str, room: Callable[[tuple[int, ...], str], NDArray[Any]] = np.empty
) -> NDArray[Any]:
    """An array from ``room`` for ``width`` targets as the device reads them; zeros behind the last row and column."""
    layout = layout_of_lookup(n_steps, width)
    values = room((layout.rows, layout.stride), dtype)
    values[n_steps:] = 0
    values[:, width:] = 0
    return values


def centred(values: NDArray[Any]) -> tuple[float, int]:
    """Shift and binary exponent by which a target (n_steps,) is brought around 0 and below 1 in magnitude."""
    finite = values[np.isfinite(values)].astype(np.float64)
    shift = float(finite.mean()) if finite.size else 0.0
    return shift, int(np.frexp(np.abs(finite - shift).max(initial=0.0))[1])


def laid_out(values: NDArray[np.float64], shift: float, exponent: int, *, gaps: bool = True) -> NDArray[np.float64]:
    """Targets of one series as the device reads them, in place of ``values``; ``gaps``: whether there may be any."""
    values -= shift
    if abs(exponent) < _FAR:
        values *= 2.0**-exponent  # as exact as ldexp, which takes six times as long
    else:
        np.ldexp(values, -exponent, out=values)
    if gaps:
        values[np.isnan(values)] = GAP
    return values


def rectangles(wanted: Mask, spans: Sequence[Span], launch: int) -> Iterator[tuple[tuple[int, int], int, int]]:
    """Launches that compute what is wanted: ((first library, end), first column, end).

    Parameters
    ----------
    wanted : ndarray of bool (n_libraries, n_spans)
    spans : sequence of Span
        Those beside each other may share a launch.
    launch : int
        Lookups that nobody wants take less time than another launch, up to this number.
    """
    held: tuple[tuple[int, int], int, int] | None = None
    for number, span in enumerate(spans):
        width = span.end - span.begin
        rows = np.flatnonzero(wanted[:, number])
        if not len(rows):
            continue
        ends = np.flatnonzero((np.diff(rows) - 1) * width > launch)
        runs = list(zip(rows[np.append(0, ends + 1)].tolist(), (rows[np.append(ends, -1)] + 1).tolist(), strict=True))
        for first, end in runs:
            if held is not None:
                (a, b), begin, last = held
                both = min(a, first), max(b, end)
                apart = (b - a) * (last - begin) + (end - first) * width
                if last == span.begin and (both[1] - both[0]) * (span.end - begin) <= apart + launch:
                    held = both, begin, span.end
                    continue
                yield held
            held = (first, end), span.begin, span.end
    if held is not None:
        yield held


# Skill of libraries at several lags against many targets, which are uploaded once and share every search.


# Lookups of a target that take as long as to begin another launch, for each compute unit.
_LAUNCH = 64
# Lookups of a piece of a map, for each compute unit, that fill a device: smaller ones share a launch that looks up what
# is marked.
_FILLS = 2048


@dataclass(frozen=True)
class Libraries:
    """Series whose states predict."""

    # ndarray (n_steps, n_libraries). From :func:`pyedmcl.series.scaling.condition`.
    values: NDArray[Any]
    # ndarray of int (n_libraries,)
    E: Numbers
    tau: int = 1
    exclusion_radius: int = 0
    # Neighbours; E + 1 if None.
    k: int | None = None
    # Whether any prediction or observation may be missing, those of targets too.
    gaps: bool = False
    # How neighbours are searched.
    search: SearchRequest | None = None


class LaggedMap:
    """Skill at any lag; tables of neighbours are kept, as far as there is memory, and serve all targets."""

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
            As :meth:`layout_of` the spans says; from :func:`room_for`.
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
        wanted : ndarray of bool (n_libraries, n_spans)
            What is not wanted takes no time, but for a map that most of is wanted.

        Returns
        -------
        rho, reached, valid : ndarray (n_libraries, n_spans)
            That rho, NaN where it is not wanted; of the other columns, how many have as much at lags of their own, and
            how many have a rho. See :func:`pyedmcl.statistics.counts`.
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
            "highest_count", (n_spans * HIGHEST_WG, self.n), (HIGHEST_WG, 1), **pairs, **cells, **counted, wrong=wrong,
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
